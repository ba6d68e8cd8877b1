"""Checkpoints written on several ranks: each case says what is wrong, "" if nothing."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed import checkpoint
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import masked_tensor as mt

PLACEMENTS = {"rows": Shard(0), "columns": Shard(1), "whole": Replicate()}


def given() -> Tensor:
    """Five rows, so that no number of ranks has as many of them on each; NaN under the mask."""
    data = torch.arange(15.0).view(5, 3)
    valid = data % 4 > 0
    return mt.as_masked_tensor(torch.where(valid, data, torch.nan), valid)


def empty() -> Tensor:
    return mt.as_masked_tensor(torch.full((5, 3), 7.0), torch.arange(15).view(5, 3) % 2 == 0)


def whole(x: Any) -> Any:
    return (x.full_tensor() if hasattr(x, "full_tensor") else x).tolist()


def state(make: Callable[[], Tensor], mesh: Any, placement: Any) -> dict[str, Any]:
    """A nested state dict of masked tensors, of DTensors and not, and others."""
    row = mt.as_masked_tensor(make().filled(0), make().get_mask()[:, :1])  # type: ignore[attr-defined]
    placed = [distribute_tensor(x, mesh, [placement]) for x in (make(), row)]
    return {"x": placed[0], "deep": {"list": [placed[1]], "plain": make()}, "leaf": placed[0].detach().requires_grad_()}


def read(folder: str, mesh: Any, placement: Any) -> bool:
    """Whether what stands in ``folder`` is what :func:`written` wrote."""
    found, expected = state(empty, mesh, placement), state(given, mesh, placement)
    checkpoint.load(found, checkpoint_id=folder)
    pairs = [(found["x"], expected["x"]), (found["leaf"], expected["leaf"])]
    pairs += [(found["deep"]["list"][0], expected["deep"]["list"][0])]
    pairs += [(found["deep"]["plain"], expected["deep"]["plain"])]
    return all(whole(a) == whole(b) for a, b in pairs) and found["x"].placements == (placement,)


class Net(nn.Module):
    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("buffer", mask)


def of_model(rank: int, mesh: Any) -> str:
    """State dicts of a model: gathered, and sent from the first rank."""
    wrong = []
    for on_mesh in (True, False):
        place = (lambda x: distribute_tensor(x, mesh, [Shard(0)])) if on_mesh else (lambda x: x)
        net = Net(place(given()))
        full = get_model_state_dict(net, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        if (full and full["buffer"].tolist() != given().tolist()) or bool(full) != (rank == 0):
            wrong.append(f"gathered {on_mesh}: {full}")
        for sent in (True, False):
            net = Net(place(empty()))
            known = {"weight": torch.zeros(2), "buffer": given()} if rank == 0 or not sent else {}
            set_model_state_dict(net, known, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=sent))
            if whole(net.buffer) != given().tolist():
                wrong.append(f"set {on_mesh} {sent}: {net.buffer}")
    return "; ".join(wrong)


def written(rank: int, ranks: int, folder: str) -> dict[str, str]:
    """Writes and reads checkpoints on ``ranks``; those in ``folder`` are read by others, too."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    mesh = dist.init_device_mesh("cpu", (ranks,))
    found = {}
    for name, placement in PLACEMENTS.items():
        checkpoint.save(state(given, mesh, placement), checkpoint_id=f"{folder}/{name}")
    checkpoint.async_save(state(given, mesh, Shard(0)), checkpoint_id=f"{folder}/async").result()
    dist.barrier()
    for name in (*PLACEMENTS, "async"):
        for other, placement in PLACEMENTS.items():
            found[f"{name} {other}"] = "" if read(f"{folder}/{name}", mesh, placement) else "differs"
    if rank == 0:
        dcp_to_torch_save(f"{folder}/rows", f"{folder}/one.pt")
        torch_save_to_dcp(f"{folder}/one.pt", f"{folder}/again")
    dist.barrier()
    found["again"] = "" if read(f"{folder}/again", mesh, Shard(1)) else "differs"
    found["of a model"] = of_model(rank, mesh)
    found["alone"] = written_alone(rank, mesh)
    return found


def written_alone(rank: int, mesh: Any) -> str:
    """One rank writes its part; the others are not asked."""
    x = distribute_tensor(given(), mesh, [Shard(0)])
    if rank == 0:
        x.to_local()[0] = 100.0
    expected = given()
    expected[0] = 100.0
    return "" if whole(x) == expected.tolist() else str(whole(x))
