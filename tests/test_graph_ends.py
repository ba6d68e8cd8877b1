"""What enters and leaves a compiled graph: how it is related to others, and the gradient that it is handed."""

import pytest
import torch
from torch import Tensor

import masked_tensor as mt


def test_a_result_of_a_graph_has_no_family_until_it_shares_memory() -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def double(x: Tensor) -> Tensor:
        return x * 2

    @torch.compile(backend="aot_eager", fullgraph=True)
    def first(x: Tensor) -> Tensor:
        return x[0]

    y = double(mt.masked_tensor([[1.0, None], [3.0, 4.0]]))
    assert y._alias.family is None
    row = first(y)
    row[1] = 5.0
    assert y.tolist() == [[2.0, 5.0], [6.0, 8.0]]


def test_a_masked_loss_out_of_a_graph_hands_on_no_gradient() -> None:
    weight = torch.tensor(3.0, requires_grad=True)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def loss(x: Tensor, mask: Tensor) -> Tensor:
        return (mt.as_masked_tensor(x, mask) * weight).sum()

    for garbage in (torch.nan, torch.inf, 1e30):
        some = loss(torch.tensor([2.0, garbage]), torch.tensor([True, False]))
        assert torch.autograd.grad(some, weight)[0] == 2
        with pytest.warns(mt.MaskedLossWarning):
            none = torch.autograd.grad(loss(torch.full((2,), garbage), torch.zeros(2, dtype=torch.bool)), weight)
        assert none[0] == 0
