"""Scatters, entry by entry: a loop over the index."""

from typing import Any

from ..helpers.harness import Masked
from .assign import _along, _scattered, accumulated, assigned
from .index import masked


def scatter(
    op: Any, x: Any, dim: int, index: Any, src: Any = None, *, reduce: str | None = None, value: Any = None
) -> Masked:
    writes = _scattered(masked(x), dim, index, value if src is None else src)
    return assigned(masked(x), writes) if reduce is None else accumulated(masked(x), writes, reduce)


def scatter_add(op: Any, x: Any, dim: int, index: Any, src: Any) -> Masked:
    return accumulated(masked(x), _scattered(masked(x), dim, index, src), "sum")


def scatter_reduce(
    op: Any, x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Masked:
    return accumulated(masked(x), _scattered(masked(x), dim, index, src), reduce, include_self)


def index_add(op: Any, x: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Masked:
    source = Masked(masked(source).data * alpha, masked(source).mask)
    return accumulated(masked(x), _along(masked(x), dim, index, source), "sum")


def index_reduce(
    op: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Masked:
    return accumulated(masked(x), _along(masked(x), dim, index, source), reduce, include_self)


ORACLES = {
    "scatter": scatter,
    "scatter_add": scatter_add,
    **{f"scatter_reduce.{name}": scatter_reduce for name in ("sum", "prod", "mean", "amax", "amin")},
    **{f"index_reduce.{name}": index_reduce for name in ("prod", "mean", "amax", "amin")},
    "index_add": index_add,
}
