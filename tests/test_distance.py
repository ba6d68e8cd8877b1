"""The family distance under the laws, and distances of many rows, which are made by matrix products."""

import pytest
import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("distance")
NAN, INF = float("nan"), float("inf")
BY_PRODUCTS, BY_DIFFERENCES = "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"


def rows(*shape: int, garbage: float = NAN) -> tuple[torch.Tensor, torch.Tensor]:
    seen = torch.rand(shape) > 0.4
    return torch.where(seen, torch.randn(shape, dtype=torch.float64), garbage), seen


@pytest.mark.parametrize("batch", [((), ()), ((2,), ()), ((2, 1), (3,))])
def test_products_and_differences_give_one_result(batch: tuple[tuple[int, ...], ...]) -> None:
    """Values, masks, gradients and their gradients."""
    torch.manual_seed(0)
    given = [rows(*batch[0], 30, 5), rows(*batch[1], 4, 5, garbage=1e300)]

    def found(mode: str) -> list[torch.Tensor]:
        x, y = (mt.masked_tensor(*part, requires_grad=True) for part in given)
        result = torch.cdist(x, y, compute_mode=mode)
        first = torch.autograd.grad(result.filled(0).pow(3).sum(), (x, y), create_graph=True)
        second = torch.autograd.grad(sum(g.filled(0).square().sum() for g in first), (x, y))
        return [result.get_mask(), *(t.detach().filled(0) for t in (result, *first, *second))]

    for a, b in zip(found(BY_PRODUCTS), found(BY_DIFFERENCES), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_number_that_is_not_finite_reaches_only_rows_that_have_its_coordinate(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    (a, p), (b, q) = rows(40, 6, garbage=INF), rows(30, 6)
    a[0, 0], a[1, 1], a[2, 2], b[1, 1], b[2, 2] = INF, NAN, -INF, -INF, NAN
    p[:3, :3] = q[:3, :3] = torch.eye(3, dtype=torch.bool)
    x, y = mt.masked_tensor(a.to(dtype), p), mt.masked_tensor(b.to(dtype), q)
    result, exact = (torch.cdist(x, y, compute_mode=mode) for mode in (BY_PRODUCTS, BY_DIFFERENCES))
    assert result.dtype is dtype
    assert torch.equal(result.get_mask(), exact.get_mask())
    rounded = {"rtol": 2e-2, "atol": 5e-2} if dtype is torch.bfloat16 else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(result.filled(0), exact.filled(0), equal_nan=True, **rounded)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, INF])
def test_distances_are_made_a_few_rows_at_a_time(p: float, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    x, y = (mt.masked_tensor(*rows(2, n, 5)) for n in (31, 9))
    wanted = torch.cdist(x, y, p)
    monkeypatch.setattr("masked_tensor.settings.CHUNK", 64)
    result = torch.cdist(x, y, p)
    assert torch.equal(result.get_mask(), wanted.get_mask())
    torch.testing.assert_close(result.filled(0), wanted.filled(0), rtol=1e-12, atol=1e-12)


def test_the_gradient_of_equal_rows_is_zero() -> None:
    data = torch.ones(30, 4, dtype=torch.float64)
    x = mt.masked_tensor(data, torch.rand(30, 4) > 0.3, requires_grad=True)
    torch.cdist(x, x).filled(0).sum().backward()
    assert torch.equal(x.grad.filled(0), torch.zeros_like(data))
