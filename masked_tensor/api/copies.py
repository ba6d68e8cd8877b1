"""A masked tensor made again: pickled, copied, shared between processes, collated into a batch, given new data."""

import copy
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast

import torch
from torch import Tensor

from .. import layouts, masks
from ..compat import COLLATE, is_fake
from ..engine.alias_family import Family
from ..engine.boundary.packed import wrap_packed
from ..engine.compiled.flatten import stable_hash
from ..engine.table import view_named
from ..engine.tensor import ENGINE, MaskedTensor, expose, pair_of, reset, wrap
from ..engine.writes.packed_views import unpack_family
from ..layouts import meshes
from ..packing import Grid, Packed
from ..pair import Pair, Payload

#: Before, torch asked no input for what it adds to the key of a compiled graph in a cache on disk.
_KEYS_ARE_PICKLES = torch.__version__ < "2.13"


def rebuild(
    data: Tensor,
    mask: Tensor,
    payload: str,
    requires_grad: bool,
    attributes: dict[str, Any],
    family: dict[str, Any] | None = None,
) -> MaskedTensor:
    """A masked tensor from what ``__reduce_ex__`` took apart; ``mask`` is compact, ``family`` its family's record."""
    x = wrap(Pair(data, masks.expand_to(mask, data.shape), Payload(payload)))
    if family is not None:
        x._family, x._version_seen = Family.of_record(family, data), -1  # read anew
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    return x


def rebuild_packed(
    parts: dict[str, Any], grid: tuple[int, ...], order: Any, requires_grad: bool, attributes: dict[str, Any]
) -> MaskedTensor:
    """A packed tensor from what ``__reduce_ex__`` took apart; ``inner`` is compact."""
    values, inner = parts["values"], parts["inner"]
    inner = None if inner is None else masks.expand_to(inner, values.shape)
    x = wrap_packed(Packed(values, Grid(parts["index"], grid), order, inner, Payload(parts["payload"])))
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    return x


def rebuild_packed_family(
    kept: dict[str, Any],
    values: Tensor,
    path: list[Any],
    requires_grad: bool,
    attributes: dict[str, Any],
    place: Tensor | None = None,
) -> MaskedTensor:
    """A packed root or a view of it, from what ``__reduce_ex__`` took apart: the views that lead to it, taken again.

    ``kept`` is one object for all of a root's views; those whose ``values`` are still one memory have one root again.
    Where nothing is stored there is no memory to tell by: ``place`` is some.
    """
    memory = values if place is None else place
    if "root" in kept and not meshes.shares_local_memory(memory, kept["memory"]):
        kept = {k: v for k, v in kept.items() if k not in ("root", "memory")}
    with torch.no_grad():
        if "root" not in kept:
            parts = {"values": values, "index": kept["index"], "inner": kept["inner"], "payload": kept["payload"]}
            kept["root"], kept["memory"] = rebuild_packed(parts, kept["grid"], kept["order"], False, {}), memory
        x: Any = kept["root"]
        for name, args, kwargs, which in path:
            x = view_named(name)(x, *args, **kwargs)
            x = x if which is None else x[which]
        x = x.detach()  # as of plain tensors, memory is shared again, not a history
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    made: MaskedTensor = x
    return made


def _packed_family_parts(x: MaskedTensor) -> tuple[Any, ...]:
    """What :func:`rebuild_packed_family` takes."""
    group, p = x._view_group, x._view_group.record
    parts = _packed_parts(p)
    del parts["values"]
    group.kept |= parts | {"grid": p.grid.shape, "order": p.order}
    path = [(s.entry.overload.name(), s.args, s.kwargs, s.which) for s in x._path if not s.entry.op.detaches]
    place = None if p.values.numel() else group.kept.setdefault("place", torch.empty(1)).detach()
    return group.kept, p.values.detach(), path, x.requires_grad, _attributes(x), place


def _has_packed_family(x: MaskedTensor) -> bool:
    """Whether others would see a write into a packed tensor, or a view of one."""
    return x._view_group is not None and len(x._view_group.living()) > 1


def _packed_parts(p: Packed) -> dict[str, Any]:
    inner = None if p.inner is None else masks.compact(p.inner)
    return {"values": p.values, "index": p.grid.index, "inner": inner, "payload": p.payload.value}


def _compact_mask(mask: Tensor) -> Tensor:
    return mask if layouts.is_sparse(mask) else masks.compact(mask)


def _attributes(x: MaskedTensor) -> dict[str, Any]:
    """What the user hung onto ``x``; the engine's own attributes are made anew."""
    return {name: value for name, value in x.__dict__.items() if name not in ENGINE}


def reduce_ex(x: MaskedTensor, protocol: object) -> Any:
    """Pickles data and compact mask; a tensor inside a graph cannot be pickled, as in torch."""
    if _KEYS_ARE_PICKLES and is_fake(x._pair.data if x._packed is None else x._packed.values):
        return str, (stable_hash(x),)
    _expect_leaf(x, "pickle")
    if _has_packed_family(x):
        return rebuild_packed_family, _packed_family_parts(x)
    if x._packed is not None:
        p = x._packed
        return rebuild_packed, (_packed_parts(p), p.grid.shape, p.order, x.requires_grad, _attributes(x))
    pair = pair_of(x)
    family = None if x._family is None else x._family.record()
    return rebuild, (pair.data, _compact_mask(pair.mask), pair.payload.value, x.requires_grad, _attributes(x), family)


def reduce_shared(x: MaskedTensor) -> Any:
    """To another process, with which the data will be shared: validity is copied, of the payload nothing is promised.

    Of disjoint writes in two processes each sees the other's numbers where it had valid ones, and holes elsewhere.
    """
    if x._packed is not None or _has_packed_family(x):  # never written
        return reduce_ex(x, None)
    expose(x)
    return rebuild_shared, reduce_ex(x, None)[1]


def rebuild_shared(*args: Any) -> MaskedTensor:
    """What :func:`reduce_shared` took apart, in the other process."""
    x = rebuild(*args)
    expose(x)
    return x


def deepcopy(x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    """A copy with its own data, mask, gradient and attributes; of leaves only, as in torch."""
    if id(x) in memo:
        made: MaskedTensor = memo[id(x)]
        return made
    _expect_leaf(x, "deepcopy")
    if _has_packed_family(x):
        return _with_gradient(_copy_packed_family(x, memo), x, memo)
    if x._packed is not None:
        p, parts = x._packed, copy.deepcopy(_packed_parts(x._packed), memo)
        again = rebuild_packed(parts, p.grid.shape, p.order, x.requires_grad, copy.deepcopy(_attributes(x), memo))
        return _with_gradient(again, x, memo)
    pair = pair_of(x)
    # Memory that is shared stays shared within one deepcopy; torch cannot deepcopy every sparse layout.
    data = pair.data.clone() if layouts.is_sparse(pair.data) else copy.deepcopy(pair.data, memo)
    small = _compact_mask(pair.mask).clone()
    result = rebuild(data, small, pair.payload.value, x.requires_grad, copy.deepcopy(_attributes(x), memo))
    if x._family is not None:
        result._family, result._version_seen = _copy_family(x._family, memo, data), -1
    return _with_gradient(result, x, memo)


def _with_gradient(result: MaskedTensor, x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    if x.grad is not None:
        result.grad = copy.deepcopy(x.grad, memo)
    memo[id(x)] = result
    return result


def _copy_packed_family(x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    """``x`` with a copied root: one for all that are copied in one deepcopy."""
    kept, values, path, requires_grad, attributes, place = _packed_family_parts(x)
    if id(x._view_group) not in memo:
        memo[id(x._view_group)] = copy.deepcopy(kept | {"values": values, "place": place}, memo)
    known = memo[id(x._view_group)]
    attributes = copy.deepcopy(attributes, memo)
    return rebuild_packed_family(known, known["values"], path, requires_grad, attributes, known["place"])


def _copy_family(family: Family, memo: dict[int, Any], data: Tensor) -> Family:
    """The family of the copies: one for all that are copied in one deepcopy, as their memory is."""
    if id(family) not in memo:
        parts = family.record().items()
        memo[id(family)] = {name: part.clone() if isinstance(part, Tensor) else part for name, part in parts}
    return Family.of_record(memo[id(family)], data)


def contiguous(x: MaskedTensor, memory_format: torch.memory_format = torch.contiguous_format) -> MaskedTensor:
    """``Tensor.contiguous``; a view of a packed tensor, whose strides say nothing of memory, is told apart from it."""
    make: Any = torch.ops.aten.contiguous.default if x._path else Tensor.contiguous
    made: MaskedTensor = make(x, memory_format=memory_format)
    return made


def shallow_copy(x: MaskedTensor) -> MaskedTensor:
    """``copy.copy``: another tensor over the same memory."""
    _expect_leaf(x, "copy")
    result = x.detach().requires_grad_(x.requires_grad)
    result.__dict__.update(_attributes(x))
    return result


def _expect_leaf(x: MaskedTensor, action: str) -> None:
    if not x.is_leaf:
        raise RuntimeError(f"cannot {action} a masked tensor that is part of a graph; use x.detach() first")


def share_memory(x: MaskedTensor) -> MaskedTensor:
    """Moves data and mask to shared memory, where another process may write: nothing is promised of the payload."""
    if x._packed is not None:
        for part in _packed_parts(x._packed).values():
            if isinstance(part, Tensor):
                part.share_memory_()
        return x
    expose(x)
    pair = pair_of(x)
    pair.data.share_memory_()
    pair.mask.share_memory_()
    return x


def is_shared(x: MaskedTensor) -> bool:
    """Whether the data lies in shared memory."""
    return bool((pair_of(x).data if x._packed is None else x._packed.values).is_shared())


def collate(batch: list[MaskedTensor], *, collate_fn_map: object = None) -> MaskedTensor:
    """A DataLoader's batch; its workers would otherwise stack into raw memory, past the mask."""
    return cast(MaskedTensor, torch.stack(list[Tensor](batch)))


def collate_mixed(batch: list[Any], *, collate_fn_map: Any = None) -> Any:
    """A DataLoader's batch that begins with a plain tensor: masked if any of them is."""
    if any(type(sample) is MaskedTensor for sample in batch):
        return collate(batch)
    return _COLLATE_PLAIN(batch, collate_fn_map=collate_fn_map)


def set_data(x: MaskedTensor, new: Tensor) -> None:
    """``x.data = new``: shares the memory of ``new``, outside of autograd; same shape, dtype and device only.

    What is masked then shares the validity too, and a hard mask stays one.
    """
    if (new.shape, new.dtype, new.device) != (x.shape, x.dtype, x.device):
        raise RuntimeError("x.data = y needs a y of the same shape, dtype and device as the masked tensor x")
    unpack_family(x)
    hard = x._family is not None and x._family.hard
    if type(new) is not MaskedTensor:
        new = wrap(Pair(new.detach(), masks.full(new.shape, new.device)))
        new._exposed = True
    unpack_family(new)
    if new._family is None:
        new._family = Family(pair_of(new))
    new._family.hard |= hard
    reset(x, pair_of(new))
    x._exposed = new._exposed
    x._family, x._version_seen = new._family, -1


for _function in (rebuild, rebuild_packed, rebuild_packed_family):
    _function.__module__ = __package__.partition(".")[0]  # pickles name a path that stays, not this file
    torch.serialization.add_safe_globals([_function])
ForkingPickler.register(MaskedTensor, reduce_shared)
COLLATE[MaskedTensor] = collate
_COLLATE_PLAIN = COLLATE[Tensor]
COLLATE[Tensor] = collate_mixed
