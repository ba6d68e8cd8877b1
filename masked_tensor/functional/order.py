"""Functional order statistics: median, quantile, mode, unique and their sisters."""

from typing import Any

import torch
from torch import Tensor

from .. import layouts, shapes
from ..pair import Pair
from .entrance import Given, Number, enough, entered, finished, refuse, run
from .extremes import one_dim
from .reduce import aten, sparse_result

_NAN = float("nan")


def median(
    input: Tensor,
    dim: int | None = -1,
    *,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The lower median of the valid elements along one ``dim`` (None: of all of them), NaN if one of them is NaN.

    Where none is valid: NaN, or 0 for integers.  Other arguments as :func:`sum`.
    """
    return _median("median", aten.median, input, dim, keepdim, dtype, mask, fill_value, min_count)


def nanmedian(
    input: Tensor,
    dim: int | None = -1,
    *,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
    min_count: int | None = None,
) -> Tensor:
    """The lower median of the valid elements that are not NaN.  Arguments as :func:`median`."""
    return _median("nanmedian", aten.nanmedian, input, dim, keepdim, dtype, mask, fill_value, min_count)


def mode(input: Tensor, dim: int = -1, *, keepdim: bool = False, mask: Tensor | None = None) -> Any:
    """The most frequent valid element along ``dim``, a named tuple ``(values, indices)``.  Strided inputs only."""
    given = entered(input, mask)
    refuse("mode", given)
    values, indices = run(aten.mode.default, given.x, dim, keepdim)
    return torch.return_types.mode((finished(values, given.masked, _NAN), finished(indices, given.masked, 0)))


def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    interpolation: str = "linear",
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The ``q``-quantile of the valid elements, NaN if one is NaN or none is valid.  Arguments as torch.quantile."""
    return _quantile("quantile", aten.quantile, input, q, dim, keepdim, interpolation, mask, fill_value)


def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    interpolation: str = "linear",
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The ``q``-quantile of the valid elements that are not NaN.  Arguments as :func:`quantile`."""
    return _quantile("nanquantile", aten.nanquantile, input, q, dim, keepdim, interpolation, mask, fill_value)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    mask: Tensor | None = None,
) -> Any:
    """The distinct valid elements, as torch.unique gives them; a MaskedTensor's inverse is masked where the input is.

    A sparse input gives a strided result, with 0 among it if an unspecified element is valid (no inverse for those).
    """
    given = entered(input, mask)
    if layouts.is_sparse(given.data):
        if return_inverse:
            raise NotImplementedError("unique of a sparse input has no inverse; give it input.to_dense()")
        values, counts = layouts.unique(given.data, given.mask)
        return (values, counts) if return_counts else values
    results = run(aten._unique2.default, given.x, sorted, return_inverse, return_counts)
    return _unique_results(given, results, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, *, mask: Tensor | None = None
) -> Any:
    """The valid elements without immediate repetitions, as torch.unique_consecutive.  Strided inputs only."""
    given = entered(input, mask)
    refuse("unique_consecutive", given)
    results = run(aten.unique_consecutive.default, given.x, return_inverse, return_counts)
    return _unique_results(given, results, return_inverse, return_counts)


def _unique_results(given: Given, results: Any, return_inverse: bool, return_counts: bool) -> Any:
    wanted = [finished(results[0], given.masked, 0)]
    if return_inverse:
        wanted.append(finished(results[1], given.masked, 0))
    if return_counts:
        wanted.append(finished(results[2], given.masked, 0))
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def _median(
    name: str, op: Any, input: Any, dim: Any, keepdim: bool, dtype: Any, mask: Any, fill_value: Any, min_count: Any
) -> Tensor:
    one_dim(name, dim)
    given = entered(input, mask).to(dtype)
    dims = shapes.canonical_dims(dim, given.data.dim())
    if given.data.is_complex():
        raise RuntimeError(f"{name}(): complex numbers have no order, got {given.data.dtype}")
    if layouts.is_sparse(given.data):
        data, valid = layouts.median(
            given.data,
            given.mask,
            dims,
            keepdim,
            skip_nan=name == "nanmedian",
            fill_value=fill_value,
            min_count=min_count,
        )
        return sparse_result(data, valid, given.masked, _NAN)  # type: ignore[no-any-return]
    if dim is None:
        result = run(op.default, given.x)
        if keepdim:
            shape = [1] * given.data.dim()
            result = _shaped(result, shape)
    else:
        result = run(op.dim, given.x, dim, keepdim)[0]
    return finished(result, given.masked, _NAN, fill_value, enough(given, dims, keepdim, min_count))  # type: ignore[no-any-return]


def _shaped(result: Any, shape: list[int]) -> Any:
    if type(result) is Pair:
        return Pair(result.data.reshape(shape), result.mask.reshape(shape), result.payload)
    return result.reshape(shape)


def _quantile(
    name: str, op: Any, input: Any, q: Any, dim: Any, keepdim: bool, interpolation: str, mask: Any, fill_value: Any
) -> Tensor:
    one_dim(name, dim)
    given = entered(input, mask)
    refuse(name, given)
    overload = op.default if isinstance(q, Tensor) else op.scalar
    result = run(overload, given.x, q, dim, keepdim, interpolation=interpolation)
    return finished(result, given.masked, _NAN, fill_value)  # type: ignore[no-any-return]
