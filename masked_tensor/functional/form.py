"""How every functional reduction runs: the family's rule on strided data, the same law on slices of sparse data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from ..compat import OpOverload
from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from .entrance import Dim, Input, Number, as_result, check_fill, enter_input, for_too_few, has_min_count, run_op

aten = torch.ops.aten


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction: how to call the op, its law for sparse slices, and its value where nothing is valid."""

    name: str
    call: Callable[..., Pair | Tensor]  #: (pair or tensor, dims, keepdim, **params)
    sparse: Callable[..., Tensor]
    empty: Number
    everywhere: bool = False  #: the sparse rule may give something else than 0 for a slice of zeros
    logical: bool = False  #: its results are bool


def over_dims(op: OpOverload) -> Callable[..., Any]:
    """The call of an op that takes a list of dims."""
    return lambda x, dims, keepdim, **params: run_op(op, x, list(dims), keepdim, **params)


def dim_by_dim(op: OpOverload) -> Callable[..., Any]:
    """The call of an op that takes one dim, for reductions that can go dim by dim."""

    def call(x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        for dim in reversed(dims):
            x = run_op(op, x, dim, keepdim)
        return x if dims else run_op(op, x, 0, keepdim)

    return call


def run_reduction(
    form: Reduction,
    input: Any,
    dim: Dim,
    keepdim: bool,
    dtype: torch.dtype | None,
    mask: Any,
    fill_value: Number | None,
    min_count: int | None,
    **params: Any,
) -> Tensor:
    """Runs a reduction over ``dim`` (int, tuple; None or () for all); ``input`` may be entered already.

    A ``dtype`` of integers or bool is also that of the result: torch's sums of what has it would be int64.
    """
    given = (input if type(input) is Input else enter_input(input, mask)).to(dtype)
    dims = shapes.canonical_dims(dim, given.data.dim())
    kind = torch.bool if form.logical else given.data.dtype
    fill_value = for_too_few(form.name, kind, given.masked, fill_value, min_count)
    if given.is_sparse:
        return in_dtype(_sparse(form, given, dims, keepdim, fill_value, min_count, **params), dtype)
    result = form.call(given.x, dims, keepdim, **params)
    valid = has_min_count(given, dims, keepdim, min_count, fill_value)
    return in_dtype(as_result(result, given.masked, form.empty, fill_value, valid), dtype)


def in_dtype(result: Tensor, dtype: torch.dtype | None) -> Tensor:
    """``result`` in the dtype that was asked for, if that has integers."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex or result.dtype is dtype:
        return result
    return result.to(dtype)


def _sparse(
    form: Reduction,
    given: Input,
    dims: tuple[int, ...],
    keepdim: bool,
    fill_value: Number | None,
    min_count: int | None,
    **params: Any,
) -> Tensor:
    data, valid = sparse.reduce(
        form.sparse,
        given.data,
        given.mask,
        dims,
        keepdim,
        everywhere=form.everywhere,
        fill_value=fill_value,
        min_count=min_count,
        **params,
    )
    return sparse_result(data, valid, given.masked, form.empty, fill_value)


def sparse_result(
    data: Tensor, valid: Tensor | None, masked: bool, empty: Number, fill_value: Number | None = None
) -> Tensor:
    """A sparse result stores its valid outputs; a 0-d one is strided and may be empty."""
    check_fill(fill_value, data.dtype)
    if masked:
        return leave(layouts.valid_outputs(data, valid))
    return data if valid is None else as_result(Pair(data, valid), False, empty)
