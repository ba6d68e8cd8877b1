"""Made by tools/forms.py from the functional forms: not to be edited."""

# mypy: disable-error-code="overload-overlap"
# pyright: reportOverlappingOverload=false
# ruff: noqa

from collections.abc import Sequence
from typing import Literal, TypeVar, overload

import torch
from torch import Tensor

from ..engine import methods
from ..engine.tensor import MaskedTensor
from .entrance import Dim as Dim, Number as Number
from .reductions.rank import Ties as Ties
from .series.rolling import Closed as Closed
from .series.rolling import Rolling as Rolling
from .series.filling import Area as Area
from .series.filling import Direction as Direction
from .series.filling import Lengths as Lengths
from .series.filling import Method as Method
from .series.filling import Side as Side
from .series.filling import Times as Times
from .entrance import Mode as Mode

T = TypeVar("T", Tensor, MaskedTensor)

__all__ = ['all', 'amax', 'amin', 'aminmax', 'any', 'argmax', 'argmin', 'average', 'batch_norm', 'bfill', 'binary_cross_entropy', 'binary_cross_entropy_with_logits', 'corrcoef', 'cosine_embedding_loss', 'count_nonzero', 'cov', 'cross_entropy', 'cummax', 'cummin', 'cumprod', 'cumsum', 'dist', 'ffill', 'gaussian_nll_loss', 'group_norm', 'hinge_embedding_loss', 'huber_loss', 'instance_norm', 'interpolate', 'kl_div', 'l1_loss', 'layer_norm', 'local_response_norm', 'log_prob', 'log_softmax', 'logaddexp', 'logcumsumexp', 'logsumexp', 'margin_ranking_loss', 'masked_fill', 'masked_fill_', 'masked_scatter', 'masked_scatter_', 'masked_select', 'max', 'mean', 'median', 'min', 'mode', 'mse_loss', 'multi_margin_loss', 'multilabel_margin_loss', 'multilabel_soft_margin_loss', 'nanmean', 'nanmedian', 'nanquantile', 'nansum', 'nll_loss', 'norm', 'normalize', 'poisson_nll_loss', 'prod', 'quantile', 'rankdata', 'rms_norm', 'rolling', 'scaled_dot_product_attention', 'shift', 'smooth_l1_loss', 'soft_margin_loss', 'softmax', 'softmin', 'std', 'std_mean', 'sum', 'triplet_margin_loss', 'unique', 'unique_consecutive', 'var', 'var_mean']

def all(input: T, dim: Dim=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """Whether all valid entries along ``dim`` are nonzero.

    Where no entry is valid, the result is True for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.all(x > 1, 1, mask=m)
        tensor([False,  True])

    See also:
        :func:`any`.

    References:
        ``torch.all``.
    """
def amax(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The largest valid entry along ``dim``: ``max(x[valid])``.

    Where no entry is valid, the result is -inf (the smallest integer, False) for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amax(x, 1, mask=m)
        tensor([3., -inf])

    See also:
        :func:`amin`, :func:`aminmax`, :func:`max`, :func:`argmax`.

    References:
        ``torch.amax``, ``torch.masked.amax``.
    """
def amin(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The smallest valid entry along ``dim``: ``min(x[valid])``.

    Where no entry is valid, the result is inf (the largest integer, True) for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amin(x, 1, mask=m, fill_value=0)
        tensor([1., 0.])

    See also:
        :func:`amax`, :func:`aminmax`, :func:`min`, :func:`argmin`.

    References:
        ``torch.amin``, ``torch.masked.amin``.
    """
@overload
def aminmax(input: MaskedTensor, dim: Dim=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._aminmax_result:
    """The smallest and the largest valid entry along ``dim``: ``min(x[valid]), max(x[valid])``.

    Where no entry is valid, the results are those of :func:`amin` and :func:`amax` for a plain ``input`` and masked for
    a MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        tuple: A named tuple ``(min, max)``, each of ``input``'s shape without ``dim``, in its dtype. MaskedTensors if
        ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.aminmax(x, mask=m)
        torch.return_types.aminmax(
        min=tensor(1.),
        max=tensor(3.))

    See also:
        :func:`amax`, :func:`amin`.

    References:
        ``torch.aminmax``.
    """
@overload
def aminmax(input: Tensor, dim: Dim=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.aminmax: ...
def any(input: T, dim: Dim=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """Whether any valid entry along ``dim`` is nonzero.

    Where no entry is valid, the result is False for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.any(x > 1, 1, mask=m)
        tensor([ True, False])

    See also:
        :func:`all`, :func:`count_nonzero`.

    References:
        ``torch.any``.
    """
def argmax(input: T, dim: int | None=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The position of the largest valid entry along ``dim``, or in the flattened input.

    A masked entry is never selected. Where no entry is valid, the result is 0 for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int, optional): The dimension to reduce; None reduces all. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``dim`` is not an int.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> x = torch.tensor([5.0, -float("inf")])
        >>> mt.argmax(x, 0, mask=torch.tensor([False, True]))
        tensor(1)

    See also:
        :func:`max`, :func:`amax`, :func:`argmin`.

    References:
        ``torch.argmax``, ``torch.masked.argmax``.
    """
def argmin(input: T, dim: int | None=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The position of the smallest valid entry along ``dim``, or in the flattened input.

    A masked entry is never selected. Where no entry is valid, the result is 0 for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int, optional): The dimension to reduce; None reduces all. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``dim`` is not an int.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> mt.argmin(torch.tensor([1, 5, 3]), 0, mask=torch.tensor([False, True, True]))
        tensor(2)

    See also:
        :func:`min`, :func:`amin`, :func:`argmax`.

    References:
        ``torch.argmin``, ``torch.masked.argmin``.
    """
def average(input: T, dim: Dim=None, weights: Tensor | None=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """The weighted mean of the valid entries along ``dim``: ``sum(weights * x) / sum(weights)``.

    An entry counts if ``input`` and its weight are valid. Where no entry counts, the result is NaN for a plain
    ``input`` and masked for a MaskedTensor; weights with sum 0 result in NaN or inf. Gradients flow to both. Without
    ``weights`` this is :func:`mean`.

    Args:
        input (Tensor): Floating point or complex, of any shape, strided; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all.
        weights (Tensor, optional): Any dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. Default: False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result without a valid entry.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in the dtype of ``weights * input``. A MaskedTensor if ``input`` or
        ``weights`` is one and ``fill_value`` is not given.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``weights`` is not a tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``weights`` does not broadcast to ``input``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.
        UnsupportedOpError: ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 4.0])
        >>> mt.average(x, weights=torch.tensor([1.0, 5.0, 2.0]))
        masked_tensor(3.0000, valid=1/1)

    See also:
        :func:`mean`, :func:`nanmean`.

    References:
        ``numpy.ma.average``.
    """
def batch_norm(input: T, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None=None, bias: Tensor | None=None, training: bool=False, momentum: float=0.1, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Batch normalization with the mean and variance of the valid entries of each channel.

    The result is ``(x - mean) / sqrt(var + eps)``. In training, the running statistics are updated from the valid
    entries as well, with the variance scaled by ``n / (n - 1)``, where ``n`` is their number in a channel. Masked
    entries are 0 in a plain result and stay masked in a MaskedTensor.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain or a MaskedTensor.
        running_mean (Tensor): ``(C,)``, in ``input``'s dtype, updated in place while training; or None.
        running_var (Tensor): ``(C,)``, in ``input``'s dtype, updated in place while training; or None.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        training (bool, optional): Normalize with the statistics of ``input``; False uses the running statistics.
            Default: False.
        momentum (float, optional): The weight of new statistics in the running ones. Default: 0.1.
        eps (float, optional): Added to the variance for numerical stability. Default: 1e-5.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``training`` is False and there are no running statistics.
        RuntimeError: A parameter or statistic does not have one entry per channel.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([[1.0], [99.0], [3.0]]), torch.tensor([[True], [False], [True]])
        >>> mean = torch.zeros(1)
        >>> mt.batch_norm(x, mean, torch.ones(1), training=True, momentum=1.0, eps=0.0, mask=m)
        tensor([[-1.],
                [ 0.],
                [ 1.]])
        >>> mean
        tensor([2.])

    See also:
        :func:`instance_norm`.

    References:
        ``torch.nn.functional.batch_norm``; Ioffe and Szegedy, Batch normalization, 2015.
    """
def bfill(input: T, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', limit: int | None=None, limit_area: Area | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series in which each masked entry has the value of the next valid entry after it.

    Entries after the last valid one stay masked, and so does padding. Gradients flow to the entry whose value was used.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``. Without a mask
            nothing is filled and a UserWarning is issued: NaN is a valid value.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        limit (int, optional): The largest number of steps that a value is carried. Default: no limit.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only before the first.
            Default: both.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of the entries that stay masked. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``lengths`` are not integers.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``limit`` is below 1, or ``padding_side`` or ``limit_area`` is not one of the values above.
        ValueError: A plain result of integers needs ``fill_value``.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.bfill(mt.masked_tensor([None, 1.0, None, None, 5.0]))
        masked_tensor([1.0000, 1.0000, 5.0000, 5.0000, 5.0000], valid=5/5)

    See also:
        :func:`ffill`, :func:`interpolate`.

    References:
        ``pandas.DataFrame.bfill``.
    """
@overload
def binary_cross_entropy(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The binary cross entropy of probabilities over the valid entries.

    The loss is ``-(target * log(input) + (1 - target) * log(1 - input))``. An entry counts if ``input`` and ``target``
    are both valid.

    Args:
        input (Tensor): Probabilities, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the number of valid entries, as in torch.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or a valid entry of ``input`` is not a probability.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.binary_cross_entropy(torch.tensor([0.5, 0.5]), y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`binary_cross_entropy_with_logits`, :func:`kl_div`.

    References:
        ``torch.nn.functional.binary_cross_entropy``.
    """
@overload
def binary_cross_entropy(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def binary_cross_entropy_with_logits(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, pos_weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The binary cross entropy of ``sigmoid(input)`` over the valid entries.

    With ``s = sigmoid(input)``, the loss is ``-(target * log(s) + (1 - target) * log(1 - s))``. An entry counts if
    ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Logits, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the number of valid entries, as in torch.
        pos_weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of positive
            targets.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.binary_cross_entropy_with_logits(torch.zeros(2), y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`cross_entropy`, :func:`binary_cross_entropy`, :func:`multilabel_soft_margin_loss`,
        :func:`soft_margin_loss`.

    References:
        ``torch.nn.functional.binary_cross_entropy_with_logits``.
    """
@overload
def binary_cross_entropy_with_logits(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, pos_weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None=None, *, pos_weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def corrcoef(input: T, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The correlation matrix, each entry over the observations in which both variables are valid.

    Over the observations of a pair, the entry is ``cov(x, y) / (std(x) * std(y))``. With fewer than two observations,
    the result is NaN for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): ``(V, N)``, one row per variable, or ``(N,)``; any dtype; plain or a MaskedTensor.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of an entry with too few observations.
        min_count (int, optional): The number of common observations that an entry requires, as ``min_periods`` in
            pandas.

    Returns:
        Tensor: ``(V, V)``, or 0-d for one variable; in ``input``'s dtype, or the default dtype for integers. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``input`` has more than two dimensions.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0, 9.0], [2.0, 4.0, 6.0, 0.0]])
        >>> mt.corrcoef(x, mask=torch.tensor([True, True, True, False]))
        tensor([[1., 1.],
                [1., 1.]])

    See also:
        :func:`cov`.

    References:
        ``torch.corrcoef``; ``pandas.DataFrame.corr(min_periods)``, where variables are columns.
    """
@overload
def cosine_embedding_loss(input1: MaskedTensor, input2: Tensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The cosine embedding loss of pairs of vectors, over the features that are valid in both.

    The loss is ``1 - cos(input1, input2)`` where ``target`` is 1, and ``max(0, cos(input1, input2) - margin)`` where it
    is -1.

    Args:
        input1 (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        input2 (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        target (Tensor): 1 for similar vectors, -1 for dissimilar ones: ``(N,)`` or 0-d, of any dtype; plain or a
            MaskedTensor.
        margin (float, optional): The largest cosine of dissimilar vectors that is not penalized. Default: 0.0.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid pairs, ``"sum"`` does not,
            ``"none"`` returns the loss of each pair. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input1``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input1`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> a, b = torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> m = torch.tensor([True, True, False])
        >>> mt.cosine_embedding_loss(a, b, torch.tensor([1.0]), mask=m)
        tensor(0.)

    See also:
        :func:`hinge_embedding_loss`.

    References:
        ``torch.nn.functional.cosine_embedding_loss``.
    """
@overload
def cosine_embedding_loss(input1: Tensor, input2: MaskedTensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: MaskedTensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def count_nonzero(input: T, dim: Dim=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The number of nonzero valid entries along ``dim``: ``sum(x[valid] != 0)``.

    Where no entry is valid, the count is 0, and it is valid in a MaskedTensor as well.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.count_nonzero(x, 1, mask=m)
        tensor([2, 0])

    See also:
        :func:`count`, :func:`any`.

    References:
        ``torch.count_nonzero``.
    """
def cov(input: T, *, correction: int=1, fweights: Tensor | None=None, aweights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The covariance matrix, each entry over the observations in which both variables are valid.

    Over the ``n`` observations of a pair, the entry is ``sum((x - mean(x)) * (y - mean(y))) / (n - correction)``. With
    ``correction`` or fewer observations, the result is NaN for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): ``(V, N)``, one row per variable, or ``(N,)``; any dtype; plain or a MaskedTensor.
        correction (int, optional): Subtracted from the number of observations in the divisor: 1 or 0. Default: 1.
        fweights (Tensor, optional): How often each observation was made: integers ``(N,)``; plain or a MaskedTensor.
            Observations with a masked weight are left out.
        aweights (Tensor, optional): The importance of each observation: floating point ``(N,)``; plain or a
            MaskedTensor.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of an entry with too few observations.
        min_count (int, optional): The number of common observations that an entry requires, as ``min_periods`` in
            pandas.

    Returns:
        Tensor: ``(V, V)``, or 0-d for one variable; in ``input``'s dtype, or the default dtype for integers. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``input`` has more than two dimensions.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0, 3.0], [2.0, None, 6.0]])
        >>> mt.cov(x, min_count=3)
        masked_tensor([[1.0000,     --],
                       [    --,     --]], valid=1/4)

    See also:
        :func:`corrcoef`.

    References:
        ``torch.cov``; ``pandas.DataFrame.cov(min_periods)``, where variables are columns.
    """
@overload
def cross_entropy(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, label_smoothing: float=0.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The cross entropy of logits over the valid targets: ``logsumexp(input) - input[target]``.

    A target counts unless it is masked, equals ``ignore_index``, or no class of its sample is valid. A masked target
    may be out of range. To mask labels, as is usual, use ``target_mask``; ``mask`` masks the scores of classes. A
    masked class has the logit -inf: it is left out of the sum of exponentials, and the loss of a target that names it
    is inf.

    Args:
        input (Tensor): Logits ``(C,)``, ``(N, C)`` or ``(N, C, *)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64, ``(N,)`` or ``(N, *)``, or probabilities of ``input``'s shape and dtype; plain
            or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each target class. A mean is
            divided by the sum of the weights of the targets that count.
        ignore_index (int, optional): A target value that does not count. Default: -100.
        label_smoothing (float, optional): The share of the target that is distributed evenly over all classes. Default:
            0.0.
        reduction (str, optional): ``"mean"`` divides the sum by the weights of the targets that count, ``"sum"`` does
            not, ``"none"`` returns the loss of each target. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of the shape of the target classes, 0 for
        targets that do not count. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        ValueError: The batch sizes differ.
        RuntimeError: ``target`` is neither int64 nor of ``input``'s dtype.
        IndexError: A target that counts is out of range.
        UnsupportedOpError: ``input`` is sparse, and ``target`` holds probabilities or ``label_smoothing`` is not 0.
        UnsupportedOpError: ``input`` is sparse, and ``weight`` is not plain and strided.

    Example:
        >>> x, y = torch.zeros(2, 4), torch.tensor([1, -100])
        >>> torch.nn.functional.cross_entropy(x, mt.masked_equal(y, -100))
        masked_tensor(1.3863, valid=1/1)
        >>> mt.cross_entropy(x, y, target_mask=torch.tensor([True, False]))
        tensor(1.3863)
        >>> m = torch.tensor([True, True, False, False])
        >>> mt.cross_entropy(x, y.clamp(0), mask=m)
        tensor(0.6931)

    See also:
        :func:`nll_loss`, :func:`binary_cross_entropy_with_logits`, :func:`kl_div`.

    References:
        ``torch.nn.functional.cross_entropy``; issues 41508 and 70348 of pytorch/pytorch (NaN where everything is
        ignored).
    """
@overload
def cross_entropy(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, ignore_index: int=-100, label_smoothing: float=0.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, label_smoothing: float=0.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def cummax(input: MaskedTensor, dim: int, *, mask: Tensor | None=None) -> methods._cummax_result:
    """The running maximum of the valid entries along ``dim``, and its position: ``max(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in plain results and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape: values in its dtype, and the int64 position
        along ``dim`` of the last entry that is the maximum. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
        NotImplementedError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> mt.cummax(torch.tensor([1, 9, 3]), 0, mask=torch.tensor([True, False, True]))
        torch.return_types.cummax(
        values=tensor([1, 0, 3]),
        indices=tensor([0, 0, 2]))

    See also:
        :func:`cummin`, :func:`max`.

    References:
        ``torch.cummax``.
    """
@overload
def cummax(input: Tensor, dim: int, *, mask: Tensor | None=None) -> torch.return_types.cummax: ...
@overload
def cummin(input: MaskedTensor, dim: int, *, mask: Tensor | None=None) -> methods._cummin_result:
    """The running minimum of the valid entries along ``dim``, and its position: ``min(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in plain results and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape: values in its dtype, and the int64 position
        along ``dim`` of the last entry that is the minimum. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
        NotImplementedError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> mt.cummin(torch.tensor([3, 0, 1]), 0, mask=torch.tensor([True, False, True]))
        torch.return_types.cummin(
        values=tensor([3, 0, 1]),
        indices=tensor([0, 0, 2]))

    See also:
        :func:`cummax`, :func:`min`.

    References:
        ``torch.cummin``.
    """
@overload
def cummin(input: Tensor, dim: int, *, mask: Tensor | None=None) -> torch.return_types.cummin: ...
def cumprod(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The running product of the valid entries along ``dim``: ``y[t] = prod(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and layout, in ``dtype`` if it is given, else in ``input``'s dtype; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.

    Example:
        >>> mt.cumprod(torch.tensor([2, 9, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([2, 0, 6])

    See also:
        :func:`prod`.

    References:
        ``torch.cumprod``, ``torch.masked.cumprod``.
    """
def cumsum(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The running sum of the valid entries along ``dim``: ``y[t] = sum(x[s] for s <= t if valid[s])``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and layout, in ``dtype`` if it is given, else in ``input``'s dtype; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.

    Example:
        >>> mt.cumsum(torch.tensor([1, 2, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([1, 0, 4])

    See also:
        :func:`sum`.

    References:
        ``torch.cumsum``, ``torch.masked.cumsum``.
    """
@overload
def dist(input: MaskedTensor, other: Tensor, p: float=2, *, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ``p``-norm of the difference over the entries that are valid in both: ``norm(input - other, p)``.

    Where no entry is valid, the result is 0 for plain tensors and masked for a MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        other (Tensor): Floating point or complex, broadcastable to ``input``, or of its shape if one of them is sparse;
            plain or a MaskedTensor.
        p (float, optional): The order of the norm. Default: 2.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result without a valid entry.

    Returns:
        Tensor: A 0-d tensor in the dtype of ``input - other``; real for complex. A MaskedTensor if an operand is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``other`` is not a tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: An operand is sparse and the shapes differ.
        RuntimeError: The shapes do not broadcast.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 9.0])
        >>> mt.dist(x, y, mask=torch.tensor([True, False]))
        tensor(3.)

    See also:
        :func:`norm`.

    References:
        ``torch.dist``.
    """
@overload
def dist(input: Tensor, other: MaskedTensor, p: float=2, *, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def dist(input: Tensor, other: Tensor, p: float=2, *, mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def ffill(input: T, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', limit: int | None=None, limit_area: Area | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series in which each masked entry has the value of the last valid entry before it.

    Entries before the first valid one stay masked, and so does padding; :class:`LastValid` fills across batches.
    Gradients flow to the entry whose value was used.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``. Without a mask
            nothing is filled and a UserWarning is issued: NaN is a valid value.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        limit (int, optional): The largest number of steps that a value is carried. Default: no limit.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only after the last.
            Default: both.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of the entries that stay masked. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``lengths`` are not integers.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``limit`` is below 1, or ``padding_side`` or ``limit_area`` is not one of the values above.
        ValueError: A plain result of integers needs ``fill_value``.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.ffill(mt.masked_tensor([None, 1.0, None, None, 5.0]), limit=1)
        masked_tensor([--, 1.0000, 1.0000, --, 5.0000], valid=3/5)

    See also:
        :func:`bfill`, :func:`interpolate`, :func:`shift`.

    References:
        ``pandas.DataFrame.ffill``.
    """
@overload
def gaussian_nll_loss(input: MaskedTensor, target: Tensor, var: float | Tensor, full: bool=False, eps: float=1e-06, reduction: str='mean', *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The negative log likelihood of a normal distribution over the valid entries.

    With ``v = max(var, eps)``, the loss is ``0.5 * (log(v) + (input - target) ** 2 / v)``. An entry counts if ``input``
    and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        var (Tensor): Variances, floating point, broadcastable to ``input`` or one for each index of all dimensions but
            the last; or a float.
        full (bool, optional): Add ``0.5 * log(2 * pi)``. Default: False.
        eps (float, optional): The smallest variance, for numerical stability. Default: 1e-6.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        ValueError: A valid variance is negative.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.gaussian_nll_loss(torch.zeros(2), y, torch.ones(2), target_mask=m)
        tensor(0.5000)

    See also:
        :func:`mse_loss`, :func:`poisson_nll_loss`, :func:`log_prob`.

    References:
        ``torch.nn.functional.gaussian_nll_loss``.
    """
@overload
def gaussian_nll_loss(input: Tensor, target: MaskedTensor, var: float | Tensor, full: bool=False, eps: float=1e-06, reduction: str='mean', *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def gaussian_nll_loss(input: Tensor, target: Tensor, var: MaskedTensor, full: bool=False, eps: float=1e-06, reduction: str='mean', *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def gaussian_nll_loss(input: Tensor, target: Tensor, var: float | Tensor, full: bool=False, eps: float=1e-06, reduction: str='mean', *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def group_norm(input: T, num_groups: int, weight: Tensor | None=None, bias: Tensor | None=None, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Group normalization with the mean and variance of the valid entries of each group of channels.

    The result is ``(x - mean) / sqrt(var + eps)``. Masked entries are 0 in a plain result and stay masked in a
    MaskedTensor. A sparse ``input`` keeps its pattern; its statistics are those of the stored entries.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain or a MaskedTensor.
        num_groups (int): The number of groups, a divisor of ``C``.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        eps (float, optional): Added to the variance for numerical stability. Default: 1e-5.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``num_groups`` does not divide ``C``.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
        >>> mt.group_norm(x, 1, eps=0.0, mask=m)
        tensor([[[-1.,  0.,  1.]]])

    See also:
        :func:`layer_norm`, :func:`instance_norm`, :func:`local_response_norm`.

    References:
        ``torch.nn.functional.group_norm``; Wu and He, Group normalization, 2018.
    """
@overload
def hinge_embedding_loss(input: MaskedTensor, target: Tensor, margin: float=1.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The hinge embedding loss of the valid entries, for distances of similar and dissimilar pairs.

    The loss is ``input`` where ``target`` is 1, and ``max(0, margin - input)`` where it is -1. An entry counts if
    ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): 1 or -1, of any dtype, broadcastable to ``input``; plain or a MaskedTensor.
        margin (float, optional): The smallest distance of dissimilar pairs that is not penalized. Default: 1.0.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([0.5, 0.2, 9.0]), torch.tensor([1, -1, 1])
        >>> mt.hinge_embedding_loss(x, y, mask=torch.tensor([True, True, False]))
        tensor(0.6500)

    See also:
        :func:`cosine_embedding_loss`, :func:`soft_margin_loss`.

    References:
        ``torch.nn.functional.hinge_embedding_loss``.
    """
@overload
def hinge_embedding_loss(input: Tensor, target: MaskedTensor, margin: float=1.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float=1.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def huber_loss(input: MaskedTensor, target: Tensor, reduction: str='mean', delta: float=1.0, weight: Tensor | None=None, *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The Huber loss of the valid entries: quadratic below ``delta``, linear above.

    With ``d = abs(input - target)``, the loss is ``0.5 * d ** 2`` if ``d < delta``, otherwise ``delta * (d - 0.5 *
    delta)``. An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        delta (float, optional): Where the squared part ends. Default: 1.0.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the sum of the weights of valid entries.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.huber_loss(torch.zeros(2), y, delta=0.5, target_mask=m)
        tensor(0.3750)

    See also:
        :func:`mse_loss`, :func:`l1_loss`, :func:`smooth_l1_loss`.

    References:
        ``torch.nn.functional.huber_loss``.
    """
@overload
def huber_loss(input: Tensor, target: MaskedTensor, reduction: str='mean', delta: float=1.0, weight: Tensor | None=None, *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def huber_loss(input: Tensor, target: Tensor, reduction: str='mean', delta: float=1.0, weight: Tensor | None=None, *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def instance_norm(input: T, running_mean: Tensor | None=None, running_var: Tensor | None=None, weight: Tensor | None=None, bias: Tensor | None=None, use_input_stats: bool=True, momentum: float=0.1, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Instance normalization with the mean and variance of the valid entries of each channel of each sample.

    The result is ``(x - mean) / sqrt(var + eps)``. Masked entries are 0 in a plain result and stay masked in a
    MaskedTensor. A sparse ``input`` keeps its pattern; its statistics are those of the stored entries.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain or a MaskedTensor.
        running_mean (Tensor, optional): ``(C,)``, in ``input``'s dtype; updated in place.
        running_var (Tensor, optional): ``(C,)``, in ``input``'s dtype; updated in place.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        use_input_stats (bool, optional): False normalizes with the running statistics. Default: True.
        momentum (float, optional): The weight of new statistics in the running ones. Default: 0.1.
        eps (float, optional): Added to the variance for numerical stability. Default: 1e-5.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: A parameter or statistic does not have one entry per channel.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
        >>> mt.instance_norm(x, eps=0.0, mask=m)
        tensor([[[-1.,  0.,  1.]]])

    See also:
        :func:`batch_norm`, :func:`group_norm`.

    References:
        ``torch.nn.functional.instance_norm``; Ulyanov et al., Instance normalization, 2016.
    """
def interpolate(input: T, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', method: Method='linear', index: Times | None=None, limit: int | None=None, limit_direction: Direction='forward', limit_area: Area | None=None, max_gap: int | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series whose gaps are filled by interpolating between valid entries, as in pandas.

    Padding stays masked. Gradients flow to both entries around a gap. To resize images, use
    ``torch.nn.functional.interpolate``, which accepts masked tensors as well.

    Args:
        input (Tensor): Floating point or complex, any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``.
            Without a mask nothing is filled and a UserWarning is issued: NaN is a valid value.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        method (str, optional): ``"linear"`` weighs both neighbours by distance, and repeats the last valid entry beyond
            it. ``"nearest"`` takes the nearer neighbour, or the earlier of two, and fills only between valid entries.
            Default: ``"linear"``.
        index (Tensor, optional): The time of each entry, strictly rising: ``(T,)``, or ``(B, T)`` for each sequence
            (``(T, B)`` if ``dim`` is 0), any real dtype; by default entries are one step apart. Times past the end of a
            sequence are ignored and may be masked.
        limit (int, optional): The largest number of consecutive entries to fill. Default: no limit.
        limit_direction (str, optional): The direction in which ``limit`` counts and in which the edges are filled:
            ``"forward"``, ``"backward"`` or ``"both"``. Default: ``"forward"``.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only beyond them.
            Default: both.
        max_gap (int, optional): Leave gaps, including those at the edges, of more than this many masked entries
            unfilled. Entries are counted, whatever ``index`` is.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of the entries that stay masked. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``lengths`` or ``max_gap`` are not integers, or ``index`` is not real.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``index`` has another shape, does not rise strictly, is not finite, or is masked within a sequence
            (not checked in compiled code and under ``vmap``).
        ValueError: ``limit`` or ``max_gap`` is below 1, or ``method`` or another choice is not one of the values above.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.interpolate(mt.masked_tensor([None, 1.0, None, None, 4.0, None]))
        masked_tensor([--, 1.0000, 2.0000, 3.0000, 4.0000, 4.0000], valid=5/6)

    See also:
        :func:`ffill`, :func:`bfill`, :func:`shift`.

    References:
        ``pandas.DataFrame.interpolate``.
    """
@overload
def kl_div(input: MaskedTensor, target: Tensor, *, log_target: bool=False, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The Kullback-Leibler divergence of the valid entries: ``target * (log(target) - input)``.

    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Log-probabilities, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Probabilities, floating point, broadcastable to ``input``; plain or a MaskedTensor.
        log_target (bool, optional): Whether ``target`` is a log-probability as well. Default: False.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"batchmean"`` by the
            number of indices of the first dimension with a valid entry, ``"sum"`` does not, ``"none"`` returns the loss
            of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
        >>> y = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
        >>> m = torch.tensor([[True], [False]])
        >>> mt.kl_div(x, y, reduction="batchmean", target_mask=m)
        tensor(0.6931)

    See also:
        :func:`binary_cross_entropy`, :func:`cross_entropy`.

    References:
        ``torch.nn.functional.kl_div``.
    """
@overload
def kl_div(input: Tensor, target: MaskedTensor, *, log_target: bool=False, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def kl_div(input: Tensor, target: Tensor, *, log_target: bool=False, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def l1_loss(input: MaskedTensor, target: Tensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The absolute error of the valid entries: ``abs(input - target)``.

    An entry counts if ``input`` and ``target`` are both valid. Sparse operands must have the same shape; entries that
    they do not store are 0.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the sum of the weights of valid entries.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.l1_loss(torch.zeros(2), y, target_mask=m)
        tensor(1.)

    See also:
        :func:`mse_loss`, :func:`huber_loss`, :func:`smooth_l1_loss`.

    References:
        ``torch.nn.functional.l1_loss``.
    """
@overload
def l1_loss(input: Tensor, target: MaskedTensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def l1_loss(input: Tensor, target: Tensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def layer_norm(input: T, normalized_shape: Sequence[int], weight: Tensor | None=None, bias: Tensor | None=None, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Layer normalization with the mean and variance of the valid entries: ``(x - mean) / sqrt(var + eps)``.

    The statistics are over the last ``len(normalized_shape)`` dimensions. Masked entries are 0 in a plain result and
    stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; its statistics are those of the stored entries.

    Args:
        input (Tensor): ``(*, normalized_shape)``, floating point, of any layout; plain or a MaskedTensor.
        normalized_shape (tuple of int): The last dimensions of ``input``.
        weight (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: multiplies the result.
        bias (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: added to the result.
        eps (float, optional): Added to the variance for numerical stability. Default: 1e-5.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``input`` does not end in ``normalized_shape``.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([1.0, 99.0, 3.0]), torch.tensor([True, False, True])
        >>> mt.layer_norm(x, (3,), eps=0.0, mask=m)
        tensor([-1.,  0.,  1.])

    See also:
        :func:`rms_norm`, :func:`group_norm`.

    References:
        ``torch.nn.functional.layer_norm``; Ba et al., Layer normalization, 2016.
    """
def local_response_norm(input: T, size: int, alpha: float=0.0001, beta: float=0.75, k: float=1.0, *, mask: Tensor | None=None) -> T:
    """Local response normalization over channels, in which masked entries count as 0.

    With ``m`` the mean of ``x ** 2`` over ``size`` neighbouring channels, the result is ``x / (k + alpha * m) **
    beta``. Masked entries are 0 in a plain result and stay masked in a MaskedTensor.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain or a MaskedTensor.
        size (int): The number of neighbouring channels.
        alpha (float, optional): The factor of the mean. Default: 0.0001.
        beta (float, optional): The exponent. Default: 0.75.
        k (float, optional): Added to the scaled mean. Default: 1.0.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``input`` has fewer than three dimensions.

    Example:
        >>> x, m = torch.ones(1, 2, 1), torch.tensor([[[True], [False]]])
        >>> mt.local_response_norm(x, 2, mask=m).flatten()
        tensor([1.0000, 0.0000])

    See also:
        :func:`group_norm`.

    References:
        ``torch.nn.functional.local_response_norm``; Krizhevsky et al., ImageNet classification with deep convolutional
        neural networks, 2012.
    """
def log_prob(distribution: torch.distributions.Distribution, value: T, *, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """The log density of ``value``, marginalized over the masked coordinates of each event.

    With ``o`` the valid coordinates of an event, the result is ``log p(value[o])``. For a multivariate normal, this is
    the density of a normal with ``loc[o]`` and ``covariance_matrix[o, o]``; for a Dirichlet, that of a Dirichlet whose
    other concentrations are summed. ``Independent``, ``MixtureSameFamily`` and elementwise transforms are computed from
    their parts. For all other multivariate distributions, a partly valid event is masked.

    Univariate distributions use torch's own ``log_prob``. Valid coordinates are validated as in torch unless the
    distribution has ``validate_args=False``; masked ones are not.

    Args:
        distribution (torch.distributions.Distribution): A distribution with plain parameters, batch shape ``B`` and
            event shape ``E``.
        value (Tensor): ``(*S, *B, *E)``, or broadcastable to it; any dtype that the distribution accepts; plain or a
            MaskedTensor.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``value``, and combined with the mask of a MaskedTensor.
        fill_value (number, optional): The result of an event without a valid coordinate; by default NaN, or masked for
            a MaskedTensor.

    Returns:
        Tensor: ``(*S, *B)``, in the dtype of the distribution's parameters. A MaskedTensor if ``value`` is one, masked
        for events without a valid coordinate; otherwise plain, with NaN there.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``distribution`` is not a distribution, or ``value`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``value`` does not end in the event shape, or ``mask`` does not broadcast to it.
        ValueError: A valid coordinate is outside the support.
        UnsupportedOpError: ``value`` is sparse.

    Example:
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> mt.log_prob(normal, mt.masked_tensor([[0.0, 0.0], [0.0, None], [None, None]]))
        masked_tensor([-1.8379, -0.9189, --], valid=2/3)

    See also:
        :func:`gaussian_nll_loss`.

    References:
        ``torch.distributions``; Little and Rubin, *Statistical Analysis with Missing Data*, on the observed-data
        likelihood.
    """
def log_softmax(input: T, dim: int, dtype: torch.dtype | None=None, *, mask: Tensor | None=None, mode: Mode='safe') -> T:
    """The logarithm of the softmax of the valid entries along ``dim``: ``x - logsumexp(x[valid])``.

    Masked entries are -inf in a plain result, so that their exponential is 0, and stay masked in a MaskedTensor. A
    sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        mode (str, optional): The result of a slice without a finite valid entry. ``"safe"``: 0 with gradient 0 if no
            entry is valid, NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: 0 in both cases, as in
            torch's ``_safe_softmax``. ``"none"``: NaN in both cases. Default: ``"safe"``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, -inf where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``mode`` is not one of the values above.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, m = torch.zeros(3), torch.tensor([True, False, True])
        >>> mt.log_softmax(x, 0, mask=m)
        tensor([-0.6931,    -inf, -0.6931])

    See also:
        :func:`logsumexp`, :func:`softmax`, :func:`softmin`.

    References:
        ``torch.log_softmax``, ``torch.masked.log_softmax``.
    """
@overload
def logaddexp(input: MaskedTensor, other: Tensor, *, dtype: torch.dtype | None=None, input_mask: Tensor | None=None, other_mask: Tensor | None=None) -> MaskedTensor:
    """The logarithm of the sum of exponentials of two tensors: ``log(exp(input) + exp(other))``.

    Where one side is masked, the result is the other. Where both are, it is -inf for plain tensors and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape, strided; plain or a MaskedTensor.
        other (Tensor): In ``input``'s dtype, broadcastable to it, strided; plain or a MaskedTensor.
        dtype (torch.dtype, optional): Convert both to this dtype first.
        input_mask (Tensor, optional): True = valid entry of ``input``; bool, broadcastable to it.
        other_mask (Tensor, optional): True = valid entry of ``other``; bool, broadcastable to it.

    Returns:
        Tensor: The broadcast shape, in ``input``'s dtype. A MaskedTensor if an operand is one.

    Raises:
        TypeError: ``input`` or ``other`` is not a tensor.
        TypeError: ``input_mask`` or ``other_mask`` is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: An operand is sparse.

    Example:
        >>> x, m = torch.zeros(2), torch.tensor([True, False])
        >>> mt.logaddexp(x, x, input_mask=m)
        tensor([0.6931, 0.0000])

    See also:
        :func:`logsumexp`, :func:`logcumsumexp`.

    References:
        ``torch.logaddexp``, ``torch.masked.logaddexp``.
    """
@overload
def logaddexp(input: Tensor, other: MaskedTensor, *, dtype: torch.dtype | None=None, input_mask: Tensor | None=None, other_mask: Tensor | None=None) -> MaskedTensor: ...
@overload
def logaddexp(input: Tensor, other: Tensor, *, dtype: torch.dtype | None=None, input_mask: Tensor | None=None, other_mask: Tensor | None=None) -> Tensor: ...
def logcumsumexp(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The logarithm of the running sum of exponentials of the valid entries: ``log(cumsum(exp(x)))``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape, layout and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> mt.logcumsumexp(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
        tensor([0.0000, 0.0000, 0.6931])

    See also:
        :func:`logsumexp`, :func:`logaddexp`.

    References:
        ``torch.logcumsumexp``.
    """
def logsumexp(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The logarithm of the sum of exponentials of the valid entries along ``dim``: ``log(sum(exp(x[valid])))``.

    Where no entry is valid, the result is -inf for a plain ``input`` and masked for a MaskedTensor. The result of a
    sparse ``input`` stores every slice with a valid entry, since ``n`` zeros result in ``log(n)``.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; the default dtype for integers and bools. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.logsumexp(x, 1, mask=m)
        tensor([3.1269,   -inf])

    See also:
        :func:`logcumsumexp`, :func:`logaddexp`, :func:`log_softmax`.

    References:
        ``torch.logsumexp``, ``torch.masked.logsumexp``.
    """
@overload
def margin_ranking_loss(input1: MaskedTensor, input2: Tensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ranking loss of the valid entries: ``max(0, -target * (input1 - input2) + margin)``.

    An entry counts if all three operands are valid.

    Args:
        input1 (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        input2 (Tensor): Floating point, broadcastable to ``input1``; plain or a MaskedTensor.
        target (Tensor): 1 where ``input1`` should be larger, -1 where ``input2`` should, of any dtype, broadcastable to
            ``input1``; plain or a MaskedTensor.
        margin (float, optional): The smallest difference that is not penalized. Default: 0.0.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input1``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input1``'s dtype; with ``reduction="none"`` of ``input1``'s shape, 0 at masked entries.
        A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input1`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> a, b = torch.tensor([1.0, 9.0]), torch.tensor([3.0, 0.0])
        >>> y = torch.tensor([1.0, 1.0])
        >>> mt.margin_ranking_loss(a, b, y, mask=torch.tensor([True, False]))
        tensor(2.)

    See also:
        :func:`triplet_margin_loss`.

    References:
        ``torch.nn.functional.margin_ranking_loss``.
    """
@overload
def margin_ranking_loss(input1: Tensor, input2: MaskedTensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: MaskedTensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def masked_fill(input: MaskedTensor, mask: Tensor, value: float | bool | complex | Tensor) -> MaskedTensor:
    """A copy of ``input`` with ``value`` where ``mask`` is True: ``out[i] = value if mask[i] else input[i]``.

    Here ``mask`` selects where to write, not what is valid. Masked entries of a MaskedTensor stay masked; a masked
    entry of ``mask``, or a masked ``value``, makes the result masked there. To make entries valid, assign: ``x[mask] =
    value``.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcast against ``input``; plain or a MaskedTensor.
        value (number or Tensor): One number, or a 0-d tensor that ``input``'s dtype can hold, whose gradient is the sum
            over the filled entries.

    Returns:
        Tensor: The broadcast shape of ``input`` and ``mask``, in ``input``'s dtype. A MaskedTensor if an operand is
        one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        TypeError: ``value`` is neither a number nor a tensor.
        RuntimeError: The shapes do not broadcast.
        RuntimeError: ``value`` is not 0-d, or does not fit ``input``'s dtype.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> mt.masked_fill(torch.ones(2, 3), torch.tensor([True, False, True]), 7.0)
        tensor([[7., 1., 7.],
                [7., 1., 7.]])

    See also:
        :func:`filled`, :func:`masked_fill_`, :func:`masked_scatter`, :func:`masked_where`.

    References:
        ``torch.Tensor.masked_fill``; the design of ``paddle.masked_fill``.
    """
@overload
def masked_fill(input: Tensor, mask: MaskedTensor, value: float | bool | complex | Tensor) -> MaskedTensor: ...
@overload
def masked_fill(input: Tensor, mask: Tensor, value: MaskedTensor) -> MaskedTensor: ...
@overload
def masked_fill(input: Tensor, mask: Tensor, value: float | bool | complex | Tensor) -> Tensor: ...
def masked_fill_(input: T, mask: Tensor, value: float | bool | complex | Tensor) -> T:
    """``input`` itself, with ``value`` written where ``mask`` is True.

    Here ``mask`` selects where to write, not what is valid. Validity is as for :func:`masked_fill`. After an error,
    ``input`` is unchanged.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcastable to ``input``; plain, or a MaskedTensor if ``input`` is
            one.
        value (number or Tensor): One number, or a 0-d tensor that ``input``'s dtype can hold.

    Returns:
        Tensor: ``input`` itself, of its shape and dtype.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        TypeError: ``value`` is neither a number nor a tensor.
        RuntimeError: ``mask`` does not broadcast to ``input``.
        RuntimeError: ``value`` is not 0-d, or does not fit ``input``'s dtype.
        RuntimeError: ``input`` is a leaf that requires grad.
        MaskedWriteError: ``input`` is plain and ``mask`` is masked.
        MaskedValueError: ``input`` is plain and ``value`` is masked.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> x = torch.ones(3)
        >>> mt.masked_fill_(x, torch.tensor([True, False, True]), 7.0)
        tensor([7., 1., 7.])

    See also:
        :func:`masked_fill`.

    References:
        ``torch.Tensor.masked_fill_``; the design of ``paddle.masked_fill_``.
    """
@overload
def masked_scatter(input: MaskedTensor, mask: Tensor, source: Tensor) -> MaskedTensor:
    """A copy of ``input`` with entries of ``source`` where ``mask`` is True: ``out[mask] = source.flatten()[:n]``.

    Here ``mask`` selects where to write, not what is valid. ``n`` is the number of True entries of ``mask``. An entry
    from a masked ``source`` is masked; a masked entry of ``mask`` counts as False. Gradients flow to ``input`` and
    ``source``.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcast against ``input``; plain or a MaskedTensor.
        source (Tensor): Any shape with at least ``n`` entries, in ``input``'s dtype; plain or a MaskedTensor.

    Returns:
        Tensor: The broadcast shape of ``input`` and ``mask``, in ``input``'s dtype. A MaskedTensor if an operand is
        one.

    Raises:
        TypeError: ``input`` or ``source`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: ``source`` has fewer entries than ``mask`` has True ones, or another dtype.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> where = torch.tensor([True, False, True, False])
        >>> mt.masked_scatter(torch.zeros(4), where, torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2., 0.])

    See also:
        :func:`masked_scatter_`, :func:`masked_fill`.

    References:
        ``torch.Tensor.masked_scatter``; the design of ``paddle.masked_scatter``.
    """
@overload
def masked_scatter(input: Tensor, mask: MaskedTensor, source: Tensor) -> MaskedTensor: ...
@overload
def masked_scatter(input: Tensor, mask: Tensor, source: MaskedTensor) -> MaskedTensor: ...
@overload
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor: ...
def masked_scatter_(input: T, mask: Tensor, source: Tensor) -> T:
    """``input`` itself, with entries of ``source`` written where ``mask`` is True.

    Here ``mask`` selects where to write, not what is valid. Validity is as for :func:`masked_scatter`. After an error,
    ``input`` is unchanged.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcastable to ``input``; plain, or a MaskedTensor if ``input`` is
            one.
        source (Tensor): Any shape with an entry for each True one of ``mask``, in ``input``'s dtype; plain, or a
            MaskedTensor if ``input`` is one.

    Returns:
        Tensor: ``input`` itself, of its shape and dtype.

    Raises:
        TypeError: ``input`` or ``source`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: ``source`` has fewer entries than ``mask`` has True ones, or another dtype.
        RuntimeError: ``mask`` does not broadcast to ``input``.
        RuntimeError: ``input`` is a leaf that requires grad.
        MaskedWriteError: ``input`` is plain and another operand is masked.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> x = torch.zeros(3)
        >>> mt.masked_scatter_(x, torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])

    See also:
        :func:`masked_scatter`.

    References:
        ``torch.Tensor.masked_scatter_``; the design of ``paddle.masked_scatter_``.
    """
@overload
def masked_select(input: MaskedTensor, mask: Tensor) -> MaskedTensor:
    """The entries of ``input`` where ``mask`` is True, in order.

    Here ``mask`` selects what to read, not what is valid; a masked entry of ``mask`` selects nothing. The length
    depends on the data.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = read here; bool, broadcast against ``input``; plain or a MaskedTensor.

    Returns:
        Tensor: A 1-D tensor in ``input``'s dtype. If ``input`` is a MaskedTensor, a MaskedTensor in which masked
        entries stay masked.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> mt.masked_select(torch.arange(4), torch.tensor([True, False, True, False]))
        tensor([0, 2])

    See also:
        :func:`compressed`.

    References:
        ``torch.masked_select``.
    """
@overload
def masked_select(input: Tensor, mask: MaskedTensor) -> MaskedTensor: ...
@overload
def masked_select(input: Tensor, mask: Tensor) -> Tensor: ...
@overload
def max(input: T, dim: None=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The largest valid entry, or with ``dim`` the largest along it and its position.

    Where no entry is valid, the value is -inf (the smallest integer, False) at position 0 for a plain ``input`` and
    masked for a MaskedTensor. ``max(input, other)`` is ``torch.maximum``: the larger of each pair, valid where both
    are.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or Tensor, optional): The dimension to reduce; None reduces all. A tensor of any shape and dtype in its
            place is ``other``. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimension with size 1; requires ``dim``. ``keepdims`` is accepted as
            well. Default: False.
        other (Tensor, optional): Any dtype but complex, strided, broadcastable to ``input``; plain or a MaskedTensor.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype; with ``other``, a tensor of the broadcast shape; with
        ``dim``, a named tuple ``(values, indices)`` of ``input``'s shape without it, with int64 indices. MaskedTensors
        if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``dim`` is not an int, or ``keepdim`` is given without it.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.
        UnsupportedOpError: ``other`` is given and an operand is sparse.

    Example:
        >>> x, m = torch.tensor([[9.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.max(x, 1, mask=m)
        torch.return_types.max(
        values=tensor([3.]),
        indices=tensor([2]))

    See also:
        :func:`amax`, :func:`argmax`, :func:`min`, :func:`cummax`.

    References:
        ``torch.max``.
    """
@overload
def max(input: MaskedTensor, dim: int, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._max_result: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.max: ...
@overload
def max(input: Tensor, dim: Tensor, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> Tensor: ...
@overload
def max(input: Tensor, dim: None=None, keepdim: bool=False, *, other: Tensor, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> Tensor: ...
def mean(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The mean of the valid entries along ``dim``: ``sum(x[valid]) / n`` with ``n`` the number of valid entries.

    Where no entry is valid, the result is NaN for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex: pass a ``dtype`` that is.

    Example:
        >>> mt.masked_tensor([[1.0, None, 3.0], [None, None, None]]).mean(1)
        masked_tensor([2.0000, --], valid=1/2)
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.mean(x, 1, mask=m)
        tensor([2., nan])

    See also:
        :func:`sum`, :func:`nanmean`, :func:`average`, :func:`median`.

    References:
        ``torch.mean``, ``torch.masked.mean``.
    """
@overload
def median(input: T, dim: None=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The lower median of the valid entries, or with ``dim`` the median along it and its position.

    It is NaN if a valid entry is NaN. Where no entry is valid, the value is NaN (0 for integers) at position 0 for a
    plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, or with ``dim`` a named tuple ``(values, indices)`` of
        ``input``'s shape without it, with int64 indices. If the median occurs several times, the index is that of any
        occurrence. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> m = torch.tensor([True, True, False, True])
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), mask=m)
        tensor(3.)
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), 0, mask=m).indices
        tensor(3)

    See also:
        :func:`mean`, :func:`nanmedian`, :func:`quantile`.

    References:
        ``torch.median``, ``torch.masked.median``.
    """
@overload
def median(input: MaskedTensor, dim: int, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._median_result: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.median: ...
@overload
def min(input: T, dim: None=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The smallest valid entry, or with ``dim`` the smallest along it and its position.

    Where no entry is valid, the value is inf (the largest integer, True) at position 0 for a plain ``input`` and masked
    for a MaskedTensor. ``min(input, other)`` is ``torch.minimum``: the smaller of each pair, valid where both are.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or Tensor, optional): The dimension to reduce; None reduces all. A tensor of any shape and dtype in its
            place is ``other``. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimension with size 1; requires ``dim``. ``keepdims`` is accepted as
            well. Default: False.
        other (Tensor, optional): Any dtype but complex, strided, broadcastable to ``input``; plain or a MaskedTensor.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype; with ``other``, a tensor of the broadcast shape; with
        ``dim``, a named tuple ``(values, indices)`` of ``input``'s shape without it, with int64 indices. MaskedTensors
        if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``dim`` is not an int, or ``keepdim`` is given without it.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.
        UnsupportedOpError: ``other`` is given and an operand is sparse.

    Example:
        >>> x, m = torch.tensor([[0.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.min(x, 1, mask=m)
        torch.return_types.min(
        values=tensor([2.]),
        indices=tensor([1]))

    See also:
        :func:`amin`, :func:`argmin`, :func:`max`, :func:`cummin`.

    References:
        ``torch.min``.
    """
@overload
def min(input: MaskedTensor, dim: int, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._min_result: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.min: ...
@overload
def min(input: Tensor, dim: Tensor, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> Tensor: ...
@overload
def min(input: Tensor, dim: None=None, keepdim: bool=False, *, other: Tensor, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> Tensor: ...
@overload
def mode(input: MaskedTensor, dim: Dim=-1, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._mode_result:
    """The most frequent valid entry along ``dim``, the smallest in a tie, and the position of its last occurrence.

    Where no entry is valid, the value is NaN (0 for integers) at position 0 for a plain ``input`` and masked for a
    MaskedTensor. Entries that a sparse ``input`` does not store count as zeros.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
            Default: -1.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape without ``dim``: values in its dtype and int64
        indices. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, and complex numbers have no order.

    Example:
        >>> m = torch.tensor([True, True, True, False, False])
        >>> mt.mode(torch.tensor([2, 5, 2, 7, 7]), mask=m)
        torch.return_types.mode(
        values=tensor(2),
        indices=tensor(2))

    See also:
        :func:`unique`.

    References:
        ``torch.mode``.
    """
@overload
def mode(input: Tensor, dim: Dim=-1, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.mode: ...
@overload
def mse_loss(input: MaskedTensor, target: Tensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The squared error of the valid entries: ``(input - target) ** 2``.

    An entry counts if ``input`` and ``target`` are both valid. Sparse operands must have the same shape; entries that
    they do not store are 0.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            is divided by the sum of the weights of valid entries.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> target = torch.tensor([1.0, float("nan")])
        >>> mt.mse_loss(torch.zeros(2), target, target_mask=~target.isnan())
        tensor(1.)
        >>> mt.mse_loss(torch.zeros(2), mt.masked_tensor([1.0, None]), reduction="none")
        masked_tensor([1.0000, --], valid=1/2)

    See also:
        :func:`l1_loss`, :func:`huber_loss`, :func:`smooth_l1_loss`, :func:`gaussian_nll_loss`.

    References:
        ``torch.nn.functional.mse_loss``.
    """
@overload
def mse_loss(input: Tensor, target: MaskedTensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def mse_loss(input: Tensor, target: Tensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def multi_margin_loss(input: MaskedTensor, target: Tensor, p: int=1, margin: float=1.0, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The multi-class hinge loss over the valid classes and samples.

    The loss of a sample is ``sum(max(0, margin - input[target] + input[c]) ** p) / C`` over the other classes ``c``,
    with ``C`` the number of its valid classes.

    Args:
        input (Tensor): Scores ``(N, C)`` or ``(C,)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64: ``(N,)`` or 0-d; plain or a MaskedTensor.
        p (int, optional): The exponent, 1 or 2. Default: 1.
        margin (float, optional): The margin by which the score of the target should be larger. Default: 1.0.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the terms of each target class.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` returns the loss of each sample. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: A valid target is out of range, or the shapes do not fit.
        RuntimeError: ``p`` is neither 1 nor 2.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([[0.5, 1.0], [9.0, 9.0]]), torch.tensor([1, 0])
        >>> mt.multi_margin_loss(x, y, target_mask=torch.tensor([True, False]))
        tensor(0.2500)

    See also:
        :func:`multilabel_margin_loss`.

    References:
        ``torch.nn.functional.multi_margin_loss``.
    """
@overload
def multi_margin_loss(input: Tensor, target: MaskedTensor, p: int=1, margin: float=1.0, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def multi_margin_loss(input: Tensor, target: Tensor, p: int=1, margin: float=1.0, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def multilabel_margin_loss(input: MaskedTensor, target: Tensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The multi-label hinge loss over the valid classes: ``sum(max(0, 1 - input[t] + input[c])) / C``.

    The sum is over the target classes ``t`` and the other classes ``c``, and ``C`` is the number of valid classes.

    Args:
        input (Tensor): Scores ``(N, C)`` or ``(C,)``, floating point; plain or a MaskedTensor.
        target (Tensor): Lists of classes, int64, of ``input``'s shape, each ended by -1; plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` returns the loss of each sample. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: A valid target is out of range, or the shapes do not fit.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1, -1, -1])
        >>> mt.multilabel_margin_loss(x, y, mask=torch.tensor([True, True, False]))
        tensor(0.2500)

    See also:
        :func:`multi_margin_loss`, :func:`multilabel_soft_margin_loss`.

    References:
        ``torch.nn.functional.multilabel_margin_loss``.
    """
@overload
def multilabel_margin_loss(input: Tensor, target: MaskedTensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def multilabel_margin_loss(input: Tensor, target: Tensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def multilabel_soft_margin_loss(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The multi-label logistic loss: binary cross entropy of logits, averaged over the valid classes.

    The loss of a sample is the mean over its valid classes of ``-(target * log(s) + (1 - target) * log(1 - s))``, with
    ``s = sigmoid(input)``.

    Args:
        input (Tensor): Logits ``(N, C)``, floating point; plain or a MaskedTensor.
        target (Tensor): 0 or 1 for each class: ``(N, C)``, floating point; plain or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each class.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` returns the loss of each sample. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.zeros(1, 2), torch.tensor([[1.0, 9.0]])
        >>> m = torch.tensor([[True, False]])
        >>> mt.multilabel_soft_margin_loss(x, y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`multilabel_margin_loss`, :func:`binary_cross_entropy_with_logits`.

    References:
        ``torch.nn.functional.multilabel_soft_margin_loss``.
    """
@overload
def multilabel_soft_margin_loss(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def nanmean(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The mean of the valid entries along ``dim`` that are not NaN.

    Where all valid entries are NaN, the result is NaN. Where no entry is valid, it is NaN for a plain ``input`` and
    masked for a MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 8.0])
        >>> mt.nanmean(x, mask=torch.tensor([True, True, True, False]))
        tensor(2.)

    See also:
        :func:`mean`, :func:`average`.

    References:
        ``torch.nanmean``.
    """
@overload
def nanmedian(input: T, dim: None=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The lower median of the valid entries that are not NaN, or with ``dim`` the median along it and its position.

    Where all valid entries are NaN, the result is NaN. Where no entry is valid, it is NaN (0 for integers) for a plain
    ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries. Its index is 0 for a plain
            ``input`` and masked for a MaskedTensor.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, or with ``dim`` a named tuple ``(values, indices)`` of
        ``input``'s shape without it, with int64 indices. If the median occurs several times, the index is that of any
        occurrence. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex or bool.

    Example:
        >>> x = torch.tensor([5.0, float("nan"), 9.0])
        >>> mt.nanmedian(x, mask=torch.tensor([True, True, False]))
        tensor(5.)

    See also:
        :func:`median`, :func:`quantile`.

    References:
        ``torch.nanmedian``.
    """
@overload
def nanmedian(input: MaskedTensor, dim: int, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._nanmedian_result: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.nanmedian: ...
@overload
def nanquantile(input: MaskedTensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ``q``-quantile of the valid entries along ``dim`` that are not NaN.

    Where all valid entries are NaN, the result is NaN. Where no entry is valid, it is NaN for a plain ``input`` and
    masked for a MaskedTensor.

    Args:
        input (Tensor): float32 or float64, of any shape and layout; plain or a MaskedTensor.
        q (float or Tensor): A number from 0 to 1, or several: a list, or a 0-d or 1-D tensor of ``input``'s dtype.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        interpolation (str, optional): How to interpolate between two entries: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"midpoint"`` or ``"nearest"``. Default: ``"linear"``.
        alphap (float, optional): With ``betap``, the plotting position: the k-th of n entries is the ``(k - alphap) /
            (n + 1 - alphap - betap)`` quantile; scipy uses 0.4 for both. Default: 1.0.
        betap (float, optional): The plotting position at the upper end, see ``alphap``. Default: 1.0.
        weights (Tensor, optional): Any real dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor. The result is the smallest entry at which the cumulative weight reaches
            ``q`` of the total; masked weights and weights of 0 exclude their entries.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype, with a leading dimension for ``q`` if it is 1-D or a
        list. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``weights`` does not broadcast to ``input``, or is on another device.
        ValueError: A weight is negative, on the CPU (elsewhere it counts as 0).
        ValueError: ``weights`` are given with an ``interpolation``.
        ValueError: ``fill_value`` does not fit an integer result.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither float32 nor float64.
        RuntimeError: ``q`` is out of range, or ``interpolation`` is not one of the values above.
        UnsupportedOpError: ``q`` is masked and sparse, or ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 99.0])
        >>> m = torch.tensor([True, True, True, False])
        >>> mt.nanquantile(x, 0.5, mask=m)
        tensor(2.)

    See also:
        :func:`quantile`.

    References:
        ``torch.nanquantile``; with weights ``numpy.nanquantile(method="inverted_cdf")``.
    """
@overload
def nanquantile(input: Tensor, q: MaskedTensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def nanquantile(input: Tensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def nansum(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The sum of the valid entries along ``dim`` that are not NaN.

    Where no entry is valid, the result is 0 for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0])
        >>> mt.nansum(x, mask=torch.tensor([True, True, False]))
        tensor(1.)

    See also:
        :func:`sum`.

    References:
        ``torch.nansum``.
    """
@overload
def nll_loss(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The negative log likelihood of the valid targets: ``-weight[target] * input[target]``.

    A target counts unless it is masked, equals ``ignore_index``, or no class of its sample is valid. A masked target
    may be out of range. The loss of a target that names a masked class is inf. Sparse scores are 0 where they store
    nothing, and require a plain strided ``weight``.

    Args:
        input (Tensor): Log-probabilities ``(N, C)`` or ``(N, C, *)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64: ``(N,)`` or ``(N, *)``; plain or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each target class. A mean is
            divided by the sum of the weights of the targets that count.
        ignore_index (int, optional): A target value that does not count. Default: -100.
        reduction (str, optional): ``"mean"`` divides the sum by the weights of the targets that count, ``"sum"`` does
            not, ``"none"`` returns the loss of each target. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of the shape of the target classes, 0 for
        targets that do not count. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        ValueError: The batch sizes differ.
        RuntimeError: ``target`` is not int64, or the shapes do not fit.
        IndexError: A target that counts is out of range.
        UnsupportedOpError: ``input`` is sparse, and ``target`` is not strided.
        UnsupportedOpError: ``input`` is sparse, and ``weight`` is masked or not strided.

    Example:
        >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
        >>> y, m = torch.tensor([0, 10**9]), torch.tensor([True, False])
        >>> mt.nll_loss(x, y, target_mask=m)
        tensor(0.6931)

    See also:
        :func:`cross_entropy`.

    References:
        ``torch.nn.functional.nll_loss``.
    """
@overload
def nll_loss(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, ignore_index: int=-100, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def norm(input: T, ord: float | None=2.0, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The vector norm of the valid entries along ``dim``: ``sum(abs(x[valid]) ** ord) ** (1 / ord)``.

    Where no entry is valid, the result is 0 (inf for a negative ``ord``) for a plain ``input`` and masked for a
    MaskedTensor.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        ord (float, optional): The order. 0 counts the nonzero entries; inf and -inf are the largest and the smallest
            ``abs(x)``. Default: 2.0.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; real for complex. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        ValueError: ``ord`` is not a number.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> mt.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(5.)

    See also:
        :func:`dist`, :func:`normalize`.

    References:
        ``torch.linalg.vector_norm``, ``torch.masked.norm``.
    """
def normalize(input: T, p: float=2.0, dim: int=1, eps: float=1e-12, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The input divided by the norm of its valid entries along ``dim``: ``x / max(norm(x[valid], p), eps)``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        p (float, optional): The order of the norm. Default: 2.0.
        dim (int, optional): The dimension to compute along. Default: 1.
        eps (float, optional): The smallest divisor. Default: 1e-12.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0]])
        >>> mt.normalize(x, 2.0, 1, mask=torch.tensor([[True, False, True]]))
        tensor([[-0.9487,  0.0000, -0.3162]])

    See also:
        :func:`norm`.

    References:
        ``torch.nn.functional.normalize``, ``torch.masked.normalize``.
    """
@overload
def poisson_nll_loss(input: MaskedTensor, target: Tensor, log_input: bool=True, full: bool=False, *, eps: float=1e-08, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The negative log likelihood of a Poisson distribution: ``exp(input) - target * input``.

    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Logarithms of rates, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        log_input (bool, optional): False for the rate itself: ``input - target * log(input + eps)``. Default: True.
        full (bool, optional): Add Stirling's approximation of ``log(target!)``. Default: False.
        eps (float, optional): Added to the rate to keep the logarithm finite. Default: 1e-8.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.poisson_nll_loss(torch.zeros(2), y, target_mask=m)
        tensor(1.)

    See also:
        :func:`gaussian_nll_loss`.

    References:
        ``torch.nn.functional.poisson_nll_loss``.
    """
@overload
def poisson_nll_loss(input: Tensor, target: MaskedTensor, log_input: bool=True, full: bool=False, *, eps: float=1e-08, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool=True, full: bool=False, *, eps: float=1e-08, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def prod(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The product of the valid entries along ``dim``: ``prod(x[valid])``.

    Where no entry is valid, the result is 1 for a plain ``input`` and masked for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.prod(x, 1, mask=m)
        tensor([3., 1.])

    See also:
        :func:`cumprod`.

    References:
        ``torch.prod``, ``torch.masked.prod``; ``min_count`` as in ``pandas.DataFrame.prod``.
    """
@overload
def quantile(input: MaskedTensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ``q``-quantile of the valid entries along ``dim``; NaN if a valid entry is NaN.

    Where no entry is valid, the result is NaN for a plain ``input`` and masked for a MaskedTensor. Entries that a
    sparse ``input`` does not store count as zeros; they are not materialized.

    Args:
        input (Tensor): float32 or float64, of any shape and layout; plain or a MaskedTensor.
        q (float or Tensor): A number from 0 to 1, or several: a list, or a 0-d or 1-D tensor of ``input``'s dtype.
        dim (int or tuple of int, optional): The dimensions to reduce; None reduces all. ``axis`` is accepted as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        interpolation (str, optional): How to interpolate between two entries: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"midpoint"`` or ``"nearest"``. Default: ``"linear"``.
        alphap (float, optional): With ``betap``, the plotting position: the k-th of n entries is the ``(k - alphap) /
            (n + 1 - alphap - betap)`` quantile; scipy uses 0.4 for both. Default: 1.0.
        betap (float, optional): The plotting position at the upper end, see ``alphap``. Default: 1.0.
        weights (Tensor, optional): Any real dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor. The result is the smallest entry at which the cumulative weight reaches
            ``q`` of the total; masked weights and weights of 0 exclude their entries.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype, with a leading dimension for ``q`` if it is 1-D or a
        list. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``weights`` does not broadcast to ``input``, or is on another device.
        ValueError: A weight is negative, on the CPU (elsewhere it counts as 0).
        ValueError: ``weights`` are given with an ``interpolation``.
        ValueError: ``fill_value`` does not fit an integer result.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither float32 nor float64.
        RuntimeError: ``q`` is out of range, or ``interpolation`` is not one of the values above.
        UnsupportedOpError: ``q`` is masked and sparse, or ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 4.0, 99.0])
        >>> m = torch.tensor([True, True, True, False])
        >>> mt.quantile(x, 0.75, mask=m)
        tensor(3.)
        >>> mt.quantile(x, [0.0, 1.0], mask=m)
        tensor([1., 4.])
        >>> mt.quantile(x, 0.5, weights=torch.tensor([1.0, 1.0, 3.0, 9.0]), mask=m)
        tensor(4.)

    See also:
        :func:`median`, :func:`nanmedian`, :func:`nanquantile`, :func:`rankdata`.

    References:
        ``torch.quantile``; with weights ``numpy.quantile(method="inverted_cdf")``.
    """
@overload
def quantile(input: Tensor, q: MaskedTensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def quantile(input: Tensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def rankdata(input: T, method: Ties='average', *, dim: int | None=None, mask: Tensor | None=None) -> T:
    """The rank of each valid entry among the valid entries along ``dim``, 1 for the smallest.

    Masked entries have no rank: they are 0 in a plain result and stay masked in a MaskedTensor. NaN ranks last, and NaN
    entries are tied. Ranks have no gradient. ``argsort().argsort()`` is not the rank if entries are masked.

    A sparse ``input`` keeps its pattern: its stored entries are ranked along one ``dim``.

    Args:
        input (Tensor): Any shape and layout, real or bool; plain or a MaskedTensor.
        method (str, optional): The rank of equal entries: ``"average"``, ``"min"`` or ``"max"`` of the ranks that they
            occupy, ``"dense"`` (as ``"min"``, without gaps between ranks) or ``"ordinal"`` (distinct ranks in order of
            position). Default: ``"average"``.
        dim (int, optional): The dimension to rank along; None ranks all entries together. ``axis`` is accepted as well.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape; int64, or for ``"average"`` float64 for float64 and float32 for other dtypes. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``dim`` is neither None nor an int.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``method`` is not one of the values above.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is complex.
        UnsupportedOpError: ``input`` is sparse and ``dim`` is None.

    Example:
        >>> mt.rankdata(mt.masked_tensor([30.0, None, 10.0, 30.0]))
        masked_tensor([2.5000, --, 1.0000, 2.5000], valid=3/4)
        >>> mt.rankdata(torch.tensor([30, 20, 10, 30]), "min")
        tensor([3, 2, 1, 3])

    See also:
        :func:`quantile`.

    References:
        ``scipy.stats.rankdata``, ``scipy.stats.mstats.rankdata``; unlike there, ranks of all entries keep ``input``'s
        shape.
    """
def rms_norm(input: T, normalized_shape: Sequence[int], weight: Tensor | None=None, eps: float | None=None, *, mask: Tensor | None=None) -> T:
    """RMS normalization with the mean square of the valid entries: ``x / sqrt(mean(x ** 2) + eps)``.

    The mean is over the last ``len(normalized_shape)`` dimensions. Masked entries are 0 in a plain result and stay
    masked in a MaskedTensor. A sparse ``input`` keeps its pattern; its mean is that of the stored entries.

    Args:
        input (Tensor): ``(*, normalized_shape)``, floating point, of any layout; plain or a MaskedTensor.
        normalized_shape (tuple of int): The last dimensions of ``input``.
        weight (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: multiplies the result.
        eps (float, optional): Added to the mean square; by default the dtype's machine epsilon.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        RuntimeError: ``input`` does not end in ``normalized_shape``.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([3.0, 99.0, 3.0]), torch.tensor([True, False, True])
        >>> mt.rms_norm(x, (3,), eps=0.0, mask=m)
        tensor([1., 0., 1.])

    See also:
        :func:`layer_norm`.

    References:
        ``torch.nn.functional.rms_norm``; Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
def rolling(input: T, window: float, dim: int | None=None, *, min_periods: int | None=None, center: bool=False, closed: Closed='right', step: int=1, index: Times | None=None, lengths: Lengths=None, padding_side: Side='right', mask: Tensor | None=None, fill_value: Number | None=None) -> Rolling[T]:
    """Moving windows over a time series, with methods such as ``mean`` and ``sum``.

    A window ends at its entry, or is centered on it. Everything before the first entry and after the last counts as
    masked. All statistics are differentiable, and are computed from the values that ``input`` has when they are called.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; plain or a MaskedTensor.
        window (int or float): The number of entries of a window; with ``index``, its length in the unit of ``index``.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        min_periods (int, optional): The number of valid entries that a result requires; by default ``window``, or 1
            with ``index``.
        center (bool, optional): Center each window on its entry. Default: False.
        closed (str, optional): Which ends belong to the window: ``"right"``, ``"left"``, ``"both"`` or ``"neither"``.
            Default: ``"right"``.
        step (int, optional): The number of entries from one window to the next. Default: 1.
        index (Tensor, optional): The time of each entry, in ascending order: ``(T,)``, or ``(B, T)`` for each sequence
            (``(T, B)`` if ``dim`` is 0), any real dtype. The window of time ``t`` is ``(t - window, t]``, or
            ``(t - window / 2, t + window / 2]`` if centered; times past the end of a sequence are ignored and may be
            masked.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required as for :func:`ffill` if a masked entry may have a valid result
            (``min_periods``), and for ``count()``.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of results with too few valid entries. By default they are masked for a
            MaskedTensor and NaN for a plain ``input``.

    Returns:
        Rolling: The windows, with the methods ``sum``, ``mean``, ``min``, ``max``, ``var``, ``std``, ``median``,
        ``quantile`` and ``count``.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``lengths`` are not integers, ``window`` is a string, or ``index`` is not real.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: ``window`` or ``step`` is below 1, or ``min_periods`` is not between 0 and ``window``.
        ValueError: ``closed`` or ``padding_side`` is not one of the values above.
        ValueError: ``index`` has another shape, falls, is not finite, or is masked within a sequence.
        ValueError: ``step`` is above 1 and the padding is on the left.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 3.0, 4.0])
        >>> mt.rolling(x, 2).mean()
        masked_tensor([--, --, --, 3.5000], valid=1/4)
        >>> mt.rolling(x, 2, min_periods=1).mean()
        masked_tensor([1.0000, 1.0000, 3.0000, 3.5000], valid=4/4)
        >>> days = torch.tensor([0, 1, 5, 6])
        >>> mt.rolling(x, 3, index=days).sum()  # of the last three days
        masked_tensor([1.0000, 1.0000, 3.0000, 7.0000], valid=4/4)

    See also:
        :func:`shift`.

    References:
        ``pandas.DataFrame.rolling``.
    """
@overload
def scaled_dot_product_attention(query: MaskedTensor, key: Tensor, value: Tensor, attn_mask: Tensor | None=None, dropout_p: float=0.0, is_causal: bool=False, *, scale: float | None=None, enable_gqa: bool=False, key_mask: Tensor | None=None) -> MaskedTensor:
    """Attention over the valid keys: ``softmax(query @ key.T * scale + attn_mask) @ value``.

    A masked key has weight exactly 0: nothing in ``key`` and ``value`` there affects the output or a gradient. The
    output of a query that attends to no key is 0 with gradient 0, and masked for MaskedTensors. Without ``key_mask``
    this is torch's own function.

    Args:
        query (Tensor): ``(N, ..., L, E)``, floating point; plain or a MaskedTensor.
        key (Tensor): ``(N, ..., S, E)`` in ``query``'s dtype; plain or a MaskedTensor.
        value (Tensor): ``(N, ..., S, Ev)`` in ``query``'s dtype; plain or a MaskedTensor.
        attn_mask (Tensor, optional): Broadcastable to ``(N, ..., L, S)``; bool, True = may attend, or floating point,
            added to the scores.
        dropout_p (float, optional): The probability of dropping a weight. Default: 0.0.
        is_causal (bool, optional): Let a query attend to keys up to its own position. It can be combined with
            ``key_mask``. Default: False.
        scale (float, optional): The factor of the scores; None is ``1 / sqrt(E)``.
        enable_gqa (bool, optional): Let several heads of ``query`` share one head of ``key`` and ``value``. Default:
            False.
        key_mask (Tensor, optional): True = valid; bool (integers are read as ``key_mask != 0``), ``(S,)``, ``(N, S)``,
            or broadcastable to ``(N, ..., S)``.

    Returns:
        Tensor: ``(N, ..., L, Ev)`` in ``query``'s dtype. A MaskedTensor if one of the tensors is.

    Raises:
        TypeError: ``query``, ``key`` or ``value`` is not a tensor.
        TypeError: ``key_mask`` is not a plain bool or int tensor.
        ValueError: ``key_mask`` does not broadcast to the keys, or is on another device.
        UnsupportedOpError: ``query``, ``key`` or ``value`` is sparse.

    Example:
        >>> q, k = torch.zeros(1, 1, 2), torch.zeros(1, 3, 2)
        >>> v = torch.tensor([[[1.0], [3.0], [float("nan")]]])
        >>> mt.scaled_dot_product_attention(q, k, v, key_mask=torch.tensor([[True, True, False]]))
        tensor([[[2.]]])

    See also:
        :func:`document_mask`.

    References:
        ``torch.nn.functional.scaled_dot_product_attention``.
    """
@overload
def scaled_dot_product_attention(query: Tensor, key: MaskedTensor, value: Tensor, attn_mask: Tensor | None=None, dropout_p: float=0.0, is_causal: bool=False, *, scale: float | None=None, enable_gqa: bool=False, key_mask: Tensor | None=None) -> MaskedTensor: ...
@overload
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: MaskedTensor, attn_mask: Tensor | None=None, dropout_p: float=0.0, is_causal: bool=False, *, scale: float | None=None, enable_gqa: bool=False, key_mask: Tensor | None=None) -> MaskedTensor: ...
@overload
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None=None, dropout_p: float=0.0, is_causal: bool=False, *, scale: float | None=None, enable_gqa: bool=False, key_mask: Tensor | None=None) -> Tensor: ...
def shift(input: T, periods: int=1, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series moved by ``periods`` steps, masked at the edge: ``y[t] = x[t - periods]``.

    Missing steps move with the others; nothing moves into padding. ``x.diff()`` is the change from one step to the
    next. Gradients flow to the entry that was moved.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; plain or a MaskedTensor.
        periods (int, optional): The number of steps to move by; negative moves towards the start. Default: 1.
        dim (int, optional): The time dimension, such as 1 for ``(batch, time, ...)``; optional only for 1-D input.
            ``axis`` is accepted as well.
        lengths (Tensor or str, optional): The number of steps of each sequence: integers ``(B,)`` or a list of int;
            ``"full"`` if there is no padding. Required for masked input unless ``dim`` is 0 and there are at most two
            dimensions; the batch dimension is 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): The side of the padding: ``"right"`` or ``"left"``. Default: ``"right"``.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of masked entries. Default: NaN in a plain result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        TypeError: ``periods`` is not an int, or ``lengths`` are not integers.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``input`` is masked and may be padded, and ``lengths`` are not given.
        ValueError: ``input`` is 0-d, or has several dimensions and no ``dim``.
        ValueError: ``lengths`` are not one number from 0 to T for each sequence.
        ValueError: A step past the end of its sequence is valid.
        ValueError: A plain result of integers needs ``fill_value``.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 4.0])
        >>> mt.shift(x)
        masked_tensor([--, 1.0000, --], valid=1/3)
        >>> x - mt.shift(x, 2)
        masked_tensor([--, --, 3.0000], valid=1/3)

    See also:
        :func:`ffill`, :func:`rolling`, :func:`interpolate`.

    References:
        ``pandas.DataFrame.shift``.
    """
@overload
def smooth_l1_loss(input: MaskedTensor, target: Tensor, *, beta: float=1.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The smooth L1 loss of the valid entries: quadratic below ``beta``, linear above.

    With ``d = abs(input - target)``, the loss is ``0.5 * d ** 2 / beta`` if ``d < beta``, otherwise ``d - 0.5 * beta``.
    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        beta (float, optional): The error at which the loss becomes linear. Default: 1.0.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.smooth_l1_loss(torch.zeros(2), y, target_mask=m)
        tensor(0.5000)

    See also:
        :func:`mse_loss`, :func:`l1_loss`, :func:`huber_loss`.

    References:
        ``torch.nn.functional.smooth_l1_loss``.
    """
@overload
def smooth_l1_loss(input: Tensor, target: MaskedTensor, *, beta: float=1.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def smooth_l1_loss(input: Tensor, target: Tensor, *, beta: float=1.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def soft_margin_loss(input: MaskedTensor, target: Tensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The logistic loss of the valid entries: ``log(1 + exp(-target * input))``.

    An entry counts if ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): 1 or -1, of any dtype, broadcastable to ``input``; plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` returns the loss of each entry. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype; with ``reduction="none"`` of ``input``'s shape, 0 at masked entries. A
        MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> x, y = torch.tensor([0.0, 9.0]), torch.tensor([1.0, -1.0])
        >>> mt.soft_margin_loss(x, y, mask=torch.tensor([True, False]))
        tensor(0.6931)

    See also:
        :func:`hinge_embedding_loss`, :func:`binary_cross_entropy_with_logits`.

    References:
        ``torch.nn.functional.soft_margin_loss``.
    """
@overload
def soft_margin_loss(input: Tensor, target: MaskedTensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def softmax(input: T, dim: int, dtype: torch.dtype | None=None, *, mask: Tensor | None=None, mode: Mode='safe') -> T:
    """The softmax of the valid entries along ``dim``: ``exp(x) / sum(exp(x[valid]))``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; only
    stored entries take part.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        mode (str, optional): The result of a slice without a finite valid entry. ``"safe"``: 0 with gradient 0 if no
            entry is valid, NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: 0 in both cases, as in
            torch's ``_safe_softmax``. ``"none"``: NaN in both cases. Default: ``"safe"``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``mode`` is not one of the values above.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.softmax(x, 1, mask=m)
        tensor([[0.1192, 0.0000, 0.8808],
                [0.0000, 0.0000, 0.0000]])

    See also:
        :func:`log_softmax`, :func:`softmin`.

    References:
        ``torch.softmax``, ``torch.masked.softmax``; ``mode`` as oneDNN's ``inf_as_zero``.
    """
def softmin(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, mode: Mode='safe') -> T:
    """The softmax of ``-input`` over the valid entries along ``dim``: ``exp(-x) / sum(exp(-x[valid]))``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain or a MaskedTensor.
        dim (int): The dimension to compute along. ``axis`` is accepted as well.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        mode (str, optional): The result of a slice without a finite valid entry. ``"safe"``: 0 with gradient 0 if no
            entry is valid, NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: 0 in both cases, as in
            torch's ``_safe_softmax``. ``"none"``: NaN in both cases. Default: ``"safe"``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``mode`` is not one of the values above.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, m = torch.tensor([1.0, -9.0, 1.0]), torch.tensor([True, False, True])
        >>> mt.softmin(x, 0, mask=m)
        tensor([0.5000, 0.0000, 0.5000])

    See also:
        :func:`softmax`, :func:`log_softmax`.

    References:
        ``torch.nn.functional.softmin``, ``torch.masked.softmin``.
    """
def std(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The standard deviation of the valid entries along ``dim``: ``sqrt(var(x))``, see :func:`var`.

    Where ``n <= correction``, the result is NaN for a plain ``input`` and masked for a MaskedTensor. The gradient is 0
    where the standard deviation is 0.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype: real for complex, the default dtype for integers and
        bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        ValueError: Both ``unbiased`` and ``correction`` are given.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.std(x, correction=0, mask=~x.isnan())
        tensor(1.5000)

    See also:
        :func:`var`, :func:`std_mean`.

    References:
        ``torch.std``, ``torch.masked.std``.
    """
def std_mean(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> tuple[T, T]:
    """The standard deviation and the mean of the valid entries along ``dim``.

    Where too few entries are valid, the results are NaN for a plain ``input`` and masked for a MaskedTensor; see
    :func:`var`.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        tuple of Tensor: ``(std, mean)``, each of ``input``'s shape without ``dim``, in its dtype; the standard
        deviation of complex numbers is real. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: Both ``unbiased`` and ``correction`` are given.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.std_mean(x, correction=0, mask=~x.isnan())
        (tensor(1.5000), tensor(2.5000))

    See also:
        :func:`std`.

    References:
        ``torch.std_mean``.
    """
def sum(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The sum of the valid entries along ``dim``: ``sum(x[valid])``.

    Where no entry is valid, the result is 0 for a plain ``input`` and masked for a MaskedTensor.

    The result of a sparse ``input`` is sparse in the same layout, or in COO if that layout cannot hold it; a 0-d result
    is strided.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.sum(x, 1, mask=m)
        tensor([-4.,  0.])
        >>> mt.sum(x, 1, mask=m, fill_value=9.0)
        tensor([-4.,  9.])
        >>> mt.sum(x, 1, mask=m, min_count=3)
        tensor([nan, nan])
        >>> mt.sum(mt.masked_tensor(x, m), 1)
        masked_tensor([-4.0000, --], valid=1/2)

    See also:
        :func:`nansum`, :func:`cumsum`, :func:`mean`.

    References:
        ``torch.sum``, ``torch.masked.sum``; ``min_count`` as in ``pandas.DataFrame.sum``.
    """
@overload
def triplet_margin_loss(anchor: MaskedTensor, positive: Tensor, negative: Tensor, margin: float=1.0, p: float=2.0, eps: float=1e-06, swap: bool=False, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The triplet loss: ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``.

    ``d`` is the ``p``-norm of the difference along the last dimension, over the features that are valid in both.

    Args:
        anchor (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        positive (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor. It should be near
            ``anchor``.
        negative (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor. It should be far from
            ``anchor``.
        margin (float, optional): The margin by which the negative should be farther away. Default: 1.0.
        p (float, optional): The order of the norm. Default: 2.0.
        eps (float, optional): Added to the difference, for a finite gradient. Default: 1e-6.
        swap (bool, optional): Use the distance of ``positive`` and ``negative`` if it is smaller than that of
            ``anchor`` and ``negative``. Default: False.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid triplets, ``"sum"`` does not,
            ``"none"`` returns the loss of each triplet. Default: ``"mean"``.
        mask (Tensor, optional): True = valid entry of ``anchor``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``negative``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if no entry is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand; with ``reduction="none"`` of shape ``(N,)``, 0 for samples
        without a valid entry. A MaskedTensor if an operand is one, masked if no entry is valid.

    Raises:
        TypeError: An operand is not a tensor.
        TypeError: A mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its operand, or is on another device.
        ValueError: ``reduction`` is not one of the values above.
        RuntimeError: The shapes do not broadcast, or ``anchor`` is not floating point.
        UnsupportedOpError: An operand is sparse and the loss is not implemented for it.

    Example:
        >>> a, p = torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]])
        >>> n = torch.tensor([[3.0, 0.0]])
        >>> m = torch.tensor([True, False])
        >>> mt.triplet_margin_loss(a, p, n, margin=4.0, mask=m)
        tensor(2.)

    See also:
        :func:`margin_ranking_loss`.

    References:
        ``torch.nn.functional.triplet_margin_loss``; Balntas et al., Learning shallow convolutional feature descriptors
        with triplet losses, 2016 (``swap``).
    """
@overload
def triplet_margin_loss(anchor: Tensor, positive: MaskedTensor, negative: Tensor, margin: float=1.0, p: float=2.0, eps: float=1e-06, swap: bool=False, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: MaskedTensor, margin: float=1.0, p: float=2.0, eps: float=1e-06, swap: bool=False, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float=1.0, p: float=2.0, eps: float=1e-06, swap: bool=False, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def unique(input: T, sorted: bool=True, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: int | None=None, *, mask: Tensor | None=None) -> T:
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
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor or tuple: The values ``(n,)`` in ``input``'s dtype. With the options also int64 tensors: the inverse, of
        ``input``'s shape and masked where a MaskedTensor is, and the counts ``(n,)``. MaskedTensors if ``input`` is
        one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
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
@overload
def unique(input: T, sorted: bool=True, return_inverse: bool=False, return_counts: bool=False, dim: int | None=None, *, mask: Tensor | None=None) -> tuple[T, ...]: ...
@overload
def unique_consecutive(input: T, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: int | None=None, *, mask: Tensor | None=None) -> T:
    """The valid entries in order, without consecutive repeats; with ``dim``, slices as in :func:`unique`.

    A sparse ``input`` has a strided result, in which valid entries between two stored ones form a run of zeros.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain or a MaskedTensor.
        return_inverse (bool, optional): Also return the position of each entry in the result; not for a sparse
            ``input``. Default: False.
        return_counts (bool, optional): Also return the length of each run. Default: False.
        dim (int, optional): The dimension whose slices are compared; None compares entries. Not for a sparse ``input``.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        Tensor or tuple: The values ``(n,)`` in ``input``'s dtype. With the options also int64 tensors: the inverse, of
        ``input``'s shape and masked where a MaskedTensor is, and the counts ``(n,)``. MaskedTensors if ``input`` is
        one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        IndexError: ``dim`` is out of range.
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
@overload
def unique_consecutive(input: T, return_inverse: bool=False, return_counts: bool=False, dim: int | None=None, *, mask: Tensor | None=None) -> tuple[T, ...]: ...
def var(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The variance of the valid entries along ``dim``: ``sum((x - mean) ** 2) / (n - correction)``.

    ``n`` is the number of valid entries. Where ``n <= correction``, the result is NaN for a plain ``input`` and masked
    for a MaskedTensor.

    Args:
        input (Tensor): Any shape, layout and dtype; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): The number of valid entries that a result requires. With fewer, it is masked for a
            MaskedTensor, and ``fill_value`` (default: NaN) for a plain ``input``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype: real for complex, the default dtype for integers and
        bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: ``fill_value`` does not fit an integer result.
        ValueError: ``min_count`` requires NaN, which integer and bool results cannot hold: pass ``fill_value``.
        ValueError: Both ``unbiased`` and ``correction`` are given.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var(x, correction=0, mask=~x.isnan())
        tensor(2.2500)

    See also:
        :func:`std`, :func:`var_mean`.

    References:
        ``torch.var``, ``torch.masked.var``.
    """
def var_mean(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> tuple[T, T]:
    """The variance and the mean of the valid entries along ``dim``.

    Where too few entries are valid, the results are NaN for a plain ``input`` and masked for a MaskedTensor; see
    :func:`var`.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` reduces all. ``axis`` is accepted
            as well.
        unbiased (bool, optional): torch's older form of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep the reduced dimensions with size 1. ``keepdims`` is accepted as well. Default:
            False.
        correction (float, optional): Subtracted from ``n`` in the divisor. Default: 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``input``, and combined with the mask of a MaskedTensor. A strided ``input`` expands to a wider mask.

    Returns:
        tuple of Tensor: ``(var, mean)``, each of ``input``'s shape without ``dim``, in its dtype; the variance of
        complex numbers is real. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or is on another device.
        ValueError: Both ``unbiased`` and ``correction`` are given.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var_mean(x, correction=0, mask=~x.isnan())
        (tensor(2.2500), tensor(2.5000))

    See also:
        :func:`var`.

    References:
        ``torch.var_mean``.
    """
