"""Forward mode by hand: the tangent of a masked entry is exactly 0, whatever was given there."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
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


def test_forward_over_reverse_and_reverse_over_forward() -> None:
    """A Hessian-vector product both ways: of a leaf, of a plain tensor beside it, and by ``backward``."""
    step, second = torch.where(MASK, STEP, 0), torch.where(MASK, 6 * DATA * STEP, 0)
    for payload in (NAN, 1e300):
        x = mt.as_masked_tensor(poisoned(DATA, payload), MASK).requires_grad_()
        weight = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
        with fw.dual_level():
            dual = fw.make_dual(x, poisoned(STEP, payload))
            for towards in (x, dual):
                (found,) = torch.autograd.grad((dual**3).sum(), towards)
                gradient, moved = fw.unpack_dual(found)
                torch.testing.assert_close(gradient.filled(0), torch.where(MASK, 3 * DATA**2, 0))
                torch.testing.assert_close(moved.filled(0), second)
                assert (moved.get_data()[~MASK] == 0).all()
            tangent = fw.unpack_dual((dual**3).sum()).tangent
            torch.testing.assert_close(torch.autograd.grad(tangent, x)[0].filled(0), second)
            (found,) = torch.autograd.grad((dual.square() * weight).sum(), weight)
            torch.testing.assert_close(fw.unpack_dual(found).tangent, (2 * torch.where(MASK, DATA, 0) * step).sum(0))
            (dual**3).sum().backward()
        torch.testing.assert_close(x.grad.filled(0), torch.where(MASK, 3 * DATA**2, 0))


LENGTHS = (3, 2)


class Attention(torch.nn.Module):
    """As in a model, and in forward mode by the formula that torch has for one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 36).view(6, 6).sin())

    def forward(self, x: Any) -> Any:
        x = x @ self.weight
        return F.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize(
    "module",
    [Attention(), torch.nn.GRU(6, 2, batch_first=True), torch.nn.LSTM(6, 2, 2, batch_first=True, bidirectional=True)],
    ids=lambda m: type(m).__name__,
)
def test_tangents_of_a_padded_batch_are_those_of_its_rows(module: torch.nn.Module) -> None:
    """By finite differences of the rows: torch has no ruleula for its fused attention, nor for LSTM."""
    module = module.double()
    data = torch.linspace(-2, 2, 48, dtype=torch.float64).view(2, 4, 6).cos()
    step = torch.linspace(0, 3, 48, dtype=torch.float64).view(2, 4, 6).sin()
    mask = (torch.arange(4) < torch.tensor(LENGTHS)[:, None])[..., None].expand(2, 4, 6)

    def run(x: Any) -> Any:
        out = module(x)
        return out[0] if isinstance(out, tuple) else out

    x = mt.as_masked_tensor(torch.where(mask, data, NAN), mask)
    value, tangent = torch.func.jvp(run, (x,), (torch.where(mask, step, NAN),))
    assert (tangent.get_data()[~tangent.get_mask()] == 0).all()
    for i, length in enumerate(LENGTHS):
        row, along = data[i : i + 1, :length], step[i : i + 1, :length]
        torch.testing.assert_close(value[i, :length].filled(NAN), run(row)[0])
        slope = (run(row + 1e-6 * along) - run(row - 1e-6 * along)) / 2e-6
        torch.testing.assert_close(tangent[i, :length].filled(NAN), slope[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("strategy", ["forward-mode", "reverse-mode"])
def test_functional_jacobian_and_hessian(strategy: Any) -> None:
    x = mt.as_masked_tensor(poisoned(DATA), MASK)
    twice = torch.outer(MASK.flatten(), MASK.flatten()).view(3, 4, 3, 4)
    found = torch.autograd.functional.jacobian(lambda x: x.square(), x, vectorize=True, strategy=strategy)
    expected = torch.diag(2 * DATA.flatten()).view(3, 4, 3, 4)
    torch.testing.assert_close(found.filled(0), torch.where(twice, expected, 0))
