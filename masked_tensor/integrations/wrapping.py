"""What the replacements of functions of libraries share."""

import inspect
from collections.abc import Callable, Iterable
from inspect import BoundArguments
from typing import Any

import torch
from torch import Tensor

from .. import MaskedSizeError, MaskedTensor, as_masked_tensor

Function = Callable[..., Any]
Handle = Callable[[Function, BoundArguments], Any]


def with_masked(handle: Handle) -> Callable[[Function], Function]:
    """What ``handle(function, arguments)`` gives if an argument is a masked tensor, or a list or dict that has one."""

    def make(function: Function) -> Function:
        signature = inspect.signature(function)

        def run(*args: Any, **kwargs: Any) -> Any:
            if not has_masked(args) and not (kwargs and has_masked(kwargs.values())):
                return function(*args, **kwargs)
            given = signature.bind(*args, **kwargs)
            given.apply_defaults()
            return handle(function, given)

        return run

    return make


def has_masked(values: Iterable[Any]) -> bool:
    """Whether a masked tensor is among ``values``, or in a list, tuple or dict of them."""
    for v in values:
        kind = type(v)
        if kind is MaskedTensor:
            return True
        if kind is tuple or kind is list or kind is dict:
            for inner in v.values() if kind is dict else v:
                if type(inner) is MaskedTensor:
                    return True
    return False


def call(function: Function, given: BoundArguments) -> Any:
    """``function`` of arguments that were changed."""
    return function(*given.args, **given.kwargs)


def mask_of(x: Tensor) -> Tensor:
    """Which entries are valid, a dense bool tensor."""
    return x.get_mask() if type(x) is MaskedTensor else torch.ones_like(x, dtype=torch.bool)


def data_of(x: Tensor) -> Tensor:
    """The values, with 0 at masked entries."""
    return x.filled(0) if type(x) is MaskedTensor else x


def sum_and_count(x: Tensor) -> Tensor:
    """What ranks add up for their mean: the values, 0 at masked entries, and how many there are, in one tensor."""
    return torch.stack([data_of(x), mask_of(x).to(x.dtype)])


def ratio(sums: Tensor) -> Tensor:
    """The mean of what :func:`sum_and_count` gave on each rank; masked where no rank has a value."""
    total, count = sums.unbind()
    return as_masked_tensor(total / count, count > 0)


#: The lines that leave the rows that are valid as a whole: of matrices, and of more dimensions.
_WHOLE = ("masked_tensor.select_valid(a, b, dim=1)", "a[keep] and b[keep] with keep = a.get_mask().flatten(1).all(1)")


def which_rows(name: str, x: Tensor, dims: int = 1, way_out: str = "") -> Tensor:
    """Which rows, by their first ``dims`` dimensions, are valid; raises MaskedSizeError if one is valid in part."""
    flat = mask_of(x).reshape(*x.shape[:dims], -1)
    rows = flat.all(-1)
    if not torch.equal(rows, flat.any(-1)):
        raise MaskedSizeError(
            f"{name} counts rows, but some rows of a tensor of shape {tuple(x.shape)} are only partly valid; "
            + (way_out or f"pass the fully valid rows: {_WHOLE[x.dim() > 2]}")
        )
    return rows


def valid_rows(name: str, *tensors: Tensor, way_out: str = "") -> tuple[Tensor, ...]:
    """The rows that are valid in all ``tensors``; raises MaskedSizeError if a row is valid in part."""
    valid = None
    for x in tensors:
        rows = which_rows(name, x, way_out=way_out)
        valid = rows if valid is None else valid & rows
    return tuple(data_of(x)[valid] for x in tensors)


def with_valid_rows(name: str, *arguments: str) -> Callable[[Function], Function]:
    """What a function gives for the rows that are valid in all of these arguments, but for those that are None."""

    def handle(function: Function, given: BoundArguments) -> Any:
        there = [key for key in arguments if given.arguments[key] is not None]
        rows = valid_rows(name, *(given.arguments[key] for key in there))
        given.arguments.update(zip(there, rows, strict=True))
        return call(function, given)

    return with_masked(handle)
