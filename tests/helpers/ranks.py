"""Several ranks that meet over gloo: processes for what is sent, one in this process for what needs only a mesh."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

PRELOADED = ["masked_tensor", "pytest", "torch.distributed.fsdp", "torch.distributed.tensor"]


def _work(rank: int, ranks: int, folder: str, act: Callable[..., Any], args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/meeting", rank=rank, world_size=ranks)
    torch.save(act(rank, ranks, *args), Path(folder) / f"{rank}.pt")
    dist.barrier()
    dist.destroy_process_group()


def start_ranks(work: Callable[..., None], ranks: int, *args: Any) -> None:
    """``work(rank, ranks, *args)`` on each rank: a copy of one process that has imported what they all import."""
    torch.multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    torch.multiprocessing.start_processes(work, (ranks, *args), ranks, start_method="forkserver")


def gathered(ranks: int, act: Callable[..., Any], *args: Any) -> list[Any]:
    """What ``act(rank, ranks, *args)``, a function of a module, returns on each rank."""
    with tempfile.TemporaryDirectory() as folder:
        start_ranks(_work, ranks, folder, act, args)
        return [torch.load(Path(folder) / f"{rank}.pt") for rank in range(ranks)]


@contextlib.contextmanager
def alone() -> Iterator[Any]:
    """A mesh of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield dist.init_device_mesh("cpu", (1,))
    finally:
        dist.destroy_process_group()
