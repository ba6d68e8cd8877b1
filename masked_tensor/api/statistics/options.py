"""What running statistics are of: their options, edges and columns, compared before states are put together.

Names of columns and edges are compared by digests that a float64 holds exactly, so that they are buffers like the rest
of a state: whatever saves, sends and loads tensors keeps them.
"""

import ctypes
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ... import compat
from ...shared.group_mean import Group, group_size

_OPTIONS = ("features", "cov", "correction", "edges")


def digest(content: bytes) -> float:
    """A number that differs where ``content`` does."""
    return float(int.from_bytes(hashlib.sha256(content).digest()[:6], "big"))


def options_of(state: Mapping[str, Any]) -> Tensor:
    """One number for each option of the statistics whose buffers these are."""
    edges = state.get("edges")
    known = 0.0
    if edges is not None:
        memory = (edges.double().cpu() + 0.0).contiguous()  # -0 is 0
        known = digest(f"{tuple(memory.shape)}".encode() + ctypes.string_at(memory.data_ptr(), 8 * memory.numel()))
    numbers = [state["moments"].shape[-1], state.get("pairs") is not None, float(state["correction"]), known]
    return torch.tensor(numbers, dtype=torch.float64)


def check_alike(mine: Tensor, given: Tensor, taker: str) -> None:
    """Raises if one of ``given``, options or a stack of them, is not ``mine``; all ranks raise alike."""
    differ = (given != mine).reshape(-1, len(_OPTIONS)).any(0).tolist()
    names = ", ".join(name for name, other in zip(_OPTIONS, differ, strict=True) if other)
    if names:
        raise ValueError(f"{taker} takes statistics that were made alike, and these differ in {names}")


def check_ranks(mine: Tensor, group: Group) -> None:
    """Raises on every rank of the group if their options differ."""
    sent = mine.to(compat.group_device(group))
    found = [torch.empty_like(sent) for _ in range(group_size(group))]
    dist.all_gather(found, sent, group=group)
    check_alike(found[0], torch.stack(found), "all_reduce()")


def why_refused(own: Mapping[str, Tensor], given: Mapping[str, Any]) -> str:
    """Why a state dict does not fit statistics with these buffers; empty where it does, or has nothing for them."""
    if "squares" in given:
        return "the state is of an earlier version, which took other sums and bins: update with the data again"
    if not own.keys() & given.keys():
        return ""
    if "moments" not in given or "correction" not in given:
        return "the state is not whole"
    try:
        check_alike(options_of(own), options_of(given), "load_state_dict()")
    except ValueError as reason:
        return f"{reason}; make them as those that were saved, edges=state['edges']"
    missing = ", ".join(own.keys() - given.keys())
    if missing:
        return f"the state is not whole, it has no {missing}"
    try:
        places_of(own["columns"], given["columns"].to(own["columns"]), "load_state_dict()")
    except ValueError as reason:
        return str(reason)
    return ""


def columns_of(names: Sequence[str], device: torch.device) -> Tensor:
    """The names of a table's columns, as numbers."""
    if len(set(names)) < len(names):
        raise ValueError(f"columns go by name, and two have one name: {list(names)}; give masked_tensor(table)")
    known = [digest(name.encode(errors="replace")) for name in names]
    return torch.tensor(known, dtype=torch.float64, device=device)


def places_of(mine: Tensor, given: Tensor, taker: str, names: Sequence[str] = ()) -> Tensor | None:
    """Where each of ``mine`` is among ``given``; None where the order is the same, or either has no names."""
    if bool((mine.isnan() | given.isnan()).any()) or torch.equal(mine, given):
        return None
    same = given == mine.unsqueeze(1)
    if not bool(same.any(1).all()):
        other = [name for name, known in zip(names, same.any(0).tolist(), strict=False) if not known]
        found = f"got {other}, too" if other else "got others"
        raise ValueError(f"{taker} takes columns of the same names as before, in any order, and {found}")
    return same.to(torch.uint8).argmax(1)
