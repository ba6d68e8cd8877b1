"""Variance and standard deviation over the n valid entries: a result is valid iff ``n > correction``.

An empty slice has no masked entries: its result is NaN, as in the plain op.

The standard deviation has gradient 0 at zero variance, as in the plain op.
"""

import torch
from torch import Tensor

from .. import kernels, masks, shapes
from ..kernels.squares import safe_sqrt
from ..kernels.variance import variance
from ..masks.strides import lay_out_as
from ..op import Op
from ..packing import reduction as packed
from ..pair import Pair, Payload
from ..sparse import operators
from ..sparse.rules import sparse_rule
from .reduction import Dim, mean


def var(x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> Pair:
    """``sum(abs(x - mean) ** 2) / (n - correction)``; 0 where it is masked."""
    return _variance(x, dim, correction, keepdim, False)


def std(x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False) -> Pair:
    """The square root of the variance, rounded once: half precision may hold the root but not the variance."""
    return _variance(x, dim, correction, keepdim, True)


def _variance(x: Pair, dim: Dim, correction: float | None, keepdim: bool, root: bool) -> Pair:
    data, mask, *_ = _moments(x, dim, correction, keepdim, root, False)
    return Pair(data, mask)


def _moments(x: Pair, dim: Dim, correction: float | None, keepdim: bool, root: bool, both: bool) -> tuple[Tensor, ...]:
    data = x.data
    if not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("std and var only support floating point and complex dtypes")
    dims = shapes.canonical_dims(dim, data.dim())
    if data.numel() == 0:
        nothing = (data.real if data.is_complex() else data).sum(dims, keepdim)  # torch.var warns, and gives NaN
        nothing = nothing + nothing.new_full((), torch.nan)
        return safe_sqrt(nothing) if root else nothing, masks.reduce_validity(x.mask, dims, keepdim)
    if data.dtype is torch.complex32:  # torch adds up no such numbers
        wide, valid = _moments(Pair(data.to(torch.complex64), x.mask, x.payload), dim, correction, keepdim, root, False)
        return wide.to(torch.float16), valid
    operands = data, lay_out_as(x.mask, data)
    correction = 1 if correction is None else correction
    found: tuple[Tensor, ...] = kernels.run(
        "variance", variance, operands, x.payload, dims, keepdim, correction, root, both
    )
    return found


def with_mean(
    x: Pair, dim: Dim = None, *, correction: float | None = None, keepdim: bool = False, root: bool
) -> tuple[Pair, Pair]:
    """var_mean and std_mean: the mean is valid wherever one entry is."""
    if (
        x.data.is_complex()
        or x.data.numel() == 0
        or masks.is_constant(x.mask, shapes.canonical_dims(dim, x.data.dim()))
    ):
        return _variance(x, dim, correction, keepdim, root), mean(x, dim, keepdim)
    result, valid, average, some = _moments(x, dim, correction, keepdim, root, True)
    return Pair(result, valid), Pair(average, some, Payload.ZERO)


OPS = [
    Op(f"{name}.correction", rule, how, sparse=sparse_rule(sparse), packed=packed.reduce_packed(counted=True))
    for name, rule, how, sparse in (
        ("var", var, {}, operators.var),
        ("std", std, {}, operators.std),
        ("var_mean", with_mean, {"root": False}, operators.var_mean),
        ("std_mean", with_mean, {"root": True}, operators.std_mean),
    )
]
