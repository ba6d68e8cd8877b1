"""Rows turned to begin, or to end, where the batch does."""

import pytest
import torch

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

LENGTHS = torch.tensor([5, 2, 0, 3])
LEFT = torch.arange(5) >= 5 - LENGTHS[:, None]
RIGHT = LEFT.flip(1)


def batch(mask: torch.Tensor, payload: float = float("nan")) -> mt.MaskedTensor:
    data = torch.arange(40, dtype=torch.float64).view(4, 5, 2)
    return mt.as_masked_tensor(torch.where(mask[..., None], data, payload), mask[..., None]).requires_grad_()


def test_padding_comes_last_and_goes_back() -> None:
    x = batch(LEFT)
    y = mt.to_left(x)
    assert torch.equal(y.get_mask()[..., 0], RIGHT)
    assert pair_of(y).mask.stride()[-1] == 0
    for i, n in enumerate(LENGTHS):
        assert torch.equal(y[i, :n].get_data(), x[i, 5 - n :].get_data())
    assert torch.equal(mt.to_right(y), x)
    (y * torch.arange(5)[:, None]).sum().backward()
    expected = torch.stack([(torch.arange(5) - (5 - n)) * (torch.arange(5) >= 5 - n) for n in LENGTHS])
    assert torch.equal(x.grad.get_data(), expected[..., None].expand(4, 5, 2).double())


def test_inner_masked_entries_stay_where_they_are_in_the_row() -> None:
    x = mt.masked_tensor([[None, 1, None, 2, None], [None] * 5])
    assert mt.to_left(x).tolist() == [[1, None, 2, None, None], [None] * 5]
    assert mt.to_right(x).tolist() == [[None, None, 1, None, 2], [None] * 5]


def test_along_another_dimension_and_whole_batches() -> None:
    x = batch(LEFT).detach()
    assert torch.equal(mt.to_left(x.mT, -1).mT, mt.to_left(x))
    whole = mt.as_masked_tensor(torch.ones(2, 3), True)
    assert pair_of(mt.to_left(whole)).data is pair_of(whole).data
    assert mt.to_left(mt.as_masked_tensor(torch.ones(0, 3), torch.ones(0, 3, dtype=torch.bool))).shape == (0, 3)


def test_errors_name_the_way_out() -> None:
    for call in (lambda: mt.to_left(mt.masked_tensor([1.0])), lambda: mt.to_right(batch(LEFT), dim=0)):
        with pytest.raises(ValueError, match=r"give a batch \(B, T, \.\.\.\), x\.unsqueeze\(0\) for a single row"):
            call()


def test_a_loop_over_time_on_left_padded_rows() -> None:
    """A hand-written recurrence: each row is what it is alone, once it begins at 0."""
    torch.manual_seed(0)
    rows = [torch.randn(n, 2, dtype=torch.float64) for n in (5, 2, 3)]
    x = mt.from_sequences(rows, padding_value=torch.nan, padding_side="left")

    def scanned(x):
        state, states = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = (0.5 * state + x[:, t]).tanh()
            states.append(state)
        return torch.stack(states, 1)

    y = mt.to_right(scanned(mt.to_left(x)))
    assert torch.equal(y.get_mask(), x.get_mask())
    for i, row in enumerate(rows):
        torch.testing.assert_close(y[i, 5 - len(row) :].get_data(), scanned(row[None])[0])
