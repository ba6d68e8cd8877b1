"""The family segment under the laws."""

import pytest
import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("segment")


@pytest.mark.parametrize("initial", [None, 2.0])
def test_a_mean_of_nothing_is_torchs(initial: float | None) -> None:
    data, where = torch.tensor([1.0, 3.0, 5.0]), {"lengths": torch.tensor([2, 0, 1]), "initial": initial}
    x = mt.as_masked_tensor(data, torch.ones(3).bool())
    torch.testing.assert_close(
        torch.segment_reduce(x, "mean", **where).get_data(), torch.segment_reduce(data, "mean", **where), equal_nan=True
    )
