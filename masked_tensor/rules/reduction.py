"""Reductions over the valid entries: a result is masked iff its slice has entries and all of them are masked.

An empty slice has no masked entries, so its result is the plain op's: 0 for a sum, NaN for a mean.

Masked-out data has no influence, forward or backward.
"""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from .. import kernels, masks, pair, shapes
from ..fill import where
from ..kernels import reduce
from ..kernels.reductions import all_nonzero, any_nonzero, is_by_hand, restore_dims
from ..kernels.reductions import count_nonzero as count
from ..kernels.reductions import mean as average
from ..op import Op
from ..packing import reduction as packed
from ..pair import Pair, Payload
from ..select import guard, select, zero_masked
from ..shared import strict_counts
from ..sparse import operators
from ..sparse.rules import sparse_rule

Dim = int | Sequence[int] | None


def sum(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
    """Sum of the valid entries; 0 where nothing is valid."""
    if strict_counts.KNOWN:
        strict_counts.refuse("sum", x)
    if dim is None and not keepdim and masks.is_small(x.mask):
        return Pair(torch.sum(zero_masked(x, inside=True), dtype=dtype), torch.any(x.mask), Payload.ZERO)
    dims = shapes.canonical_dims(dim, x.data.dim())
    data = reduce("sum", x, dims, keepdim, dtype)
    return Pair(data, masks.reduce_validity(x.mask, dim, keepdim), sum_payload(x, dims))


Closed = tuple[Pair, Callable[[Tensor], Tensor]]


def by_hand(x: Pair, dim: Dim = None, keepdim: bool = False, *, average: bool) -> Closed | None:
    """The sum or mean of a few entries: autograd would record a fill and a sum, and go back through both."""
    data, mask, number = x.data, x.mask, None
    if strict_counts.KNOWN or not is_by_hand(data, mask):
        return None
    whole = dim is None and not keepdim and not average
    dims = () if whole else shapes.canonical_dims(dim, data.dim())
    total = torch.sum(data if x.payload is Payload.ZERO else where(data, mask, 0), dims, keepdim)
    if average:
        number, some = masks.divisors(mask, dims, keepdim, total.dtype)
        total = total / number
    else:
        some = torch.any(mask) if whole else masks.reduce_validity(mask, dim, keepdim)

    def back(grad: Tensor) -> Tensor:
        grad = restore_dims(grad if number is None else grad / number, dims, keepdim)
        return select(grad.expand(mask.shape), mask, 0)

    return Pair(total, some, Payload.ZERO), back


def sum_payload(x: Pair, dims: tuple[int, ...]) -> Payload:
    """A slice with nothing valid sums to 0, unless its masked-out data were added up."""
    clean = x.payload is Payload.ZERO or 0 not in x.mask.stride() or not masks.is_constant(x.mask, dims)
    return Payload.ZERO if clean else Payload.ANY


def mean(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
    """Sum of the valid entries divided by their number; 0 where nothing is valid."""
    data = x.data
    kind = dtype or data.dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(
            f"mean(): input dtype should be either floating point or complex dtypes. Got {kind} instead."
        )
    if kind is torch.complex32:  # torch's kernel of var_mean takes it, those of sums do not
        wide_mean = mean(x, dim, keepdim, dtype=torch.complex64)
        return Pair(wide_mean.data.to(kind), wide_mean.mask, wide_mean.payload)
    dims = shapes.canonical_dims(dim, data.dim())
    if data.numel() == 0 or masks.is_constant(x.mask, dims):  # masked-out data is averaged as well, and stays masked
        return Pair(
            torch.mean(data, dims, keepdim, dtype=dtype), masks.reduce_validity(x.mask, dims, keepdim), x.payload
        )
    result, some = kernels.run("mean", average, (data, x.mask), x.payload, dims, keepdim, kind)
    return Pair(result, some, Payload.ZERO)


def prod(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
    """Product of the valid entries; 1 where nothing is valid."""
    dims = shapes.canonical_dims(dim, x.data.dim())
    return Pair(reduce("prod", x, dims, keepdim, dtype), masks.reduce_validity(x.mask, dims, keepdim))


def nansum(x: Pair, dim: Dim = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Pair:
    """Sum of the valid entries that are not NaN; 0, and valid, where every valid entry is NaN."""
    dims = shapes.canonical_dims(dim, x.data.dim())
    return Pair(reduce("nansum", x, dims, keepdim, dtype), masks.reduce_validity(x.mask, dims, keepdim))


def logsumexp(x: Pair, dim: Dim, keepdim: bool = False) -> Pair:
    """``log(sum(exp(x)))`` over the valid entries; -inf where nothing is valid."""
    data = x.data
    if not (data.is_floating_point() or data.is_complex()):
        data = data.to(torch.get_default_dtype())
    dims = shapes.canonical_dims(dim, data.dim())
    result = reduce("logsumexp", Pair(data, x.mask, x.payload), dims, keepdim)
    return Pair(result, masks.reduce_validity(x.mask, dims, keepdim))


def any(x: Pair, dim: Dim = None, keepdim: bool = False) -> Pair:
    """Whether a valid entry is nonzero; False where nothing is valid."""
    return _logical("any", any_nonzero, x, dim, keepdim)


def all(x: Pair, dim: Dim = None, keepdim: bool = False) -> Pair:
    """Whether every valid entry is nonzero; True where nothing is valid."""
    return _logical("all", all_nonzero, x, dim, keepdim)


def _logical(name: str, formula: Callable[..., Tensor], x: Pair, dim: Dim, keepdim: bool) -> Pair:
    dtype = torch.uint8 if x.data.dtype is torch.uint8 else torch.bool  # as the plain op
    if isinstance(dim, Sequence) and len(dim) == 0 and x.data.dim() > 0:
        result = formula(x.data.unsqueeze(0), x.mask.unsqueeze(0), 0, False)  # reduces nothing, unlike ``sum(x, ())``
        return Pair(result.to(dtype), x.mask)
    data = x.data.detach() if x.data.requires_grad else x.data
    result = kernels.run(name, formula, (data, x.mask), dim, keepdim)
    result = result.to(dtype).contiguous()  # one byte stands for all of a mask without entries
    return Pair(result, masks.reduce_validity(x.mask, dim, keepdim))


def count_nonzero(x: Pair, dim: Dim = None) -> Pair:
    """The number of valid entries that are not 0: a count, so 0, not masked, where nothing is valid."""
    if strict_counts.KNOWN:
        strict_counts.refuse("count_nonzero", x)
    data = x.data.detach() if x.data.requires_grad else x.data
    return pair.plain_pair(kernels.run("count_nonzero", count, (data, x.mask), dim, False))


def trace(x: Pair) -> Pair:
    """The sum of the valid entries on the diagonal."""
    if x.data.dim() != 2:
        raise RuntimeError(f"trace: the input must be a matrix, got shape {tuple(x.data.shape)}")
    return sum(pair.moved(x, torch.diagonal))


def trapezoid(y: Pair, *, dx: float = 1, dim: int = -1) -> Pair:
    """The sum of ``dx * (y[i] + y[i + 1]) / 2`` over the pairs of valid neighbours."""
    panels = y.data.shape[dim] - 1
    if panels < 1:  # then there may be an entry, but nothing to add up
        return Pair(y.data.narrow(dim, 0, 0).sum(dim), masks.reduce_validity(y.mask, dim))
    left, right = (pair.moved(y, torch.narrow, dim, i, panels) for i in (0, 1))
    both = masks.logical_and(left.mask, right.mask)
    return sum(Pair((guard(left.data, both) + guard(right.data, both)) * (dx / 2), both), dim)


OPS = [
    Op(
        "sum",
        sum,
        sparse=sparse_rule(operators.sum),
        packed=packed.reduce_packed(1, packed.SUMS),
        closed=partial(by_hand, average=False),
    ),
    Op(
        "mean",
        mean,
        sparse=sparse_rule(operators.mean),
        packed=packed.reduce_packed(1, packed.MEANS),
        closed=partial(by_hand, average=True),
    ),
    Op("prod", prod, sparse=sparse_rule(operators.prod), packed=packed.reduce_packed()),
    Op("nansum", nansum, sparse=sparse_rule(operators.nansum), packed=packed.reduce_packed()),
    Op("logsumexp", logsumexp, sparse=sparse_rule(operators.logsumexp), packed=packed.reduce_packed()),
    Op("any", any, sparse=sparse_rule(operators.any), packed=packed.reduce_packed()),
    Op("all", all, sparse=sparse_rule(operators.all), packed=packed.reduce_packed()),
    Op(
        "count_nonzero",
        count_nonzero,
        sparse=sparse_rule(operators.count_nonzero),
        packed=packed.count_packed(),
    ),
    Op("trace", trace),
    Op("trapezoid.dx", trapezoid, batched=True),
    Op("trapz.dx", trapezoid, batched=True),
]
