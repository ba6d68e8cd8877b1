"""Moments and norms of float32 far from 0, against float64; norms of half precision with hardly any eps.

A float32 mean of numbers around 1e6 is off by up to 0.03: deviations from it must not be taken for deviations.
"""

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import masked_tensor as mt
from masked_tensor import settings

from .helpers.harness import random_mask

SHAPE = (6, 4, 50)
OFFSETS = (0.0, 1e3, -1e6)
MOMENTS: dict[str, Callable[[Any], Any]] = {
    **{f"std {dim}": lambda x, dim=dim: x.std(dim) for dim in (-1, 0, (0, 2), None)},
    "var": lambda x: x.var(-1, correction=0),
    "var_mean": lambda x: torch.var_mean(x, -1)[0],
    "std_mean": lambda x: torch.std_mean(x, (0, 2))[0],
    "cov": lambda x: torch.cov(x.reshape(24, 50)),
    "corrcoef": lambda x: torch.corrcoef(x.reshape(24, 50)),
    "layer_norm": lambda x: F.layer_norm(x, (50,), torch.linspace(1, 2, 50, dtype=x.dtype)),
    "layer_norm of two": lambda x: F.layer_norm(x, (4, 50), None, torch.ones(4, 50, dtype=x.dtype)),
    "group_norm": lambda x: F.group_norm(x, 2, torch.linspace(1, 2, 4, dtype=x.dtype), torch.ones(4, dtype=x.dtype)),
    "instance_norm": lambda x: F.instance_norm(x),
    "batch_norm": lambda x: F.batch_norm(x, None, None, torch.linspace(1, 2, 4, dtype=x.dtype), training=True),
    "rms_norm": lambda x: F.rms_norm(x, (50,)),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1) / 1e4,
    "normalize": lambda x: F.normalize(x, dim=-1) * 100,
}
FORMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "std": lambda x, m: mt.std(x, -1, mask=m),
    "var": lambda x, m: mt.var(x, 0, mask=m),
    "layer_norm": lambda x, m: mt.layer_norm(x, (50,), mask=m),
    "batch_norm": lambda x, m: mt.batch_norm(x, None, None, training=True, mask=m),
}


def numbers(offset: float) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(SHAPE, generator=generator) + offset


def result(function: Callable[[Any], Any], data: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The value, and the gradient of its squares."""
    x = mt.masked_tensor(data, mask).requires_grad_()
    out = function(x)
    weights = torch.linspace(0.5, 1.5, out.shape.numel(), dtype=out.dtype).reshape(out.shape)
    (out * weights).sum().backward()
    return out.detach().filled(0), x.grad.filled(0)


def differs(actual: Tensor, exact: Tensor) -> float:
    """The greatest error, relative to the greatest value."""
    return float((actual.double() - exact).abs().max() / exact.abs().max().clamp_min(1e-30))


@pytest.mark.parametrize("pattern", ["random", "full"])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", MOMENTS)
def test_moments_far_from_zero(name: str, large: bool, pattern: str, monkeypatch: Any, record_property: Any) -> None:
    """``large``: in the pieces and by the closed form of large tensors; with a gradient and without one."""
    if large:
        for number, value in (("LARGE", 100), ("PIECE", 300), ("STRETCH", 1), ("CHUNK", 200), ("FORMULA", 0)):
            monkeypatch.setattr(settings, number, value)
    mask = random_mask(SHAPE, pattern, torch.Generator().manual_seed(1))
    for offset in OFFSETS:
        data = numbers(offset)
        exact, exact_grad = result(MOMENTS[name], data.double(), mask)
        value, grad = result(MOMENTS[name], data, mask)
        with torch.no_grad():
            untracked = MOMENTS[name](mt.masked_tensor(data, mask)).filled(0)
        # Where nothing is subtracted, float32 itself is no better than the size of the data.
        assert differs(value, exact) < 2e-5, offset
        assert differs(untracked, exact) < 2e-5, offset
        assert differs(grad, exact_grad) < 2e-4, offset
    record_property("law", ("precision", name, 3 * len(OFFSETS)))


@pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC|BSR|BSC) tensor support is in beta")
@pytest.mark.filterwarnings("ignore:.*segment_reduce.. is in beta")
@pytest.mark.parametrize("layout", ["strided", "coo"])
@pytest.mark.parametrize("name", FORMS)
def test_functional_moments_far_from_zero(name: str, layout: str) -> None:
    mask = random_mask(SHAPE, "random", torch.Generator().manual_seed(1))
    for offset in OFFSETS:
        data = numbers(offset)
        exact = FORMS[name](data.double(), mask)
        given = data if layout == "strided" else data.to_sparse_coo()
        value = FORMS[name](given, mask)
        value = value.to_dense() if value.layout is not torch.strided else value
        assert torch.equal(value.isnan(), exact.isnan())  # too few values
        assert differs(value.nan_to_num(0), exact.nan_to_num(0)) < 2e-5, offset


@pytest.mark.parametrize("large", [False, True])
def test_a_constant_has_no_deviation(large: bool, monkeypatch: Any) -> None:
    if large:
        monkeypatch.setattr(settings, "FORMULA", 0)
    mask = random_mask(SHAPE, "random", torch.Generator().manual_seed(1))
    for value, eps in itertools.product((1e6, 1e6 / 3, -12345.678), (1e-5, 1e-12)):
        x = mt.masked_tensor(torch.full(SHAPE, value), mask)
        assert F.layer_norm(x, (50,), eps=eps).filled(0).abs().max() < 1e-2
        assert x.std(-1).filled(0).abs().max() < 1e-6


# ------------------------------------------------------------------------------------------------------ half precision

SHAPE8 = (6, 4, 8)
# Each norm of a tensor of that shape: its parameters' shape, and the dims along which groups are masked as a whole.
NORMS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "layer_norm": (lambda x, w, b, eps: F.layer_norm(x, (8,), w, b, eps), (8,), (0, 1)),
    "layer_norm of two": (lambda x, w, b, eps: F.layer_norm(x, (4, 8), w, b, eps), (4, 8), (0,)),
    "rms_norm": (lambda x, w, b, eps: F.rms_norm(x, (8,), w, eps), (8,), (0, 1)),
    "rms_norm, its own eps": (lambda x, w, b, eps: F.rms_norm(x, (8,), w), (8,), (0, 1)),
    "group_norm": (lambda x, w, b, eps: F.group_norm(x, 2, w, b, eps), (4,), (0,)),
    "instance_norm": (lambda x, w, b, eps: F.instance_norm(x, None, None, w, b, eps=eps), (4,), (0, 1)),
    "batch_norm": (lambda x, w, b, eps: F.batch_norm(x, None, None, w, b, True, 0.1, eps or 1e-30), (4,), (1,)),
    "normalize": (lambda x, w, b, eps: F.normalize(x, dim=-1, eps=eps) * w + b, (8,), (0, 1)),
    "local_response_norm": (lambda x, w, b, eps: F.local_response_norm(x, 2, k=1.0) * w + b, (8,), (0, 2)),
    "cosine_similarity": (lambda x, w, b, eps: F.cosine_similarity(x, w.expand(6, 4, 8), -1, eps), (8,), (0, 1)),
    "weight_norm": (lambda x, w, b, eps: torch._weight_norm(x, w, 0) + b, (6, 1, 1), (0,)),
}


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-5])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", NORMS)
def test_groups_of_masked_entries_spoil_no_norm(
    name: str, dtype: torch.dtype, eps: float, dense: bool, record_property: Any
) -> None:
    """Values, and the gradients of parameters and input, are finite, and those of float64 with the usual eps."""
    norm, shape, outside = NORMS[name]
    generator = torch.Generator().manual_seed(0)
    rows = torch.rand([SHAPE8[d] if d in outside else 1 for d in range(3)], generator=generator) < 0.6
    rows.view(-1)[0], rows.view(-1)[-1] = False, True
    mask = rows.expand(SHAPE8).clone() if dense else rows.expand(SHAPE8)
    data, seed = (torch.randn(SHAPE8, generator=generator) for _ in range(2))
    found = []
    for kind, payload in ((torch.float64, 0.0), (dtype, 0.0), (dtype, float("nan")), (dtype, 1e4)):
        x = mt.as_masked_tensor(data.to(kind).masked_fill(~mask, payload), mask).requires_grad_()
        parameters = [
            torch.linspace(0.5, 1.5, mask.new_empty(shape).shape.numel()).reshape(shape).to(kind) for _ in range(2)
        ]
        leaves = [p.requires_grad_() for p in parameters]
        out = norm(x, *leaves, eps if kind is dtype else 1e-5)
        wanted = seed if out.shape == seed.shape else seed[..., 0]
        (out * wanted.to(kind)).sum().backward()
        found.append([out.detach().filled(0), x.grad.filled(0), *(p.grad for p in leaves)])
    exact, *lower = found
    for results in lower:
        for a, e in zip(results, exact, strict=True):
            assert (a is None) is (e is None)
            if a is not None:
                scale = float(e.abs().max().clamp_min(1))
                tolerance = 30 * torch.finfo(dtype).eps * scale if dtype is not torch.float32 else 1e-4 * scale
                torch.testing.assert_close(a.double(), e, atol=tolerance, rtol=0)
    record_property("law", ("half precision", name, len(lower)))


# ----------------------------------------------------------------------------------------- many equal numbers added up


def variance(n: int, v: complex) -> complex:
    """Of the numbers with alternating signs, of which there are even many."""
    return abs(v) ** 2 * n / (n - 1)


NUMBERS = (1000, 10**6) if os.environ.get("MASKED_TENSOR_SUMS") else (20_000,)
Adding = tuple[Callable[..., Any], Callable[[int, complex], complex]]
# Each with what it is of n numbers v.
ADDS: dict[str, Adding] = {
    "sum": (lambda x: x.sum(1), lambda n, v: n * v),
    "mean": (lambda x: x.mean(1), lambda n, v: v),
    "nansum": (lambda x: x.nansum(1), lambda n, v: n * v),
    "norm 1": (lambda x: torch.linalg.vector_norm(x, 1, 1), lambda n, v: n * abs(v)),
    "norm 2": (lambda x: torch.linalg.vector_norm(x, 2, 1), lambda n, v: n**0.5 * abs(v)),
    "norm 3": (lambda x: torch.linalg.vector_norm(x, 3, 1), lambda n, v: n ** (1 / 3) * abs(v)),
    "logsumexp": (lambda x: x.logsumexp(1), lambda n, v: v + math.log(n)),
    "var": (lambda x: (x * x.new_tensor([1, -1]).repeat(x.shape[1] // 2 + 1)[: x.shape[1]]).var(1), variance),
    "cumsum": (lambda x: x.cumsum(1).mean(1), lambda n, v: v * (n + 1) / 2),
    "dot": (lambda x: x @ x.new_ones(()).expand(x.shape[1]), lambda n, v: n * v),
    "average": (lambda x: mt.average(x, 1) if isinstance(x, mt.MaskedTensor) else x.mean(1), lambda n, v: v),
}
SPARSE = ("sum", "mean", "nansum", "norm 1", "norm 2", "norm 3", "logsumexp")
ADDING: dict[str, Adding] = {
    "sum": (mt.sum, lambda n, v: n * v),
    "mean": (mt.mean, lambda n, v: v),
    "nansum": (mt.nansum, lambda n, v: n * v),
    "nanmean": (mt.nanmean, lambda n, v: v),
    "norm": (mt.norm, lambda n, v: n**0.5 * abs(v)),
    "logsumexp": (mt.logsumexp, lambda n, v: v + math.log(n)),
    "std": (mt.std, lambda n, v: variance(n, v) ** 0.5),
}
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "strided": lambda x: x, "coo": lambda x: x.to_sparse_coo(), "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(), "coo of columns": lambda x: x.t().contiguous().t().to_sparse_coo(),
}  # fmt: skip
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)


def equal_numbers(n: int, dtype: torch.dtype) -> Tensor:
    return torch.full((2, n), 0.1 if n < 10**5 or dtype is not torch.float16 else 0.01, dtype=dtype)


def error(found: Tensor, exact: complex) -> float:
    """Relative, in units of the dtype's own precision."""
    found = found.to_dense() if found.layout is not torch.strided else found
    wide = found.detach().to(torch.complex128 if found.is_complex() else torch.float64)
    return float((wide - exact).abs().max()) / abs(exact) / torch.finfo(found.dtype).eps


@pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC) tensor support is in beta")
@pytest.mark.filterwarnings("ignore:.*segment_reduce.. is in beta")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ADDS)
def test_many_equal_numbers_add_up(name: str, dtype: torch.dtype, record_property: Any) -> None:
    """As masked tensors of every layout, within a few times torch's own error, or what 100 additions may cost."""
    checked = 0
    function, formula = ADDS[name]
    for n in NUMBERS:
        x = equal_numbers(n, dtype)
        features = x[..., None].expand(2, n, 2).contiguous()
        exact = formula(n, x[0, 0].item())
        try:
            own = error(function(x), exact)
        except (RuntimeError, NotImplementedError):
            assert dtype.is_complex
            return
        every = torch.ones(x.shape, dtype=torch.bool)
        given = {
            "strided": mt.as_masked_tensor(x, every),
            "tracked": mt.as_masked_tensor(x.clone().requires_grad_(), every),
            "padded": mt.as_masked_tensor(F.pad(x, (0, 9), value=float("nan")), F.pad(every, (0, 9))),
            "packed": mt.as_masked_tensor(F.pad(x, (0, 9), value=float("nan")), F.pad(every, (0, 9))).packed(),
            "packed, features": mt.as_masked_tensor(features, every[..., None]).packed(),
        }
        for layout in LAYOUTS if name in SPARSE else ():
            given[layout] = mt.as_masked_tensor(LAYOUTS[layout](x), LAYOUTS[layout](every))
        for layout, masked in given.items():
            if layout == "packed, features":
                if name in ("dot", "var", "average"):
                    continue
                own = error(function(features), exact)
            found = function(masked)
            found = found if found.layout is not torch.strided else found.filled(0)
            found = found.get_data() if isinstance(found, mt.MaskedTensor) else found
            assert error(found, exact) <= 4 * own + 100, f"{n} numbers, {layout}; torch: {own}"
            checked += 1
    record_property("law", ("sums", name, checked))


@pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC) tensor support is in beta")
@pytest.mark.filterwarnings("ignore:.*segment_reduce.. is in beta")
@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.is_complex])
@pytest.mark.parametrize("name", ADDING)
def test_functional_forms_add_up_many_equal_numbers(name: str, dtype: torch.dtype, record_property: Any) -> None:
    plain = torch.linalg.vector_norm if name == "norm" else torch.nanmean if name == "nanmean" else getattr(torch, name)
    for n, dim in itertools.product(NUMBERS, (1, None)):
        signs = torch.tensor([1, -1]).repeat(n // 2) if name == "std" else 1
        x = equal_numbers(n, dtype) * signs
        exact = ADDING[name][1](n if dim else 2 * n, x[0, 0].item())
        own = error(plain(x, dim=(0, 1) if dim is None and name == "logsumexp" else dim), exact)
        for layout, tracked in itertools.product(LAYOUTS, (False, True)):
            given = LAYOUTS[layout](x.clone()).requires_grad_(tracked)
            found = ADDING[name][0](given, dim=dim, mask=torch.ones(x.shape, dtype=torch.bool))
            assert error(found, exact) <= 4 * own + 100, f"{n} numbers, {layout}, tracked {tracked}; torch: {own}"
    record_property("law", ("sums of functional forms", name, 4 * 2 * len(LAYOUTS)))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (torch.float32, 1e18),
        (torch.float32, 1e-23),
        (torch.bfloat16, 4e3),
        (torch.bfloat16, 1e18),
        (torch.float16, 2e2),
    ],
)
def test_sparse_variances_stay_in_range(layout: torch.layout, dtype: torch.dtype, size: float) -> None:
    """Squares that leave the range of a dtype are added up in a wider one."""
    data = (torch.randn(4, 2_000, generator=torch.Generator().manual_seed(0)) * size).to(dtype)
    mask = torch.rand(4, 2_000, generator=torch.Generator().manual_seed(1)) < 0.8
    expected = torch.stack([row[valid].double().std() for row, valid in zip(data, mask, strict=True)])
    sparse = data.to_sparse(layout=layout)
    x = mt.as_masked_tensor(sparse, mask.to_sparse(layout=layout))
    for found in (x.std(1), mt.std(sparse, 1, mask=mask)):
        found = mt.filled(found).to_dense() if found.layout is not torch.strided else mt.filled(found)
        torch.testing.assert_close(found.double(), expected, rtol=float(torch.finfo(dtype).eps), atol=0.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_averages_of_halves_are_rounded_once(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(0)
    data, weights = (torch.rand(64, 500, generator=random).to(dtype) for _ in range(2))
    mask = torch.rand(64, 500, generator=random) < 0.7
    given = torch.where(mask, data, torch.nan)
    known = torch.where(mask, weights, 0).double()
    expected = ((data.double() * known).sum(1) / known.sum(1)).to(dtype)
    for found in (
        mt.average(given, 1, weights=weights, mask=mask),
        mt.average(mt.as_masked_tensor(given, mask), 1, weights),
    ):
        found = mt.filled(found)
        assert found.dtype is dtype
        assert torch.equal(found, expected)
