"""The algebra of orders: how the dimensions of a tensor are made of its grid and its features.

An *atom* is a dimension of the unpacked tensor ``(B, T, F1 .. Fk)``: 0 and 1 are the grid, the others the features,
each of a size other than 1.  An *order* names, for each dimension that the world sees, the atoms whose product it is:
``((0,), (1,), (2,))`` is ``(B, T, F)``, ``((1,), (0, 2), (3,))`` is ``(T, B * H, D)``, and ``()`` is a dimension of
size 1.  Every atom stands in an order exactly once.  Nothing here touches a tensor.

A grid has two dimensions but for products over time (``blocks``): ``grid`` is how many, and so the first feature.
"""

from collections.abc import Iterable, Sequence
from math import prod

from ..op import NoRule

Order = tuple[tuple[int, ...], ...]
GRID = 2  #: the number of grid atoms of a batch of sequences


def identity_order(dims: int) -> Order:
    """The order of ``(B, T, F1 .. Fk)`` itself."""
    return tuple((d,) for d in range(dims))


def read_order(order: Order) -> tuple[int, ...]:
    """The atoms as they are read, slowest first."""
    return tuple(atom for dim in order for atom in dim)


def logical_shape(order: Order, sizes: Sequence[int]) -> tuple[int, ...]:
    """What the world sees."""
    return tuple([sizes[dim[0]] if len(dim) == 1 else prod([sizes[a] for a in dim]) for dim in order])


def is_feature(dim: tuple[int, ...], grid: int) -> bool:
    """Whether a dimension is made of features alone."""
    return not dim or min(dim) >= grid


def drop_atoms(order: Order, gone: Iterable[int]) -> Order:
    """Without some feature atoms; those behind move up."""
    gone = sorted(gone)
    new = {a: a - sum(g < a for g in gone) for a in read_order(order)}
    return tuple(tuple(new[a] for a in dim if a not in gone) for dim in order)


def join_features(order: Order, grid: int) -> tuple[Order, list[list[int]]]:
    """Features as they are read, those that stand side by side in one dimension joined; and which were joined."""
    joined: list[list[int]] = []
    result = []
    for dim in order:
        new: list[int] = []
        open_ = False
        for atom in dim:
            if atom < grid:
                new.append(atom)
            elif open_:
                joined[-1].append(atom)
            else:
                joined.append([atom])
                new.append(grid + len(joined) - 1)
            open_ = atom >= grid
        result.append(tuple(new))
    return tuple(result), joined


def view_order(order: Order, sizes: Sequence[int], shape: Sequence[int], grid: int) -> tuple[Order, tuple[int, ...]]:
    """The order of a view of another shape, and the sizes into which it cuts the features, in the order of storage.

    Raises NoRule if a dimension of the grid would be cut.
    """
    left = [(a, sizes[a]) for a in read_order(order)]
    parts: dict[int, list[int]] = {}
    dims: list[list[tuple[int, int]]] = []
    for size in shape:
        dim: list[tuple[int, int]] = []
        if size == 1 and left and left[0][1] == 1:
            dim.append(_add_part(parts, *left.pop(0)))
        product = 1
        while product < size:
            if not left:
                raise NoRule
            atom, rest = left.pop(0)
            used = rest
            if size % (product * rest):
                used = size // product
                if atom < grid or size % product or rest % used:
                    raise NoRule
                left.insert(0, (atom, rest // used))
            dim.append(_add_part(parts, atom, used))
            product *= used
        if product != size:
            raise NoRule
        dims.append(dim)
    while left and left[0][1] == 1 and dims:
        dims[-1].append(_add_part(parts, *left.pop(0)))
    if left:
        raise NoRule
    new = {(a, 0): a for a in range(grid)}
    cut: list[int] = []
    for atom in range(grid, len(sizes)):
        for k, size in enumerate(parts[atom]):
            new[atom, k] = grid + len(cut)
            cut.append(size)
    return tuple(tuple(new[key] for key in dim) for dim in dims), tuple(cut)


def _add_part(parts: dict[int, list[int]], atom: int, size: int) -> tuple[int, int]:
    known = parts.setdefault(atom, [])
    known.append(size)
    return atom, len(known) - 1
