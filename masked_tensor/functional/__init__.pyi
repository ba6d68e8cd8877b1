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
    """Whether every valid entry along ``dim`` is not 0.

    A plain result is True where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.all(x > 1, 1, mask=m)
        tensor([False,  True])

    References:
        ``torch.all``.
    """
def amax(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The largest valid entry along ``dim``: ``max(x[valid])``.

    A plain result is -inf (the smallest integer, False) where no entry is valid; that of a MaskedTensor is masked
    there.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amax(x, 1, mask=m)
        tensor([3., -inf])

    References:
        ``torch.amax``, ``torch.masked.amax``.
    """
def amin(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The smallest valid entry along ``dim``: ``min(x[valid])``.

    A plain result is inf (the largest integer, True) where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.amin(x, 1, mask=m, fill_value=0)
        tensor([1., 0.])

    References:
        ``torch.amin``, ``torch.masked.amin``.
    """
@overload
def aminmax(input: MaskedTensor, dim: Dim=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> methods._aminmax_result:
    """The smallest and the largest valid entry along ``dim``.

    Where no entry is valid, plain results are those of :func:`amin` and :func:`amax`; those of a MaskedTensor are
    masked.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        tuple: A named tuple ``(min, max)``, each of ``input``'s shape without ``dim``, in its dtype. MaskedTensors if
        ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.aminmax(x, mask=m)
        torch.return_types.aminmax(
        min=tensor(1.),
        max=tensor(3.))

    References:
        ``torch.aminmax``.
    """
@overload
def aminmax(input: Tensor, dim: Dim=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.aminmax: ...
def any(input: T, dim: Dim=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """Whether a valid entry along ``dim`` is not 0.

    A plain result is False where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, bool. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.any(x > 1, 1, mask=m)
        tensor([ True, False])

    References:
        ``torch.any``.
    """
def argmax(input: T, dim: int | None=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The position of the largest valid entry along ``dim``, or in the flattened input.

    It is never that of a masked entry. Where no entry is valid, a plain result is 0 and that of a MaskedTensor is
    masked.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int, optional): The dimension to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``dim`` is not an int.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order, or bool.

    Example:
        >>> x = torch.tensor([5.0, -float("inf")])
        >>> mt.argmax(x, 0, mask=torch.tensor([False, True]))
        tensor(1)

    References:
        ``torch.argmax``, ``torch.masked.argmax``.
    """
def argmin(input: T, dim: int | None=None, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The position of the smallest valid entry along ``dim``, or in the flattened input.

    It is never that of a masked entry. Where no entry is valid, a plain result is 0 and that of a MaskedTensor is
    masked.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int, optional): The dimension to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``dim`` is not an int.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order, or bool.

    Example:
        >>> mt.argmin(torch.tensor([1, 5, 3]), 0, mask=torch.tensor([False, True, True]))
        tensor(2)

    References:
        ``torch.argmin``, ``torch.masked.argmin``.
    """
def average(input: T, dim: Dim=None, weights: Tensor | None=None, *, keepdim: bool=False, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """The weighted mean of the valid entries along ``dim``: ``sum(weights * x) / sum(weights)``.

    An entry counts where ``input`` and its weight are valid. Where none does, a plain result is NaN and that of a
    MaskedTensor is masked. Weights that add up to 0 give the quotient (NaN or inf). Gradients flow to both. Without
    weights it is :func:`mean`.

    Args:
        input (Tensor): Floating point or complex, of any shape, strided; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them.
        weights (Tensor, optional): Any dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor.
        keepdim (bool, optional): Keep reduced dimensions with size 1.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result without a valid entry.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in the dtype of ``weights * input``. A MaskedTensor if ``input`` or
        ``weights`` is one and there is no ``fill_value``.

    Raises:
        TypeError: ``input`` or ``weights`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``weights`` or ``mask`` does not broadcast to ``input``, or ``mask`` lies on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.
        UnsupportedOpError: ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 4.0])
        >>> mt.average(x, weights=torch.tensor([1.0, 5.0, 2.0]))
        masked_tensor(3.0000, valid=1/1)

    References:
        ``numpy.ma.average``.
    """
def batch_norm(input: T, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None=None, bias: Tensor | None=None, training: bool=False, momentum: float=0.1, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Batch normalization with the mean and variance of the valid entries of each channel.

    It is ``(x - mean) / sqrt(var + eps)``. While training, the running statistics are those of the valid entries, too,
    the variance with ``n / (n - 1)``, where ``n`` is their number in a channel. A plain result is 0 where an entry is
    masked; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain, or a MaskedTensor, whose own mask counts,
            too.
        running_mean (Tensor): ``(C,)``, in ``input``'s dtype, updated in place while training; or None.
        running_var (Tensor): ``(C,)``, in ``input``'s dtype, updated in place while training; or None.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        training (bool, optional): Normalize with the statistics of ``input``; False takes the running ones.
        momentum (float, optional): The weight of new statistics in the running ones.
        eps (float, optional): Added to the variance.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: There are no running statistics and ``training`` is False, or one does not have one entry per
            channel.
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

    References:
        ``torch.nn.functional.batch_norm``; Ioffe and Szegedy, Batch normalization, 2015.
    """
def bfill(input: T, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', limit: int | None=None, limit_area: Area | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series in which each masked entry has the value of the next valid entry after it.

    Entries after the last valid one stay masked. Gradients flow to the entry whose value was taken.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``. Without one
            nothing is filled, with a UserWarning: NaN is a value.
        dim (int, optional): The dimension of time: 1 for (batch, time, ...). It may be left out of a series of one
            dimension alone. ``axis`` is the same.
        lengths (Tensor or str, optional): How many steps of each sequence exist: integers ``(B,)``, or a list of int.
            The others are padding, which stays masked. ``"full"``: nothing is padding. Masked input needs it for any
            ``dim`` but 0, and for more than two dimensions. The batch is dimension 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): ``"right"`` or ``"left"``: where the padding is.
        limit (int, optional): The largest number of steps that a value is carried.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only before the first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of the entries that stay masked. Without it they are NaN in a plain
            result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``lengths`` are not
            integers.
        ValueError: ``limit`` is below 1, a choice is not one of the allowed values, ``input`` is 0-d, has several
            dimensions and no ``dim``, or may be padded and has no ``lengths``; these are not one number from 0 to T for
            each sequence, or a step past an end is valid; ``mask`` does not broadcast to ``input`` or lies on another
            device, or a plain result of integers needs ``fill_value``.
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
    """The binary cross entropy of probabilities, over the valid entries.

    It is ``-(target * log(input) + (1 - target) * log(1 - input))``. An entry counts where ``input`` and ``target`` are
    both valid.

    Args:
        input (Tensor): Probabilities, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. The
            divisor of a mean stays the number of valid entries, as in torch.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or a valid entry of ``input`` is not a probability.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.binary_cross_entropy(torch.tensor([0.5, 0.5]), y, target_mask=m)
        tensor(0.6931)

    References:
        ``torch.nn.functional.binary_cross_entropy``.
    """
@overload
def binary_cross_entropy(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def binary_cross_entropy_with_logits(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, pos_weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The binary cross entropy of ``sigmoid(input)``, over the valid entries.

    An entry counts where ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Logits, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. The
            divisor of a mean stays the number of valid entries, as in torch.
        pos_weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of positive
            targets.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.binary_cross_entropy_with_logits(torch.zeros(2), y, target_mask=m)
        tensor(0.6931)

    References:
        ``torch.nn.functional.binary_cross_entropy_with_logits``.
    """
@overload
def binary_cross_entropy_with_logits(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, pos_weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None=None, *, pos_weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def corrcoef(input: T, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The correlation matrix, each entry over the observations at which both variables are valid.

    Where these are fewer than 2, a plain result is NaN, and that of a MaskedTensor is masked.

    Args:
        input (Tensor): ``(V, N)``, a row for each variable, or ``(N,)``; any dtype; plain, or a MaskedTensor, whose
            own mask counts, too.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of an entry with too few observations.
        min_count (int, optional): How many common observations an entry needs, as pandas' ``min_periods``.

    Returns:
        Tensor: ``(V, V)``, or 0-d for one variable; in ``input``'s dtype, for integers in the default one. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: ``input`` has more than two dimensions.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0, 9.0], [2.0, 4.0, 6.0, 0.0]])
        >>> mt.corrcoef(x, mask=torch.tensor([True, True, True, False]))
        tensor([[1., 1.],
                [1., 1.]])

    References:
        ``torch.corrcoef``; ``pandas.DataFrame.corr(min_periods)``, where variables are columns.
    """
@overload
def cosine_embedding_loss(input1: MaskedTensor, input2: Tensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The cosine embedding loss of pairs of vectors, over the features that are valid in both.

    It is ``1 - cos(input1, input2)`` where ``target`` is 1, and ``max(0, cos(input1, input2) - margin)`` where it is
    -1.

    Args:
        input1 (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        input2 (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        target (Tensor): 1 for like vectors, -1 for unlike ones: ``(N,)`` or 0-d, of any dtype; plain or a MaskedTensor.
        margin (float, optional): The largest cosine of unlike vectors that is not penalized.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid pairs, ``"sum"`` does not,
            ``"none"`` gives the loss of each pair.
        mask (Tensor, optional): True = valid entry of ``input1``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand, or with ``reduction="none"`` one of shape ``(N,)``, 0
        where nothing of a sample is valid. A MaskedTensor if an operand is one; then a loss of which nothing is valid
        is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input1`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> a, b = torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[1.0, 0.0, 0.0]])
        >>> m = torch.tensor([True, True, False])
        >>> mt.cosine_embedding_loss(a, b, torch.tensor([1.0]), mask=m)
        tensor(0.)

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
    """The number of valid entries along ``dim`` that are not 0.

    It is a count: where no entry is valid it is 0, and valid.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, int64. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.count_nonzero(x, 1, mask=m)
        tensor([2, 0])

    References:
        ``torch.count_nonzero``.
    """
def cov(input: T, *, correction: int=1, fweights: Tensor | None=None, aweights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The covariance matrix, each entry over the observations at which both variables are valid.

    Where these are ``correction`` or fewer, a plain result is NaN, and that of a MaskedTensor is masked.

    Args:
        input (Tensor): ``(V, N)``, a row for each variable, or ``(N,)``; any dtype; plain, or a MaskedTensor, whose
            own mask counts, too.
        correction (int, optional): What is taken off the number of observations: 1 or 0.
        fweights (Tensor, optional): ``(N,)``, of integers: how often each observation was made; plain or masked. One
            whose weight is masked is left out.
        aweights (Tensor, optional): ``(N,)``, floating: the importance of each observation; plain or masked.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of an entry with too few observations.
        min_count (int, optional): How many common observations an entry needs, as pandas' ``min_periods``.

    Returns:
        Tensor: ``(V, V)``, or 0-d for one variable; in ``input``'s dtype, for integers in the default one. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: ``input`` has more than two dimensions.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0, 3.0], [2.0, None, 6.0]])
        >>> mt.cov(x, min_count=3)
        masked_tensor([[1.0000,     --],
                       [    --,     --]], valid=1/4)

    References:
        ``torch.cov``; ``pandas.DataFrame.cov(min_periods)``, where variables are columns.
    """
@overload
def cross_entropy(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, label_smoothing: float=0.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The cross entropy of logits over the targets that count: ``logsumexp(input) - input[target]``.

    A target counts unless it is masked or ``ignore_index``, or no class of its sample is valid. A masked target may be
    out of range. ``target_mask`` masks labels, which you usually want; ``mask`` masks scores of classes. A masked class
    has the logit -inf: it is left out of the sum of exponentials, and the loss of a target that names it is inf.

    Args:
        input (Tensor): Logits ``(C,)``, ``(N, C)`` or ``(N, C, *)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64, ``(N,)`` or ``(N, *)``, or probabilities of ``input``'s shape and dtype; plain
            or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each target class. A mean
            divides by the weights of the targets that count.
        ignore_index (int, optional): A target that does not count.
        label_smoothing (float, optional): The share of the target that is given to all classes alike.
        reduction (str, optional): ``"mean"`` divides the sum by the weights of the targets that count, ``"sum"`` does
            not, ``"none"`` gives the loss of each target.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of the shape of the target classes, 0
        for those that do not count. A MaskedTensor if an operand is one; then a loss of which nothing is valid is
        masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, the batch sizes differ, or a mask does not broadcast
            to its operand or lies on another device.
        RuntimeError: ``target`` is neither int64 nor of ``input``'s dtype.
        IndexError: A target that counts is out of range.
        UnsupportedOpError: ``input`` is sparse, and ``target`` holds probabilities, ``weight`` is not plain and
            strided, or ``label_smoothing`` is not 0.

    Example:
        >>> x, y = torch.zeros(2, 4), torch.tensor([1, -100])
        >>> torch.nn.functional.cross_entropy(x, mt.masked_equal(y, -100))
        masked_tensor(1.3863, valid=1/1)
        >>> mt.cross_entropy(x, y, target_mask=torch.tensor([True, False]))
        tensor(1.3863)
        >>> m = torch.tensor([True, True, False, False])
        >>> mt.cross_entropy(x, y.clamp(0), mask=m)
        tensor(0.6931)

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
    """The running maximum of the valid entries along ``dim``, and its position.

    Plain results are 0 where an entry is masked; those of a MaskedTensor are masked there. Sparse results keep the
    pattern of ``input``: entries that it does not store never take part.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int): The dimension to go along. ``axis`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape: values in its dtype, and the int64 position
        along ``dim`` of the last entry that is the maximum. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
        NotImplementedError: ``input`` is complex, which has no order.

    Example:
        >>> mt.cummax(torch.tensor([1, 9, 3]), 0, mask=torch.tensor([True, False, True]))
        torch.return_types.cummax(
        values=tensor([1, 0, 3]),
        indices=tensor([0, 0, 2]))

    References:
        ``torch.cummax``.
    """
@overload
def cummax(input: Tensor, dim: int, *, mask: Tensor | None=None) -> torch.return_types.cummax: ...
@overload
def cummin(input: MaskedTensor, dim: int, *, mask: Tensor | None=None) -> methods._cummin_result:
    """The running minimum of the valid entries along ``dim``, and its position.

    Plain results are 0 where an entry is masked; those of a MaskedTensor are masked there. Sparse results keep the
    pattern of ``input``: entries that it does not store never take part.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int): The dimension to go along. ``axis`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape: values in its dtype, and the int64 position
        along ``dim`` of the last entry that is the minimum. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
        NotImplementedError: ``input`` is complex, which has no order.

    Example:
        >>> mt.cummin(torch.tensor([3, 0, 1]), 0, mask=torch.tensor([True, False, True]))
        torch.return_types.cummin(
        values=tensor([3, 0, 1]),
        indices=tensor([0, 0, 2]))

    References:
        ``torch.cummin``.
    """
@overload
def cummin(input: Tensor, dim: int, *, mask: Tensor | None=None) -> torch.return_types.cummin: ...
def cumprod(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The running product of the valid entries along ``dim``: ``y[t] = prod(x[s] for s <= t if valid[s])``.

    A plain result is 0 where an entry is masked; that of a MaskedTensor is masked there. A sparse ``input`` keeps its
    pattern: entries that it does not store never take part.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int): The dimension to go along. ``axis`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and layout, in ``dtype`` if it is given, else in ``input``'s dtype; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.

    Example:
        >>> mt.cumprod(torch.tensor([2, 9, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([2, 0, 6])

    References:
        ``torch.cumprod``, ``torch.masked.cumprod``.
    """
def cumsum(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The running sum of the valid entries along ``dim``: ``y[t] = sum(x[s] for s <= t if valid[s])``.

    A plain result is 0 where an entry is masked; that of a MaskedTensor is masked there. A sparse ``input`` keeps its
    pattern: entries that it does not store never take part.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int): The dimension to go along. ``axis`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and layout, in ``dtype`` if it is given, else in ``input``'s dtype; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.

    Example:
        >>> mt.cumsum(torch.tensor([1, 2, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([1, 0, 4])

    References:
        ``torch.cumsum``, ``torch.masked.cumsum``.
    """
@overload
def dist(input: MaskedTensor, other: Tensor, p: float=2, *, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ``p``-norm of ``input - other`` over the entries that are valid in both.

    Where no entry is, a plain result is 0 and that of a MaskedTensor is masked.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        other (Tensor): Floating point or complex, broadcastable to ``input``, or of its shape if one of them is sparse;
            plain or a MaskedTensor.
        p (float, optional): The order of the norm.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result without a valid entry.

    Returns:
        Tensor: A 0-d tensor in the dtype of ``input - other``; real for complex. A MaskedTensor if an operand is one.

    Raises:
        TypeError: ``input`` or ``other`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: An operand is sparse and the shapes differ, or ``mask`` does not broadcast to ``input`` or lies on
            another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is neither floating point nor complex.

    Example:
        >>> x, y = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 9.0])
        >>> mt.dist(x, y, mask=torch.tensor([True, False]))
        tensor(3.)

    References:
        ``torch.dist``.
    """
@overload
def dist(input: Tensor, other: MaskedTensor, p: float=2, *, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def dist(input: Tensor, other: Tensor, p: float=2, *, mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def ffill(input: T, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', limit: int | None=None, limit_area: Area | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series in which each masked entry has the value of the last valid entry before it.

    Entries before the first valid one stay masked; :class:`LastValid` fills over the borders of batches. Gradients flow
    to the entry whose value was taken.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``. Without one
            nothing is filled, with a UserWarning: NaN is a value.
        dim (int, optional): The dimension of time: 1 for (batch, time, ...). It may be left out of a series of one
            dimension alone. ``axis`` is the same.
        lengths (Tensor or str, optional): How many steps of each sequence exist: integers ``(B,)``, or a list of int.
            The others are padding, which stays masked. ``"full"``: nothing is padding. Masked input needs it for any
            ``dim`` but 0, and for more than two dimensions. The batch is dimension 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): ``"right"`` or ``"left"``: where the padding is.
        limit (int, optional): The largest number of steps that a value is carried.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only after the last.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of the entries that stay masked. Without it they are NaN in a plain
            result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``lengths`` are not
            integers.
        ValueError: ``limit`` is below 1, a choice is not one of the allowed values, ``input`` is 0-d, has several
            dimensions and no ``dim``, or may be padded and has no ``lengths``; these are not one number from 0 to T for
            each sequence, or a step past an end is valid; ``mask`` does not broadcast to ``input`` or lies on another
            device, or a plain result of integers needs ``fill_value``.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.ffill(mt.masked_tensor([None, 1.0, None, None, 5.0]), limit=1)
        masked_tensor([--, 1.0000, 1.0000, --, 5.0000], valid=3/5)

    See also:
        :func:`bfill`, :func:`interpolate`.

    References:
        ``pandas.DataFrame.ffill``.
    """
@overload
def gaussian_nll_loss(input: MaskedTensor, target: Tensor, var: float | Tensor, full: bool=False, eps: float=1e-06, reduction: str='mean', *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The negative log likelihood of a normal distribution, over the valid entries.

    With ``v = max(var, eps)`` it is ``0.5 * (log(v) + (input - target) ** 2 / v)``. An entry counts where ``input`` and
    ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        var (Tensor): Variances, floating point, broadcastable to ``input`` or one for each index of all dimensions but
            the last; or a float.
        full (bool, optional): Add ``0.5 * log(2 * pi)``.
        eps (float, optional): The smallest variance.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, a valid variance is negative, or a mask does not
            broadcast to its operand or lies on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.gaussian_nll_loss(torch.zeros(2), y, torch.ones(2), target_mask=m)
        tensor(0.5000)

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

    It is ``(x - mean) / sqrt(var + eps)``. A plain result is 0 where an entry is masked; that of a MaskedTensor is
    masked there. A sparse ``input`` keeps its pattern, and its statistics are those of what it stores.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain, or a MaskedTensor, whose own mask counts,
            too.
        num_groups (int): The number of groups, a divisor of ``C``.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        eps (float, optional): Added to the variance.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: ``num_groups`` does not divide ``C``.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
        >>> mt.group_norm(x, 1, eps=0.0, mask=m)
        tensor([[[-1.,  0.,  1.]]])

    References:
        ``torch.nn.functional.group_norm``; Wu and He, Group normalization, 2018.
    """
@overload
def hinge_embedding_loss(input: MaskedTensor, target: Tensor, margin: float=1.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The hinge embedding loss of the valid entries.

    It is ``input`` where ``target`` is 1, and ``max(0, margin - input)`` where it is -1. An entry counts where
    ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): 1 or -1, of any dtype, broadcastable to ``input``; plain or a MaskedTensor.
        margin (float, optional): The distance that entries of -1 should have.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> x, y = torch.tensor([0.5, 0.2, 9.0]), torch.tensor([1, -1, 1])
        >>> mt.hinge_embedding_loss(x, y, mask=torch.tensor([True, True, False]))
        tensor(0.6500)

    References:
        ``torch.nn.functional.hinge_embedding_loss``.
    """
@overload
def hinge_embedding_loss(input: Tensor, target: MaskedTensor, margin: float=1.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float=1.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
@overload
def huber_loss(input: MaskedTensor, target: Tensor, reduction: str='mean', delta: float=1.0, weight: Tensor | None=None, *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The Huber loss of the valid entries, squared below ``delta``.

    With ``d = abs(input - target)`` it is ``0.5 * d ** 2`` where ``d < delta``, else ``delta * (d - 0.5 * delta)``. An
    entry counts where ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        delta (float, optional): Where the squared part ends.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            divides by the sum of the weights of valid entries.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.huber_loss(torch.zeros(2), y, delta=0.5, target_mask=m)
        tensor(0.3750)

    References:
        ``torch.nn.functional.huber_loss``.
    """
@overload
def huber_loss(input: Tensor, target: MaskedTensor, reduction: str='mean', delta: float=1.0, weight: Tensor | None=None, *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def huber_loss(input: Tensor, target: Tensor, reduction: str='mean', delta: float=1.0, weight: Tensor | None=None, *, mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def instance_norm(input: T, running_mean: Tensor | None=None, running_var: Tensor | None=None, weight: Tensor | None=None, bias: Tensor | None=None, use_input_stats: bool=True, momentum: float=0.1, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Instance normalization with the mean and variance of the valid entries of each channel of each sample.

    It is ``(x - mean) / sqrt(var + eps)``. A plain result is 0 where an entry is masked; that of a MaskedTensor is
    masked there. A sparse ``input`` keeps its pattern, and its statistics are those of what it stores.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain, or a MaskedTensor, whose own mask counts,
            too.
        running_mean (Tensor, optional): ``(C,)``, in ``input``'s dtype; updated in place.
        running_var (Tensor, optional): ``(C,)``, in ``input``'s dtype; updated in place.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        use_input_stats (bool, optional): False normalizes with the running statistics.
        momentum (float, optional): The weight of new statistics in the running ones.
        eps (float, optional): Added to the variance.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: The running statistics or parameters do not have one entry per channel.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
        >>> mt.instance_norm(x, eps=0.0, mask=m)
        tensor([[[-1.,  0.,  1.]]])

    References:
        ``torch.nn.functional.instance_norm``; Ulyanov et al., Instance normalization, 2016.
    """
def interpolate(input: T, dim: int | None=None, *, lengths: Lengths=None, padding_side: Side='right', method: Method='linear', index: Times | None=None, limit: int | None=None, limit_direction: Direction='forward', limit_area: Area | None=None, max_gap: int | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """A time series whose gaps are filled with values between valid entries; ``F.interpolate`` resizes images.

    Gradients flow to both of the entries around a gap. It is pandas' function of the name, not
    ``torch.nn.functional.interpolate``, which takes masked tensors, too.

    Args:
        input (Tensor): Floating point or complex, any shape but 0-d, strided; a MaskedTensor, or plain with ``mask``.
            Without one nothing is filled, with a UserWarning: NaN is a value.
        dim (int, optional): The dimension of time: 1 for (batch, time, ...). It may be left out of a series of one
            dimension alone. ``axis`` is the same.
        lengths (Tensor or str, optional): How many steps of each sequence exist: integers ``(B,)``, or a list of int.
            The others are padding, which stays masked. ``"full"``: nothing is padding. Masked input needs it for any
            ``dim`` but 0, and for more than two dimensions. The batch is dimension 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): ``"right"`` or ``"left"``: where the padding is.
        method (str, optional): ``"linear"`` weighs the two neighbours by their distance, and goes on with the last one
            beyond it. ``"nearest"`` takes the nearer one, the earlier of two, between valid entries alone:
            ``limit_area="outside"`` fills nothing then.
        index (Tensor, optional): ``(T,)``, or ``(B, T)`` for each sequence, any real dtype: the time of each entry,
            after that of the entry before; by default they are one step apart. Its values are read to check that, save
            in compiled code and where it is batched by a transform: there a wrong index gives a wrong result. Of
            ``(time, batch, ...)`` it is ``(T, B)``. Times past the end of a sequence are ignored, and may be masked.
        limit (int, optional): The largest number of entries that are filled in a row.
        limit_direction (str, optional): ``"forward"``, ``"backward"`` or ``"both"``: where ``limit`` counts from, and
            which edge is filled, too.
        limit_area (str, optional): ``"inside"`` fills only between valid entries, ``"outside"`` only beyond them.
        max_gap (int, optional): Gaps of more masked entries in a row are not filled at all. An edge is a gap, too.
            It counts entries, whatever ``index`` says.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of the entries that stay masked. Without it they are NaN in a plain
            result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, ``lengths`` or ``max_gap``
            are not integers, or ``index`` does not hold real numbers.
        ValueError: ``limit`` or ``max_gap`` is below 1, a choice is not one of the allowed values, ``index`` has
            another shape, does not rise, is not finite or is masked at a step that exists, ``input`` is 0-d, has
            several dimensions and no ``dim``, or may be padded and has no ``lengths``; these are not one number from 0
            to T for each sequence, or a step past an end is valid; or ``mask`` does not broadcast to ``input`` or lies
            on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> mt.interpolate(mt.masked_tensor([None, 1.0, None, None, 4.0, None]))
        masked_tensor([--, 1.0000, 2.0000, 3.0000, 4.0000, 4.0000], valid=5/6)

    See also:
        :func:`ffill`, :func:`bfill`.

    References:
        ``pandas.DataFrame.interpolate``.
    """
@overload
def kl_div(input: MaskedTensor, target: Tensor, *, log_target: bool=False, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The Kullback-Leibler divergence of the valid entries: ``target * (log(target) - input)``.

    An entry counts where ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Log-probabilities, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Probabilities, floating point, broadcastable to ``input``; plain or a MaskedTensor.
        log_target (bool, optional): ``target`` is a log-probability, too.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"batchmean"`` by the
            number of indices of the first dimension with a valid entry, ``"sum"`` does not, ``"none"`` gives the loss
            of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
        >>> y = torch.tensor([[1.0, 0.0], [0.3, 0.7]])
        >>> m = torch.tensor([[True], [False]])
        >>> mt.kl_div(x, y, reduction="batchmean", target_mask=m)
        tensor(0.6931)

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

    An entry counts where ``input`` and ``target`` are both valid. Sparse operands have one shape, to which strided ones
    broadcast. What they do not store is 0.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            divides by the sum of the weights of valid entries.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.l1_loss(torch.zeros(2), y, target_mask=m)
        tensor(1.)

    References:
        ``torch.nn.functional.l1_loss``.
    """
@overload
def l1_loss(input: Tensor, target: MaskedTensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def l1_loss(input: Tensor, target: Tensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def layer_norm(input: T, normalized_shape: Sequence[int], weight: Tensor | None=None, bias: Tensor | None=None, eps: float=1e-05, *, mask: Tensor | None=None) -> T:
    """Layer normalization with the mean and variance of the valid entries: ``(x - mean) / sqrt(var + eps)``.

    The statistics are over the last ``len(normalized_shape)`` dimensions. A plain result is 0 where an entry is masked;
    that of a MaskedTensor is masked there. A sparse ``input`` keeps its pattern, and its statistics are those of what
    it stores.

    Args:
        input (Tensor): ``(*, normalized_shape)``, floating point, of any layout; plain, or a MaskedTensor, whose own
            mask counts, too.
        normalized_shape (tuple of int): The last dimensions of ``input``.
        weight (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: multiplies the result.
        bias (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: added to the result.
        eps (float, optional): Added to the variance.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: ``input`` does not end in ``normalized_shape``.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([1.0, 99.0, 3.0]), torch.tensor([True, False, True])
        >>> mt.layer_norm(x, (3,), eps=0.0, mask=m)
        tensor([-1.,  0.,  1.])

    References:
        ``torch.nn.functional.layer_norm``; Ba et al., Layer normalization, 2016.
    """
def local_response_norm(input: T, size: int, alpha: float=0.0001, beta: float=0.75, k: float=1.0, *, mask: Tensor | None=None) -> T:
    """Local response normalization over channels, in which masked entries count as 0.

    With ``m`` the mean of ``x ** 2`` over ``size`` neighbouring channels it is ``x / (k + alpha * m) ** beta``. A plain
    result is 0 where an entry is masked; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain, or a MaskedTensor, whose own mask counts,
            too.
        size (int): The number of channels of a neighbourhood.
        alpha (float, optional): The factor of the mean.
        beta (float, optional): The exponent.
        k (float, optional): What is added to the mean.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``input`` has fewer than three dimensions, or ``mask`` does not broadcast to it or lies on another
            device.

    Example:
        >>> x, m = torch.ones(1, 2, 1), torch.tensor([[[True], [False]]])
        >>> mt.local_response_norm(x, 2, mask=m).flatten()
        tensor([1.0000, 0.0000])

    References:
        ``torch.nn.functional.local_response_norm``; Krizhevsky et al., ImageNet classification with deep convolutional
        neural networks, 2012.
    """
def log_prob(distribution: torch.distributions.Distribution, value: T, *, mask: Tensor | None=None, fill_value: Number | None=None) -> T:
    """The log density of the valid part of ``value``: the marginal one where an event is valid in part.

    With ``o`` the valid coordinates of an event it is ``log p(value[o])``. Of a multivariate normal this is the density
    of a normal with ``loc[o]`` and ``covariance_matrix[o, o]``, of a Dirichlet that of one whose other concentrations
    are added up. ``Independent`` and ``MixtureSameFamily`` of such, and elementwise transforms of them, are computed
    through their parts. Of other families of vectors an event that is valid in part is masked: its marginal density
    has no formula here. Families of numbers take torch's own ``log_prob``. Valid coordinates are validated as in torch,
    unless the distribution has ``validate_args=False``; what is masked is not.

    Args:
        distribution (torch.distributions.Distribution): With plain parameters, of batch shape ``B`` and event shape
            ``E``.
        value (Tensor): ``(*S, *B, *E)``, or broadcastable to it; any dtype the distribution takes; plain, or a
            MaskedTensor, whose own mask counts, too.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``value``. Integers are read as
            ``mask != 0``.
        fill_value (number, optional): The result of an event of which nothing is valid.

    Returns:
        Tensor: ``(*S, *B)``, in the dtype of the distribution's parameters. A MaskedTensor if ``value`` is one, masked
        where nothing of an event is valid; else plain, and NaN there.

    Raises:
        TypeError: ``distribution`` is not a distribution, ``value`` is not a tensor, or ``mask`` is not a plain
            bool or int tensor.
        ValueError: ``value`` does not end in the event shape, or ``mask`` does not broadcast to it; torch's own, for
            valid coordinates outside of the support, as shares that add up to more than 1.
        UnsupportedOpError: ``value`` is sparse.

    Example:
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> mt.log_prob(normal, mt.masked_tensor([[0.0, 0.0], [0.0, None], [None, None]]))
        masked_tensor([-1.8379, -0.9189, --], valid=2/3)

    References:
        ``torch.distributions``; Little and Rubin, *Statistical Analysis with Missing Data*, on the observed-data
        likelihood.
    """
def log_softmax(input: T, dim: int, dtype: torch.dtype | None=None, *, mask: Tensor | None=None, mode: Mode='safe') -> T:
    """The logarithm of the softmax of the valid entries along ``dim``: ``x - logsumexp(x[valid])``.

    A plain result is -inf where an entry is masked, whose exponential is softmax's 0; that of a MaskedTensor is masked
    there. A sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int): The dimension to go along. ``axis`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        mode (str, optional): What a slice without a finite entry gives. ``"safe"``: zeros, with zero gradients, if
            nothing is valid, and NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: zeros in both
            cases, as torch's ``_safe_softmax``. ``"none"``: NaN in both cases, by the plain formula.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, -inf where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; or ``mode`` is not one of the
            allowed values.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, m = torch.zeros(3), torch.tensor([True, False, True])
        >>> mt.log_softmax(x, 0, mask=m)
        tensor([-0.6931,    -inf, -0.6931])

    References:
        ``torch.log_softmax``, ``torch.masked.log_softmax``.
    """
@overload
def logaddexp(input: MaskedTensor, other: Tensor, *, dtype: torch.dtype | None=None, input_mask: Tensor | None=None, other_mask: Tensor | None=None) -> MaskedTensor:
    """The logarithm of the sum of exponentials of two tensors: ``log(exp(input) + exp(other))``.

    Where one side is masked the other is the result. Where both are, a plain result is -inf and that of a MaskedTensor
    is masked.

    Args:
        input (Tensor): Floating point or complex, of any shape, strided; plain, or a MaskedTensor, whose own mask
            counts, too.
        other (Tensor): Of ``input``'s dtype, broadcastable to it, strided; plain or a MaskedTensor.
        dtype (torch.dtype, optional): Convert both to this dtype first.
        input_mask (Tensor, optional): True = valid entry of ``input``; bool, broadcastable to it.
        other_mask (Tensor, optional): True = valid entry of ``other``; bool, broadcastable to it.

    Returns:
        Tensor: The broadcast shape, in ``input``'s dtype. A MaskedTensor if a side is one.

    Raises:
        TypeError: ``input`` or ``other`` is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: A mask does not broadcast to its side, or lies on another device.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: A side is sparse.

    Example:
        >>> x, m = torch.zeros(2), torch.tensor([True, False])
        >>> mt.logaddexp(x, x, input_mask=m)
        tensor([0.6931, 0.0000])

    References:
        ``torch.logaddexp``, ``torch.masked.logaddexp``.
    """
@overload
def logaddexp(input: Tensor, other: MaskedTensor, *, dtype: torch.dtype | None=None, input_mask: Tensor | None=None, other_mask: Tensor | None=None) -> MaskedTensor: ...
@overload
def logaddexp(input: Tensor, other: Tensor, *, dtype: torch.dtype | None=None, input_mask: Tensor | None=None, other_mask: Tensor | None=None) -> Tensor: ...
def logcumsumexp(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The logarithm of the running sum of exponentials of the valid entries: ``log(cumsum(exp(x)))``.

    A plain result is 0 where an entry is masked; that of a MaskedTensor is masked there. A sparse ``input`` keeps its
    pattern: entries that it does not store never take part.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int): The dimension to go along. ``axis`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> mt.logcumsumexp(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
        tensor([0.0000, 0.0000, 0.6931])

    References:
        ``torch.logcumsumexp``.
    """
def logsumexp(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The logarithm of the sum of exponentials of the valid entries along ``dim``: ``log(sum(exp(x[valid])))``.

    A plain result is -inf where no entry is valid; that of a MaskedTensor is masked there. The result of a sparse
    ``input`` stores every output with a valid entry, because a slice of ``n`` zeros gives ``log(n)``.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; the default dtype for integers and bools. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.logsumexp(x, 1, mask=m)
        tensor([3.1269,   -inf])

    References:
        ``torch.logsumexp``, ``torch.masked.logsumexp``.
    """
@overload
def margin_ranking_loss(input1: MaskedTensor, input2: Tensor, target: Tensor, margin: float=0.0, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ranking loss of the valid entries: ``max(0, -target * (input1 - input2) + margin)``.

    An entry counts where all three operands are valid.

    Args:
        input1 (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        input2 (Tensor): Floating point, broadcastable to ``input1``; plain or a MaskedTensor.
        target (Tensor): 1 where ``input1`` should be larger, -1 where ``input2`` should, of any dtype, broadcastable to
            ``input1``; plain or a MaskedTensor.
        margin (float, optional): The least difference that is not penalized.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input1``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input1``'s dtype, or with ``reduction="none"`` one of ``input1``'s shape, 0 where an
        entry is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input1`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> a, b = torch.tensor([1.0, 9.0]), torch.tensor([3.0, 0.0])
        >>> y = torch.tensor([1.0, 1.0])
        >>> mt.margin_ranking_loss(a, b, y, mask=torch.tensor([True, False]))
        tensor(2.)

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

    ``mask`` says here where to write, not what is valid. Masked entries of a MaskedTensor stay masked, whatever is
    written; a masked entry of ``mask``, or a masked ``value``, gives a masked result. To make entries valid, assign:
    ``x[mask] = value``.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcast against ``input``; plain or a MaskedTensor.
        value (number or Tensor): One number, or a 0-d tensor that ``input``'s dtype can hold, whose gradient is the sum
            over the filled entries.

    Returns:
        Tensor: The broadcast shape of ``input`` and ``mask``, in ``input``'s dtype. A MaskedTensor if an operand is
        one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a bool tensor, or ``value`` is neither a number nor a
            tensor.
        RuntimeError: The shapes do not broadcast, or ``value`` has dimensions or does not fit ``input``'s dtype.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> mt.masked_fill(torch.ones(2, 3), torch.tensor([True, False, True]), 7.0)
        tensor([[7., 1., 7.],
                [7., 1., 7.]])

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
    """The input itself, with ``value`` written where ``mask`` is True.

    ``mask`` says here where to write, not what is valid. Validity follows as for :func:`masked_fill`. An error writes
    nothing.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcastable to ``input``; plain, or a MaskedTensor if ``input`` is
            one.
        value (number or Tensor): One number, or a 0-d tensor that ``input``'s dtype can hold.

    Returns:
        Tensor: ``input`` itself, of its shape and dtype.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a bool tensor, or ``value`` is neither a number nor a
            tensor.
        RuntimeError: ``mask`` does not broadcast to ``input``, ``value`` has dimensions or does not fit ``input``'s
            dtype, or ``input`` is a leaf that requires grad.
        MaskedWriteError: ``input`` is plain and ``mask`` is masked.
        MaskedValueError: ``input`` is plain and ``value`` is masked.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> x = torch.ones(3)
        >>> mt.masked_fill_(x, torch.tensor([True, False, True]), 7.0)
        tensor([7., 1., 7.])

    References:
        ``torch.Tensor.masked_fill_``; the design of ``paddle.masked_fill_``.
    """
@overload
def masked_scatter(input: MaskedTensor, mask: Tensor, source: Tensor) -> MaskedTensor:
    """A copy of ``input`` with entries of ``source`` where ``mask`` is True: ``out[mask] = source.flatten()[:n]``.

    ``mask`` says here where to write, not what is valid; ``n`` is the number of places where it is True. Gradients flow
    to ``input`` and ``source``. A masked ``source`` brings its validity, and a masked entry of ``mask`` is not True.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcast against ``input``; plain or a MaskedTensor.
        source (Tensor): Any shape with at least ``n`` entries, in ``input``'s dtype; plain or a MaskedTensor.

    Returns:
        Tensor: The broadcast shape of ``input`` and ``mask``, in ``input``'s dtype. A MaskedTensor if an operand is
        one.

    Raises:
        TypeError: ``input`` or ``source`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: ``source`` has too few entries (both numbers are stated) or another dtype, or the shapes do not
            broadcast.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> where = torch.tensor([True, False, True, False])
        >>> mt.masked_scatter(torch.zeros(4), where, torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2., 0.])

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
    """The input itself, with entries of ``source`` written where ``mask`` is True.

    ``mask`` says here where to write, not what is valid. Validity follows as for :func:`masked_scatter`. An error
    writes nothing.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = write here; bool, broadcastable to ``input``; plain, or a MaskedTensor if ``input`` is
            one.
        source (Tensor): Any shape with an entry for each place, in ``input``'s dtype; plain, or a MaskedTensor if
            ``input`` is one.

    Returns:
        Tensor: ``input`` itself, of its shape and dtype.

    Raises:
        TypeError: ``input`` or ``source`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: ``source`` has too few entries or another dtype, ``mask`` does not broadcast to ``input``, or
            ``input`` is a leaf that requires grad.
        MaskedWriteError: ``input`` is plain and another operand is masked.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> x = torch.zeros(3)
        >>> mt.masked_scatter_(x, torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])

    References:
        ``torch.Tensor.masked_scatter_``; the design of ``paddle.masked_scatter_``.
    """
@overload
def masked_select(input: MaskedTensor, mask: Tensor) -> MaskedTensor:
    """The entries of ``input`` where ``mask`` is True, in order.

    ``mask`` says here what to read, not what is valid; a masked entry of it selects nothing. The length depends on the
    data.

    Args:
        input (Tensor): Any shape and dtype, strided; plain or a MaskedTensor.
        mask (Tensor): True = read here; bool, broadcast against ``input``; plain or a MaskedTensor.

    Returns:
        Tensor: A 1-D tensor in ``input``'s dtype. A MaskedTensor with the validity of what was read if ``input`` is
        one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a bool tensor.
        RuntimeError: The shapes do not broadcast.
        UnsupportedOpError: ``input`` is plain and sparse.

    Example:
        >>> mt.masked_select(torch.arange(4), torch.tensor([True, False, True, False]))
        tensor([0, 2])

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

    Where no entry is valid, a plain result is -inf (the smallest integer, False) at position 0, and that of a
    MaskedTensor is masked. ``max(input, other)`` is ``torch.maximum``, the larger of each pair, valid where both are.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or Tensor, optional): The dimension to reduce; None is all of them. A tensor of any shape and dtype in
            its place is ``other``. ``axis`` is the same.
        keepdim (bool, optional): Keep the reduced dimension with size 1; needs a ``dim``. ``keepdims`` is the same.
        other (Tensor, optional): Any dtype but complex, strided, broadcastable to ``input``; plain or a MaskedTensor.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries; its index is 0, or masked in a
            MaskedTensor.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, with ``other`` one of the broadcast shape, or with ``dim`` a
        named tuple ``(values, indices)`` of ``input``'s shape without it, the indices int64. MaskedTensors if ``input``
        is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, ``dim`` is not an int, or
            ``keepdim`` is given without it.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.
        UnsupportedOpError: ``other`` is given, and an operand is sparse.

    Example:
        >>> x, m = torch.tensor([[9.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.max(x, 1, mask=m)
        torch.return_types.max(
        values=tensor([3.]),
        indices=tensor([2]))

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

    A plain result is NaN where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex; give it such a ``dtype``.

    Example:
        >>> mt.masked_tensor([[1.0, None, 3.0], [None, None, None]]).mean(1)
        masked_tensor([2.0000, --], valid=1/2)
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.mean(x, 1, mask=m)
        tensor([2., nan])

    References:
        ``torch.mean``, ``torch.masked.mean``.
    """
@overload
def median(input: T, dim: None=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The lower median of the valid entries, or with ``dim`` the one along it and its position.

    It is NaN if a valid entry is NaN. Where no entry is valid, a plain result is NaN (0 for integers) at position 0,
    and that of a MaskedTensor is masked.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries; its index is 0, or masked in a
            MaskedTensor.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, or with ``dim`` a named tuple ``(values, indices)`` of
        ``input``'s shape without it, the indices int64; of several positions of the median any one may be given.
        MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order, or bool.

    Example:
        >>> m = torch.tensor([True, True, False, True])
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), mask=m)
        tensor(3.)
        >>> mt.median(torch.tensor([5.0, 1.0, 9.0, 3.0]), 0, mask=m).indices
        tensor(3)

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

    Where no entry is valid, a plain result is inf (the largest integer, True) at position 0, and that of a MaskedTensor
    is masked. ``min(input, other)`` is ``torch.minimum``, the smaller of each pair, valid where both are.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or Tensor, optional): The dimension to reduce; None is all of them. A tensor of any shape and dtype in
            its place is ``other``. ``axis`` is the same.
        keepdim (bool, optional): Keep the reduced dimension with size 1; needs a ``dim``. ``keepdims`` is the same.
        other (Tensor, optional): Any dtype but complex, strided, broadcastable to ``input``; plain or a MaskedTensor.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries; its index is 0, or masked in a
            MaskedTensor.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, with ``other`` one of the broadcast shape, or with ``dim`` a
        named tuple ``(values, indices)`` of ``input``'s shape without it, the indices int64. MaskedTensors if ``input``
        is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, ``dim`` is not an int, or
            ``keepdim`` is given without it.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.
        UnsupportedOpError: ``other`` is given, and an operand is sparse.

    Example:
        >>> x, m = torch.tensor([[0.0, 2.0, 3.0]]), torch.tensor([[False, True, True]])
        >>> mt.min(x, 1, mask=m)
        torch.return_types.min(
        values=tensor([2.]),
        indices=tensor([1]))

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
    """The most frequent valid entry along ``dim``, the smallest of several, and the position of its last occurrence.

    Entries that a sparse ``input`` does not store are zeros, and count. Where no entry is valid, plain results are NaN
    (0 for integers) and position 0, and those of a MaskedTensor are masked.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries; its index is 0, or masked in a
            MaskedTensor.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        tuple: A named tuple ``(values, indices)`` of ``input``'s shape without ``dim``: values in its dtype and int64
        indices. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order.

    Example:
        >>> m = torch.tensor([True, True, True, False, False])
        >>> mt.mode(torch.tensor([2, 5, 2, 7, 7]), mask=m)
        torch.return_types.mode(
        values=tensor(2),
        indices=tensor(2))

    References:
        ``torch.mode``.
    """
@overload
def mode(input: Tensor, dim: Dim=-1, keepdim: bool=False, *, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> torch.return_types.mode: ...
@overload
def mse_loss(input: MaskedTensor, target: Tensor, *, weight: Tensor | None=None, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The squared error of the valid entries: ``(input - target) ** 2``.

    An entry counts where ``input`` and ``target`` are both valid. Sparse operands have one shape, to which strided ones
    broadcast. What they do not store is 0.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        weight (Tensor, optional): Broadcastable to ``input``, in its dtype: multiplies the loss of each entry. A mean
            divides by the sum of the weights of valid entries.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> target = torch.tensor([1.0, float("nan")])
        >>> mt.mse_loss(torch.zeros(2), target, target_mask=~target.isnan())
        tensor(1.)
        >>> mt.mse_loss(torch.zeros(2), mt.masked_tensor([1.0, None]), reduction="none")
        masked_tensor([1.0000, --], valid=1/2)

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

    Each sample gives ``sum(max(0, margin - input[target] + input[c]) ** p) / C`` over the other classes ``c``, with
    ``C`` the number of its valid classes.

    Args:
        input (Tensor): Scores ``(N, C)`` or ``(C,)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64: ``(N,)`` or 0-d; plain or a MaskedTensor.
        p (int, optional): 1 or 2.
        margin (float, optional): By how much the score of the target should be larger.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the terms of each target class.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` gives the loss of each sample.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand, or with ``reduction="none"`` one of shape ``(N,)``, 0
        where nothing of a sample is valid. A MaskedTensor if an operand is one; then a loss of which nothing is valid
        is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: A valid target is out of range, the shapes do not fit, or ``p`` is neither 1 nor 2.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> x, y = torch.tensor([[0.5, 1.0], [9.0, 9.0]]), torch.tensor([1, 0])
        >>> mt.multi_margin_loss(x, y, target_mask=torch.tensor([True, False]))
        tensor(0.2500)

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
        target (Tensor): Lists of classes, int64, of ``input``'s shape; -1 ends a list. Plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` gives the loss of each sample.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand, or with ``reduction="none"`` one of shape ``(N,)``, 0
        where nothing of a sample is valid. A MaskedTensor if an operand is one; then a loss of which nothing is valid
        is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: A valid target is out of range, or the shapes do not fit.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> x, y = torch.tensor([0.5, 1.0, 9.0]), torch.tensor([1, -1, -1])
        >>> mt.multilabel_margin_loss(x, y, mask=torch.tensor([True, True, False]))
        tensor(0.2500)

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

    Args:
        input (Tensor): Logits ``(N, C)``, floating point; plain or a MaskedTensor.
        target (Tensor): 0 or 1 for each class: ``(N, C)``, floating point; plain or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each class.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid samples, ``"sum"`` does not,
            ``"none"`` gives the loss of each sample.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand, or with ``reduction="none"`` one of shape ``(N,)``, 0
        where nothing of a sample is valid. A MaskedTensor if an operand is one; then a loss of which nothing is valid
        is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> x, y = torch.zeros(1, 2), torch.tensor([[1.0, 9.0]])
        >>> m = torch.tensor([[True, False]])
        >>> mt.multilabel_soft_margin_loss(x, y, target_mask=m)
        tensor(0.6931)

    References:
        ``torch.nn.functional.multilabel_soft_margin_loss``.
    """
@overload
def multilabel_soft_margin_loss(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None=None, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def nanmean(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The mean of the valid entries along ``dim`` that are not NaN.

    The result is NaN where all valid entries are NaN. Where no entry is valid, a plain result is NaN and that of a
    MaskedTensor is masked.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 8.0])
        >>> mt.nanmean(x, mask=torch.tensor([True, True, True, False]))
        tensor(2.)

    References:
        ``torch.nanmean``.
    """
@overload
def nanmedian(input: T, dim: None=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The lower median of the valid entries that are not NaN, or with ``dim`` the one along it and its position.

    Where there is none, a plain result is NaN (0 for integers); where no entry is valid, that of a MaskedTensor is
    masked.

    Args:
        input (Tensor): Integer or floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries; its index is 0, or masked in a
            MaskedTensor.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor or tuple: A 0-d tensor in ``input``'s dtype, or with ``dim`` a named tuple ``(values, indices)`` of
        ``input``'s shape without it, the indices int64; of several positions of the median any one may be given.
        MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range or has size 0.
        RuntimeError: ``input`` is complex, which has no order, or bool.

    Example:
        >>> x = torch.tensor([5.0, float("nan"), 9.0])
        >>> mt.nanmedian(x, mask=torch.tensor([True, True, False]))
        tensor(5.)

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

    Where there is none, a plain result is NaN; where no entry is valid, that of a MaskedTensor is masked.

    Args:
        input (Tensor): float32 or float64, of any shape and layout; plain, or a MaskedTensor, whose own mask counts,
            too.
        q (float or Tensor): A number from 0 to 1, or several: a list, or a 0-d or 1-D tensor of ``input``'s dtype.
        dim (int or tuple of int, optional): The dimensions to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        interpolation (str, optional): What is taken between two entries: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"midpoint"`` or ``"nearest"``.
        alphap (float, optional): With ``betap`` which quantile the k-th of n entries is:
            ``(k - alphap) / (n + 1 - alphap - betap)``, as in scipy; 1 and 1 are torch's, 0.4 and 0.4 scipy's own.
        betap (float, optional): The same at the upper end.
        weights (Tensor, optional): Any real dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor. The result is then the first entry, in rising order, with which ``q`` of
            the total weight is reached. Masked weights and weights of 0 leave their entries out; negative ones count
            as 0 where a look would wait for the device.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; behind a first dimension for ``q`` if that is 1-D or a
        list. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` or ``weights`` does not broadcast to ``input``, or lies on another device; a weight is
            negative, or ``weights`` come with another ``interpolation``; or ``fill_value`` does not fit an integer
            result.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither float32 nor float64, ``q`` is out of range, or ``interpolation`` is another
            word.
        UnsupportedOpError: ``q`` is masked and sparse, or ``input`` is sparse and ``weights`` are given.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0, 99.0])
        >>> m = torch.tensor([True, True, True, False])
        >>> mt.nanquantile(x, 0.5, mask=m)
        tensor(2.)

    References:
        ``torch.nanquantile``; with weights ``numpy.nanquantile(method="inverted_cdf")``.
    """
@overload
def nanquantile(input: Tensor, q: MaskedTensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def nanquantile(input: Tensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def nansum(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The sum of the valid entries along ``dim`` that are not NaN.

    A plain result is 0 where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 3.0])
        >>> mt.nansum(x, mask=torch.tensor([True, True, False]))
        tensor(1.)

    References:
        ``torch.nansum``.
    """
@overload
def nll_loss(input: MaskedTensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The negative log likelihood of the targets that count: ``-weight[target] * input[target]``.

    A target counts unless it is masked or ``ignore_index``, or no class of its sample is valid. A masked target may be
    out of range. The loss of a target that names a masked class is inf. Sparse scores are 0 where they store nothing,
    and need plain strided ``weight``.

    Args:
        input (Tensor): Log-probabilities ``(N, C)`` or ``(N, C, *)``, floating point; plain or a MaskedTensor.
        target (Tensor): Classes, int64: ``(N,)`` or ``(N, *)``; plain or a MaskedTensor.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype: multiplies the loss of each target class. A mean
            divides by the weights of the targets that count.
        ignore_index (int, optional): A target that does not count.
        reduction (str, optional): ``"mean"`` divides the sum by the weights of the targets that count, ``"sum"`` does
            not, ``"none"`` gives the loss of each target.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of the shape of the target classes, 0
        for those that do not count. A MaskedTensor if an operand is one; then a loss of which nothing is valid is
        masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, the batch sizes differ, or a mask does not broadcast
            to its operand or lies on another device.
        RuntimeError: ``target`` is not int64, or the shapes do not fit.
        IndexError: A target that counts is out of range.
        UnsupportedOpError: ``input`` is sparse, and ``target`` or ``weight`` is not strided, or ``weight`` is masked.

    Example:
        >>> x = torch.tensor([[0.5, 0.5], [0.1, 0.9]]).log()
        >>> y, m = torch.tensor([0, 10**9]), torch.tensor([True, False])
        >>> mt.nll_loss(x, y, target_mask=m)
        tensor(0.6931)

    References:
        ``torch.nn.functional.nll_loss``.
    """
@overload
def nll_loss(input: Tensor, target: MaskedTensor, weight: Tensor | None=None, *, ignore_index: int=-100, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None=None, *, ignore_index: int=-100, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def norm(input: T, ord: float | None=2.0, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The vector norm of the valid entries along ``dim``: ``sum(abs(x[valid]) ** ord) ** (1 / ord)``.

    Where no entry is valid, a plain result is 0 (inf for a negative ``ord``) and that of a MaskedTensor is masked.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        ord (float, optional): The order. 0 counts the entries that are not 0; inf and -inf take the largest and the
            smallest ``abs(x)``.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; real for complex. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``ord`` is not a number, or ``mask`` does not broadcast to ``input`` or lies on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> mt.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
        tensor(5.)

    References:
        ``torch.linalg.vector_norm``, ``torch.masked.norm``.
    """
def normalize(input: T, p: float=2.0, dim: int=1, eps: float=1e-12, *, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> T:
    """The input divided by the norm of its valid entries along ``dim``: ``x / max(norm(x[valid], p), eps)``.

    A plain result is 0 where an entry is masked; that of a MaskedTensor is masked there. A sparse ``input`` keeps its
    pattern.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        p (float, optional): The order of the norm.
        dim (int, optional): The dimension to go along.
        eps (float, optional): The smallest divisor.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0]])
        >>> mt.normalize(x, 2.0, 1, mask=torch.tensor([[True, False, True]]))
        tensor([[-0.9487,  0.0000, -0.3162]])

    References:
        ``torch.nn.functional.normalize``, ``torch.masked.normalize``.
    """
@overload
def poisson_nll_loss(input: MaskedTensor, target: Tensor, log_input: bool=True, full: bool=False, *, eps: float=1e-08, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The negative log likelihood of a Poisson distribution: ``exp(input) - target * input``.

    An entry counts where ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Logarithms of rates, floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        log_input (bool, optional): False for the rate itself: ``input - target * log(input + eps)``.
        full (bool, optional): Add Stirling's approximation of ``log(target!)``.
        eps (float, optional): Keeps the logarithm finite.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.poisson_nll_loss(torch.zeros(2), y, target_mask=m)
        tensor(1.)

    References:
        ``torch.nn.functional.poisson_nll_loss``.
    """
@overload
def poisson_nll_loss(input: Tensor, target: MaskedTensor, log_input: bool=True, full: bool=False, *, eps: float=1e-08, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool=True, full: bool=False, *, eps: float=1e-08, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def prod(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The product of the valid entries along ``dim``: ``prod(x[valid])``.

    A plain result is 1 where no entry is valid; that of a MaskedTensor is masked there.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.prod(x, 1, mask=m)
        tensor([3., 1.])

    References:
        ``torch.prod``, ``torch.masked.prod``; ``min_count`` as in ``pandas.DataFrame.prod``.
    """
@overload
def quantile(input: MaskedTensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The ``q``-quantile of the valid entries along ``dim``, or NaN if one of them is NaN.

    Where no entry is valid, a plain result is NaN and that of a MaskedTensor is masked. Entries that a sparse ``input``
    does not store are zeros, and are only counted.

    Args:
        input (Tensor): float32 or float64, of any shape and layout; plain, or a MaskedTensor, whose own mask counts,
            too.
        q (float or Tensor): A number from 0 to 1, or several: a list, or a 0-d or 1-D tensor of ``input``'s dtype.
        dim (int or tuple of int, optional): The dimensions to reduce; None is all of them. ``axis`` is the same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        interpolation (str, optional): What is taken between two entries: ``"linear"``, ``"lower"``, ``"higher"``,
            ``"midpoint"`` or ``"nearest"``.
        alphap (float, optional): With ``betap`` which quantile the k-th of n entries is:
            ``(k - alphap) / (n + 1 - alphap - betap)``, as in scipy; 1 and 1 are torch's, 0.4 and 0.4 scipy's own.
        betap (float, optional): The same at the upper end.
        weights (Tensor, optional): Any real dtype, broadcastable to ``input``, or 1-D with one entry per position along
            ``dim``; plain or a MaskedTensor. The result is then the first entry, in rising order, with which ``q`` of
            the total weight is reached. Masked weights and weights of 0 leave their entries out; negative ones count
            as 0 where a look would wait for the device.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype; behind a first dimension for ``q`` if that is 1-D or a
        list. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` or ``weights`` does not broadcast to ``input``, or lies on another device; a weight is
            negative, or ``weights`` come with another ``interpolation``; or ``fill_value`` does not fit an integer
            result.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither float32 nor float64, ``q`` is out of range, or ``interpolation`` is another
            word.
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

    References:
        ``torch.quantile``; with weights ``numpy.quantile(method="inverted_cdf")``.
    """
@overload
def quantile(input: Tensor, q: MaskedTensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def quantile(input: Tensor, q: float | Sequence[float] | Tensor, dim: Dim=None, keepdim: bool=False, *, interpolation: str='linear', alphap: float=1.0, betap: float=1.0, weights: Tensor | None=None, mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def rankdata(input: T, method: Ties='average', *, dim: int | None=None, mask: Tensor | None=None) -> T:
    """The rank of each valid entry among the valid entries along ``dim``: 1 is the smallest.

    Masked entries have no rank: a plain result is 0 there. ``argsort().argsort()`` is no rank where something is
    masked. NaN is the greatest value, and one NaN ties with another. Ranks have no gradient.

    A sparse ``input`` keeps its pattern: ranks are among the entries that it stores, along one ``dim``.

    Args:
        input (Tensor): Any shape and layout, real or bool; plain, or a MaskedTensor, whose own mask counts, too.
        method (str, optional): What equal entries get. ``"average"``: the mean of the ranks they take up; ``"min"``,
            ``"max"``: the least, the greatest of these; ``"dense"``: as ``"min"``, and the next value gets the next
            rank; ``"ordinal"``: different ranks, in the order of their positions.
        dim (int, optional): The dimension to rank along; None ranks all entries together. ``axis`` is the same.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape; int64, or for ``"average"`` float64 for float64 and float32 for other dtypes. A
        MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``dim`` is neither None
            nor an int.
        ValueError: ``method`` is not one of the allowed values; or ``mask`` does not broadcast to ``input``, or lies on
            another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is complex.
        UnsupportedOpError: ``input`` is sparse and has no ``dim`` to go along.

    Example:
        >>> mt.rankdata(mt.masked_tensor([30.0, None, 10.0, 30.0]))
        masked_tensor([2.5000, --, 1.0000, 2.5000], valid=3/4)
        >>> mt.rankdata(torch.tensor([30, 20, 10, 30]), "min")
        tensor([3, 2, 1, 3])

    References:
        ``scipy.stats.rankdata``, ``scipy.stats.mstats.rankdata``; the ranks of all entries keep ``input``'s shape.
    """
def rms_norm(input: T, normalized_shape: Sequence[int], weight: Tensor | None=None, eps: float | None=None, *, mask: Tensor | None=None) -> T:
    """RMS normalization with the mean square of the valid entries: ``x / sqrt(mean(x ** 2) + eps)``.

    The mean is over the last ``len(normalized_shape)`` dimensions. A plain result is 0 where an entry is masked; that
    of a MaskedTensor is masked there. A sparse ``input`` keeps its pattern, and its mean is that of what it stores.

    Args:
        input (Tensor): ``(*, normalized_shape)``, floating point, of any layout; plain, or a MaskedTensor, whose own
            mask counts, too.
        normalized_shape (tuple of int): The last dimensions of ``input``.
        weight (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: multiplies the result.
        eps (float, optional): Added to the mean square; by default the dtype's machine epsilon.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        RuntimeError: ``input`` does not end in ``normalized_shape``.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([3.0, 99.0, 3.0]), torch.tensor([True, False, True])
        >>> mt.rms_norm(x, (3,), eps=0.0, mask=m)
        tensor([1., 0., 1.])

    References:
        ``torch.nn.functional.rms_norm``; Zhang and Sennrich, Root mean square layer normalization, 2019.
    """
def rolling(input: T, window: float, dim: int | None=None, *, min_periods: int | None=None, center: bool=False, closed: Closed='right', step: int=1, index: Times | None=None, lengths: Lengths=None, padding_side: Side='right', mask: Tensor | None=None, fill_value: Number | None=None) -> Rolling[T]:
    """The windows that end at each entry along ``dim``, whose statistics are methods of the result.

    What lies before the first entry and after the last is masked. All statistics are differentiable; they
    are taken of the input as it is when they are called.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain.
        window (int or float): The number of entries of a window; with ``index``, its length in the unit of that.
        dim (int, optional): The dimension of time: 1 for (batch, time, ...). It may be left out of a series of one
            dimension alone. ``axis`` is the same.
        min_periods (int, optional): How many valid entries a result needs; by default all of the window, and 1 with
            ``index``.
        center (bool, optional): Put the entry into the middle of its window.
        closed (str, optional): ``"right"``, ``"left"``, ``"both"`` or ``"neither"``: which ends belong to the window.
        step (int, optional): How many entries the window moves on.
        index (Tensor, optional): ``(T,)``, or ``(B, T)`` for each sequence, any real dtype: the time of each entry, not
            before that of the entry before. A window has what lies in ``(t - window, t]``, up to its own entry; if
            centered, in ``(t - window / 2, t + window / 2]``. Of ``(time, batch, ...)`` it is ``(T, B)``. Times past
            the end of a sequence are ignored, and may be masked.
        lengths (Tensor or str, optional): How many steps of each sequence exist: integers ``(B,)``, or a list of int.
            The others are padding: they have no window, and stay masked. ``"full"``: nothing is padding. Masked input
            needs it for any ``dim`` but 0, and for more than two dimensions, if a result may be valid where the entry
            is not (``min_periods``), and for ``count()``. The batch is dimension 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): ``"right"`` or ``"left"``: where the padding is.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value where too few entries are valid. Without it results of a MaskedTensor
            are masked there, plain ones NaN.

    Returns:
        Rolling: The windows, with methods ``sum``, ``mean``, ``min``, ``max``, ``var``, ``std``, ``median``,
        ``quantile`` and ``count``.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, ``lengths`` are not integers,
            ``window`` is a text, or ``index`` does not hold real numbers.
        ValueError: ``window`` or ``step`` is below 1, ``min_periods`` is not between 0 and ``window``, ``index`` has
            another shape, falls, is not finite or is masked at a step that exists, ``closed`` is not one of the allowed
            values, ``input`` is 0-d, has several dimensions and no ``dim``, or may be padded and has no ``lengths``;
            these are not one number from 0 to T for each sequence, or a step past an end is valid; ``step`` is above 1
            for padding on the left; or ``mask`` does not broadcast to ``input`` or lies on another device.
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

    References:
        ``pandas.DataFrame.rolling``.
    """
@overload
def scaled_dot_product_attention(query: MaskedTensor, key: Tensor, value: Tensor, attn_mask: Tensor | None=None, dropout_p: float=0.0, is_causal: bool=False, *, scale: float | None=None, enable_gqa: bool=False, key_mask: Tensor | None=None) -> MaskedTensor:
    """``softmax(query @ key.T * scale + attn_mask) @ value`` over the valid keys.

    A masked key has weight exactly 0, and nothing of what lies in ``key`` and ``value`` there reaches the output or a
    gradient. A query that sees no key gives zeros, with zero gradients; of MaskedTensors a masked row. Without
    ``key_mask`` this is torch's own function.

    Args:
        query (Tensor): ``(N, ..., L, E)``, floating; plain, or a MaskedTensor.
        key (Tensor): ``(N, ..., S, E)`` in ``query``'s dtype; plain, or a MaskedTensor.
        value (Tensor): ``(N, ..., S, Ev)`` in ``query``'s dtype; plain, or a MaskedTensor.
        attn_mask (Tensor, optional): Broadcastable to ``(N, ..., L, S)``; bool, True = may be seen, or floating, added
            to the scores.
        dropout_p (float, optional): The probability of dropping a weight.
        is_causal (bool, optional): A query sees the keys up to its own position; it may be given with ``key_mask``.
        scale (float, optional): The factor of the scores; None is ``1 / sqrt(E)``.
        enable_gqa (bool, optional): Let several heads of ``query`` share one of ``key`` and ``value``.
        key_mask (Tensor, optional): True = valid; bool, ``(S,)``, ``(N, S)``, or broadcastable to ``(N, ..., S)``.
            Integers are read as ``key_mask != 0``.

    Returns:
        Tensor: ``(N, ..., L, Ev)`` in ``query``'s dtype. A MaskedTensor if one of the tensors is.

    Raises:
        TypeError: ``query``, ``key`` or ``value`` is not a tensor, or ``key_mask`` is not a plain bool or int tensor.
        ValueError: ``key_mask`` does not broadcast to the keys, or lies on another device.
        UnsupportedOpError: ``query``, ``key`` or ``value`` is sparse.

    Example:
        >>> q, k = torch.zeros(1, 1, 2), torch.zeros(1, 3, 2)
        >>> v = torch.tensor([[[1.0], [3.0], [float("nan")]]])
        >>> mt.scaled_dot_product_attention(q, k, v, key_mask=torch.tensor([[True, True, False]]))
        tensor([[[2.]]])

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
    """A time series moved by ``periods`` steps: entry ``t`` is the old one at ``t - periods``, and the edge is masked.

    A missing step moves with the others. Nothing moves into padding. Gradients flow to the entry that was taken.

    Args:
        input (Tensor): Any dtype and any shape but 0-d, strided; a MaskedTensor, or plain.
        periods (int, optional): How many steps later an entry stands; earlier, if it is negative.
        dim (int, optional): The dimension of time: 1 for (batch, time, ...). It may be left out of a series of one
            dimension alone. ``axis`` is the same.
        lengths (Tensor or str, optional): How many steps of each sequence exist: integers ``(B,)``, or a list of int.
            The others are padding, which stays masked. ``"full"``: nothing is padding. Masked input needs it for any
            ``dim`` but 0, and for more than two dimensions. The batch is dimension 0, or 1 if ``dim`` is 0.
        padding_side (str, optional): ``"right"`` or ``"left"``: where the padding is.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of the entries that are masked. Without it they are NaN in a plain
            result.

    Returns:
        Tensor: ``input``'s shape and dtype. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``periods`` is not an int
            or ``lengths`` are not integers.
        ValueError: ``input`` is 0-d, has several dimensions and no ``dim``, or may be padded and has no ``lengths``;
            these are not one number from 0 to T for each sequence, or a step past an end is valid; ``mask`` does not
            broadcast to ``input`` or lies on another device, or a plain result of integers needs ``fill_value``.
        IndexError: ``dim`` is out of range.
        UnsupportedOpError: ``input`` is sparse.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 4.0])
        >>> mt.shift(x)
        masked_tensor([--, 1.0000, --], valid=1/3)
        >>> x - mt.shift(x, 2)
        masked_tensor([--, --, 3.0000], valid=1/3)

    See Also:
        ``x.diff()``, the change from one step to the next, and :func:`rolling`.

    References:
        ``pandas.DataFrame.shift``.
    """
@overload
def smooth_l1_loss(input: MaskedTensor, target: Tensor, *, beta: float=1.0, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The smooth absolute error of the valid entries, squared below ``beta``.

    With ``d = abs(input - target)`` it is ``0.5 * d ** 2 / beta`` where ``d < beta``, else ``d - 0.5 * beta``. An entry
    counts where ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): Floating point, broadcastable to ``input``; plain or a MaskedTensor.
        beta (float, optional): Where the squared part ends.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> y, m = torch.tensor([1.0, 9.0]), torch.tensor([True, False])
        >>> mt.smooth_l1_loss(torch.zeros(2), y, target_mask=m)
        tensor(0.5000)

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

    An entry counts where ``input`` and ``target`` are both valid.

    Args:
        input (Tensor): Floating point, of any shape; plain or a MaskedTensor.
        target (Tensor): 1 or -1, of any dtype, broadcastable to ``input``; plain or a MaskedTensor.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid entries, ``"sum"`` does not,
            ``"none"`` gives the loss of each entry.
        mask (Tensor, optional): True = valid entry of ``input``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``target``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in ``input``'s dtype, or with ``reduction="none"`` one of ``input``'s shape, 0 where an entry
        is masked. A MaskedTensor if an operand is one; then a loss of which nothing is valid is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``input`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> x, y = torch.tensor([0.0, 9.0]), torch.tensor([1.0, -1.0])
        >>> mt.soft_margin_loss(x, y, mask=torch.tensor([True, False]))
        tensor(0.6931)

    References:
        ``torch.nn.functional.soft_margin_loss``.
    """
@overload
def soft_margin_loss(input: Tensor, target: MaskedTensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor: ...
@overload
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> Tensor: ...
def softmax(input: T, dim: int, dtype: torch.dtype | None=None, *, mask: Tensor | None=None, mode: Mode='safe') -> T:
    """The softmax of the valid entries along ``dim``: ``exp(x) / sum(exp(x[valid]))``.

    A plain result is 0 where an entry is masked; that of a MaskedTensor is masked there. A sparse ``input`` keeps its
    pattern: entries that it does not store never take part.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int): The dimension to go along. ``axis`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        mode (str, optional): What a slice without a finite entry gives. ``"safe"``: zeros, with zero gradients, if
            nothing is valid, and NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: zeros in both
            cases, as torch's ``_safe_softmax``. ``"none"``: NaN in both cases, by the plain formula.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; or ``mode`` is not one of the
            allowed values.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
        >>> m = torch.tensor([[True, False, True], [False, False, False]])
        >>> mt.softmax(x, 1, mask=m)
        tensor([[0.1192, 0.0000, 0.8808],
                [0.0000, 0.0000, 0.0000]])

    References:
        ``torch.softmax``, ``torch.masked.softmax``; ``mode`` as oneDNN's ``inf_as_zero``.
    """
def softmin(input: T, dim: int, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, mode: Mode='safe') -> T:
    """The softmax of ``-input`` over the valid entries along ``dim``: ``exp(-x) / sum(exp(-x[valid]))``.

    A plain result is 0 where an entry is masked; that of a MaskedTensor is masked there. A sparse ``input`` keeps its
    pattern.

    Args:
        input (Tensor): Floating point, of any shape and layout; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int): The dimension to go along. ``axis`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        mode (str, optional): What a slice without a finite entry gives. ``"safe"``: zeros, with zero gradients, if
            nothing is valid, and NaN if all valid entries are -inf, as in torch. ``"inf_as_zero"``: zeros in both
            cases, as torch's ``_safe_softmax``. ``"none"``: NaN in both cases, by the plain formula.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; or ``mode`` is not one of the
            allowed values.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x, m = torch.tensor([1.0, -9.0, 1.0]), torch.tensor([True, False, True])
        >>> mt.softmin(x, 0, mask=m)
        tensor([0.5000, 0.0000, 0.5000])

    References:
        ``torch.nn.functional.softmin``, ``torch.masked.softmin``.
    """
def std(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The standard deviation of the valid entries along ``dim``: the square root of :func:`var`.

    Where ``n <= correction`` a plain result is NaN and that of a MaskedTensor is masked. The gradient is 0 where the
    deviation is 0.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        unbiased (bool, optional): The older spelling of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        correction (float, optional): What is taken off ``n``; by default 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype: real for complex, the default dtype for integers and
        bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: Both ``unbiased`` and ``correction`` are given, or ``mask`` does not broadcast to ``input`` or lies
            on another device.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.std(x, correction=0, mask=~x.isnan())
        tensor(1.5000)

    References:
        ``torch.std``, ``torch.masked.std``.
    """
def std_mean(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> tuple[T, T]:
    """The standard deviation and the mean of the valid entries along ``dim``.

    Where too few entries are valid, plain results are NaN and those of a MaskedTensor are masked; see :func:`var`.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        unbiased (bool, optional): The older spelling of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        correction (float, optional): What is taken off ``n``; by default 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        tuple of Tensor: ``(std, mean)``, each of ``input``'s shape without ``dim``, in its dtype; the deviation of
        complex numbers is real. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: Both ``unbiased`` and ``correction`` are given, or ``mask`` does not broadcast to ``input`` or lies
            on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.std_mean(x, correction=0, mask=~x.isnan())
        (tensor(1.5000), tensor(2.5000))

    References:
        ``torch.std_mean``.
    """
def sum(input: T, dim: Dim=None, keepdim: bool=False, *, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The sum of the valid entries along ``dim``: ``sum(x[valid])``.

    A plain result is 0 where no entry is valid; that of a MaskedTensor is masked there.

    A sparse ``input`` gives a sparse result in the same layout, or in COO where that layout cannot hold it. A 0-d
    result is strided.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in ``dtype`` if it is given, else in ``input``'s; int64 for integers
        and bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device; ``fill_value`` does not fit an
            integer result; or ``min_count`` needs NaN, which integers and bools lack: give ``fill_value``.
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

    References:
        ``torch.sum``, ``torch.masked.sum``; ``min_count`` as in ``pandas.DataFrame.sum``.
    """
@overload
def triplet_margin_loss(anchor: MaskedTensor, positive: Tensor, negative: Tensor, margin: float=1.0, p: float=2.0, eps: float=1e-06, swap: bool=False, *, reduction: str='mean', mask: Tensor | None=None, target_mask: Tensor | None=None, fill_value: Number | None=None) -> MaskedTensor:
    """The triplet loss: ``max(0, d(anchor, positive) - d(anchor, negative) + margin)``.

    ``d`` is the ``p``-norm of the difference along the last dimension, over the features that are valid in both.

    Args:
        anchor (Tensor): ``(N, D)`` or ``(D,)``, floating point; plain or a MaskedTensor.
        positive (Tensor): The same shape and dtype; should be near.
        negative (Tensor): The same shape and dtype; should be far.
        margin (float, optional): By how much the negative should be farther away.
        p (float, optional): The order of the norm.
        eps (float, optional): Added to the difference, for a finite gradient.
        swap (bool, optional): Use the distance of positive and negative where it is smaller.
        reduction (str, optional): ``"mean"`` divides the sum by the number of valid triplets, ``"sum"`` does not,
            ``"none"`` gives the loss of each triplet.
        mask (Tensor, optional): True = valid entry of ``anchor``; bool, of any layout, broadcastable to it.
        target_mask (Tensor, optional): True = valid entry of ``negative``; bool, of any layout, broadcastable to it.
        fill_value (number, optional): The loss if nothing is valid; by default NaN for a mean and 0 for a sum.

    Returns:
        Tensor: A 0-d loss in the dtype of the first operand, or with ``reduction="none"`` one of shape ``(N,)``, 0
        where nothing of a sample is valid. A MaskedTensor if an operand is one; then a loss of which nothing is valid
        is masked.

    Raises:
        TypeError: An operand is not a tensor, or a mask is not a plain bool or int tensor.
        ValueError: ``reduction`` is not one of the allowed values, or a mask does not broadcast to its operand or lies
            on another device.
        RuntimeError: The shapes do not broadcast, or ``anchor`` is not floating point.
        UnsupportedOpError: An operand is sparse, and the loss has no sparse rule, or the result would be dense.

    Example:
        >>> a, p = torch.tensor([[0.0, 9.0]]), torch.tensor([[1.0, 0.0]])
        >>> n = torch.tensor([[3.0, 0.0]])
        >>> m = torch.tensor([True, False])
        >>> mt.triplet_margin_loss(a, p, n, margin=4.0, mask=m)
        tensor(2.)

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

    Slices are equal if they are valid at the same places and equal there; those with nothing valid are dropped. A
    masked entry of a slice is 0 in a plain result.

    A sparse ``input`` gives a strided result, which has 0 if an entry that is not stored is valid.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        sorted (bool, optional): Sort the result.
        return_inverse (bool, optional): Return the position of each entry in the result, too; not for a sparse
            ``input``.
        return_counts (bool, optional): Return how often each value occurs, too.
        dim (int, optional): The dimension that numbers the slices; None is entries. Not for a sparse ``input``.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor or tuple: The values ``(n,)`` in ``input``'s dtype, and with the options int64 tensors: the inverse, of
        ``input``'s shape and masked where a MaskedTensor is, and the counts ``(n,)``. MaskedTensors if ``input`` is
        one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
        NotImplementedError: ``input`` is complex, which has no order.
        UnsupportedOpError: ``input`` is sparse and ``return_inverse`` or ``dim`` is given.

    Example:
        >>> mt.unique(torch.tensor([3, 1, 3, 9]), mask=torch.tensor([True, True, True, False]))
        tensor([1, 3])

    References:
        ``torch.unique``.
    """
@overload
def unique(input: T, sorted: bool=True, return_inverse: bool=False, return_counts: bool=False, dim: int | None=None, *, mask: Tensor | None=None) -> tuple[T, ...]: ...
@overload
def unique_consecutive(input: T, return_inverse: Literal[False]=False, return_counts: Literal[False]=False, dim: int | None=None, *, mask: Tensor | None=None) -> T:
    """The valid entries in order, without those that repeat the one before; with ``dim`` slices, as :func:`unique`.

    A sparse ``input`` gives a strided result, in which the valid entries between two stored ones are a run of zeros.

    Args:
        input (Tensor): Any shape and layout, any dtype but complex; plain, or a MaskedTensor, whose own mask counts,
            too.
        return_inverse (bool, optional): Return the position of each entry in the result, too; not for a sparse
            ``input``.
        return_counts (bool, optional): Return the length of each run, too.
        dim (int, optional): The dimension that numbers the slices; None is entries. Not for a sparse ``input``.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        Tensor or tuple: The values ``(n,)`` in ``input``'s dtype, and with the options int64 tensors: the inverse, of
        ``input``'s shape and masked where a MaskedTensor is, and the counts ``(n,)``. MaskedTensors if ``input`` is
        one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: ``mask`` does not broadcast to ``input``, or lies on another device.
        IndexError: ``dim`` is out of range.
        NotImplementedError: ``input`` is complex, which has no order.
        UnsupportedOpError: ``input`` is sparse and ``return_inverse`` or ``dim`` is given.

    Example:
        >>> m = torch.tensor([True, True, False, True, True])
        >>> mt.unique_consecutive(torch.tensor([1, 1, 9, 1, 2]), mask=m)
        tensor([1, 2])

    References:
        ``torch.unique_consecutive``.
    """
@overload
def unique_consecutive(input: T, return_inverse: bool=False, return_counts: bool=False, dim: int | None=None, *, mask: Tensor | None=None) -> tuple[T, ...]: ...
def var(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None, fill_value: Number | None=None, min_count: int | None=None) -> T:
    """The variance of the valid entries along ``dim``: ``sum((x - mean) ** 2) / (n - correction)``.

    ``n`` is the number of valid entries. Where ``n <= correction`` a plain result is NaN and that of a MaskedTensor is
    masked.

    Args:
        input (Tensor): Any shape, layout and dtype; plain, or a MaskedTensor, whose own mask counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        unbiased (bool, optional): The older spelling of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        correction (float, optional): What is taken off ``n``; by default 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.
        fill_value (number, optional): The value of a result with too few valid entries.
        min_count (int, optional): How many valid entries a result needs. With fewer it is masked, or in a plain result
            ``fill_value``, else NaN.

    Returns:
        Tensor: ``input``'s shape without ``dim``, in its dtype: real for complex, the default dtype for integers and
        bools. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: Both ``unbiased`` and ``correction`` are given, or ``mask`` does not broadcast to ``input`` or lies
            on another device.
        IndexError: ``dim`` is out of range.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var(x, correction=0, mask=~x.isnan())
        tensor(2.2500)

    References:
        ``torch.var``, ``torch.masked.var``.
    """
def var_mean(input: T, dim: Dim=None, unbiased: bool | None=None, keepdim: bool=False, *, correction: float | None=None, dtype: torch.dtype | None=None, mask: Tensor | None=None) -> tuple[T, T]:
    """The variance and the mean of the valid entries along ``dim``.

    Where too few entries are valid, plain results are NaN and those of a MaskedTensor are masked; see :func:`var`.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain, or a MaskedTensor, whose own mask
            counts, too.
        dim (int or tuple of int, optional): The dimensions to reduce; None or ``()`` is all of them. ``axis`` is the
            same.
        unbiased (bool, optional): The older spelling of ``correction``: True is 1, False is 0.
        keepdim (bool, optional): Keep reduced dimensions with size 1. ``keepdims`` is the same.
        correction (float, optional): What is taken off ``n``; by default 1.
        dtype (torch.dtype, optional): Convert ``input`` to this dtype first.
        mask (Tensor, optional): True = valid; bool, of any layout, broadcastable to ``input``, or wider, which expands
            a strided one. Integers are read as ``mask != 0``.

    Returns:
        tuple of Tensor: ``(var, mean)``, each of ``input``'s shape without ``dim``, in its dtype; the variance of
        complex numbers is real. MaskedTensors if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, or ``mask`` is not a plain bool or int tensor.
        ValueError: Both ``unbiased`` and ``correction`` are given, or ``mask`` does not broadcast to ``input`` or lies
            on another device.
        IndexError: ``dim`` is out of range.
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([1.0, float("nan"), 4.0])
        >>> mt.var_mean(x, correction=0, mask=~x.isnan())
        (tensor(2.2500), tensor(2.5000))

    References:
        ``torch.var_mean``.
    """
