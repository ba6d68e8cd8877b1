"""Run as a program: how many Python frames of this package plain programs pass; prints JSON.

For each stage (after the import, after the first masked tensor, after the first setting) and each program the names of
the functions that were entered, from the second run of the program on.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed import HashStore, init_process_group
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor import placement_types as placements
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import masked_tensor as mt

HOME = str(Path(mt.__file__).parent)


def programs() -> dict[str, Callable[[], Any]]:
    """What users do who have no masked tensor."""
    init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    x, weight = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True)
    logits, labels = torch.randn(5, 3, 4), torch.randint(4, (5, 3))
    sharded = distribute_tensor(x, mesh, [Shard(0)])

    def layer(v: Tensor) -> Tensor:
        return (v @ weight).tanh().sum()

    return {
        "step": lambda: cross_entropy(x @ weight, labels[0]).backward(),
        "DTensor made": lambda: DTensor.from_local(x, mesh, [Shard(0)]),
        "DTensor added": lambda: sharded + sharded,
        "DTensor gathered": lambda: sharded.redistribute(mesh, [Replicate()]),
        "pad_tensor": lambda: placements.pad_tensor(x, 0, 2),  # type: ignore[attr-defined]  # imported there
        "checkpoint": lambda: checkpoint(layer, x, use_reentrant=False).backward(),
        "reentrant checkpoint": lambda: checkpoint(layer, x.clone().requires_grad_(), use_reentrant=True).backward(),
        "vmap of cross_entropy": lambda: torch.vmap(cross_entropy)(logits, labels),
        "vmap of cov": lambda: torch.vmap(torch.cov)(logits),
        "grad": lambda: torch.func.grad(layer)(x),
        "DataLoader": lambda: list(DataLoader(TensorDataset(x), batch_size=2)),
        "assert_close": lambda: torch.testing.assert_close(x, x),
    }


def entered(program: Callable[[], Any]) -> list[str]:
    """The functions of this package that the second run of a program enters, in any thread that it starts."""
    seen = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            seen.append(frame.f_code.co_name)

    program()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        program()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # not in the stub
    return seen


def main() -> dict[str, dict[str, list[str]]]:
    all_programs = programs()
    found = {"import": {name: entered(program) for name, program in all_programs.items()}}
    mt.masked_tensor([1.0, None])
    found["first masked tensor"] = {name: entered(program) for name, program in all_programs.items()}
    with mt.strict():
        pass
    found["first setting"] = {name: entered(program) for name, program in all_programs.items()}
    return found


if __name__ == "__main__":
    print(json.dumps(main()))
