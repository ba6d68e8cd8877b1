"""The family moment under the laws."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import masked_tensor as mt

from .helpers.trees import tree_leaves
from .laws import laws

test_law = laws("moment")

STATISTICS = [torch.var, torch.std, torch.var_mean, torch.std_mean]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")  # torch's
@pytest.mark.parametrize("op", STATISTICS)
@pytest.mark.parametrize("correction", [0, 1])
def test_tangents_of_nothing_are_those_of_torch(op: Callable[..., Any], correction: int) -> None:
    x = torch.empty(0, 3)
    masked = mt.masked_tensor(x, torch.empty(0, 1).bool())
    for dim in (0, None):

        def run(x: torch.Tensor, dim: int | None = dim) -> Any:
            return op(x, dim, correction=correction)

        found, expected = torch.func.jvp(run, (masked,), (masked,)), torch.func.jvp(run, (x,), (x,))
        for ours, theirs in zip(tree_leaves(found), tree_leaves(expected), strict=True):
            torch.testing.assert_close(ours.filled(9), theirs, equal_nan=True)


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("op", [*STATISTICS, torch.mean])
def test_statistics_of_complex32_are_those_of_complex64(op: Callable[..., Any]) -> None:
    x = torch.complex(torch.linspace(-1, 2, 12).view(4, 3), torch.linspace(3, 1, 12).view(4, 3)).to(torch.complex32)
    for mask in (torch.arange(12).view(4, 3) % 5 > 0, torch.ones(4, 3).bool(), torch.ones(1).bool()):
        bad = torch.where(mask, x.to(torch.complex64), torch.nan).to(torch.complex32)
        for dim in (0, None):
            found = op(mt.as_masked_tensor(bad, mask), dim)
            wide = op(mt.as_masked_tensor(x.to(torch.complex64), mask), dim)
            for ours, theirs in zip(tree_leaves(found), tree_leaves(wide), strict=True):
                half = torch.complex32 if theirs.is_complex() else torch.float16
                assert ours.dtype is half
                torch.testing.assert_close(ours.to(theirs.dtype).filled(9), theirs.to(half).to(theirs.dtype).filled(9))
