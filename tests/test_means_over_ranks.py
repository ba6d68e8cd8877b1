"""A mean over ranks counts those that have a value: by hand, by accelerate and by Lightning, in two processes."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor
from torch import distributed as dist

import masked_tensor as mt
from masked_tensor.integrations.wrapping import ratio, sum_and_count

from .helpers.ranks import gathered

Mean = Callable[[Tensor], Tensor]


def loss(rank: int, labelled: int) -> mt.MaskedTensor:
    """The mean of what is labelled: 5.0, or masked from rank ``labelled`` on, with something under the mask."""
    exists = rank < labelled
    return mt.masked_tensor([3.0, 7.0 if exists else torch.inf], [exists, exists]).mean()


def by_hand(x: Tensor) -> Tensor:
    sums = sum_and_count(x)
    dist.all_reduce(sums)
    return ratio(sums)


def by_accelerate(x: Tensor) -> Tensor:
    from accelerate import Accelerator

    return Accelerator(cpu=True).reduce(x, "mean")


def by_lightning(x: Tensor) -> Tensor:
    from lightning.fabric.utilities.distributed import _sync_ddp_if_available

    return _sync_ddp_if_available(x, reduce_op="mean")


MEANS: dict[str, Mean] = {"torch": by_hand, "accelerate": by_accelerate, "lightning": by_lightning}


def on_ranks(rank: int, ranks: int, names: list[str]) -> dict[str, list[float | None]]:
    os.environ |= {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": f"{ranks}"}  # as torchrun, for accelerate
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    return {name: [MEANS[name](loss(rank, labelled)).tolist() for labelled in (0, 1, 2)] for name in names}


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return gathered(2, on_ranks, [name for name in MEANS if find_spec(name) is not None])


@pytest.mark.parametrize("name", MEANS)
def test_a_rank_without_a_label_weighs_nothing(name: str, found: list[dict[str, Any]]) -> None:
    if name not in found[0]:
        pytest.skip(f"{name} is not installed")
    for rank in found:  # nobody, one rank, and both have a label
        assert rank[name] == [None, 5.0, 5.0]
