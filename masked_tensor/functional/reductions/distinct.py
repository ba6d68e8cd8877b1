"""Functional unique and unique_consecutive: the distinct values and the runs of the valid entries."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ... import errors, sparse
from ..entrance import Input, as_result, enter_input, refuse_sparse, run_op
from ..registry import form
from .run import aten


@form
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    mask: Tensor | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The distinct valid entries, or with ``dim`` the distinct slices.

    Slices are equal if they are valid at the same positions and equal there; slices without a valid entry are dropped.
    Masked entries of a slice are 0 in a plain result.

    A sparse ``input`` has a strided result, which contains 0 if an entry that is not stored is valid.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        sorted (bool, optional): Sort the result. Default: True.
        return_inverse (bool, optional): Also return the position of each entry in the result; not for a sparse
            ``input``. Default: False.
        return_counts (bool, optional): Also return how often each value occurs. Default: False.
        dim (int, optional): The dimension whose slices are compared; None compares entries. Not for a sparse ``input``.

    Returns:
        Tensor or tuple: The values ``(n,)`` in ``input``'s dtype. With the options also int64 tensors: the inverse, of
        ``input``'s shape and masked where a MaskedTensor is, and the counts ``(n,)``. MaskedTensors if ``input`` is
        one.

    Raises:
        NotImplementedError: ``input`` is complex, and complex numbers have no order.
        UnsupportedOpError: ``input`` is sparse and ``return_inverse`` or ``dim`` is given.

    Example:
        >>> mt.unique(torch.tensor([3, 1, 3, 9]), mask=torch.tensor([True, True, True, False]))
        tensor([1, 3])

    See also:
        :func:`unique_consecutive`, :func:`mode`.

    References:
        ``torch.unique``.
    """
    given = enter_input(input, mask)
    if given.is_sparse:
        if dim is not None:
            refuse_sparse("unique(dim=)", given)
        return _sparse_unique("unique", given, sparse.unique, return_inverse, return_counts)
    if dim is None:
        results = run_op(aten._unique2.default, given.x, sorted, return_inverse, return_counts)
    else:
        results = run_op(aten.unique_dim.default, given.x, dim, sorted, return_inverse, return_counts)
    return _unique_results(given, results, return_inverse, return_counts)


@form
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    mask: Tensor | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The valid entries in order, without consecutive repeats; with ``dim``, slices as in :func:`unique`.

    A sparse ``input`` has a strided result, in which valid entries between two stored ones form a run of zeros.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        return_inverse (bool, optional): Also return the position of each entry in the result; not for a sparse
            ``input``. Default: False.
        return_counts (bool, optional): Also return the length of each run. Default: False.
        dim (int, optional): The dimension whose slices are compared; None compares entries. Not for a sparse ``input``.

    Returns:
        Tensor or tuple: The values ``(n,)`` in ``input``'s dtype. With the options also int64 tensors: the inverse, of
        ``input``'s shape and masked where a MaskedTensor is, and the counts ``(n,)``. MaskedTensors if ``input`` is
        one.

    Raises:
        NotImplementedError: ``input`` is complex, and complex numbers have no order.
        UnsupportedOpError: ``input`` is sparse and ``return_inverse`` or ``dim`` is given.

    Example:
        >>> m = torch.tensor([True, True, False, True, True])
        >>> mt.unique_consecutive(torch.tensor([1, 1, 9, 1, 2]), mask=m)
        tensor([1, 2])

    See also:
        :func:`unique`.

    References:
        ``torch.unique_consecutive``.
    """
    given = enter_input(input, mask)
    if given.is_sparse:
        if dim is not None:
            refuse_sparse("unique_consecutive(dim=)", given)
        return _sparse_unique("unique_consecutive", given, sparse.unique_consecutive, return_inverse, return_counts)
    results = run_op(aten.unique_consecutive.default, given.x, return_inverse, return_counts, dim)
    return _unique_results(given, results, return_inverse, return_counts)


def _sparse_unique(
    name: str, x: Input, verb: Callable[..., Any], return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    if return_inverse:
        raise errors.UnsupportedOpError(
            f"masked_tensor.{name} of a {x.data.layout} input has no inverse; give it input.to_dense()"
        )
    values, counts = (as_result(r, x.masked, 0) for r in verb(x.data, x.mask))
    return (values, counts) if return_counts else values


def _unique_results(
    given: Input, results: Any, return_inverse: bool, return_counts: bool
) -> Tensor | tuple[Tensor, ...]:
    wanted = [as_result(results[0], given.masked, 0)]
    if return_inverse:
        wanted.append(as_result(results[1], given.masked, 0))
    if return_counts:
        wanted.append(as_result(results[2], given.masked, 0))
    return wanted[0] if len(wanted) == 1 else tuple(wanted)
