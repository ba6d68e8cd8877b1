"""Reductions along dimensions: masked-out data is replaced by a value that changes nothing, forward and backward.

Dimensions along which the mask is constant are reduced first, as they are: there a slice is valid or masked as a whole.
On the CPU large tensors are filled and reduced piece by piece, see chunks.py.

A sum keeps only the mask.  The gradient of an extreme goes in equal parts to the valid entries that attain it; torch's
own derivative, which is that of the formula, would count the fill among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import masks, settings
from ..pair import Pair, Payload
from ..select import fill_masked, guard, select, zero_masked, zero_masked_inplace
from . import chunks
from .identity import identity
from .precision import rounds_noticeably
from .table import ANY, KERNELS, Kernel, run

Dims = tuple[int, ...]
Dim = int | Sequence[int] | None


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """How a reduction is computed of data that are filled."""

    name: str
    whole: Callable[..., Tensor]  #: (data, dims, keepdim)
    fill: float | None = None  #: None: by the dtype
    linear: bool = False  #: its gradient is the incoming one, so that masked-out data cannot spoil it
    piece: chunks.InPlace | None = None  #: the same on a piece that may be overwritten
    join: Callable[..., Tensor] | None = None  #: reduces what it gave of parts, if another than itself does


def _prod(data: Tensor, dims: Sequence[int], keepdim: bool, **dtype: Any) -> Tensor:
    if len(dims) == data.dim() and not (keepdim and dims):
        return torch.prod(data, **dtype)
    for d in sorted(dims, reverse=True):
        data = torch.prod(data, d, keepdim, **dtype)
    return data


def _log_sum_exp(part: Tensor, mask: Tensor, dims: Dims) -> Tensor:
    # exp(-inf) is 40 times slower than exp: the masked entries are 0 in the exponent and cleared after it.
    top = part.amax(dims, True)
    top = torch.where(top.isinf(), 0, top)
    terms = zero_masked_inplace(zero_masked_inplace(part, mask).sub_(top).exp_(), mask)
    return torch.sum(terms, dims, True).log_().add_(top)


_HOW = {
    how.name: how
    for how in (
        Reduction("sum", torch.sum, 0, linear=True),
        Reduction("prod", _prod, 1),
        Reduction("nansum", torch.nansum, 0, join=torch.sum),  # inf - inf of a part is NaN in the whole
        Reduction("logsumexp", torch.logsumexp, -float("inf"), piece=_log_sum_exp),
        Reduction("amax", torch.amax),
        Reduction("amin", torch.amin),
    )
}


def reduce(name: str, x: Pair, dims: Dims, keepdim: bool, dtype: torch.dtype | None = None) -> Tensor:
    """A reduction over the valid entries: the data of the result."""
    result: Tensor = run(name, FORMULAS[name], (x.data, x.mask), x.payload, dims, keepdim, dtype)
    return result


def _reduce(
    how: Reduction, pieces: bool, data: Tensor, mask: Tensor, payload: Payload, dims: Dims, keepdim: bool,
    dtype: torch.dtype | None,
) -> Tensor:  # fmt: skip
    """The reduction itself; with ``pieces`` in those, where it is worth while."""
    whole = how.whole if dtype is None else partial(how.whole, dtype=dtype)
    join: Any = None if how.join is None else how.join if dtype is None else partial(how.join, dtype=dtype)
    x = Pair(data, mask, payload)
    if 0 in mask.stride():
        flat = [d for d in dims if masks.is_constant(mask, d)]
        if len(flat) == len(dims) or not rounds_noticeably(data.dtype):
            plain = data if how.linear else guard(data, mask)
            if len(flat) == len(dims):
                return whole(plain, dims, keepdim)
            if flat:
                x = Pair(whole(plain, flat, True), masks.first_slice(mask, flat))
                whole = join or whole
    fill = identity(how.name, x.data.dtype) if how.fill is None else how.fill
    if not pieces:
        if type(data) is not Tensor:  # traced: the loop that looks for valid entries reads the data as well, in one
            x = Pair(x.data, x.mask)
        return whole(fill_masked(x, fill), dims, keepdim)
    piece = None if x.data.is_complex() else how.piece
    return chunks.reduce(whole, x, dims, keepdim, fill, piece, join=join)


def _in_pieces(how: Reduction, data: Tensor, mask: Tensor, *options: Any) -> tuple[Tensor, tuple[()]]:
    return _reduce(how, True, data, mask, *options), ()


def _sum(
    data: Tensor, mask: Tensor, payload: Payload, dims: Dims, keepdim: bool, dtype: torch.dtype | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    return _reduce(_HOW["sum"], True, data, mask, payload, dims, keepdim, dtype), (mask, data.new_empty(0))


def _sum_backward(saved: Sequence[Tensor], grad: Tensor, _: Payload, dims: Dims, keepdim: bool, __: Any) -> Any:
    mask, like = saved
    grad = restore_dims(grad, dims, keepdim).to(like.dtype).expand(mask.shape)
    constant = masks.is_constant(mask, dims)  # then nothing arrives for a slice that is masked
    return grad if constant else select(grad, mask, 0), None


def is_by_hand(data: Tensor, mask: Tensor) -> bool:
    """Whether a sum is worth a derivative by hand: of few entries in plain memory, in a dtype that is not widened."""
    return (
        data.layout is torch.strided
        and data.is_cpu
        and data.dtype in (torch.float32, torch.float64)
        and type(data) is Tensor
        and masks.is_small(mask)
        and masks.is_quiet()
    )


def restore_dims(reduced: Tensor, dims: Dims, keepdim: bool) -> Tensor:
    """A result with the dimensions it lost at size 1."""
    if not keepdim:
        for d in dims:
            reduced = reduced.unsqueeze(d)
    return reduced


def _extreme(how: Reduction, data: Tensor, mask: Tensor, *options: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
    pieces = data.numel() >= settings.LARGE
    result = _reduce(how, pieces, data, mask, *options)
    return result, (data, mask, result)


def _extreme_backward(saved: Sequence[Tensor], grad: Tensor, _: Payload, dims: Dims, keepdim: bool, __: Any) -> Any:
    data, mask, result = saved
    ties = attains_extreme(data.detach(), mask, restore_dims(result.detach(), dims, keepdim))
    share = restore_dims(grad, dims, keepdim) / masks.count(ties, dims, True).clamp(min=1)
    return select(share.expand(data.shape).to(data.dtype), ties, 0), None


def attains_extreme(data: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    """The valid entries equal to their slice's extreme; a NaN extreme is attained by every NaN."""
    return masks.logical_and((data == value) | (data.isnan() & value.isnan()), mask)


def mean(
    data: Tensor, mask: Tensor, payload: Payload, dims: Dims, keepdim: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """The formula: the sum by the number of valid entries; 0 where there is none; and where there is one."""
    # Half precision is rounded once, at the end.
    wide = torch.float32 if rounds_noticeably(dtype) else None if dtype is data.dtype else dtype
    result = reduce("sum", Pair(data, mask, payload), dims, keepdim, wide)
    number, some = masks.divisors(mask, dims, keepdim, result.dtype)
    return (result / number).to(dtype), some


_NORMS = {None: "norm2", 1: "norm1", 2: "norm2", float("inf"): "norminf"}


def norm(
    x: Pair, dims: tuple[int, ...], keepdim: bool, op: Any, p: float | None, given: Any, keywords: dict[str, Any]
) -> Tensor:
    """``sum(abs(x) ** p) ** (1 / p)``; ``given`` and ``keywords`` are the other arguments of ``op``."""
    options = x.payload, dims, keepdim, keywords.get("dtype"), op, p, given, keywords
    result: Tensor = run(_NORMS.get(p, "norm"), norm_formula, (x.data, x.mask), *options)
    return result


def norm_formula(
    data: Tensor, mask: Tensor, payload: Payload, dims: Any, keepdim: bool, dtype: torch.dtype | None, op: Any,
    p: float | None, given: Any, keywords: dict[str, Any],
) -> Tensor:  # fmt: skip
    """By torch's own op, whatever its name."""
    x = Pair(data, mask, payload)
    filled = fill_masked(x, float("inf")) if p is not None and p < 0 else zero_masked(x)
    # torch's derivative along a dimension compares the result with entries that have the dtype of the input.
    cast = dtype is not None and (filled.is_floating_point() or filled.is_complex())  # others raise in torch's words
    result: Tensor = op(filled.to(dtype) if cast else filled, p, *given, **keywords)
    return result


def any_nonzero(data: Tensor, mask: Tensor, dim: Dim, keepdim: bool) -> Tensor:
    """Whether a valid entry is nonzero, as NaN is; False where nothing is valid."""
    return masks.any(masks.logical_and(_nonzero(data), mask), dim, keepdim)


def all_nonzero(data: Tensor, mask: Tensor, dim: Dim, keepdim: bool) -> Tensor:
    """Whether each is; True where nothing is valid."""
    return masks.all(_nonzero(data) | ~mask, dim, keepdim)


def count_nonzero(data: Tensor, mask: Tensor, dim: Dim, keepdim: bool) -> Tensor:
    """How many are."""
    return masks.count(masks.logical_and(_nonzero(data), mask), dim, keepdim)


def _nonzero(data: Tensor) -> Tensor:
    return data if data.dtype is torch.bool else data != 0


FORMULAS = {name: partial(_reduce, how, False) for name, how in _HOW.items()}
KERNELS["sum", "cpu"] = Kernel(
    _sum, _sum_backward, chunks.serves, _sum_backward, least="LARGE", inference=partial(_reduce, _HOW["sum"], True)
)
for _name in ("prod", "nansum", "logsumexp"):
    KERNELS[_name, "cpu"] = Kernel(partial(_in_pieces, _HOW[_name]), None, chunks.serves, least="LARGE")
for _name in ("amax", "amin"):
    KERNELS[_name, ANY] = Kernel(partial(_extreme, _HOW[_name]), _extreme_backward, None, _extreme_backward)
