"""Shape ops: the op is run on the entries' numbers, which then tell where each result entry came from."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

from ..helpers.harness import Masked


def moved(op: Any, *args: Any, **kwargs: Any) -> Any:
    """Numbers 1, 2, ... run through the op; 0 in a result is a zero that the op made, and valid."""
    leaves = tree_leaves((args, kwargs), is_leaf=_is_masked)
    tensors = [_masked(v) for v in leaves if isinstance(v, Masked | Tensor)]
    numbers = iter(torch.arange(1, sum(v.data.numel() for v in tensors) + 1).split([v.data.numel() for v in tensors]))

    def numbered(value: Any) -> Any:
        return (
            next(numbers).reshape(_masked(value).data.shape).double() if isinstance(value, Masked | Tensor) else value
        )

    args, kwargs = tree_map(numbered, (args, kwargs), is_leaf=_is_masked)
    dtype = tensors[0].data.dtype
    values = torch.cat([torch.zeros(1, dtype=dtype), *(v.data.reshape(-1) for v in tensors)])
    valid = torch.cat([torch.ones(1, dtype=torch.bool), *(v.mask.reshape(-1) for v in tensors)])
    return tree_map(lambda n: Masked(values[n.long()], valid[n.long()]), op(*args, **kwargs))


def view_as_complex(op: Any, x: Masked) -> Masked:
    return Masked(torch.complex(x.data[..., 0], x.data[..., 1]), x.mask[..., 0] & x.mask[..., 1])


def view_as_real(op: Any, x: Masked) -> Masked:
    return Masked(torch.stack([x.data.real, x.data.imag], -1), torch.stack([x.mask, x.mask], -1))


def elementwise(op: Any, x: Masked) -> Masked:
    return Masked(op(x.data), x.mask)


def first_moved(op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Only the first argument is moved; the others say where to, and are not masked (that would have raised)."""
    args = tuple(v.data if isinstance(v, Masked) else v for v in args)
    return moved(lambda t: op(t, *args, **kwargs), _masked(x))


def repeat_interleave(op: Any, x: Any, repeats: Any, *args: Any, **kwargs: Any) -> Masked:
    if isinstance(repeats, Masked):
        repeats = torch.where(repeats.mask, repeats.data, 0)
        kwargs.pop("output_size", None)
    return first_moved(op, x, repeats, *args, **kwargs)


def _masked(value: Masked | Tensor) -> Masked:
    return value if isinstance(value, Masked) else Masked(value, torch.ones(value.shape, dtype=torch.bool))


def _is_masked(value: Any) -> bool:
    return isinstance(value, Masked)


MOVED = """
    view reshape view_as reshape_as t t_copy T mT H mH transpose transpose_copy permute permute_copy movedim unsqueeze
    unsqueeze_copy squeeze squeeze.multiple squeeze_copy expand expand_as expand_copy broadcast_to broadcast_tensors
    select slice narrow_copy diagonal diagonal_copy linalg.diagonal unfold unfold_copy unbind unbind_copy
    split split.list_args chunk hsplit vsplit dsplit split_with_sizes split_with_sizes_copy as_strided
    as_strided_copy alias_copy flip fliplr flipud rot90 roll tile repeat tril triu diag diag_embed diagflat flatten
    unflatten contiguous ravel atleast_1d atleast_2d atleast_3d meshgrid.list_of_tensors meshgrid.variadic_tensors
    nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.channel_shuffle view_copy unsafe_split
    unsafe_chunk conj resolve_conj resolve_neg
"""
VIEWS = """
    view reshape view_as reshape_as t T mT H mH transpose permute movedim unsqueeze squeeze squeeze.multiple expand
    expand_as broadcast_to select slice diagonal linalg.diagonal unfold unbind split split.list_args chunk hsplit vsplit
    dsplit split_with_sizes as_strided flatten unflatten ravel atleast_1d atleast_2d atleast_3d
    unsafe_split unsafe_chunk tensor_split narrow __getitem__
"""  # of the samples of each, some share memory with their first argument
ORACLES = {
    **dict.fromkeys(MOVED.split(), moved),
    **dict.fromkeys(("real", "imag"), elementwise),
    "view_as_complex": view_as_complex,
    "view_as_real": view_as_real,
    "tensor_split": first_moved,
    "narrow": first_moved,
    "repeat_interleave": repeat_interleave,
}

XFAIL = {
    (name, "compiled"): "masked entries are counted, split or cut by values: a shape that depends on data has no guard"
    for name in ("narrow", "tensor_split", *(("combinations",) if torch.__version__ < "2.14" else ()))
}
