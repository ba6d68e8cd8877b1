"""Covariance and correlation of two variables: over the observations at which both are valid.

A result with no more observations than the correction is masked, because nothing is left to divide by.  An input
without observations has no masked entries, so the result is NaN, as in the plain op.
"""

import math
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from .. import masks, pair, settings
from ..compat import is_readable_memory, is_tracked
from ..errors import expect_shape
from ..kernels.devices import wider
from ..kernels.precision import rounds_noticeably, wide_dtype
from ..kernels.squares import zero_rounding
from ..op import Op
from ..pair import Pair
from ..select import select, zero_masked

Operand = Pair | Tensor


class Moments(NamedTuple):
    """Sums over the common observations of every two variables, ``(V, V)``."""

    weight: Tensor  #: sum of w
    products: Tensor  #: sum of w * (x_i - mean_i) * conj(x_j - mean_j), the means over the same observations
    squares: Tensor | None  #: sum of w * abs(x_i - mean_i) ** 2, exactly 0 for a constant, if it was asked for
    unit: Tensor  #: the power of two that each variable was divided by, ``(V, 1)``: squares leave the range of a dtype


def cov(x: Operand, *, correction: int = 1, fweights: Operand | None = None, aweights: Operand | None = None) -> Pair:
    """Rows are variables, columns observations; ``fweights`` count and ``aweights`` weight them.

    The divisor is ``W - correction``, with ``aweights`` ``W - correction * sum(w * aweights) / W``, ``W`` the sum of
    the weights of the common observations.  An observation whose weight is masked is left out.
    """
    x = pair.as_pair(x)
    data, mask = _table(x)
    if data.shape[1] == 0:
        f, a = (None if w is None else pair.data_of(w) for w in (fweights, aweights))
        return pair.plain_pair(torch.cov(data, correction=correction, fweights=f, aweights=a))
    dtype = data.dtype if aweights is None else torch.promote_types(x.data.dtype, aweights.data.dtype)
    data = data.to(torch.promote_types(data.dtype, dtype))
    weights = [pair.as_pair(w) for w in (fweights, aweights) if w is not None]
    for weight in weights:
        expect_shape("a weight of cov", weight.data, data.shape[1:], () if data.shape[1] == 1 else data.shape[1:])
        mask = masks.logical_and(mask, weight.mask)
    factors = [select(weight.data, weight.mask, 0).to(_precision(data).to_real()) for weight in weights]
    w = factors[0] * factors[-1] if len(factors) == 2 else factors[0] if factors else None
    moments = _moments(data, mask, w)

    def freedom() -> tuple[Tensor, Tensor]:
        """What the products are divided by, and where that can be."""
        rest = moments.weight - correction
        if w is not None and aweights is not None and correction != 0:
            rated = _common(mask, w * factors[-1])
            rest = moments.weight - correction * rated / _nonzero(moments.weight)
        valid = (rest > 0) & (moments.weight > 0)
        return torch.where(valid, rest, 1), valid

    divisor, valid = freedom() if w is not None else _keep(mask, ("freedom", correction, data.dtype), freedom)
    unit, other = moments.unit, moments.unit.mT
    result = moments.products / divisor * torch.minimum(unit, other) * torch.maximum(unit, other)
    return _matrix(result.to(dtype), valid)


def corrcoef(x: Pair) -> Pair:
    """``cov_ij / sqrt(var_i * var_j)``, all three over the common observations."""
    data, mask = _table(x)
    if data.shape[1] == 0:
        return pair.plain_pair(torch.corrcoef(data))
    weight, products, squares, _ = _moments(data, mask, None, squared=True)
    assert squares is not None
    valid, varies = weight > 1, (squares != 0) & (squares.mT != 0)
    divided = valid & varies  # not 0 / 0, whose gradient is NaN for all that is of the two variables
    scale = torch.where(divided, squares * squares.mT, 1).sqrt()
    result = torch.where(divided, products / scale, torch.nan)
    if result.is_complex():
        result = torch.complex(result.real.clip(-1, 1), result.imag.clip(-1, 1))
    else:
        result = result.clip(-1, 1)
    return _matrix(result.to(data.dtype), valid)


def _table(x: Pair) -> tuple[Tensor, Tensor]:
    """Data and mask as ``(V, N)``, floating."""
    if x.data.dim() > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {x.data.dim()} dimensions"
        )
    data = x.data if x.data.is_floating_point() or x.data.is_complex() else x.data.to(torch.get_default_dtype())
    data = zero_masked(Pair(data, x.mask, x.payload))
    if x.data.dim() == 2:
        return data, x.mask
    return data.reshape(1, -1), masks.reshape(x.mask, (1, x.data.numel()))


def _moments(data: Tensor, mask: Tensor, w: Tensor | None, squared: bool = False) -> Moments:
    """``data`` is 0 where it is masked; an observation whose weight is masked is not in ``mask``.

    Shifting each variable by its own mean changes nothing but the rounding.  What two variables have in common may lie
    far from that mean and not vary at all: squares of float32 are added up in float64, some observations at a time.
    """
    dtype = _precision(data, squared)
    real = dtype.to_real() if dtype.is_complex else dtype  # Dynamo does not trace to_real()

    def counts() -> tuple[Tensor, Tensor]:
        weight = _count_common(mask.to(real)) if w is None else _common(mask, w.to(real))
        return weight, _nonzero(weight)

    if w is None:
        weight, total = _keep(mask, ("common", real), counts)
        own, known = weight.diagonal().unsqueeze(1).clamp_min(1), data.detach()
    else:
        weight, total = counts()
        own, known = masks.divisors(mask, (1,), True, real)[0], select(data.detach(), mask, 0)
    # Of the magnitude, not the greatest: of a table's columns that takes four times as long.
    unit = _power_of_two(_magnitude(known).to(real))
    mean = (known.sum(1, keepdim=True, dtype=wide_dtype(known)) / own).to(dtype) / unit

    def add_up(start: int, length: int) -> Iterator[Tensor]:
        seen = mask.narrow(1, start, length)
        valid = seen.view(torch.uint8).to(dtype)
        centred = data.narrow(1, start, length).to(dtype) * (1 / unit) - mean
        # Without a gradient a product clears as well: what it makes NaN is of a variable whose mean is.
        centred = select(centred, seen, 0) if tracked else centred.mul_(valid)
        weighted = centred if w is None else centred * w.narrow(-1, start, length)
        yield weighted @ valid.mT
        yield weighted @ centred.mH
        if squared:
            yield (weighted * centred.conj()).real @ valid.real.mT

    size = data.shape[1]
    tracked = is_tracked(data) or not is_readable_memory(data)  # or a transform looks at it
    length = size if tracked else max(1, settings.PIECE // max(1, data.shape[0]))
    starts = (0,) if tracked else range(0, size, length)  # a range would fix a traced size
    with masks.no_autocast(data.device):
        parts = [tuple(add_up(start, length if tracked else min(length, size - start))) for start in starts]
    sums, products, *squares = (
        parts[0] if len(parts) == 1 else (torch.stack(s).sum(0) for s in zip(*parts, strict=True))
    )
    products = products - sums * sums.mH / total
    around = [zero_rounding(s - (sums * sums.conj()).real / total, s, total) for s in squares]
    return Moments(weight, products, around[0] if squared else None, unit)


def _magnitude(rows: Tensor) -> Tensor:
    """The mean magnitude of each row, ``(V, 1)``."""
    number, wide = rows.shape[1], wide_dtype(rows)
    if wide is rows.dtype:  # the sum may be beyond the largest number
        return (rows.abs() / number).sum(1, True)
    return rows.abs().sum(1, True, dtype=wide.to_real() if wide.is_complex else wide) / number


def _power_of_two(x: Tensor) -> Tensor:
    """One that is close to each number, and has an inverse."""
    exponent = torch.frexp(x).exponent
    limit = -math.frexp(torch.finfo(x.dtype).tiny)[1]
    return torch.ldexp(torch.ones_like(x), exponent.clamp(-limit, limit))


def _precision(data: Tensor, squared: bool = False) -> torch.dtype:
    if rounds_noticeably(data.dtype):
        return torch.float32
    return wider(data) if squared else data.dtype


def _keep(mask: Tensor, key: Hashable, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """What ``make`` counts for every two variables, kept with the mask unless it takes more room than that."""
    variables, observations = mask.shape
    return masks.derive(mask, key, make) if type(variables) is int and variables <= observations else make()


def _count_common(valid: Tensor) -> Tensor:
    with masks.no_autocast(valid.device):
        return valid @ valid.mT


def _common(mask: Tensor, w: Tensor) -> Tensor:
    """The sum of the weights of the common observations of every two variables."""
    with masks.no_autocast(w.device):
        return select(w.expand(mask.shape), mask, 0) @ mask.to(w.dtype).mT


def count_common(x: Pair) -> Tensor:
    """At how many observations every two variables are valid, in the shape of :func:`cov`'s result."""
    data, mask = _table(x)
    return _common(mask, torch.ones((), dtype=torch.float64, device=data.device)).squeeze()


def _nonzero(total: Tensor) -> Tensor:
    return torch.where(total == 0, 1, total)


def _matrix(data: Tensor, valid: Tensor) -> Pair:
    return Pair(data.squeeze(), valid.squeeze())


OPS = [Op("cov", cov, batched=True), Op("corrcoef", corrcoef, batched=True)]
