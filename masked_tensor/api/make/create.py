"""Makes a masked tensor from data and a mask, or from data masked by NaN, a value or a condition.

``masked_tensor`` copies and makes a leaf; ``as_masked_tensor`` wraps; everything else keeps the graph of a tensor it is
given, and zeroes what it masks out.  Only here are values looked at, to refuse what cannot be meant.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ... import errors, layouts, masks
from ...callers import line_of_user
from ...compat import in_transform, is_readable_memory
from ...engine.alias_records import WrappedHistory, alias_of
from ...engine.boundary.enter_leave import leave
from ...engine.boundary.lengths import keep
from ...engine.boundary.packed import enter_packed
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor, pair_of
from ...masks.strides import lay_out_as
from ...packing import Packed
from ...packing.lengths import same
from ...packing.packed import drop_full_inner
from ...pair import Pair, Payload
from ...select import select
from ...shared.names import names_arguments
from ..containers import accepted_inputs, kinds
from ..copies import finite
from ..copies.mask_copies import own_copy


@names_arguments
def masked_tensor(
    data: Any,
    mask: Any = None,
    requires_grad: bool | None = None,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> MaskedTensor:
    """A masked tensor with a copy of ``data``, a leaf as from ``torch.tensor``; ``as_masked_tensor`` does not copy.

    Entries that ``data`` itself marks as missing are masked: None in a list, the end of a list that is shorter than
    others, null in a table. NaN is a valid value; NaN in a pandas table causes a UserWarning. Masked-out data are set
    to 0.

    On the CPU, a mask that is True exactly where a tensor is NaN causes a UserWarning, since it is likely inverted.

    A tensor that is part of a graph is detached, with a UserWarning unless ``requires_grad`` is given. Inside a model,
    use :func:`as_masked_tensor`, which stays in the graph.

    Args:
        data (Any): A tensor (plain, masked, nested or sparse), a number, a nested list, or a container of numpy,
            numpy.ma, scipy.sparse, pandas, polars, pyarrow, xarray or astropy, a dict of columns, or a
            ``PackedSequence``. Columns of several dtypes become numpy's common one.
        mask (Tensor, optional): True = valid; bool or the integers 0 and 1, broadcastable to ``data``; a list or an
            array is accepted as well. It is combined with the missing entries of ``data``; by default all others are
            valid.
        requires_grad (bool, optional): Whether autograd records operations on the result. Default: False.
        dtype (torch.dtype, optional): The dtype of the data; by default that of ``data``.
        device (torch.device, optional): The device of data and mask; by default that of ``data``.

    Returns:
        MaskedTensor: The shape of ``data``, in its dtype, or in that of ``dtype``.

    Raises:
        TypeError: ``data`` or ``mask`` cannot be converted to a tensor, or ``mask`` is floating point.
        ValueError: ``mask`` does not broadcast to ``data``, or has another layout or device.
        ValueError: ``mask`` holds integers other than 0 and 1.
        ValueError: ``mask`` is ``isna()`` of a container, which is True where a value is missing.
        RuntimeError: A sparse tensor violates the invariants of its layout.
        RuntimeError: ``requires_grad`` is given for integers.
        ImportError: ``data`` is read through Arrow, and neither nanoarrow nor pyarrow is installed.

    Example:
        >>> mt.masked_tensor([1, None, 3])
        masked_tensor([1, --, 3], valid=2/3)
        >>> mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True], [False]], requires_grad=True)
        masked_tensor([[1.0000, 2.0000],
                       [    --,     --]], valid=2/4, requires_grad=True)

    See also:
        :func:`as_masked_tensor`, :func:`masked_invalid`.

    References:
        ``torch.tensor``, ``torch.masked.masked_tensor``.
    """
    if requires_grad is None and isinstance(data, Tensor) and data.requires_grad and torch.is_grad_enabled():
        warnings.warn(
            "masked_tensor(data, mask) copies data and detaches it from the graph. Write "
            "masked_tensor.as_masked_tensor(data, mask) to keep the gradient, or pass requires_grad= for a new leaf",
            stacklevel=line_of_user(),
        )
    pair = accepted_inputs.pair_of_input(data, dtype, device)
    if mask is None:
        warn_of_nan(data, pair)
    if mask is not None and layouts.is_sparse(pair.data):
        pair = layouts.pair_on_pattern(pair.data.detach(), accepted_inputs.mask_of_input(mask, pair.data))
    elif mask is not None:
        fits = accepted_inputs.mask_of_input(mask, pair.data)
        if not isinstance(data, Tensor):
            _refuse_inverted(data, pair, fits)
        elif _seems_inverted(pair.data, fits):
            warnings.warn(
                "mask is True exactly where data is NaN, and True means valid; if these values are missing, use ~mask "
                "or masked_tensor.masked_invalid(data)",
                stacklevel=line_of_user(),
            )
        known = not isinstance(data, Tensor) or accepted_inputs.has_validity(data)
        own = masks.logical_and(pair.mask, fits) if known else own_copy(fits)
        pair = Pair(pair.data, lay_out_as(own, pair.data))
    fresh = not isinstance(data, Tensor) and pair.payload is Payload.ZERO  # other data were copied when taken in
    copy = as_result(pair if fresh else _zeroed_copy(Pair(pair.data.detach(), pair.mask)))
    copy = _with_lengths_of(data, copy)
    if requires_grad:
        copy.requires_grad_()
    return copy


def _with_lengths_of(data: Any, copy: MaskedTensor) -> MaskedTensor:
    """A copy of ``data``, which knows its lengths as ``data`` does."""
    if type(data) is MaskedTensor and data._packed is not None:
        kept: MaskedTensor = keep(same, {"data": data}, copy)
        return kept
    if type(data) is MaskedTensor:
        copy._steps, copy._stays_padded = data._steps, data._stays_padded
    return copy


@names_arguments
def as_masked_tensor(data: Tensor, mask: Any = None) -> MaskedTensor:
    """A masked tensor that shares memory with ``data`` and stays in its graph, as with ``torch.as_tensor``.

    The mask is copied; the data are not, and their masked-out values are left as they are. If ``data`` is a
    MaskedTensor, the result is a view of it, or with ``mask`` a copy with both masks combined. The entries that a
    sparse tensor stores are valid unless ``mask`` says otherwise.

    Args:
        data (Tensor): Any shape, dtype and layout; plain or masked.
        mask (Tensor, optional): True = valid; bool or the integers 0 and 1, broadcastable to ``data``; a list or an
            array is accepted as well. Required for a plain strided tensor.

    Returns:
        MaskedTensor: The shape, dtype and layout of ``data``.

    Raises:
        TypeError: ``data`` is not a tensor, or is quantized.
        TypeError: ``data`` is plain and strided and has no ``mask``, or ``mask`` is floating point.
        ValueError: ``mask`` does not broadcast to ``data``, or has another layout or device.
        ValueError: ``mask`` holds integers other than 0 and 1.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> x = torch.tensor([1.0, 0.0], requires_grad=True)
        >>> y = mt.as_masked_tensor(x, x != 0)
        >>> y
        masked_tensor([1.0000, --], valid=1/2, grad_fn=<MaskedBackward>)
        >>> (1 / y).sum().backward()
        >>> x.grad
        tensor([-1.,  0.])

    See also:
        :func:`masked_tensor`.

    References:
        ``torch.masked.as_masked_tensor``.
    """
    if not isinstance(data, Tensor):
        raise TypeError(
            f"as_masked_tensor expects a tensor, got {type(data).__name__}; use masked_tensor(data, mask), which copies"
        )
    if mask is None and type(data) is MaskedTensor and not layouts.is_sparse(data):
        return data.view_as(data)
    if not (accepted_inputs.has_validity(data) or data.is_quantized):  # nothing to find out about it
        return _expose_memory(Pair(data, lay_out_as(own_copy(accepted_inputs.mask_of_input(mask, data)), data)))
    pair = accepted_inputs.pair_of_input(data)
    if mask is None:
        return _expose_memory(Pair(pair.data, layouts.copy_mask(pair.mask)))
    mask = accepted_inputs.mask_of_input(mask, pair.data)
    if layouts.is_sparse(pair.data):
        return _expose_memory(layouts.pair_on_pattern(pair.data, layouts.copy_mask(mask)))
    return _with_lengths_of(data, mask_more(pair, mask))


@names_arguments
def masked_invalid(data: Any, *, dtype: torch.dtype | None = None) -> MaskedTensor:
    """A copy of ``data`` that is masked where it is NaN or infinite.

    Gradients flow back to ``data`` and are 0 where the result is masked.

    Args:
        data (Any): A tensor of any shape and dtype, or anything else that :func:`masked_tensor` accepts.
        dtype (torch.dtype, optional): The dtype of the result; by default that of ``data``.

    Returns:
        MaskedTensor: The shape of ``data``, in ``dtype`` or that of ``data``.

    Raises:
        TypeError: ``data`` cannot be converted to a tensor.
        ValueError: A nested tensor has no components.
        ValueError: An integer of a table is not exact in the common dtype.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> mt.masked_invalid([1.0, float("nan"), 3.0])
        masked_tensor([1.0000, --, 3.0000], valid=2/3)

    See also:
        :func:`masked_tensor`, :func:`masked_equal`, :func:`masked_where`.

    References:
        ``numpy.ma.masked_invalid``.
    """
    if dtype is not None:
        return masked_invalid(_as_dtype(data, dtype, masked_invalid))  # what the dtype does not hold is infinite
    if type(data) is Tensor and data.layout is torch.strided and not (data.is_nested or data.is_quantized):
        return as_result(finite.finite_copy(data))
    frame = kinds.whole_frame(data)
    return _keep_where(data, finite.is_finite) if frame is None else as_result(finite.of_array(frame))


@names_arguments
def masked_equal(data: Any, value: float | bool | complex, *, dtype: torch.dtype | None = None) -> MaskedTensor:
    """A copy of ``data`` that is masked where it equals ``value``, such as -999 for a missing number in a file.

    Gradients flow back to ``data`` and are 0 where the result is masked.

    Args:
        data (Any): A tensor of any shape and dtype, or anything else that :func:`masked_tensor` accepts.
        value (number): The value that stands for missing. NaN equals nothing: use :func:`masked_invalid`.
        dtype (torch.dtype, optional): The dtype of the result, converted to after comparing; by default that of
            ``data``.

    Returns:
        MaskedTensor: The shape of ``data``, in ``dtype`` or that of ``data``.

    Raises:
        TypeError: ``data`` cannot be converted to a tensor.
        ValueError: ``value`` is NaN.
        ValueError: A nested tensor has no components.
        ValueError: An integer of a table is not exact in the common dtype.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> mt.masked_equal([3, -999, 5], -999)
        masked_tensor([3, --, 5], valid=2/3)

    See also:
        :func:`masked_invalid`, :func:`masked_where`.

    References:
        ``numpy.ma.masked_equal``.
    """
    if isinstance(value, float | complex) and value != value:
        raise ValueError("masked_equal: NaN equals nothing; use masked_invalid(data), which masks NaN and infinity")
    if dtype is not None:
        return _as_dtype(data, dtype, lambda data: masked_equal(data, value))
    return _keep_where(data, lambda values: values != value)


@names_arguments
def masked_where(condition: Any, data: Any, *, dtype: torch.dtype | None = None) -> MaskedTensor:
    """A copy of ``data`` that is masked where ``condition`` is True or itself masked.

    Gradients flow back to ``data`` and are 0 where the result is masked.

    Args:
        condition (Tensor): True = masked; bool, broadcastable to ``data``, plain or masked; a list or an array is
            accepted as well.
        data (Any): A tensor of any shape and dtype, or anything else that :func:`masked_tensor` accepts.
        dtype (torch.dtype, optional): The dtype of the result; by default that of ``data``.

    Returns:
        MaskedTensor: The shape of ``data``, in ``dtype`` or that of ``data``.

    Raises:
        TypeError: ``data`` or ``condition`` cannot be converted to a tensor, or ``condition`` is floating point.
        ValueError: ``condition`` does not broadcast to ``data``, or has another layout or device.
        ValueError: ``condition`` holds integers other than 0 and 1.
        RuntimeError: A sparse tensor violates the invariants of its layout.

    Example:
        >>> x = torch.tensor([1.0, -2.0, 3.0])
        >>> mt.masked_where(x < 0, x)
        masked_tensor([1.0000, --, 3.0000], valid=2/3)

    See also:
        :func:`masked_invalid`, :func:`masked_equal`, :func:`masked_fill`.

    References:
        ``numpy.ma.masked_where``.
    """
    if dtype is not None:
        return _as_dtype(data, dtype, lambda data: masked_where(condition, data))
    pair = accepted_inputs.pair_of_input(data)
    given = accepted_inputs.pair_of_input(condition)
    if pair.data.dtype is torch.bool and (given.data.is_floating_point() or given.data.is_complex()):
        raise TypeError(
            "masked_where(condition, data): are the arguments swapped? condition has "
            f"{errors.dtype_name(given.data.dtype)}, data has bool"
        )
    fits = accepted_inputs.mask_of_input(given.data, pair.data, "condition")
    made = mask_more(pair, masks.logical_and(~fits, masks.expand_to(given.mask, fits.shape)))
    if not isinstance(data, Tensor):
        warn_of_nan(data, Pair(pair.data, made.mask))
    return _with_lengths_of(data, made)


def as_result(pair: Pair) -> MaskedTensor:
    """What the caller gets of a pair."""
    if torch.compiler.is_exporting():
        raise errors.exporting()
    made: MaskedTensor = leave(pair)
    return made


def _expose_memory(pair: Pair) -> MaskedTensor:
    """Around memory that somebody outside holds."""
    made = as_result(pair)
    made._exposed = True
    if not in_transform():
        alias = alias_of(made)
        alias.history, alias.writes_seen = WrappedHistory(pair.data), pair.data.grad_fn
    return made


def _zeroed_copy(pair: Pair) -> Pair:
    """A fresh pair with 0 under the mask."""
    if layouts.is_sparse(pair.data):
        return Pair(layouts.zero_masked_values(pair.data, pair.mask), pair.mask, Payload.ZERO)
    return Pair(select(pair.data, pair.mask, 0), pair.mask, Payload.ZERO)


def _as_dtype(data: Any, dtype: torch.dtype, make: Callable[[Any], MaskedTensor]) -> MaskedTensor:
    """What ``make`` masks of ``data``, in another dtype: masked before, as NaN is not an integer, nor -999 a byte."""
    if isinstance(data, Tensor) or dtype not in (torch.float64, torch.complex128):
        return make(data).to(dtype)
    made = make(as_result(accepted_inputs.pair_of_input(data, dtype)))  # no common dtype of a table is wider
    warn_of_nan(data, pair_of(made))
    return made


def _keep_where(data: Any, valid: Callable[[Tensor], Tensor]) -> MaskedTensor:
    """``data``, also masked where ``valid`` of its values is False; packed, if it is."""
    if type(data) is MaskedTensor and data._packed is not None and not in_transform():
        stored = enter_packed(data)
        more = valid(stored.values.detach())
        more = more if stored.inner is None else stored.inner & more
        kept = Packed(select(stored.values, more, 0), stored.grid, stored.order, more)
        made: MaskedTensor = leave(drop_full_inner(kept))
        return made
    pair = accepted_inputs.pair_of_input(data)
    if layouts.is_sparse(pair.data):
        within = layouts.values(pair.mask) & valid(layouts.values(pair.data.detach()))
        return as_result(_zeroed_copy(Pair(pair.data, layouts.with_values(pair.mask, within))))
    keep = valid(pair.data.detach())
    if not isinstance(data, Tensor) and valid is not finite.is_finite:
        warn_of_nan(data, Pair(pair.data, masks.logical_and(pair.mask, keep)))
    return mask_more(pair, keep)


def warn_of_nan(data: Any, pair: Pair) -> None:
    """A pandas column of floats writes NaN for what is missing, and NaN is a value here."""
    if kinds.has_nan_for_missing(data, pair):
        warnings.warn(
            f"NaN in a {type(data).__name__} of floats is a valid value; masked_invalid(frame) masks it",
            stacklevel=line_of_user(),
        )


def _refuse_inverted(data: Any, pair: Pair, mask: Tensor) -> None:
    """Raises for ``isna()`` of a table as its mask: every missing entry would be valid, and no other."""
    missing = ~pair.mask
    if pair.data.is_floating_point() or pair.data.is_complex():
        missing = missing | pair.data.isnan()
    if missing.any() and not missing.all() and mask.equal(missing):
        way_out = "data.notna()" if hasattr(data, "notna") else "~mask"
        raise ValueError(
            f"mask is inverted: it is True exactly where data (a {type(data).__name__}) is missing; use {way_out}"
        )


def _seems_inverted(data: Tensor, mask: Tensor) -> bool:
    """Whether every valid entry is NaN and no other, as for a mask of numpy.ma; on a CPU alone, where none waits.

    Both begin alike in few tensors that are meant, so nearly always one entry is read.
    """
    can_be = data.is_floating_point() and data.dtype.itemsize > 1 and data.numel() > 0  # float8 has no isnan()
    if not (can_be and is_readable_memory(data) and is_readable_memory(mask)):
        return False
    if bool(data[(0,) * data.dim()].isnan()) is not bool(mask[(0,) * mask.dim()]):
        return False
    missing = data.isnan()
    return bool(missing.any()) and not bool(missing.all()) and bool((missing == mask).all())


def mask_more(pair: Pair, mask: Tensor) -> MaskedTensor:
    """``pair`` with more entries masked; fresh memory, the same graph."""
    return as_result(
        _zeroed_copy(Pair(pair.data, masks.logical_and(pair.mask, masks.expand_to(mask, pair.data.shape))))
    )


mark_opaque(masked_tensor, as_masked_tensor, masked_invalid, masked_equal, masked_where)
