"""Forward mode by hand: the tangent of a masked entry is exactly 0, whatever was given there."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad as fw

import masked_tensor as mt

NAN = float("nan")
DATA = torch.linspace(-1, 2, 12, dtype=torch.float64).view(3, 4)
STEP = torch.linspace(1, 2, 12, dtype=torch.float64).view(3, 4)
MASK = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])


def poisoned(data: Tensor, payload: float = NAN) -> Tensor:
    return torch.where(MASK, data, payload)


@pytest.mark.parametrize("payload", [NAN, float("inf"), 1e300])
@pytest.mark.parametrize("plain", [False, True])
def test_tangent_of_a_masked_tensor(payload: float, plain: bool) -> None:
    x = mt.as_masked_tensor(poisoned(DATA, payload), MASK)
    step = poisoned(STEP, payload) if plain else mt.as_masked_tensor(poisoned(STEP, payload), MASK)
    with fw.dual_level():
        dual = fw.make_dual(x, step)
        for result, expected in ((dual, STEP), (dual.exp(), STEP * DATA.exp()), (dual.sum(1), None)):
            primal, tangent = fw.unpack_dual(result)
            assert torch.equal(primal.get_mask(), tangent.get_mask())
            assert (tangent.get_data()[~tangent.get_mask()] == 0).all()
            if expected is not None:
                torch.testing.assert_close(tangent.filled(0), torch.where(MASK, expected, 0))
        assert fw.unpack_dual(dual.sum(1)).tangent.tolist() == [
            pytest.approx(torch.where(MASK, STEP, 0).sum(1)[0].item()),
            None,
            pytest.approx(STEP[2].sum().item()),
        ]
    assert fw.unpack_dual(x).tangent is None


def test_plain_tensors_beside_masked_ones() -> None:
    """A masked direction of a plain tensor counts 0 where it is masked; one plain operand moves, the other does not."""
    with fw.dual_level():
        dual = fw.make_dual(DATA, mt.as_masked_tensor(poisoned(STEP), MASK))
        torch.testing.assert_close(fw.unpack_dual(dual * 2).tangent, torch.where(MASK, 2 * STEP, 0))
        made = mt.as_masked_tensor(fw.make_dual(DATA, STEP), MASK)
        torch.testing.assert_close(fw.unpack_dual(made.filled(0)).tangent, torch.where(MASK, STEP, 0))
        product = fw.make_dual(DATA, STEP) * mt.as_masked_tensor(poisoned(DATA), MASK)
        torch.testing.assert_close(fw.unpack_dual(product).tangent.filled(0), torch.where(MASK, STEP * DATA, 0))


@pytest.mark.parametrize("strategy", ["forward-mode", "reverse-mode"])
def test_functional_jacobian_and_hessian(strategy: Any) -> None:
    x = mt.as_masked_tensor(poisoned(DATA), MASK)
    twice = torch.outer(MASK.flatten(), MASK.flatten()).view(3, 4, 3, 4)
    found = torch.autograd.functional.jacobian(lambda x: x.square(), x, vectorize=True, strategy=strategy)
    expected = torch.diag(2 * DATA.flatten()).view(3, 4, 3, 4)
    torch.testing.assert_close(found.filled(0), torch.where(twice, expected, 0))
