"""The family like under the laws."""

import pytest
import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("like")


@pytest.mark.parametrize("garbage", [-3, 2**40])
def test_draws_below_a_masked_bound_are_masked(garbage: int) -> None:
    bound = mt.as_masked_tensor(torch.tensor(garbage), torch.tensor(False))
    for x in (torch.ones(3), mt.masked_tensor([1.0, None, 3.0])):
        assert torch.ops.aten.randint_like.Tensor(x, bound).tolist() == [None, None, None]
    known = mt.masked_tensor(torch.tensor(5), torch.tensor(True))
    drawn = torch.ops.aten.randint_like.Tensor(mt.masked_tensor([1.0, None, 3.0]), known)
    assert drawn.mask.tolist() == [True, False, True]
