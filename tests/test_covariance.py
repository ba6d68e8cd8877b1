"""The family covariance under the laws, and what two variables have in common far from the mean of either."""

import pytest
import torch
from torch import Tensor

import masked_tensor as mt

from .laws import laws

test_law = laws("covariance")


def correlation(x: Tensor, mask: Tensor, i: int, j: int) -> float:
    """That of the common observations in float64; NaN if one of the two is constant."""
    both = mask[i] & mask[j]
    a, b = x[i][both].double(), x[j][both].double()
    varies = len(a) > 1 and (a != a[0]).any() and (b != b[0]).any()
    return float(torch.corrcoef(torch.stack([a, b]))[0, 1]) if varies else float("nan")


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_constant_has_no_correlation(dtype: torch.dtype, tracked: bool) -> None:
    """Not even if it is constant only where the other variable is valid: no noise of the rounding is a result."""
    tolerance = {torch.float64: 1e-9, torch.float32: 1e-5}.get(dtype, 2e-2)
    for size in (2, 5, 30, 400, 5000):
        for scale, shift in ((1.0, 0.0), (0.1, 0.3), (40.0, 700.0)):
            x, mask = torch.randn(6, size, dtype=torch.float64), torch.rand(6, size) < torch.rand(6, 1)
            x[:3] = torch.where(mask[3], torch.randn(3, 1, dtype=torch.float64), x[:3])
            x = (x * scale + shift).to(dtype).requires_grad_(tracked)
            ours = mt.corrcoef(x, mask=mask).detach()
            assert ours.dtype is dtype
            rows = [[correlation(x.detach(), mask, i, j) for j in range(6)] for i in range(6)]
            wanted = torch.tensor(rows, dtype=torch.float64)
            torch.testing.assert_close(ours.double(), wanted, rtol=0, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_trends_that_are_seen_in_part(dtype: torch.dtype) -> None:
    """A stretch of a long trend lies far from its mean, and half precision counts to 256."""
    x = (torch.arange(1000.0) + torch.randn(3, 1000)).to(dtype)
    mask = torch.ones(3, 1000, dtype=torch.bool)
    mask[1, :700], mask[1, 800:], mask[2, ::2] = False, False, False
    ours = mt.corrcoef(x, mask=mask)
    wanted = torch.tensor([[correlation(x, mask, i, j) for j in range(3)] for i in range(3)]).to(dtype)
    torch.testing.assert_close(ours, wanted, rtol=0, atol=2 * torch.finfo(dtype).eps)


def test_no_correlation_has_no_gradient() -> None:
    """A NaN of two variables, left out or not asked for, is not one of what each has with others."""
    x = torch.tensor([[3.0, 3.0, 2.0, 1.0], [1.0, -3.0, 5.0, 2.0], [1.0, 2.0, 4.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False, False], [True] * 4, [False, True, True, True]])
    leaf = x.clone().requires_grad_()
    filled = mt.corrcoef(leaf, mask=mask, min_count=3, fill_value=9.0)
    assert filled[0].tolist() == [9.0, 9.0, 9.0]
    filled.sum().backward()
    wanted = x[1:].clone().requires_grad_()
    torch.corrcoef(wanted[:, 1:]).sum().backward()
    torch.testing.assert_close(leaf.grad[1:], wanted.grad)
    assert leaf.grad[0].tolist() == [0, 0, 0, 0]


def test_weights_make_the_result_masked_and_are_not_kept() -> None:
    """Of a mask it is kept what its weights add up to: of other weights that is something else."""
    x, w = torch.arange(8.0).view(2, 4) ** 2, mt.masked_tensor([1.0, 2.0, None, 1.0])
    result = mt.functional.cov(x, aweights=w)
    assert type(result) is mt.MaskedTensor
    kept = torch.tensor([True, True, False, True])
    torch.testing.assert_close(result.get_data(), torch.cov(x[:, kept], aweights=torch.tensor([1.0, 2.0, 1.0])))
    generator = torch.Generator().manual_seed(0)
    mask, data = torch.rand(3, 50, generator=generator) < 0.7, torch.randn(3, 50, generator=generator)
    y = mt.masked_tensor(data, mask)
    for weights in torch.rand(2, 50, generator=generator):
        fresh = mt.masked_tensor(data, mask.clone())
        torch.testing.assert_close(torch.cov(y, aweights=weights), torch.cov(fresh, aweights=weights), rtol=0, atol=0)
        seen = mask[0] & mask[1]
        pair = torch.cov(data[:2, seen], aweights=weights[seen])[0, 1]
        torch.testing.assert_close(torch.cov(y, aweights=weights).get_data()[0, 1], pair)
