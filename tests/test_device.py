"""Data and mask lie on one device (what needs a GPU is in test_devices.py)."""

import pytest
import torch

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of


def test_memory_of_the_cpu_is_not_pinned() -> None:
    assert not mt.masked_tensor([1.0, None]).is_pinned()


def test_the_mask_goes_where_the_data_goes() -> None:
    x = mt.masked_tensor([[1.0, None], [2.0, 3.0]]).to("meta")
    assert pair_of(x).mask.device == pair_of(x).data.device == torch.device("meta")


@pytest.mark.cuda
def test_data_and_mask_are_pinned_together() -> None:
    x = mt.from_lengths(torch.ones(2, 3, 4), [3, 1]).pin_memory()
    assert pair_of(x).data.is_pinned()
    assert pair_of(x).mask.is_pinned()
    assert x.tolist()[1][1] == [None] * 4
