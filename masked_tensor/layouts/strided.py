"""Strided tensors: every element is stored, in row-major order."""

from collections.abc import Sequence

import torch
from torch import Tensor


def canonical(x: Tensor) -> Tensor:
    """``x`` with every position stored at most once."""
    return x


def validate(x: Tensor) -> None:
    """Raises RuntimeError if the pattern breaks the rules of the layout."""


def stored_values(x: Tensor) -> Tensor:
    """The stored values as they lie in ``x``."""
    return x


def indices(x: Tensor) -> tuple[Tensor, ...]:
    """The index tensors that make up the pattern: here none."""
    return ()


def assemble(x: Tensor, values: Tensor) -> Tensor:
    """A tensor with the pattern of ``x`` and other values, given in the shape of ``stored_values(x)``."""
    return values


def coordinate(x: Tensor, dim: int) -> Tensor:
    """The position along ``dim`` of every stored value, in the order of ``stored_values(x).reshape(-1)``."""
    position = torch.arange(x.shape[dim], device=x.device)
    return position.view(-1, *[1] * (x.dim() - dim - 1)).expand(x.shape).reshape(-1)


def runs(x: Tensor, dims: Sequence[int]) -> Tensor | None:
    """Offsets of the slices along ``dims`` if each is one run of the stored values, else None."""
    return None


def build(keys: Tensor, values: Tensor, shape: Sequence[int], like: Tensor) -> Tensor:
    """A tensor of this layout with ``values`` at the row-major positions ``keys`` (sorted, distinct)."""
    empty = torch.zeros(torch.Size(shape).numel(), dtype=values.dtype, device=values.device)
    return empty.index_put((keys,), values).view(tuple(shape))
