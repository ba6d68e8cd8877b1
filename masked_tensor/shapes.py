"""Arithmetic of shapes: canonical dimensions, the shape after a reduction, the runs that a reshape keeps apart."""

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate, pairwise
from math import prod
from operator import index, mul
from typing import Any

import torch

_LARGEST = torch.iinfo(torch.int64).max
_USUAL = (int, tuple, list, type(None))  #: what dimensions are given as


def canonical_dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """``dim`` as sorted non-negative dims; None and ``()`` mean all of them.  Raises IndexError as torch does."""
    if not isinstance(dim, _USUAL):
        dim = _as_dims(dim)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    if not isinstance(dim, int) and len(dim) == 1:  # as torch hands over a single one
        dim = dim[0]
    if isinstance(dim, int) and 0 <= dim < ndim:
        return (dim,)
    dims = []
    for d in (dim,) if isinstance(dim, int) else dim:
        bound = max(ndim, 1)
        if not -bound <= d < bound:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {d})"
            )
        dims.append(d % bound)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
    return tuple(sorted(d for d in dims if d < ndim))


def canonical_dim(dim: int, ndim: int) -> int:
    """``dim`` as one that is not negative: no list and no None is one dimension.  Raises IndexError as torch does."""
    found = canonical_dims(dim if type(dim) is int else expect_int("dim", dim), ndim)
    if not found:
        raise IndexError(f"dim {dim} of a tensor without dimensions")
    return found[0]


def expect_int(name: str, value: Any, least: int | None = None) -> int:
    """``value`` as Python's int, for numpy's and for tensors of one integer as well; neither floats nor bools are.

    ``least``: the smallest that it may be.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    number = index(value)
    if least is not None and number < least:
        raise ValueError(f"{name} must be {least} or more, got {number}")
    if abs(number) > _LARGEST:
        raise ValueError(f"{name} must fit into 64 bits, got {number}")
    return number


def _as_dims(dim: Any) -> int | tuple[int, ...]:
    """What is an integer without being one of Python's, such as numpy's, and other sequences of them."""
    if hasattr(dim, "__index__") and not getattr(dim, "ndim", 0):
        return index(dim)
    if isinstance(dim, str | dict | set) or not hasattr(dim, "__len__"):
        raise TypeError(f"dim must be an int or a list of them, got {type(dim).__name__}")
    return tuple(index(d) for d in dim)


def broadcast_two(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """As ``torch.broadcast_shapes``, which takes four times as long; it is asked where sizes are no ints or differ."""
    short = min(len(a), len(b))
    shape = [*(a if len(a) > short else b)[: max(len(a), len(b)) - short]]
    for n, m in zip(a[len(a) - short :], b[len(b) - short :], strict=True):
        if type(n) is not int or type(m) is not int or (n != m and n != 1 and m != 1):
            return tuple(torch.broadcast_shapes(a, b))
        shape.append(m if n == 1 else n)
    return tuple(shape)


def memory_order(stride: Sequence[int]) -> tuple[int, ...]:
    """The dimensions, those that are farthest apart in memory first: permuted so, a tensor is read as it lies."""
    return tuple(sorted(range(len(stride)), key=lambda d: -stride[d]))


def can_expand(shape: Sequence[int], to: Sequence[int]) -> bool:
    """Whether a tensor of ``shape`` can be expanded to ``to``."""
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(to), strict=False))


def can_broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether tensors of the two shapes broadcast with each other."""
    return all(n == m or n == 1 or m == 1 for n, m in zip(reversed(a), reversed(b), strict=False))


def slice_bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """As ``slice(start, end).indices(size)``, which would make a size that a graph leaves open a number."""
    start = 0 if start is None else start
    end = size if end is None or (type(end) is int and end == sys.maxsize) else end
    first, last = (n + size if n < 0 else n for n in (start, end))
    return _within(first, size), _within(last, size)


def _within(n: int, size: int) -> int:
    return 0 if n < 0 else size if n > size else n


def reduced_shape(shape: Sequence[int], dims: Sequence[int], keepdim: bool) -> tuple[int, ...]:
    """``shape`` after a reduction over canonical ``dims``."""
    if keepdim:
        return tuple(1 if d in dims else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in dims)


def infer_size(old: Sequence[int], size: Sequence[int]) -> tuple[int, ...] | None:
    """``size`` with its -1, if it has one, worked out for a tensor of shape ``old``; None if it does not fit."""
    shape, numel = list(size), prod(old)
    if shape.count(-1) == 1:
        rest = -prod(shape)
        if rest <= 0 or numel % rest:
            return None
        shape[shape.index(-1)] = numel // rest
    return tuple(shape) if prod(shape) == numel and all(n >= 0 for n in shape) else None


def split_dims(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """``old`` with its dimensions split where ``new`` splits them, if every boundary divides the next."""
    cuts = sorted([1, *accumulate(old, mul), *accumulate(new, mul)])
    if any(b % a for a, b in pairwise(cuts)):
        return tuple(old)
    return tuple(b // a for a, b in pairwise(cuts) if a != b)


def matching_runs(old: Sequence[int], new: Sequence[int]) -> list[tuple[range, range]]:
    """The shortest runs of old and new dimensions with equal products, in order."""
    result = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second, start = (old[i] if i < len(old) else 1), (new[j] if j < len(new) else 1), (i, j)
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        while first != second:
            if first < second:
                first, i = first * old[i], i + 1
            else:
                second, j = second * new[j], j + 1
        result.append((range(start[0], i), range(start[1], j)))
    return result


def symbolic_shapes() -> Any:
    """What knows the sizes of a traced graph.  It loads sympy, which is there while something is traced."""
    return import_module("torch.fx.experimental.symbolic_shapes")
