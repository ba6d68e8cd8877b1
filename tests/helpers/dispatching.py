"""Batches of an iterable dataset that accelerate reads on the first rank, as every rank gets them."""

import os
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

import masked_tensor as mt


class Rows(IterableDataset):
    """Ten rows, of which one, two or three entries are valid."""

    def __init__(self, masked: bool) -> None:
        self.masked = masked

    def __iter__(self) -> Iterator[Any]:
        for k in range(10):
            x, valid = torch.full((3,), float(k)), torch.arange(3) < 1 + k % 3
            yield k, (mt.as_masked_tensor(x.masked_fill(~valid, torch.nan), valid) if self.masked else x)


def batches(rank: int, ranks: int) -> dict[str, list[tuple[list[int], Any]]]:
    """The numbers of the rows of each batch, and the rows, masked and plain."""
    import accelerate

    os.environ |= {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": f"{ranks}"}  # as torchrun
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    accelerator = accelerate.Accelerator(cpu=True)
    found = {}
    for name, collate in (("masked", mt.collate), ("plain", None)):
        loader = accelerator.prepare(DataLoader(Rows(name == "masked"), batch_size=2, collate_fn=collate))
        found[name] = [(keys.tolist(), x.tolist()) for keys, x in loader]
    return found
