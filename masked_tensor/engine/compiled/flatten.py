"""A masked tensor taken apart and put together: the inputs and outputs of a compiled graph.

Of a strided tensor that is data and the bytes of its mask.  Of a packed one it is the values and the places of its
rows, the bytes of the mask of those values, and how its dimensions are made of grid and features; the grid itself is
read off the shape that the world sees, so that new lengths ask for no new graph.  A packed tensor that this does not
describe is given as a copy, unpacked.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import masks, packing
from ...pair import Pair, Payload
from ...select import select
from ...shapes import symbolic_shapes
from .. import memory_families
from ..alias_records import family_of
from ..boundary.packed import wrap_packed
from ..packed_pair import UNPACKED_COPY, PackedFamily, PackedView, UnpackedCopy, outside_tracers, unpacked_parts
from ..tensor import MaskedTensor, add_members, expose, pair_of, wrap
from ..torch_keys import traced_where_made
from . import cache_key


class HardMask(NamedTuple):
    """What a graph knows of a tensor whose mask is hard."""

    payload: Payload


Told = (
    Payload | HardMask | UnpackedCopy | tuple[Any, ...]
)  #: what a graph knows of the parts; of packed ones that of order, grid and values, and if views share it
PADDED_PARTS, PACKED_PARTS, PARTLY_MASKED = (
    ["_data", "_bytes"],
    ["_stored", "_places"],
    ["_stored", "_places", "_stored_bytes"],
)


def flatten(x: MaskedTensor) -> tuple[list[str], Told]:
    """``__tensor_flatten__``: the names of the parts, and what a graph may take for granted."""
    if memory_families.called_from_outside():
        expose(x)
    p = x._packed
    if p is not None and p.is_plain_grid:
        shared = type(p.values) is not Tensor and x._view is not None
        return (PACKED_PARTS if p.inner is None else PARTLY_MASKED), (p.order, p.grid.complete, p.payload, shared)
    if x._alias.history is not None:
        x._connect()
    if p is None:
        payload, family = pair_of(x).payload, x._alias.family
        return PADDED_PARTS, HardMask(payload) if family is not None and family.hard else payload
    return PADDED_PARTS, UNPACKED_COPY if type(p.values) is Tensor else pair_of(x).payload


def _be_equal(sizes: Sequence[Any], others: Sequence[Any]) -> None:
    """Tells a compiler that two parts have the same sizes, of each of which it made a symbol of its own.

    Inductor does not compile the backward pass of a graph that keeps ``s0 + max(0, s1 - s0)`` entries for it.
    """
    for a, b in zip(sizes, others, strict=True):
        if type(a) is torch.SymInt and type(b) is torch.SymInt:
            # From here on they are one; of sizes that no input has nothing is known.
            symbolic_shapes().guard_or_false(a == b)


def unflatten(inner: dict[str, Tensor], known: Told, size: Any, stride: Any) -> MaskedTensor:
    """``__tensor_unflatten__``."""
    if type(known) is tuple:
        return _unflatten_packed(inner["_stored"], inner["_places"], inner.get("_stored_bytes"), size, *known)
    mask = masks.from_bytes(inner["_bytes"])
    if type(mask) is not Tensor:
        _be_equal(inner["_data"].shape, mask.shape)
    result = wrap(Pair(inner["_data"], mask, _payload_of(known)))
    result._parts = mask, inner["_bytes"]
    result._graph_input = type(mask) is not Tensor and (UNPACKED_COPY if known is UNPACKED_COPY else True)
    memory_families.join_noted_family(result)
    if type(known) is HardMask:
        family_of(result).hard = True
    return result


def _unflatten_packed(values: Tensor, index: Tensor, part: Any, size: Any, *known: Any) -> MaskedTensor:
    *of_grid, shared = known
    inner = None if part is None else masks.expand_to(masks.from_bytes(part), values.shape)
    result = wrap_packed(packing.from_parts(values, index, inner, size, *of_grid))
    result._parts = None if inner is None else (inner, part)
    if type(values) is not Tensor:
        _be_equal(values.shape[:1], index.shape[:1])
        result._graph_input = UNPACKED_COPY
        result._view = PackedView(PackedFamily(result)) if shared else None
    elif shared:
        memory_families.note_packed(result)
    return result


def _payload_of(known: Any) -> Payload:
    known = known.payload if type(known) is HardMask else known
    return known if type(known) is Payload else Payload.ZERO


def coerce_tangent_metadata(x: MaskedTensor) -> Tensor:
    """What a compiled graph expects of the gradient: plain data, as are the zeros of an output that is not used."""
    data = pair_of(x).data.detach()
    data.__tensor_flatten__ = _no_parts  # type: ignore[attr-defined]  # torch asks what it took for a subclass
    return data


def _no_parts() -> tuple[list[str], None]:
    return [], None


def coerce_tangent(x: MaskedTensor, expected: Any, expected_type: type | None = None) -> Tensor:
    """``__coerce_same_metadata_as_tangent__``."""
    pair = pair_of(x)
    data = pair.data if pair.payload is Payload.ZERO else select(pair.data, pair.mask, 0)
    if expected_type is not None and expected_type is not MaskedTensor:
        return data
    return wrap(Pair(data, pair.mask, _payload_of(expected)))


def stable_hash(x: MaskedTensor) -> str:
    """What the key of a compiled graph in a cache on disk holds of an input."""
    names, known = flatten(x)
    described = [
        f"{t.dtype} {t.device} {t.layout} {tuple(t.shape)} {t.stride() if t.layout is torch.strided else None}"
        for t in (getattr(x, name) for name in names)
    ]
    return f"MaskedTensor({known}, {tuple(x.shape)}, {x.requires_grad}, {described}, {cache_key.digest()})"


def flat_data(x: MaskedTensor) -> Tensor:
    """The data, which whoever asks from outside may hold from now on."""
    p = x._packed
    if p is not None and type(p.values) is Tensor:
        return unpacked_parts(x)[0]
    if memory_families.called_from_outside():
        expose(x)
    elif p is None:
        memory_families.note_family(x)
    return x._pair.data


def set_flat_data(x: MaskedTensor, data: Tensor) -> None:
    """AOTAutograd lays out the parts of a tangent anew."""
    pair = pair_of(x)
    x._pair = Pair(data, pair.mask, pair.payload)
    if x._alias.family is not None:
        x._alias.family.noted = False


def mask_bytes(x: MaskedTensor) -> Tensor:
    """The mask as bytes, as compiled graphs read it: inductor vectorises uint8, not bool."""
    p, known = x._packed, x._parts
    if p is not None and type(p.values) is Tensor:
        return unpacked_parts(x)[1]
    mask = pair_of(x).mask
    if mask.layout is not torch.strided:  # Dynamo looks at the parts before it leaves a sparse tensor to eager code
        return mask
    if known is None or known[0] is not mask:
        if type(mask) is Tensor:  # a tracer reads it under its own modes, which must not see a real tensor's view
            with outside_tracers():
                known = x._parts = mask, mask.view(torch.uint8)
        else:  # of few results: not before somebody asks
            with traced_where_made(mask):
                known = x._parts = mask, masks.to_bytes(mask)
    made: Tensor = known[1]
    return made


def set_mask_bytes(x: MaskedTensor, mask: Tensor) -> None:
    """As for the data."""
    pair = pair_of(x)
    x._pair = Pair(pair.data, mask.view(torch.bool), pair.payload)
    x._parts = x._pair.mask, mask


def packed_values(x: MaskedTensor) -> Tensor:
    """The values of a packed tensor."""
    assert x._packed is not None
    if type(x._packed.values) is Tensor:
        memory_families.note_packed(x)
    return x._packed.values


def inner_bytes(x: MaskedTensor) -> Tensor:
    """The bytes of the mask of what a packed tensor stores, of size 1 where it is constant along features."""
    p, known = x._packed, x._parts
    assert p is not None
    assert p.inner is not None
    if known is None or known[0] is not p.inner:
        with outside_tracers():
            known = x._parts = p.inner, masks.to_bytes(masks.compact_others(p.inner, 0).contiguous())
    made: Tensor = known[1]
    return made


def packed_index(x: MaskedTensor) -> Tensor:
    """The places of the tokens of a packed tensor."""
    assert x._packed is not None
    return x._packed.grid.index


add_members(
    __tensor_flatten__=flatten,
    __tensor_unflatten__=staticmethod(unflatten),
    __coerce_tangent_metadata__=coerce_tangent_metadata,
    __coerce_same_metadata_as_tangent__=coerce_tangent,
    _stable_hash_for_caching=stable_hash,
    _data=property(flat_data, set_flat_data),
    _bytes=property(mask_bytes, set_mask_bytes),
    _stored=property(packed_values),
    _places=property(packed_index),
    _stored_bytes=property(inner_bytes),
)
