"""Row-major positions (*keys*): one integer per element of a shape, and looking them up."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .. import settings

Coordinate = Callable[[int], Tensor]


def ravel(coordinate: Coordinate, shape: Sequence[int], dims: Sequence[int]) -> Tensor | None:
    """The key of every entry in the shape made of ``dims``; None if there are none (the key is then always 0)."""
    key: Tensor | None = None
    for dim in dims:
        key = coordinate(dim) if key is None else key * shape[dim] + coordinate(dim)
    return key


def unravel(keys: Tensor, shape: Sequence[int]) -> list[Tensor]:
    """The coordinates of ``keys`` in ``shape``."""
    coordinates = []
    wide = [dim for dim, size in enumerate(shape) if size > 1]  # integer division is slow: none for the first of these
    for dim in reversed(range(len(shape))):
        if dim not in wide:
            coordinates.append(torch.zeros_like(keys))
        elif dim == wide[0]:
            coordinates.append(keys)
        else:
            rest = keys // shape[dim]
            coordinates.append(keys - rest * shape[dim])
            keys = rest
    return coordinates[::-1]


def sort_distinct(keys: Tensor) -> Tensor:
    """The distinct keys, sorted; those of COO and CSR are so already, which is quickly seen."""
    return keys if bool((keys[1:] > keys[:-1]).all()) else keys.unique()


def pays_table(size: int, number: int) -> bool:
    """Whether a table of all ``size`` positions is made for ``number`` keys: it costs less than to sort them."""
    return size <= settings.TABLE_OF * number + settings.TABLE


def find(keys: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Where ``keys`` lie in the sorted ``table``, and whether they do."""
    if table.numel() == 0:
        return torch.zeros_like(keys), torch.zeros_like(keys, dtype=torch.bool)
    place = torch.searchsorted(table, keys.contiguous()).clamp_(max=table.numel() - 1)  # torch warns of others
    return place, table[place] == keys
