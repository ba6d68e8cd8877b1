"""Functional unique and unique_consecutive: the distinct values and the runs of the valid elements."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from .. import errors, layouts, sparse
from .entrance import Input, as_result, enter_input, run_op
from .form import aten


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

    >>> mt.unique(torch.tensor([3, 1, 3, 9]), mask=torch.tensor([True, True, True, False]))
    tensor([1, 3])
    """
    given = enter_input(input, mask)
    if layouts.is_sparse(given.data):
        return _sparse_unique("unique", given, sparse.unique, return_inverse, return_counts)
    results = run_op(aten._unique2.default, given.x, sorted, return_inverse, return_counts)
    return _unique_results(given, results, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, *, mask: Tensor | None = None
) -> Any:
    """The valid elements in row-major order without immediate repetitions, as torch.unique_consecutive.

    A sparse input gives a strided result, in which the unspecified valid elements between two stored ones are a run of
    zeros (no inverse for those: it would be dense).

    >>> m = torch.tensor([True, True, False, True, True])
    >>> mt.unique_consecutive(torch.tensor([1, 1, 9, 1, 2]), mask=m)
    tensor([1, 2])
    """
    given = enter_input(input, mask)
    if layouts.is_sparse(given.data):
        return _sparse_unique("unique_consecutive", given, sparse.unique_consecutive, return_inverse, return_counts)
    results = run_op(aten.unique_consecutive.default, given.x, return_inverse, return_counts)
    return _unique_results(given, results, return_inverse, return_counts)


def _sparse_unique(name: str, x: Input, verb: Callable[..., Any], return_inverse: bool, return_counts: bool) -> Any:
    if return_inverse:
        raise errors.UnsupportedOpError(
            f"masked_tensor.{name} of a {x.data.layout} input has no inverse; give it input.to_dense()"
        )
    values, counts = (as_result(r, x.masked, 0) for r in verb(x.data, x.mask))
    return (values, counts) if return_counts else values


def _unique_results(given: Input, results: Any, return_inverse: bool, return_counts: bool) -> Any:
    wanted = [as_result(results[0], given.masked, 0)]
    if return_inverse:
        wanted.append(as_result(results[1], given.masked, 0))
    if return_counts:
        wanted.append(as_result(results[2], given.masked, 0))
    return wanted[0] if len(wanted) == 1 else tuple(wanted)
