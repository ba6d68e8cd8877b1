"""The family choose under the laws."""

import pytest
import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("choose")


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")
@pytest.mark.parametrize("form", ["plain", "masked", "packed"])
def test_where_of_a_condition_of_bytes(form: str) -> None:
    """Any number but 0 is True, and the mask is one of bools (that of the condition was taken bit by bit)."""
    nan = float("nan")
    x = mt.as_masked_tensor(torch.tensor([[1.0, nan, 3.0]]), torch.tensor([[True, False, True]]))
    y = mt.as_masked_tensor(torch.tensor([[nan, 5.0, nan]]), torch.tensor([[False, True, False]]))
    condition = torch.tensor([[2, 0, 255]], dtype=torch.uint8)
    if form == "masked":
        condition = mt.as_masked_tensor(condition, torch.tensor([[True, True, False]]))
    if form == "packed":
        x, y = (mt.from_lengths(v, [3]).packed() for v in ([[1.0, 7.0, 3.0]], [[6.0, 5.0, 7.0]]))
    expected = [[1.0, 5.0, None if form == "masked" else 3.0]]
    plain = torch.tensor([[7.0, 5.0, 7.0]])
    for found in (torch.where(condition, x, y), torch.where(condition, x, plain)):
        assert found.get_mask().dtype is torch.bool
        assert found.tolist() == expected
    found = torch.where(condition, plain, y)
    assert found.get_mask().dtype is torch.bool
    assert found.tolist() == [[7.0, 5.0, None if form == "masked" else 7.0]]
