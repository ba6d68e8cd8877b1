"""The named exits: the only ways from a masked tensor to plain data.

Each is a function of a masked tensor, and a method of the same name.  All are differentiable where that has a meaning.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ... import errors, layouts, masks, select, shapes
from ...compat import is_tracked, unwrap_transforms
from ...engine.boundary.enter_leave import enter, leave
from ...engine.boundary.packed import enter_packed, mask_of
from ...engine.dynamo import mark_opaque, read_by_call
from ...engine.tensor import MaskedTensor, add_members, expose, pair_of
from ...packing import dim_order as orders
from ...pair import Pair, Payload
from ...shared import strict_counts
from ...shared.names import names_arguments, takes_axis
from ..containers import accepted_inputs
from ..make.create import as_masked_tensor

try:
    import numpy
except ImportError:  # an optional companion, as for torch itself
    numpy = None  # type: ignore[assignment]  # as said above


def is_masked_tensor(x: object) -> bool:
    """Whether ``x`` is a :class:`MaskedTensor`.

    Args:
        x (Any): Any object.

    Returns:
        bool: True for a MaskedTensor.

    Example:
        >>> mt.is_masked_tensor(mt.masked_tensor([1.0, None])), mt.is_masked_tensor(torch.ones(2))
        (True, False)
    """
    return type(x) is MaskedTensor


def get_data(x: MaskedTensor) -> Tensor:
    """The data of a masked tensor, including the values under the mask.

    The result shares memory with ``x``, which may become slower, since its masked-out data can no longer be assumed to
    be 0. It is a copy if ``x`` is sparse, packed or the input of a compiled function. Gradients flow back to ``x``, and
    are 0 where it is masked.

    Args:
        x (MaskedTensor): Any shape, dtype and layout.

    Returns:
        Tensor: A plain tensor of ``x``'s shape, dtype and layout.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.

    Example:
        >>> mt.masked_tensor([1.0, 2.0], [True, False]).get_data()
        tensor([1., 0.])

    See also:
        :func:`get_mask`.

    References:
        ``torch.masked.MaskedTensor.get_data``.
    """
    pair = _enter(x, "get_data")
    if layouts.is_sparse(pair.data):
        values, valid = layouts.values(pair.data), layouts.values(pair.mask)
        return layouts.with_values(pair.data, select.guard(values, valid).clone())
    if x._graph_input:  # what a compiled function knows of its inputs it knows for good
        return select.guard(pair.data, pair.mask).clone()
    if x._packed is not None:
        return select.guard(pair.data, pair.mask).clone()
    expose(x)
    data = select.guard(pair.data, pair.mask)
    if data is pair.data:
        return data.view_as(data) if is_tracked(data) else data.detach()
    return data


def get_mask(x: MaskedTensor) -> Tensor:
    """A copy of the mask as a plain bool tensor, with True = valid; the same as ``x.mask``.

    Writing into the copy does not change ``x``; to mask an entry, assign ``x[1] = None``. In numpy.ma and astropy,
    ``mask`` has the opposite meaning: True = masked.

    Args:
        x (MaskedTensor): Any shape, dtype and layout.

    Returns:
        Tensor: A bool tensor of ``x``'s shape and layout.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.

    Example:
        >>> mt.masked_tensor([1.0, 2.0], [True, False]).get_mask()
        tensor([ True, False])

    See also:
        :func:`get_data`.

    References:
        ``torch.masked.MaskedTensor.get_mask``.
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("get_mask", x)
    mask = mask_of(x)
    if layouts.is_sparse(mask):
        return mask.clone()
    if type(mask) is not Tensor:  # inductor gives two clones of one result the same memory
        mask = mask.eq(True)
    return mask.clone(memory_format=torch.contiguous_format)


@names_arguments
def filled(x: Tensor, value: "complex | Tensor | Sequence[Any] | numpy.ndarray[Any, Any]" = 0) -> Tensor:
    """A plain tensor with ``value`` where ``x`` is masked: ``x[i] if valid[i] else value``.

    The gradient with respect to ``x`` is 0 where it is masked; a tensor ``value`` receives the gradient there. The
    result is always strided, and entries that a sparse ``x`` does not store count as masked. A plain ``x`` is returned
    unchanged.

    Args:
        x (Tensor): A MaskedTensor of any shape, dtype and layout, or a plain tensor.
        value (number or Tensor, optional): One number, or a plain tensor broadcastable to ``x``, such as a mean for
            each column, in a dtype that fits ``x``'s. A list, an array or a pandas Series is accepted as well. Default:
            0.

    Returns:
        Tensor: A plain strided tensor of ``x``'s shape and dtype; a plain ``x`` itself.

    Raises:
        TypeError: ``x`` is not a tensor.
        TypeError: ``value`` does not broadcast to ``x``, or does not fit its dtype, such as -1 in uint8.
        TypeError: ``value`` is masked or contains None.
        ValueError: ``value`` is a table whose columns have no common dtype.
        RuntimeError: ``value`` is complex and ``x`` is not.

    Example:
        >>> mt.masked_tensor([1.0, 2.0], [True, False]).filled(-1)
        tensor([ 1., -1.])
        >>> mt.masked_tensor([[1.0, None], [3.0, 5.0]]).filled(torch.tensor([7.0, 8.0]))
        tensor([[1., 8.],
                [3., 5.]])

    See also:
        :func:`compressed`, :func:`masked_fill`, :func:`to_numpy_ma`.

    References:
        ``numpy.ma.filled``.
    """
    if isinstance(x, Tensor) and type(unwrap_transforms(x)) is not MaskedTensor:
        return x
    pair = _enter(dense(x), "filled")
    given: Any = value
    value = _fill_of_values(given, x) if hasattr(given, "__len__") and not isinstance(given, Tensor | str) else given
    if not isinstance(value, Tensor):
        _check_fill(value, x.dtype)
        if masks.is_all_valid(pair.mask):
            return pair.data.clone()
        return select.select(pair.data, pair.mask, value)
    if type(value) is MaskedTensor:
        raise TypeError(
            "filled() needs a plain value, got a masked tensor; use torch.where(x.mask, x, value), which is masked "
            "where both are, or x.filled(value.filled(0))"
        )
    if not torch.can_cast(value.dtype, x.dtype) or not shapes.can_expand(value.shape, x.shape):
        raise TypeError(
            f"filled() needs a value that fits {errors.dtype_name(x.dtype)} {tuple(x.shape)}, got "
            f"{errors.dtype_name(value.dtype)} {tuple(value.shape)}"
        )
    other = select.guard(value.to(x.dtype).expand(x.shape), ~pair.mask)
    return torch.where(pair.mask, select.guard(pair.data, pair.mask), other)


def _fill_of_values(values: Any, x: Tensor) -> Tensor:
    """A list, an array or a column of another library, as the tensor that fills ``x``."""
    inexact = x.is_floating_point() or x.is_complex()
    found = accepted_inputs.pair_of_input(values, x.dtype if inexact else None, x.device, "value")
    if not found.mask.all():
        raise TypeError(
            f"filled() needs values without gaps, got a {type(values).__name__} with a missing one; fill "
            "it first, as masked_tensor(values).filled(0)"
        )
    if not (inexact or found.data.is_complex() or found.data.to(x.dtype).eq(found.data).all()):
        raise TypeError(f"filled({values!r}): {errors.dtype_name(x.dtype)} cannot hold the values; use x.float()")
    return found.data if inexact or found.data.is_complex() else found.data.to(x.dtype)


def _check_fill(value: complex, dtype: torch.dtype) -> None:
    """Integers and bools are filled with what they can hold; it would be another number otherwise."""
    if value is None or isinstance(value, str):
        raise TypeError(
            f"filled({value!r}): the value must be a number or a plain tensor, as in x.filled(0); for the mean of each "
            "column write torch.where(x.mask, x, x.mean(0))"
        )
    if dtype.is_floating_point or dtype.is_complex:
        return
    low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if isinstance(value, complex) or not low <= value <= high or value != int(value):
        raise TypeError(f"filled({value}): {errors.dtype_name(dtype)} cannot hold the value; convert first, x.float()")


def to_tensor(x: MaskedTensor, value: float | bool | complex) -> Tensor:
    """A plain tensor with ``value`` where ``x`` is masked; torch.masked's name for :meth:`filled`.

    Args:
        x (MaskedTensor): Any shape, dtype and layout.
        value (number or Tensor): One number, or a plain tensor broadcastable to ``x`` whose dtype fits ``x``'s.

    Returns:
        Tensor: A plain strided tensor of ``x``'s shape and dtype.

    Raises:
        TypeError: ``value`` does not broadcast to ``x``, or does not fit its dtype.
        TypeError: ``value`` is masked.
        ValueError: ``value`` is a table whose columns have no common dtype.
        RuntimeError: ``value`` is complex and ``x`` is not.

    Example:
        >>> mt.masked_tensor([1.0, None]).to_tensor(0)
        tensor([1., 0.])

    References:
        ``torch.masked.MaskedTensor.to_tensor``.
    """
    return filled(x, value)


def clear_masked(x: MaskedTensor) -> MaskedTensor:
    """A copy of ``x`` whose masked-out data are 0 in memory, under the same mask.

    Pickles and checkpoints store masked-out data as they are in memory. Call this before you share a file in which
    masked values must not be readable.

    Args:
        x (MaskedTensor): Any shape, dtype and layout.

    Returns:
        MaskedTensor: ``x``'s shape, dtype, layout and mask, in memory of its own.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.

    Example:
        >>> x = mt.as_masked_tensor(torch.tensor([1.0, 42.0]), torch.tensor([True, False]))
        >>> x.get_data(), x.clear_masked().get_data()
        (tensor([ 1., 42.]), tensor([1., 0.]))
    """
    if type(x) is MaskedTensor and x._packed is not None:
        stored = enter_packed(x)
        values, inner = stored.values, stored.inner
        cleared = values.clone() if inner is None else select.select(values, inner, 0)
        packed: MaskedTensor = leave(replace(stored, values=cleared, payload=Payload.ZERO, parts=None, known=[]))
        return packed
    pair = _enter(x, "clear_masked")
    if layouts.is_sparse(pair.data):
        data = layouts.zero_masked_values(pair.data, pair.mask).clone()
    else:
        data = pair.data.clone() if pair.payload is Payload.ZERO else select.select(pair.data, pair.mask, 0)
    result: MaskedTensor = leave(Pair(data, pair.mask, Payload.ZERO))
    return result


def compressed(x: MaskedTensor) -> Tensor:
    """The valid entries, in order, as a plain 1-D tensor: ``data[mask]``.

    The length depends on the mask, which is read. Gradients flow back.

    Args:
        x (MaskedTensor): Any shape, dtype and layout; for a sparse tensor, the valid stored entries are returned.

    Returns:
        Tensor: Shape ``(n,)`` with ``n`` the number of valid entries, in ``x``'s dtype.

    Raises:
        TypeError: ``x`` is not a MaskedTensor.

    Example:
        >>> mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True]).compressed()
        tensor([1., 3.])

    See also:
        :func:`filled`, :func:`select_valid`, :func:`masked_select`.

    References:
        ``numpy.ma.compressed``.
    """
    if type(x) is MaskedTensor and x._packed is not None:
        stored = enter_packed(x)
        if stored.order == orders.identity_order(len(stored.order)):  # read as it is stored
            if stored.inner is not None:
                return stored.values[stored.inner]
            return stored.values.clone(memory_format=torch.contiguous_format).view(-1)
    pair = _enter(x, "compressed")
    if layouts.is_sparse(pair.data):
        return layouts.values(pair.data)[layouts.values(pair.mask)]
    return pair.data[pair.mask]


@takes_axis
def count(
    x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, mask: Tensor | None = None
) -> Tensor:
    """The number of valid entries along ``dim``.

    Args:
        x (Tensor): A MaskedTensor of any shape, dtype and layout, or a plain tensor with a ``mask``.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool, broadcastable to ``x``, and combined with the mask of a
            MaskedTensor. A strided ``x`` expands to a wider mask.

    Returns:
        Tensor: A plain int64 tensor of ``x``'s shape without ``dim``.

    Raises:
        TypeError: ``x`` is plain and has no ``mask``, or ``mask`` is not bool.
        ValueError: ``mask`` does not broadcast to ``x``, or has another layout or device.
        IndexError: ``dim`` is out of range.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]]).count(0)
        tensor([2, 1])
        >>> mt.count(torch.ones(2, 2), 0, mask=torch.tensor([True, False]))
        tensor([2, 0])

    See also:
        :func:`count_nonzero`.

    References:
        ``numpy.ma.count``.
    """
    if mask is not None:
        wide = isinstance(mask, Tensor) and x.layout is torch.strided and mask.dim() > 0
        if wide and not shapes.can_expand(mask.shape, x.shape) and shapes.can_broadcast(mask.shape, x.shape):
            x = x.expand(shapes.broadcast_two(x.shape, mask.shape))
        x = as_masked_tensor(x, mask)
    if type(x) is not MaskedTensor:
        raise errors.not_masked("count", x)
    if strict_counts.KNOWN:
        strict_counts.refuse("count", pair_of(x))
    valid = mask_of(x)
    if layouts.is_sparse(valid):
        valid = layouts.values(valid) if dim is None and not keepdim else layouts.dense_mask(valid)
    return masks.count(valid, dim, keepdim).contiguous()  # else constant along the dimensions in which the mask is


def to_numpy_ma(x: MaskedTensor) -> "numpy.ma.MaskedArray":
    """A ``numpy.ma.MaskedArray`` with copies of data and mask, for any dtype that numpy has.

    Its mask has the opposite meaning: True = masked. Masked floats are NaN; masked integers keep the data of ``x``.
    scikit-learn, scipy and most numpy functions outside ``numpy.ma`` ignore such a mask: pass them
    ``x.filled(value).numpy()`` or the result of :func:`select_valid`. ``x.numpy()`` is torch's method, which returns a
    plain array if nothing is masked.

    Args:
        x (MaskedTensor): Any shape and layout, and any dtype that numpy has.

    Returns:
        numpy.ma.MaskedArray: An array of ``x``'s shape and dtype.

    Raises:
        TypeError: ``x`` is not a MaskedTensor, or numpy has no such dtype.
        ImportError: numpy is not installed.

    Example:
        >>> print(mt.masked_tensor([1.0, 2.0], [True, False]).to_numpy_ma())
        [1.0 --]

    See also:
        :func:`filled`, :func:`to_arrow`.

    References:
        ``numpy.ma.MaskedArray``.
    """
    if numpy is None:
        raise ImportError("to_numpy_ma() needs numpy")
    if type(x) is not MaskedTensor:
        raise errors.not_masked("to_numpy_ma", x)
    pair = pair_of(dense(x))
    data = pair.data.detach()
    if data.is_floating_point() or data.is_complex():  # a library that ignores the mask meets NaN, and not a number
        data = select.select(data, pair.mask, torch.nan)
    return numpy.ma.MaskedArray(data.numpy(force=True), ~pair.mask.cpu().numpy(), copy=True)


def dense(x: Tensor) -> Any:
    """``x`` itself, or its strided form if it is sparse: what is not stored is masked."""
    if type(x) is MaskedTensor and layouts.is_sparse(x):
        return x.to_dense()
    return x


def _refuse_mask(x: MaskedTensor, value: object) -> None:
    raise AttributeError(
        "x.mask cannot be assigned; as_masked_tensor(x, mask) masks more entries, x[key] = None masks some in place, "
        "and x[key] = value makes entries valid"
    )


def _enter(x: MaskedTensor, action: str) -> Pair:
    if type(x) is not MaskedTensor:
        raise errors.not_masked(action, x)
    if torch.compiler.is_exporting():
        raise errors.exporting()
    return enter(x, torch.is_grad_enabled())


mark_opaque(get_data, get_mask, filled, clear_masked, count)
add_members(**{exit.__name__: exit for exit in (get_data, get_mask, filled, to_tensor, compressed, count, to_numpy_ma)})
add_members(clear_masked=clear_masked)
add_members(to_numpy=to_numpy_ma)  # not for users: matplotlib asks for this name, and draws gaps where x is masked
_MASK = (get_mask.__doc__ or "").replace("the same as ``x.mask``", "the same as ``x.get_mask()``", 1)
# The setter: without one Python's own error names no way out.
add_members(mask=property(get_mask, _refuse_mask, doc=_MASK))
read_by_call(MaskedTensor, "mask", "get_mask")
