"""Data and mask lie on one device (what needs a GPU is in test_devices.py)."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.packing.grid import grid_of_lengths, grid_of_mask


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


class Recorded(TorchDispatchMode):
    """Takes ``record_stream``, which the CPU has not, and keeps where the tensors lie that it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.places = set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.record_stream.default:
            self.places.add(args[0].data_ptr())
            return None
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_is_recorded_for_all_memory_of_a_tensor(packed: bool) -> None:
    x = mt.from_sequences([torch.ones(3, 2), mt.masked_tensor([[1.0, None]])], packed=packed)
    parts = [pair_of(x).data, pair_of(x).mask]
    if packed:
        p = x._packed
        assert p.inner is not None
        parts = [p.values, p.inner, p.grid.index, p.grid.bounds, p.grid.batch]
    with Recorded() as recorded:
        assert x.record_stream(torch.Stream(device="cpu")) is None
    assert recorded.places >= {part.data_ptr() for part in parts}
    assert x.is_packed == packed


def test_packing_on_a_gpu_works_out_at_once_what_attention_asks_for() -> None:
    """Not while a CUDA graph is captured, nor on another stream; on the CPU when it is asked."""
    early = {"bounds", "offsets", "lengths", "batch", "time"}
    assert early <= vars(grid_of_lengths([3, 1], "right", torch.device("meta"))).keys()
    assert not early & vars(grid_of_lengths([3, 1], "right", torch.device("cpu"))).keys()
    assert not early & vars(grid_of_mask(torch.ones(2, 3, dtype=torch.bool))).keys()
