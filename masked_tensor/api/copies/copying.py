"""Copies of a masked tensor: deep and shallow, in shared memory, collated into a batch; and ``x.data = new``."""

import copy
from typing import Any, cast

import torch
from torch import Tensor

from ... import layouts, masks
from ...compat import COLLATE, tree_leaves
from ...engine.alias_records import Alias, Family, alias_of, family_of
from ...engine.tensor import MaskedTensor, expose, pair_of, reset, set_pair, wrap
from ...engine.writes.packed_views import unpack_family
from ...pair import Pair
from .pickling import (
    attributes_of,
    compact_mask,
    expect_leaf,
    has_packed_family,
    own_parts,
    packed_parts,
    packed_view_parts,
    rebuild_packed,
    rebuild_packed_view,
    rebuild_pair,
)


def deepcopy(x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    """A copy with its own data, mask, gradient and attributes; of leaves only, as in torch."""
    if id(x) in memo:
        made: MaskedTensor = memo[id(x)]
        return made
    expect_leaf(x, "deepcopy")
    if has_packed_family(x):
        return _with_gradient(_copy_packed_family(x, memo), x, memo)
    if x._packed is not None:
        parts = copy.deepcopy(packed_parts(x._packed) | own_parts(x), memo)
        return _with_gradient(rebuild_packed(**parts), x, memo)
    pair = pair_of(x)
    # Memory that is shared stays shared within one deepcopy; torch cannot deepcopy every sparse layout.
    data = pair.data.clone() if layouts.is_sparse(pair.data) else copy.deepcopy(pair.data, memo)
    small = compact_mask(pair.mask).clone()
    result = rebuild_pair(data, small, pair.payload.value, x.requires_grad, copy.deepcopy(attributes_of(x), memo))
    if x._alias.family is not None:
        alias = alias_of(result)
        alias.family, alias.version_seen = _copy_family(x._alias.family, memo, data), -1
    return _with_gradient(result, x, memo)


def _with_gradient(result: MaskedTensor, x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    if x.grad is not None:
        result.grad = copy.deepcopy(x.grad, memo)
    memo[id(x)] = result
    return result


def _copy_packed_family(x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    """``x`` with a copied root: one for all that are copied in one deepcopy."""
    parts = packed_view_parts(x)
    assert x._view is not None
    group = id(x._view.family)
    if group not in memo:
        memo[group] = copy.deepcopy(parts["kept"] | {"values": parts["values"], "place": parts["place"]}, memo)
    known = memo[group]
    attributes = copy.deepcopy(parts["attributes"], memo)
    copied = {"kept": known, "values": known["values"], "place": known["place"], "attributes": attributes}
    return rebuild_packed_view(**(parts | copied))


def _copy_family(family: Family, memo: dict[int, Any], data: Tensor) -> Family:
    """The family of the copies: one for all that are copied in one deepcopy, as their memory is."""
    if id(family) not in memo:
        parts = family.record().items()
        memo[id(family)] = {name: part.clone() if isinstance(part, Tensor) else part for name, part in parts}
    return Family.of_record(memo[id(family)], data)


def contiguous(x: MaskedTensor, memory_format: torch.memory_format = torch.contiguous_format) -> MaskedTensor:
    """``torch.Tensor.contiguous``; for views of packed tensors, an op that does not rely on their strides."""
    make: Any = torch.ops.aten.contiguous.default if x._view is not None and x._view.path else Tensor.contiguous
    made: MaskedTensor = make(x, memory_format=memory_format)
    return made


def shallow_copy(x: MaskedTensor) -> MaskedTensor:
    """``copy.copy``: another tensor over the same memory."""
    expect_leaf(x, "copy")
    result = x.detach().requires_grad_(x.requires_grad)
    result.__dict__.update(attributes_of(x))
    return result


def share_memory(x: MaskedTensor) -> MaskedTensor:
    """Move data and mask to shared memory, where other processes may write to them, and return ``x``."""
    if x._packed is not None:
        for part in packed_parts(x._packed).values():
            if isinstance(part, Tensor):
                part.share_memory_()
        return x
    expose(x)
    pair = pair_of(x)
    mask = masks.forget_facts(pair.mask)
    if mask is not pair.mask:
        set_pair(x, Pair(pair.data, mask, pair.payload))
    pair.data.share_memory_()
    mask.share_memory_()
    return x


def is_shared(x: MaskedTensor) -> bool:
    """Whether the data are in shared memory."""
    return bool(_stored(x).is_shared())


def record_stream(x: MaskedTensor, stream: Any) -> None:
    """Keep the memory of data, mask and packed positions until ``stream`` is done with it."""
    if x._packed is None:
        parts: tuple[Any, ...] = (pair_of(x).data, masks.compact(pair_of(x).mask))
    else:
        packed = x._packed
        parts = (packed.values, packed.inner, *vars(packed.grid).values(), *packed.grid.known.values())
    for part in tree_leaves(parts):
        if type(part) is Tensor:
            part.record_stream(stream)


def _stored(x: MaskedTensor) -> Tensor:
    return pair_of(x).data if x._packed is None else x._packed.values


def collate(batch: list[MaskedTensor], *, collate_fn_map: object = None) -> MaskedTensor:
    """A DataLoader's batch; its workers would otherwise stack into raw memory, past the mask."""
    first, *others = dict.fromkeys(tuple(sample.shape) for sample in batch)
    if others:
        raise RuntimeError(
            f"samples have the shapes {first} and {others[0]}; DataLoader(collate_fn=mt.collate) pads them"
        )
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
    if x.requires_grad:  # a backward pass to come has saved what x was: it raises, where torch would read the new
        torch.autograd.graph.increment_version(_stored(x).detach())
    unpack_family(x)
    hard = x._alias.family is not None and x._alias.family.hard
    if type(new) is not MaskedTensor:
        new = wrap(Pair(new.detach(), masks.full(new.shape, new.device)))
        new._exposed = True
    unpack_family(new)
    alias = Alias()
    alias.family, alias.version_seen = family_of(new), -1
    alias.family.hard |= hard
    reset(x, pair_of(new), alias, new._exposed)


COLLATE[MaskedTensor] = collate
_COLLATE_PLAIN = COLLATE[Tensor]
COLLATE[Tensor] = collate_mixed
