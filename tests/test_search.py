"""The family search under the laws."""

import pytest
import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("search")


@pytest.mark.parametrize("garbage", [0, 3, 10**9, -(2**63)])
@pytest.mark.parametrize("masked", [True, False])
def test_what_lies_under_the_mask_of_a_sorter_is_not_read(masked: bool, garbage: int) -> None:
    sequence = torch.tensor([5.0, 1.0, 3.0, 9.0])
    kept = torch.tensor([True, True, False, True])
    sorter = mt.as_masked_tensor(torch.tensor([1, 2, garbage, 3]), kept)
    given = mt.masked_tensor(sequence) if masked else sequence
    found = torch.searchsorted(given, torch.tensor([0.0, 2.0, 4.0, 6.0, 10.0]), sorter=sorter)
    assert found.tolist() == [0, 1, 2, 2, 4]  # in [1, 3, --, 9]
