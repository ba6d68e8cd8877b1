"""The family special under the laws."""

import pytest
import torch

import masked_tensor as mt

from .laws import laws

test_law = laws("special")


@pytest.mark.parametrize("name", [n for n in dir(torch.special) if "polynomial" in n])
def test_a_masked_degree_takes_no_time(name: str) -> None:
    """The kernels loop up to the degree: one of 1e18 under the mask would take years."""
    function, mask = getattr(torch.special, name), torch.tensor([True, False, False])
    x, degree = torch.tensor([0.3, 0.3, torch.nan]), torch.tensor([3.0, 1e18, torch.inf])
    result = function(mt.as_masked_tensor(x, mask), mt.as_masked_tensor(degree, mask))
    assert result.get_mask().equal(mask)
    assert result[0].item() == function(x[0], degree[0]).item()
    assert function(x[:1], mt.as_masked_tensor(degree, mask)).get_mask().equal(mask)
