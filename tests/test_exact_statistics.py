"""Statistics are as exact as torch's on the valid entries alone, from the least to the largest numbers of a dtype.

The error of each result is at most 4 times the larger of torch's own, on the compacted data of the same row, and half a
unit in the last place of the sum of absolute terms.  Exact results come from numbers of 64 bits of precision and 15 of
exponent (``numpy.longdouble``).  ``MASKED_TENSOR_EXACT=1`` adds rows of 1e6 and 1e7 entries.
"""

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

import masked_tensor as mt

EXACT = bool(os.environ.get("MASKED_TENSOR_EXACT"))
SIZES = (2, 100, 20_000) + ((10**6, 10**7) if EXACT else ())
ROWS = 3
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

needs_long_double = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no numbers of 80 bits here")


class Exact(NamedTuple):
    """An exact result, and the sum of its absolute terms."""

    value: np.longdouble
    terms: np.longdouble


def _centred(row: np.ndarray) -> np.ndarray:
    return row - row.sum() / len(row)


def _sum(row: np.ndarray) -> Exact:
    return Exact(row.sum(), np.abs(row).sum())


def _mean(row: np.ndarray) -> Exact:
    return Exact(row.sum() / len(row), np.abs(row).sum() / len(row))


def _var(row: np.ndarray) -> Exact:
    value = (_centred(row) ** 2).sum() / (len(row) - 1)
    return Exact(value, value)


def _std(row: np.ndarray) -> Exact:
    value = np.sqrt(_var(row).value)
    return Exact(value, value)


def _cov(row: np.ndarray, other: np.ndarray) -> Exact:
    terms = _centred(row) * _centred(other) / (len(row) - 1)
    return Exact(terms.sum(), np.abs(terms).sum())


ONE: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], Exact]]] = {
    "sum": (torch.sum, _sum),
    "mean": (torch.mean, _mean),
    "var": (torch.var, _var),
    "std": (torch.std, _std),
    "average": (lambda x, dim: mt.average(x, dim) if isinstance(x, mt.MaskedTensor) else x.mean(dim), _mean),
    "functional var": (lambda x, dim: mt.var(x, dim) if isinstance(x, mt.MaskedTensor) else x.var(dim), _var),
}


def magnitudes(dtype: torch.dtype) -> list[float]:
    """From the least to the largest normal number, less what a random number adds."""
    finfo = torch.finfo(dtype)
    low, high = np.log2(finfo.smallest_normal) + 4, np.log2(finfo.max) - 5
    return [float(2**e) for e in np.linspace(low, high, 9)]


def rows_of(dtype: torch.dtype, magnitude: float, offset: float, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random rows and their masks; the last row is valid as a whole."""
    generator = torch.Generator().manual_seed(seed)
    data = ((torch.randn(ROWS, size, generator=generator, dtype=torch.float64) + offset) * magnitude).to(dtype)
    mask = torch.rand(ROWS, size, generator=generator) < 0.8
    mask[:, :2] = mask[-1] = True
    return data, mask


def representable(value: np.longdouble, dtype: torch.dtype) -> bool:
    finfo = torch.finfo(dtype)
    return bool(abs(value) < finfo.max and abs(value) >= finfo.smallest_normal)


def assert_as_exact(actual: Tensor, own: Tensor, exact: Exact, dtype: torch.dtype, what: object) -> None:
    if not own.isfinite():
        return  # torch leaves the range of the dtype on its way
    unit = np.longdouble(torch.finfo(dtype).eps) * exact.terms / 2
    error, torchs = (abs(np.longdouble(t.double().item()) - exact.value) for t in (actual, own))
    assert error <= 4 * max(unit, torchs), (what, float(error / unit), actual, own)


def long(data: Tensor) -> np.ndarray:
    return data.double().numpy().astype(np.longdouble)


@needs_long_double
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ONE)
def test_a_statistic_of_rows(name: str, dtype: torch.dtype, record_property: Any) -> None:
    """Along rows, along columns, and of one row as a whole."""
    function, oracle = ONE[name]
    seen = 0
    for size in SIZES:
        for k, magnitude in enumerate(magnitudes(dtype)):
            for offset in (0.0, 7.0):
                data, mask = rows_of(dtype, magnitude, offset, size, k)
                x = mt.masked_tensor(data.masked_fill(~mask, torch.nan), mask)
                columns = mt.masked_tensor(x.get_data().mT.contiguous(), mask.mT.contiguous())
                found = function(x, 1), function(columns, 0)
                for i in range(ROWS):
                    valid = data[i][mask[i]]
                    exact = oracle(long(valid))
                    if not representable(exact.value, dtype) or not representable(exact.terms, dtype):
                        continue
                    own = function(valid, 0)
                    for result in (*(part[i] for part in found), function(x[i], 0)):
                        assert result.get_mask()
                        assert_as_exact(result.filled(0), own, exact, dtype, (size, magnitude, offset, i))
                        seen += 1
    assert seen > 100
    record_property("law", ("exact statistics", f"{name} {dtype}", seen))


@needs_long_double
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_covariance_of_two_rows(dtype: torch.dtype, record_property: Any) -> None:
    """Of the observations that both have; one row may be tiny and the other huge."""
    seen, all_of_them = 0, magnitudes(dtype)
    for size in SIZES:
        for k, first in enumerate(all_of_them):
            for second in all_of_them[k % 3 :: 3]:
                (data, mask), (other, _) = (rows_of(dtype, m, 1.0, size, s) for m, s in ((first, k), (second, 99)))
                table = torch.stack((data[0], other[0]))
                common = mask[0] & mask[1]
                own = torch.cov(table[:, common])
                x = mt.masked_tensor(table.masked_fill(~mask[:2], torch.nan), mask[:2])
                found = torch.cov(x)
                a, b = long(table[0][common]), long(table[1][common])
                exact = _cov(a, b)
                if representable(exact.value, dtype) and representable(exact.terms, dtype):
                    result = found.filled(0)[0, 1]
                    assert_as_exact(result, own[0, 1], exact, dtype, (size, first, second))
                    seen += 1
    assert seen > 30
    record_property("law", ("exact statistics", f"cov {dtype}", seen))


@needs_long_double
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_product_of_rows(dtype: torch.dtype, record_property: Any) -> None:
    """Errors of products are random walks: the largest over many rows is compared with the largest of torch's."""
    seen = 0
    for size in (100, 5000):
        errors, torchs = [], []
        for seed in range(8):
            generator = torch.Generator().manual_seed(seed)
            data = (torch.randn(8, size, generator=generator, dtype=torch.float64) / size**0.5).exp().to(dtype)
            mask = torch.rand(8, size, generator=generator) < 0.8
            x = mt.masked_tensor(data.masked_fill(~mask, torch.nan), mask)
            found = x.prod(1).filled(0), mt.masked_tensor(x.filled(0).mT.contiguous(), mask.mT).prod(0).filled(0)
            for i in range(8):
                valid = data[i][mask[i]]
                exact = np.prod(long(valid))
                for part in found:
                    errors.append(float(abs(np.longdouble(part[i].item()) - exact) / exact))
                torchs.append(float(abs(np.longdouble(valid.prod().item()) - exact) / exact))
                seen += 2
        assert max(errors) <= 4 * max(torchs)
    record_property("law", ("exact statistics", f"prod {dtype}", seen))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("magnitude", [1e-24, 1.0, 1e18])
def test_gradients_of_deviations_hold_to_the_edge(magnitude: float, dtype: torch.dtype) -> None:
    """Of a small and a large tensor: the gradient of a deviation has no magnitude of its own."""
    for size in (100, 20_000):
        data, mask = rows_of(dtype, magnitude, 1.0, size, 0)
        x = mt.masked_tensor(data.masked_fill(~mask, torch.nan), mask).requires_grad_()
        x.std(1).sum().backward()
        exact = mt.masked_tensor(data.double(), mask).requires_grad_()
        exact.std(1).sum().backward()
        expected = exact.grad.filled(0).to(dtype)
        torch.testing.assert_close(x.grad.filled(0), expected, rtol=2e-2 if dtype.itemsize == 2 else 1e-4, atol=1e-9)


@pytest.mark.parametrize("offset", [2.0**40, 2.0**50, 2.0**52])
def test_squared_distances_make_up_for_a_rounded_mean(offset: float) -> None:
    """Integers of float64, whose variance is exact in fractions."""
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        small, mask = torch.randint(9, (1000,), generator=generator), torch.rand(1000, generator=generator) < 0.7
        kept = [int(n) for n in small[mask]]
        mean = Fraction(sum(kept), len(kept))
        exact = float(sum((n - mean) ** 2 for n in kept) / (len(kept) - 1))
        x = mt.as_masked_tensor((small.double() + offset).masked_fill(~mask, torch.nan), mask)
        torch.testing.assert_close(x.var().item(), exact, rtol=1e-12, atol=0)
