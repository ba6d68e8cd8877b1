"""The family join under the laws."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor import masks
from masked_tensor.engine.tensor import pair_of

from .laws import laws

test_law = laws("join")


@pytest.mark.parametrize("join", [torch.cat, torch.stack])
def test_parts_of_one_padding_stay_padding(join: Callable[..., Any]) -> None:
    """As rotary embeddings turn halves of the features: attention sees that whole keys are missing."""
    x = mt.as_masked_tensor(torch.randn(2, 3, 8), torch.tensor([[1, 1, 0], [1, 0, 0]], dtype=torch.bool)[..., None])
    a, b = x.chunk(2, -1)
    mask = pair_of(join((-b, a), -1)).mask
    assert masks.is_constant(mask, -1)
    assert torch.equal(mask, join((b.get_mask(), a.get_mask()), -1))
    other = mt.as_masked_tensor(torch.randn(2, 3, 4), torch.rand(2, 3, 1) < 0.5)
    joined = torch.cat((a, other), -1)
    assert torch.equal(joined.get_mask(), torch.cat((a.get_mask(), other.get_mask()), -1))


def test_a_stack_of_masks_that_are_constant_stays_small() -> None:
    x, y = (mt.masked_tensor(torch.ones(3, 4), torch.tensor([[True], [seen], [True]])) for seen in (True, False))
    for dim in range(3):
        stacked = torch.stack([x, y], dim)
        assert torch.equal(stacked.get_mask(), torch.stack([x.get_mask(), y.get_mask()], dim))
        assert 0 in pair_of(stacked).mask.stride()
    assert pair_of(torch.stack([x, x])).mask.stride()[0] == 0  # parts of one tensor
