"""The family cross entropy under the laws."""

import itertools

import pytest
import torch
from torch.nn import functional as F

import masked_tensor as mt

from .laws import laws


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.15])
def test_the_dtype_is_that_of_the_input(smoothing: float, probabilities: bool, dtype: torch.dtype) -> None:
    """Nor is anything rounded to a narrower one on the way: smoothing of float64 is as exact as the rest."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, generator=random, dtype=torch.float64).to(dtype)
    target = x.softmax(1) if probabilities else torch.tensor([0, 2, 1, 1, 0])
    weights = torch.rand(3, generator=random, dtype=torch.float64).to(dtype)
    for reduction, weight in itertools.product(("mean", "sum", "none"), (None, weights)):
        options = {"weight": weight, "reduction": reduction, "label_smoothing": smoothing}
        expected = F.cross_entropy(x, target, **options)
        valid = [mt.masked_tensor(t, torch.ones(t.shape, dtype=torch.bool)) for t in (x, target)]
        for given in ((valid[0], target), (x, valid[1]), valid):
            actual = F.cross_entropy(*given, **options).get_data()
            precise = {"rtol": 1e-12, "atol": 0.0} if dtype is torch.float64 else {}
            torch.testing.assert_close(actual, expected, **precise)


test_law = laws("cross_entropy")
