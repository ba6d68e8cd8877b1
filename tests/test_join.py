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


@pytest.mark.parametrize("tracked", [False, True])
def test_many_views_are_joined_as_they_are_after_writes_through_others(tracked: bool) -> None:
    """Views of several tensors, among plain and packed ones: each is up to date."""
    bases = [
        mt.masked_tensor(torch.arange(12.0).view(4, 3) + 100 * i, torch.arange(12).view(4, 3) % 3 > 0) for i in range(2)
    ]
    if tracked:
        bases = [(b.requires_grad_() * 1) for b in bases]
    views = [v for pair in zip(*bases, strict=True) for v in pair]
    assert torch.stack(views)[0].tolist() == bases[0][0].tolist()
    bases[1][2] = mt.masked_tensor([7.0, None, 9.0])
    views[0].fill_(5.0)
    expected = [row.tolist() for rows in zip(*bases, strict=True) for row in rows]
    assert torch.stack(views).tolist() == expected == torch.stack([*views, torch.ones(3)]).tolist()[:-1]
    assert torch.cat(views).requires_grad is tracked
    if tracked:
        (gradient,) = torch.autograd.grad(torch.stack(views).sum(), bases[0])
        assert gradient.filled(0).tolist() == [[0.0] * 3, *bases[0].get_mask()[1:].double().tolist()]  # 0 was written
