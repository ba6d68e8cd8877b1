"""Views and shape ops: data and mask move together.

A view of a masked tensor is a true view: it shares memory with its base, and a write to either changes the
data and validity of both.  Ops that fill with zeros (``tril``, ``diag_embed``) make valid zeros.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import errors, masks, pair
from ..compat import OpOverload, in_transform
from ..op import Op, StorageRule, ops
from ..packing import cuts
from ..packing import views as packed_views
from ..packing.kinds import packed_rule as packed
from ..pair import Pair
from ..sparse import views
from ..sparse.rules import move_stored, on_values, sparse_rule

_SEVERAL = list, tuple


def move(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Any:
    """Any op that only rearranges entries: the same call on data and mask."""
    data = op(x.data, *args, **kwargs)
    mask = _moved(op, x.mask, args) if 0 in x.mask.stride() and not kwargs else op(x.mask, *args, **kwargs)
    if isinstance(data, _SEVERAL):
        return [Pair(d, m, x.payload) for d, m in zip(data, mask, strict=True)]
    return Pair(data, mask, x.payload)


def _moved(op: OpOverload, mask: Tensor, args: tuple[Any, ...]) -> Any:
    """A mask that is constant along a dimension takes little memory: what it becomes is kept with it."""
    if any(isinstance(a, Tensor) for a in args):
        return op(mask, *args)
    return masks.derive(mask, (op, *[tuple(a) if type(a) is list else a for a in args]), _run, op, mask, args)


def _run(op: OpOverload, mask: Tensor, args: tuple[Any, ...]) -> Any:
    made = op(mask, *args)
    return tuple(made) if type(made) is list else made


def split(op: OpOverload, x: Pair, size: int | Sequence[int], dim: int = 0) -> Any:
    """split, split_with_sizes: masked entries past the sum of the sizes belong to the last part.

    So a split of sorted rows by how many there are of each kind is that of the rows without padding.  Sizes that leave
    out a valid entry raise torch's own error; nothing is read unless they do not add up.
    """
    if isinstance(size, int) or not size or type(x.mask) is not Tensor or x.mask.is_meta or in_transform():
        return move(op, x, size, dim)
    end = sum(size)
    rest = x.data.shape[dim] - end
    if rest > 0 and min(size) >= 0 and not masks.any(x.mask.narrow(dim, end, rest)):
        size = [*size[:-1], size[-1] + rest]
    return move(op, x, size, dim)


def rotate(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """flip, rot90: the mask does not change along dimensions in which it is constant."""
    data = op(x.data, *args, **kwargs)
    return Pair(data, masks.expand_to(op(masks.compact(x.mask), *args, **kwargs), data.shape), x.payload)


def roll(op: OpOverload, x: Pair, shifts: Sequence[int], dims: Sequence[int] = ()) -> Pair:
    """Without ``dims`` the flattened tensor is rolled, so that the mask is no longer constant along any dimension."""
    return rotate(op, x, shifts, dims) if dims else move(op, x, shifts, dims)


def repeat(op: OpOverload, x: Pair, repeats: Sequence[int]) -> Pair:
    """The mask is not repeated along dimensions in which it is constant."""
    data = op(x.data, repeats)
    small = masks.compact(x.mask)
    new = len(repeats) - small.dim()
    constant = [True] * new + [a != b for a, b in zip(small.shape, x.mask.shape, strict=True)]
    mask = op(small, [n if n == 0 or not c else 1 for n, c in zip(repeats, constant, strict=True)])
    return Pair(data, masks.expand_to(mask, data.shape), x.payload)


def reshape(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """The data decides whether the result is a view; a mask with other strides follows, by a copy if needed."""
    data = op(x.data, *args, **kwargs)
    if data is x.data:  # the tensor itself, as torch's ``flatten`` gives it
        return x
    return Pair(data, masks.reshape(x.mask, data.shape), x.payload)


def reinterpret(op: OpOverload, x: Pair, dtype: torch.dtype) -> Pair:
    """``x.view(dtype)``: the parts of an element share its validity; a larger one is valid if all its parts are."""
    data, old, new = op(x.data, dtype), x.data.dtype.itemsize, dtype.itemsize
    if new < old:
        parts = x.mask.unsqueeze(-1).expand(*x.mask.shape, old // new)
        return Pair(data, masks.reshape(parts, data.shape), x.payload)
    if new > old:
        return Pair(data, masks.all(masks.reshape(x.mask, (*data.shape, new // old)), -1))
    return Pair(data, x.mask, x.payload)


def same_entries(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """conj, negative views, lifts: every entry stays in its place."""
    return Pair(op(x.data, *args, **kwargs), x.mask, x.payload)


def same_object(op: OpOverload, x: Pair) -> Pair:
    """Returns the tensor itself where torch does: for real numbers, or those that are not conjugated."""
    data = op(x.data)
    return x if data is x.data else Pair(data, x.mask, x.payload)


def view_as_real(op: OpOverload, x: Pair) -> Pair:
    """Both parts of a number share its validity."""
    data = op(x.data)
    return Pair(data, x.mask.unsqueeze(-1).expand(data.shape), x.payload)


def view_as_complex(op: OpOverload, x: Pair) -> Pair:
    """A number is valid where both its parts are."""
    data = op(x.data)
    if x.mask.stride(-1) == 0:
        return Pair(data, x.mask.select(-1, 0), x.payload)
    return Pair(data, masks.all(x.mask, -1))


def as_strided(
    op: OpOverload, x: Pair, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Pair:
    """The mask is first laid out in memory like the data."""
    offset = 0 if storage_offset is None else storage_offset - x.data.storage_offset()
    if offset < 0:
        raise RuntimeError(f"as_strided: storage_offset {storage_offset} is before the tensor's own memory")
    data = op(x.data, size, stride, storage_offset)  # first: of what has no memory of its own torch refuses it
    return Pair(data, op(masks.storage_mask(x.mask, x.data), size, stride, offset), x.payload)


def tensor_split(op: OpOverload, x: Pair | Tensor, tensor_indices_or_sections: Pair | Tensor, dim: int = 0) -> Any:
    """The positions of the splits must be known: a masked index raises."""
    where = tensor_indices_or_sections
    if type(where) is Pair:
        if not bool(where.mask.all()):  # the sizes depend on the values: this op reads them in any case
            raise errors.masked_scalar("tensor_split at the index")
        where = where.data
    if type(x) is not Pair:
        return op(x, where, dim)
    return move(op, x, where, dim)


def repeat_interleave(op: OpOverload, repeats: Pair, *, output_size: int | None = None) -> Pair:
    """The positions to repeat, all valid. A masked count is unknown, so it raises."""
    if not (masks.is_all_valid(repeats.mask) or bool(repeats.mask.all())):  # this op reads them in any case
        raise errors.masked_scalar("repeat_interleave at the count")
    return pair.plain_pair(op(repeats.data, output_size=output_size))


def with_zeros(op: OpOverload, x: Pair, *args: Any) -> Pair:
    """Ops that set part of the result to 0: those zeros are valid."""
    return Pair(op(x.data, *args), ~op(~x.mask, *args), x.payload)


def moving_ops(names: str, rule: Any, sparse: StorageRule = move_stored, **said: Any) -> list[Op]:
    """Rows of ops that, unless stated otherwise, torch itself also applies to sparse data."""
    return ops(names, rule, generic=True, sparse=sparse, **said)


OPS = [
    *moving_ops("t", move, sparse_rule(views.transpose), packed=packed(packed_views.t), binding=True),
    *moving_ops("transpose", move, sparse_rule(views.transpose), packed=packed(packed_views.transpose), binding=True),
    *moving_ops("permute", move, sparse_rule(views.permute), packed=packed(packed_views.permute), binding=True),
    *moving_ops("unsqueeze", move, sparse_rule(views.unsqueeze), packed=packed(packed_views.unsqueeze), binding=True),
    *moving_ops("squeeze", move, sparse_rule(views.squeeze), packed=packed(packed_views.squeeze), binding=True),
    *moving_ops("select", move, sparse_rule(views.select), packed=packed(cuts.select), binding=True),
    *moving_ops("slice", move, sparse_rule(views.slice_), packed=packed(cuts.slice_)),
    *moving_ops("unbind", move, sparse_rule(views.unbind), packed=packed(packed_views.unbind)),
    *moving_ops("expand", move, sparse_rule(views.expand), packed=packed(packed_views.expand)),
    *moving_ops("alias", move, packed=packed(packed_views.alias)),
    *moving_ops("movedim", move, packed=packed(packed_views.movedim)),
    *moving_ops("split split_with_sizes", split, sparse_rule(views.split), packed=packed(cuts.split)),
    *moving_ops("unsafe_split", split, sparse_rule(views.split), shares=True, packed=packed(cuts.split)),
    *moving_ops("unsafe_split_with_sizes", split, sparse_rule(views.split), shares=True, packed=packed(cuts.split)),
    *moving_ops("diagonal unfold", move),
    *moving_ops("t_copy transpose_copy", move, sparse_rule(views.transpose)),
    *moving_ops("permute_copy", move, sparse_rule(views.permute)),
    *moving_ops("unsqueeze_copy", move, sparse_rule(views.unsqueeze)),
    *moving_ops("squeeze_copy", move, sparse_rule(views.squeeze)),
    *moving_ops("select_copy", move, sparse_rule(views.select)),
    *moving_ops("slice_copy", move, sparse_rule(views.slice_)),
    *moving_ops("unbind_copy", move, sparse_rule(views.unbind)),
    *moving_ops("split_copy split_with_sizes_copy", move, sparse_rule(views.split)),
    *moving_ops("expand_copy", move, sparse_rule(views.expand)),
    *moving_ops("diagonal_copy narrow_copy unfold_copy alias_copy", move),
    *moving_ops("pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle", move),
    *moving_ops("flip", rotate, sparse_rule(views.flip)),
    *moving_ops("rot90", rotate),
    *moving_ops("roll", roll),
    *moving_ops("repeat", repeat),
    *moving_ops("repeat_interleave.self_int", move),
    *moving_ops("view reshape", reshape, sparse_rule(views.reshape), packed=packed(packed_views.view)),
    *moving_ops("flatten.using_ints", reshape, sparse_rule(views.flatten), packed=packed(packed_views.flatten)),
    *moving_ops("_unsafe_view", reshape, sparse_rule(views.reshape), shares=True, packed=packed(packed_views.view)),
    *moving_ops("_reshape_copy view_copy", reshape, sparse_rule(views.reshape)),
    *moving_ops("_reshape_alias", reshape),
    *moving_ops("view.dtype view_copy.dtype", reinterpret),
    *moving_ops("_conj _neg_view _conj_copy _neg_view_copy imag", same_entries, on_values),
    *moving_ops("conj real resolve_conj resolve_neg", same_object, on_values),
    *moving_ops("positive conj_physical", same_object, on_values),
    *moving_ops("lift lift_fresh_copy detach_copy", same_entries, on_values),
    *moving_ops("view_as_real view_as_real_copy", view_as_real),
    *moving_ops("view_as_complex view_as_complex_copy", view_as_complex),
    *moving_ops("tensor_split.tensor_indices_or_sections", tensor_split),
    *moving_ops("repeat_interleave.Tensor", repeat_interleave),
    *moving_ops("as_strided as_strided_copy", as_strided),
    Op("combinations", move, generic=True),
    *moving_ops("tril triu diag_embed select_backward slice_backward diagonal_backward trace_backward", with_zeros),
]
