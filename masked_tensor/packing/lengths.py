"""What each kind of op does with the lengths of a batch: they stay, follow the sequences, or are lost.

``lengths_table`` says of which kind each op is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from . import dim_order as orders
from .dim_order import GRID
from .grid import Grid, grid_of_mask
from .packed import Frame, Packed


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of which a packed batch is the argument ``at``, and the shape of a result."""

    x: Packed
    at: str
    given: Mapping[str, Any]  #: the arguments by their names
    shape: tuple[int, ...]

    @property
    def dims(self) -> list[int] | None:
        """The dimensions that the op goes along; None: all of them, or none that is an int."""
        dim = self.given.get("dim", self.given.get("dims", self.given.get("dimension")))
        several = [dim] if isinstance(dim, int) else dim
        n = len(self.x.order)
        if not isinstance(several, list | tuple) or not several or not all(isinstance(d, int) for d in several):
            return None
        return [d % n for d in several]

    def is_feature(self, dim: int) -> bool:
        """Whether a dimension of the batch is made of features alone."""
        return orders.is_feature(self.x.order[dim], self.x.first)


Dims = Sequence[int | None]  #: of each dimension of the result, which one of the batch it is, if any
Found = Dims | tuple[Dims, Grid] | None  #: with other sequences their grid; None: the lengths are lost
Kind = Callable[[Call], Found]
NO_BATCH: Dims = ()  #: what is left is no batch of sequences: there are no lengths to lose


def same(call: Call) -> Found:
    """Each entry stays at its place: elementwise, broadcast, or along whatever dimension, if the shape stays."""
    more = len(call.shape) - len(call.x.order)
    return None if more < 0 else [None] * more + list(range(len(call.x.order)))


def written(call: Call) -> Found:
    """As ``same``, but what is written, or chosen, may be valid where no step exists: it has to be looked at."""
    return same(call)


def along(call: Call) -> Found:
    """Along ``dim``, which is of features: another size, or none."""
    n, dims = len(call.x.order), call.dims
    if dims is None or not all(map(call.is_feature, dims)):
        return NO_BATCH if dims is None or len(call.shape) < n else None
    if len(call.shape) == n:
        return list(range(n))
    return [d for d in range(n) if d not in dims] if len(call.shape) == n - len(set(dims)) else None


def last(call: Call) -> Found:
    """The last dimension is contracted with a plain matrix, or is another one."""
    n = len(call.x.order)
    if len(call.shape) != n or not call.is_feature(n - 1):
        return None
    return [*range(n - 1), None]


def product(call: Call) -> Found:
    """The batch is the first factor, and the second has no batch of its own."""
    first = next(iter(call.given))
    others = [v for k, v in call.given.items() if k != call.at]
    alone = all(not isinstance(v, Packed) for v in others)
    return last(call) if alone and call.at == first else None


def appended(call: Call) -> Found:
    """One more feature behind the others."""
    n = len(call.x.order)
    return [*range(n), None] if len(call.shape) == n + 1 else None


def quantiles(call: Call) -> Found:
    """As ``along``; several quantiles stand in front."""
    q = call.given["q"]
    if not isinstance(q, Tensor) or q.dim() == 0:
        return along(call)
    found: Any = along(Call(call.x, call.at, call.given, call.shape[1:]))
    return [None, *found] if found else found


def extreme(call: Call) -> Found:
    """``max`` along a dimension, or of two tensors."""
    return same(call) if isinstance(call.given.get("dim"), Tensor) else along(call)


def paired(call: Call) -> Found:
    """Two broadcast tensors lose the dimension ``dim``, or the last."""
    keeps = call.given.get("keepdim", False)
    n = len(call.shape) + (not keeps)
    dim, more = call.given.get("dim", n - 1 if call.given.get("dim") is None else 1) % n, n - len(call.x.order)
    dims: list[int | None] = [d - more if d >= more else None for d in range(n)]
    if more < 0 or (dims[dim] is not None and not call.is_feature(dim - more)):
        return None
    return dims if keeps else dims[:dim] + dims[dim + 1 :]


def joined(call: Call) -> Found:
    """Parts side by side along a feature; also a new one; or the sequences of all batches."""
    n = len(call.x.order)
    dim = call.given.get("dim", 0)
    if len(call.shape) == n and call.x.order[dim % n] == (0,):
        stored: list[Any] = [getattr(part, "_packed", None) for part in call.given["tensors"]]
        if not all(p is not None and p.order == call.x.order and p.grid.complete and p.grid.host for p in stored):
            return None
        return list(range(n)), grid_of_mask(torch.cat([p.grid.mask for p in stored]), True)
    if len(call.shape) == n:
        return list(range(n)) if call.is_feature(dim % n) else None
    d = dim % (n + 1)
    return [*range(d), None, *range(d, n)]


def _moved(call: Call, rows: Callable[[Tensor], Tensor]) -> Found:
    """Sequences in another order: ``rows`` does to their numbers what the op does."""
    grid, n = call.x.grid, len(call.x.order)
    if len(call.shape) != n or not grid.host or (0,) not in call.x.order:
        return None
    numbers = rows(torch.arange(grid.shape[0], device=grid.device))
    return list(range(n)), grid_of_mask(grid.mask.index_select(0, numbers), True)


def _batch_alone(call: Call, dims: Sequence[int]) -> bool:
    """Whether of the dimensions those that are no features are the batch."""
    return call.x.first == GRID and all(call.x.order[d] == (0,) or call.is_feature(d) for d in dims)


def flipped(call: Call) -> Found:
    """``flip``: sequences in the opposite order, with their lengths."""
    dims = call.dims
    if dims is None or not _batch_alone(call, dims):
        return None
    turned = any(call.x.order[d] == (0,) for d in dims)
    return _moved(call, lambda rows: rows.flip(0)) if turned else list(range(len(call.x.order)))


def rolled(call: Call) -> Found:
    """``roll`` over sequences, or features."""
    dims, shifts = call.dims, call.given["shifts"]
    if dims is None or not _batch_alone(call, dims):
        return None
    by = [shifts] if isinstance(shifts, int) else list(shifts)
    total = sum(s for s, d in zip(by, dims, strict=False) if call.x.order[d] == (0,))
    return _moved(call, lambda rows: rows.roll(total)) if total else list(range(len(call.x.order)))


def repeated(call: Call) -> Found:
    """``repeat`` of sequences, and of features."""
    repeats, n = [*call.given["repeats"]], len(call.x.order)
    if len(repeats) < n:
        return None
    more = len(repeats) - n
    over = {
        atoms: by for atoms, by in zip(call.x.order, repeats[more:], strict=True) if not orders.is_feature(atoms, 2)
    }
    if call.x.first != GRID or over.get((1,)) != 1 or (0,) not in over:
        return None
    by = over[0,]
    if by == 1:
        return [None] * more + list(range(n))
    return _moved(call, lambda rows: rows.repeat(by)) if not more else None


def repeated_each(call: Call) -> Found:
    """``repeat_interleave``: each sequence several times, or each feature."""
    dims = call.dims
    repeats: Any = call.given.get("repeats")
    if dims is None or not _batch_alone(call, dims):
        return None
    if call.is_feature(dims[0]):
        return list(range(len(call.x.order)))
    if type(repeats) not in (int, Tensor):
        return None
    return _moved(call, lambda rows: rows.repeat_interleave(repeats))


def sorted_(call: Call) -> Found:
    """Along features; over the batch what is masked comes last at each time: the lengths are sorted with it."""
    dims = call.dims or [len(call.x.order) - 1]
    if all(map(call.is_feature, dims)):
        return list(range(len(call.x.order)))
    grid = call.x.grid
    if not _batch_alone(call, dims) or not grid.host:
        return None
    return list(range(len(call.x.order))), grid_of_mask(grid.mask.sort(0, descending=True).values, True)


def sliced(call: Call) -> Found:
    """``x[..., first:last:step]``: of features, of sequences, or of the times of each of them."""
    n, grid, d = len(call.x.order), call.x.grid, call.given.get("dim", 0)
    atoms = call.x.order[d % n]
    if call.is_feature(d % n):
        return list(range(n))
    if call.x.first != GRID or len(atoms) != 1 or not grid.host:
        return None
    cut = slice(call.given.get("start"), call.given.get("end"), call.given.get("step", 1))
    return list(range(n)), grid_of_mask(grid.mask[cut] if atoms == (0,) else grid.mask[:, cut], True)


def selected(call: Call) -> Found:
    """``index_select``: of sequences, or features."""
    dims, index = call.dims, call.given["index"]
    if dims is None or not _batch_alone(call, dims):
        return None
    if call.is_feature(dims[0]):
        return list(range(len(call.x.order)))
    return _moved(call, lambda rows: rows.index_select(0, index.reshape(-1))) if type(index) is Tensor else None


def indexed(call: Call) -> Found:
    """``x[..., index]``: of features, or whole sequences."""
    given, n = list(call.given["indices"]), len(call.x.order)
    at, d = [], 0  # of each index the first dimension that it takes, and how many
    for index in given:
        wide = index.dim() if index is not None and index.dtype in (torch.bool, torch.uint8) else 1
        if index is not None:
            at.append((index, d, wide))
        d += wide
    taken = [k for _, first, wide in at for k in range(first, first + wide)]
    if len(at) == 1 and len(taken) == 1 and call.x.order[taken[0]] == (0,) and call.x.first == GRID:
        index = at[0][0]
        return _moved(call, lambda rows: rows[index]) if type(index) is Tensor and index.dim() == 1 else None
    if not taken or not all(map(call.is_feature, taken)):
        return None
    rest = [k for k in range(n) if k not in taken]
    new: list[int | None] = [None] * (len(call.shape) - len(rest))
    if taken != list(range(taken[0], taken[-1] + 1)):
        return [*new, *rest]
    return [*(k for k in rest if k < taken[0]), *new, *(k for k in rest if k > taken[0])]


def lost(call: Call) -> Found:
    """Times are mixed, or nobody knows where the batch is: the lengths do not stay."""
    return None


def none(call: Call) -> Found:
    """What is left is no batch of sequences."""
    return NO_BATCH


def place(kind: Kind, call: Call) -> tuple[Frame | None, bool]:
    """Where the result of a call has its sequences; with None whether lengths were lost, of which there were some."""
    found = kind(call)
    if found is NO_BATCH:
        return None, False
    if found is None:
        return None, True
    dims, grid = (
        found if isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Grid) else (found, call.x.grid)
    )
    return _frame(call, dims, grid), True


def _frame(call: Call, dims: Any, grid: Grid) -> Frame | None:
    x = call.x
    order: list[tuple[int, ...]] = []
    sizes: list[int] = []
    for n, d in zip(call.shape, dims, strict=True):
        atoms: tuple[int, ...] = () if d is None else x.order[d]
        if orders.is_feature(atoms, x.first):
            order.append((x.first + len(sizes),) if n != 1 else ())
            sizes += [n] if n != 1 else []
            continue
        new = []
        for atom in atoms:
            new.append(atom if atom < x.first else x.first + len(sizes))
            sizes += [] if atom < x.first else [x.sizes[atom]]
        order.append(tuple(new))
    frame = Frame(torch.Size((len(grid.index), *sizes)), grid, tuple(order), None)
    there = {a for atoms in order for a in atoms if a < x.first}
    return frame if len(there) == x.first and frame.shape == call.shape else None
