"""A masked tensor taken apart and made again: for pickles, ``torch.save`` and other processes."""

import inspect
from collections.abc import Callable
from math import prod
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch import Tensor

from ... import layouts, masks
from ...compat import is_fake
from ...engine.alias_records import Family, alias_of
from ...engine.boundary.packed import wrap_packed
from ...engine.compiled.flatten import stable_hash
from ...engine.table import view_named
from ...engine.tensor import ENGINE, MaskedTensor, expose, pair_of, wrap
from ...layouts import meshes
from ...packing import Grid, Packed
from ...pair import Pair, Payload
from ...select import select
from .sent_masks import SentMask, receive_mask, send_mask

#: Before, torch asked no input for what it adds to the key of a compiled graph in a cache on disk.
_KEYS_ARE_PICKLES = torch.__version__ < "2.13"


def rebuild(kind: str, parts: dict[str, Any]) -> MaskedTensor:
    """The masked tensor of a pickle.  Pickles name this function, and no other of this package.

    They name it ``masked_tensor._pickle.rebuild``, whatever file it stands in.  A pickle is read by every later
    version: the functions in ``_KINDS`` may get more parts, each with a default, but none is renamed or removed.

    Raises ValueError for a pickle of a later version, and for one that is damaged.
    """
    make = _KINDS.get(kind)
    more = [kind] if make is None else sorted(parts.keys() - inspect.signature(make).parameters.keys())
    if make is None or more:
        raise ValueError(
            f"this pickle was written by a later version of masked_tensor, it has {more[0]!r}: update masked_tensor"
        )
    try:
        _check_attributes(parts["attributes"])
        return make(**parts)
    except Exception as reason:
        raise ValueError(
            f"this pickle of a masked tensor is damaged, or was not written by this package ({reason}): write it again "
            "with pickle or torch.save"
        ) from reason


def _check_attributes(attributes: dict[str, Any]) -> None:
    """Raises for attributes that no user gave the tensor."""
    for name in attributes:
        if name in ENGINE or hasattr(Tensor, name):
            raise ValueError(f"{name!r} is no attribute of a user")


def _check_pair(pair: Pair) -> None:
    """Raises for what is no pair: the mask is bool and of the shape of the data, and zeros that are promised are there.

    Values are read where they lie in memory, not on a mesh, nor while a graph is traced.
    """
    data, mask = pair.data, pair.mask
    if mask.dtype is not torch.bool or mask.shape != data.shape or mask.layout is not data.layout:
        raise ValueError(f"a mask of {mask.dtype} {tuple(mask.shape)} for data of {tuple(data.shape)}")
    if MaskedTensor in (type(data), type(mask)):
        raise ValueError("a masked tensor inside of a masked tensor")
    if layouts.is_sparse(data) and not data.is_meta and not layouts.same_pattern(data, mask):
        raise ValueError("a mask of another pattern than the data")
    if pair.payload is Payload.ZERO and type(data) is Tensor and not data.is_meta:
        values, valid = (layouts.values(t) for t in (data, mask)) if layouts.is_sparse(data) else (data, mask)
        if not torch.equal(select(values.detach(), valid, 0), values.detach()):  # NaN is never equal
            raise ValueError("masked-out data that is said to be 0 is not")


def _check_family(kept: dict[str, Any]) -> None:
    """Raises for what is no record of a family; of what it says of memory torch raises."""
    mask, buffer = kept["mask"], kept["buffer"]
    for part in (mask,) if buffer is None else (mask, buffer):
        if type(part) is not Tensor or part.dtype is not torch.bool or layouts.is_sparse(part):
            raise ValueError(f"a family with a mask that is a {type(part).__name__} of {part.dtype}")
    if type(kept["hard"]) is not bool:
        raise ValueError(f"a family with hard={kept['hard']!r}")


def _check_packed(p: Packed) -> None:
    """Raises for what is no packed record: each stored step has a place of its own, in order, in the grid."""
    index, values, steps = p.grid.index, p.values, prod(p.grid.shape)
    if index.dtype is not torch.int64 or index.shape != values.shape[:1]:
        raise ValueError(f"an index of {index.dtype} {tuple(index.shape)} for {tuple(values.shape)} values")
    if p.inner is not None:
        _check_pair(Pair(values, p.inner, p.payload))
    if sorted(atom for atoms in p.order for atom in atoms) != list(range(len(p.sizes))):
        raise ValueError(f"an order {p.order} of {len(p.sizes)} sizes")
    known = type(index) is Tensor and not index.is_meta and len(index)
    if known and (index[0] < 0 or index[-1] >= steps or bool((index.diff() <= 0).any())):
        raise ValueError("an index that does not rise, or leaves the grid")


def rebuild_pair(
    data: Tensor,
    mask: Tensor | SentMask | None,
    payload: str,
    requires_grad: bool,
    attributes: dict[str, Any],
    family: dict[str, Any] | None = None,
    shared: bool = False,
) -> MaskedTensor:
    """From plain data and the compact mask; ``family`` is the record of its alias family.

    ``shared``: another process may write into the data, so nothing is known of the masked-out data.
    """
    pair = Pair(data, receive_mask(mask, data), Payload(payload))
    _check_pair(Pair(data, pair.mask) if shared else pair)
    x = wrap(pair)
    if family is not None:
        _check_family(family)
        alias = alias_of(x)
        alias.family, alias.version_seen = Family.of_record(family, data), -1  # read anew
        _check_pair(pair_of(x))
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    if shared:
        expose(x)
    return x


def rebuild_packed(
    values: Tensor,
    index: Tensor,
    inner: Tensor | SentMask | None,
    payload: str,
    grid: tuple[int, ...],
    order: Any,
    requires_grad: bool,
    attributes: dict[str, Any],
    complete: bool | None = False,
) -> MaskedTensor:
    """A packed tensor without views; ``inner`` is compact."""
    part = None if inner is None else receive_mask(inner, values)
    stored = Packed(values, Grid(index, grid, complete), order, part, Payload(payload))
    _check_packed(stored)
    x = wrap_packed(stored)
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    return x


def rebuild_packed_view(
    kept: dict[str, Any],
    values: Tensor,
    path: list[Any],
    requires_grad: bool,
    attributes: dict[str, Any],
    place: Tensor | None = None,
) -> MaskedTensor:
    """A packed tensor that has views, or a view of one: the views that lead to it are taken again.

    ``kept`` is one object for the views of one tensor.  Those whose ``values`` still share memory share one
    tensor again.  Empty values have no memory to compare, so ``place`` is compared instead.
    """
    memory = values if place is None else place
    if "root" in kept and not meshes.shares_local_memory(memory, kept["memory"]):
        kept = {k: v for k, v in kept.items() if k not in ("root", "memory")}
    with torch.no_grad():
        if "root" not in kept:
            stored = {
                name: kept[name] for name in ("index", "inner", "payload", "grid", "order", "complete") if name in kept
            }
            kept["root"] = rebuild_packed(values, **stored, requires_grad=False, attributes={})
            kept["memory"] = memory
        x: Any = kept["root"]
        for name, args, kwargs, which in path:
            x = view_named(name)(x, *args, **kwargs)
            x = x if which is None else x[which]
        x = x.detach()  # as of plain tensors, memory is shared again, not a history
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    made: MaskedTensor = x
    return made


def packed_view_parts(x: MaskedTensor) -> dict[str, Any]:
    """What :func:`rebuild_packed_view` takes."""
    assert x._view is not None
    family = x._view.family
    p = family.record
    parts = packed_parts(p)
    del parts["values"]
    family.kept |= parts
    path = [(s.entry.overload.name(), s.args, s.kwargs, s.which) for s in x._view.path]
    place = None if p.values.numel() else family.kept.setdefault("place", torch.empty(1)).detach()
    return {"kept": family.kept, "values": p.values.detach(), "path": path, **own_parts(x), "place": place}


def has_packed_family(x: MaskedTensor) -> bool:
    """Whether others would see a write into a packed tensor, or a view of one."""
    return x._view is not None and len(x._view.family.living()) > 1


def packed_parts(p: Packed) -> dict[str, Any]:
    """What :func:`rebuild_packed` takes of the packed record; the mask of the values is compact."""
    inner = None if p.inner is None else masks.compact(p.inner)
    tensors = {"values": p.values, "index": p.grid.index, "inner": inner}
    parts = {**tensors, "payload": p.payload.value, "grid": p.grid.shape, "order": p.order}
    return parts if p.grid.complete is False else parts | {"complete": p.grid.complete}


def compact_mask(mask: Tensor) -> Tensor:
    """The mask without its repeated entries; a sparse one has none."""
    return mask if layouts.is_sparse(mask) else masks.compact(mask)


def attributes_of(x: MaskedTensor) -> dict[str, Any]:
    """The attributes that the user gave ``x``; the engine's own are made anew."""
    return {name: value for name, value in x.__dict__.items() if name not in ENGINE}


def own_parts(x: MaskedTensor) -> dict[str, Any]:
    """What is kept of every tensor, whatever it stores."""
    return {"requires_grad": x.requires_grad, "attributes": attributes_of(x)}


def reduce_ex(x: MaskedTensor, protocol: object) -> Any:
    """Pickles data and compact mask; a tensor inside a graph cannot be pickled, as in torch."""
    if _KEYS_ARE_PICKLES and is_fake(x._pair.data if x._packed is None else x._packed.values):
        return str, (stable_hash(x),)
    expect_leaf(x, "pickle")
    return rebuild, _parts(x)


def _parts(x: MaskedTensor) -> tuple[str, dict[str, Any]]:
    """The arguments of :func:`rebuild`."""
    if has_packed_family(x):
        return "packed view", packed_view_parts(x)
    if x._packed is not None:
        return "packed", {**packed_parts(x._packed), **own_parts(x)}
    pair = pair_of(x)
    family = None if x._alias.family is None else x._alias.family.record()
    parts = {"data": pair.data, "mask": compact_mask(pair.mask), "payload": pair.payload.value}
    return "pair", {**parts, **own_parts(x), "family": family}


def reduce_shared(x: MaskedTensor) -> Any:
    """For another process, which shares the data and gets a copy of the mask, as bits.

    After a write into the data, the other process sees the new numbers where its own mask is True.
    """
    if x._packed is None and not has_packed_family(x):  # those are never written
        expose(x)
    make, (kind, *rest) = reduce_ex(x, None)
    if kind == "pair":
        sent = {} if x._alias.family is not None else {"mask": send_mask(pair_of(x).mask)}
        return make, (kind, {**rest[0], **sent, "shared": True})
    if kind == "packed" and rest[0]["inner"] is not None:
        return make, (kind, {**rest[0], "inner": send_mask(rest[0]["inner"])})
    return make, (kind, *rest)


def expect_leaf(x: MaskedTensor, action: str) -> None:
    """Raises RuntimeError for a tensor inside a graph."""
    if not x.is_leaf:
        raise RuntimeError(f"cannot {action} a masked tensor that is part of a graph; use x.detach() first")


_KINDS: dict[str, Callable[..., MaskedTensor]] = {
    "pair": rebuild_pair,
    "packed": rebuild_packed,
    "packed view": rebuild_packed_view,
}
rebuild.__module__ = f"{__package__.partition('.')[0]}._pickle"  # the path that pickles name
torch.serialization.add_safe_globals([rebuild])
ForkingPickler.register(MaskedTensor, reduce_shared)
