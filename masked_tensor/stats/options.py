"""What running statistics describe: their options, edges and columns, compared before states are merged.

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

from ..extend.data import read
from ..extend.ranks import group_device, group_size

_OPTIONS = ("features", "cov", "correction", "edges", "sketch")


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
    items = state.get("items")
    numbers = [state["moments"].shape[-1], state.get("pairs") is not None, float(state["correction"]), known]
    numbers.append(0 if items is None else items.shape[-1])
    return torch.tensor(numbers, dtype=torch.float64)


def check_alike(mine: Tensor, given: Tensor, taker: str) -> None:
    """Raises if one of ``given``, options or a stack of them, is not ``mine``; all ranks raise alike."""
    differ = (given != mine).reshape(-1, len(_OPTIONS)).any(0).tolist()
    names = ", ".join(name for name, other in zip(_OPTIONS, differ, strict=True) if other)
    if names:
        raise ValueError(f"{taker} needs statistics made with the same arguments; these differ in {names}")


def check_ranks(mine: Tensor, columns: Tensor, edges: Tensor | None, grouped: int, group: Any) -> None:
    """Raises on every rank of the group if their options differ, or their columns, or if one is grouped alone.

    ``grouped`` is 1 with groups, -1 for rows without, and 0 for neither.
    """
    found = gather(torch.cat([mine, mine.new_tensor([grouped])]), group)
    check_alike(found[0][:-1], torch.stack(found)[:, :-1], "all_reduce()")
    if {-1, 1} <= {int(numbers[-1]) for numbers in found}:
        raise ValueError("all_reduce() needs groups on all ranks or on none; call update(x, group=keys) on each")
    known = torch.full_like(columns, torch.nan)
    for given in gather(columns, group):
        check_order(known, given.to(known), edges, "all_reduce()")
        known = torch.where(known.isnan(), given.to(known), known)


def check_order(mine: Tensor, given: Tensor, edges: Tensor | None, taker: str) -> Tensor | None:
    """Where the columns of one state are in another; raises if they cannot be put in that order."""
    at = places_of(mine, given, taker)
    if at is not None and edges is not None and not torch.equal(edges, edges[at]):
        raise ValueError(
            f"{taker} needs the columns in the same order, since they have edges of their own; got another order"
        )
    return at


def gather(mine: Tensor, group: Any) -> list[Tensor]:
    """What each rank has, which is of the same size on all."""
    sent = mine.to(group_device(group))
    found = [torch.empty_like(sent) for _ in range(group_size(group))]
    dist.all_gather(found, sent, group=group)
    return found


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
    missing = ", ".join(own.keys() - given.keys() - {"keys"})
    if missing:
        return f"the state is not whole, it has no {missing}"
    rows = given["moments"].shape[1:-1]
    if rows != (given["keys"].shape if "keys" in given else ()) or given["missed"].shape != given["moments"].shape[1:]:
        return "the state is not whole, its groups are not those of its moments"
    try:
        places_of(own["columns"], given["columns"].to(own["columns"]), "load_state_dict()")
    except ValueError as reason:
        return str(reason)
    return ""


def choose(wanted: Sequence[str], names: Sequence[str], taker: str) -> list[int]:
    """Where the wanted columns are among those of a table."""
    lacking = [name for name in wanted if name not in names]
    if lacking:
        raise ValueError(f"{taker}: the table lacks columns {lacking}; it has {list(names)}")
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise ValueError(f"{taker} finds columns by name, but the table has {twice} more than once; rename them")
    return [names.index(name) for name in wanted]


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
        found = f"got {other} as well" if other else "got others"
        raise ValueError(f"{taker} needs columns of the same names as before, in any order; {found}")
    return same.to(torch.uint8).argmax(1)


def keys_of(group: Any, shape: torch.Size, taker: str) -> Tensor:
    """The key of each row, int64 of this shape."""
    pair = read(group, name="group")
    keys = pair.data
    if keys.dtype is torch.bool or keys.is_floating_point() or keys.is_complex() or keys.shape != shape:
        raise ValueError(
            f"{taker} needs one integer for each row as its group, {tuple(shape)}, got {keys.dtype} {tuple(keys.shape)}"
        )
    if not bool((pair.mask & (keys >= 0)).all()):
        raise ValueError(f"{taker} needs keys that are valid and not negative; leave out the other rows")
    return keys.to(torch.int64)
