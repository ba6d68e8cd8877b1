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
from .entrance import Dim, Given, Number, check_fill, enough, entered, for_too_few, handed_out, run

aten = torch.ops.aten


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A reduction: how to call the op, its law for sparse slices, and its value where nothing is valid."""

    name: str
    call: Callable[..., Pair | Tensor]  #: (pair or tensor, dims, keepdim, **params)
    law: Callable[..., Tensor]
    empty: Number
    everywhere: bool = False  #: the law may give something else than 0 for a slice of zeros
    logical: bool = False  #: its results are bool


def over(op: OpOverload) -> Callable[..., Any]:
    """The call of an op that takes a list of dims."""
    return lambda x, dims, keepdim, **params: run(op, x, list(dims), keepdim, **params)


def one_by_one(op: OpOverload) -> Callable[..., Any]:
    """The call of an op that takes one dim, for reductions that can go dim by dim."""

    def call(x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
        for dim in reversed(dims):
            x = run(op, x, dim, keepdim)
        return x if dims else run(op, x, 0, keepdim)

    return call


def reduced(
    form: Form,
    input: Any,
    dim: Dim,
    keepdim: bool,
    dtype: torch.dtype | None,
    mask: Any,
    fill_value: Number | None,
    min_count: int | None,
    **params: Any,
) -> Tensor:
    """Runs a reduction over ``dim`` (int, tuple; None or () for all); ``input`` may be entered already."""
    given = (input if type(input) is Given else entered(input, mask)).to(dtype)
    dims = shapes.canonical_dims(dim, given.data.dim())
    kind = torch.bool if form.logical else given.data.dtype
    fill_value = for_too_few(form.name, kind, given.masked, fill_value, min_count)
    if layouts.is_sparse(given.data):
        return _sparse(form, given, dims, keepdim, fill_value, min_count, **params)
    result = form.call(given.x, dims, keepdim, **params)
    valid = enough(given, dims, keepdim, min_count, fill_value)
    return handed_out(result, given.masked, form.empty, fill_value, valid)


def _sparse(
    form: Form,
    given: Given,
    dims: tuple[int, ...],
    keepdim: bool,
    fill_value: Number | None,
    min_count: int | None,
    **params: Any,
) -> Tensor:
    data, valid = sparse.reduce(
        form.law,
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
    return data if valid is None else handed_out(Pair(data, valid), False, empty)
