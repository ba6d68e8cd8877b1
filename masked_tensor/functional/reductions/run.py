"""How every functional reduction runs: the family's rule on strided data, the same law on slices of sparse data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ... import layouts, shapes, sparse
from ...compat import OpOverload
from ...engine.boundary.enter_leave import leave
from ...pair import Pair
from ...shared.too_few import TooFew
from ..entrance import (
    Dim,
    Input,
    Number,
    as_reduced,
    as_result,
    check_fill,
    enter_input,
    run_op,
    too_few,
)

aten = torch.ops.aten


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction: how to call the op, and its law for sparse slices."""

    name: str
    call: Callable[..., Pair | Tensor]  #: (pair or tensor, dims, keepdim, **params)
    sparse: Callable[..., Tensor]
    everywhere: bool = False  #: the sparse rule may give something else than 0 for a slice of zeros
    logical: bool = False  #: its results are bool
    enter: Callable[[str, Input], Input] = lambda name, x: x  #: what is done first: a check, another dtype
    like: str | None = None  #: the reduction whose result of nothing it has, if not its own


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


def reduction(name: str, call: Callable[..., Any], sparse: Callable[..., Tensor], **more: Any) -> Callable[..., Any]:
    """The function of a reduction that takes a dtype and asks for a number of valid entries."""
    form = Reduction(name, call, sparse, **more)

    def reduce(
        input: Tensor,
        dim: Dim = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
        mask: Tensor | None = None,
        fill_value: Number | None = None,
        min_count: int | None = None,
    ) -> Tensor:
        return run_reduction(form, input, dim, keepdim, dtype, mask, fill_value, min_count)

    return reduce


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
    given = form.enter(form.name, given)
    dims = shapes.canonical_dims(dim, given.data.dim())
    kind = torch.bool if form.logical else given.data.dtype
    few = too_few(form.name, kind, given.masked, fill_value, min_count, form.like)
    if given.is_sparse:
        data, mask = given.data, given.mask
        found = sparse.reduce(form.sparse, data, mask, dims, keepdim, everywhere=form.everywhere, few=few, **params)
        return in_dtype(sparse_result(*found, given.masked, few), dtype)
    return in_dtype(as_reduced(form.call(given.x, dims, keepdim, **params), given, dims, keepdim, few), dtype)


def as_inexact(name: str, x: Input) -> Input:
    """``x``, in the default dtype if it has integers or bools."""
    return x if x.data.is_floating_point() or x.data.is_complex() else x.to(torch.get_default_dtype())


def in_dtype(result: Tensor, dtype: torch.dtype | None) -> Tensor:
    """``result`` in the dtype that was asked for, if that has integers."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex or result.dtype is dtype:
        return result
    return result.to(dtype)


def sparse_result(data: Tensor, valid: Tensor | None, masked: bool, few: TooFew) -> Tensor:
    """A sparse result stores its valid outputs; a 0-d one is strided and may be empty."""
    check_fill(few.fill_value, data.dtype)
    if masked:
        return leave(layouts.valid_outputs(data, valid))
    return data if valid is None else as_result(Pair(data, valid), False, few.empty)
