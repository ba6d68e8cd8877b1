"""``quantile(weights=)``: numpy's inverted_cdf of what is valid."""

import numpy as np
import pytest
import torch

import masked_tensor as mt

NAN, GARBAGE = float("nan"), (float("nan"), float("inf"), 1e30)


def by_hand(x: torch.Tensor, w: torch.Tensor, valid: torch.Tensor, q: float) -> float:
    x, w = x[valid & (w > 0)].double().numpy(), w[valid & (w > 0)].double().numpy()
    return float(np.quantile(x, q, weights=w, method="inverted_cdf")) if len(x) else NAN


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_it_is_numpys(garbage: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, valid = torch.randn(5, 4, 3).to(dtype), torch.rand(5, 4, 3) < 0.6
    valid[0, :, 1] = False
    w = torch.randint(0, 4, (5, 4, 3)).double()
    poisoned, heavy = torch.where(valid, x, garbage), torch.where(valid, w, garbage)
    for dims, kept in (((1,), (0, 2)), ((0, 2), (1,)), ((0, 1, 2), ())):
        dim = dims[0] if len(dims) == 1 else dims
        lines = [t.permute(*kept, *dims).reshape(*(t.shape[d] for d in kept), -1) for t in (x, w, valid)]
        flat = [t.reshape(-1, t.shape[-1]) for t in lines]
        for q in (0.0, 0.1, 0.5, 0.75, 1.0):
            wanted = torch.tensor([by_hand(a, b, c, q) for a, b, c in zip(*flat, strict=True)]).reshape(
                lines[0].shape[:-1]
            )
            got = mt.quantile(poisoned, q, dim, weights=heavy, mask=valid)
            torch.testing.assert_close(got, wanted.to(dtype), equal_nan=True, rtol=0, atol=0)
            masked = mt.quantile(mt.as_masked_tensor(poisoned, valid), q, dim, True, weights=heavy)
            assert masked.shape == tuple(1 if d in dims else n for d, n in enumerate(x.shape))
            assert torch.equal(masked.mask.reshape(wanted.shape), ~wanted.isnan())
            torch.testing.assert_close(masked.filled(NAN).reshape(wanted.shape), wanted.to(dtype), equal_nan=True)


def test_weights_along_dim_levels_and_masked_weights() -> None:
    x = torch.tensor([[3.0, 1.0, 2.0], [6.0, 5.0, 4.0]])
    got = mt.quantile(x, [0.25, 1.0], 1, weights=torch.tensor([1.0, 2.0, 1.0]))
    assert got.tolist() == [[1.0, 4.0], [3.0, 6.0]]
    heavy = mt.masked_tensor([1.0, None, 1.0])
    assert mt.quantile(x, 0.0, 1, weights=heavy).tolist() == [2.0, 4.0]
    assert mt.quantile(mt.from_lengths(x, [3, 1]).packed(), 0.5, 1, weights=torch.ones(3)).tolist() == [2.0, 6.0]
    assert mt.quantile(torch.zeros(0, 2), 0.5, 0, weights=torch.ones(0, 2)).isnan().all()
    assert mt.quantile(torch.tensor(2.0), 0.5, weights=torch.tensor(3.0)).item() == 2.0


def test_nan_among_what_is_valid() -> None:
    x, w = torch.tensor([1.0, NAN, 3.0]), torch.tensor([1.0, 1.0, 2.0])
    assert mt.quantile(x, 0.5, weights=w).isnan()
    assert mt.nanquantile(x, 0.5, weights=w).item() == 3.0
    assert mt.quantile(x, 0.5, weights=torch.tensor([1.0, 0.0, 2.0])).item() == 3.0


def test_the_gradient_goes_to_the_entry() -> None:
    x = torch.tensor([1.0, NAN, 3.0, 2.0], dtype=torch.float64, requires_grad=True)
    mask, w = torch.tensor([True, False, True, True]), torch.tensor([1.0, NAN, 1.0, 1.0])
    mt.quantile(mt.as_masked_tensor(x, mask), 0.5, weights=w).backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0, 1.0]


def test_wrong_arguments() -> None:
    x, w = torch.ones(3), torch.tensor([1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="must not be negative"):
        mt.quantile(x, 0.5, weights=w)
    with pytest.raises(ValueError, match="leave interpolation= out"):
        mt.quantile(x, 0.5, weights=w.abs(), interpolation="nearest")
    with pytest.raises(RuntimeError, match="in the range"):
        mt.quantile(x, 1.5, weights=w.abs())
    with pytest.raises(ValueError, match="weights must broadcast"):
        mt.quantile(x, 0.5, weights=torch.ones(2))
    with pytest.raises(mt.UnsupportedOpError):
        mt.quantile(x.to_sparse(), 0.5, weights=w.abs())
