"""Functional normalization layers, with the statistics of the valid entries (for sparse input, the stored ones)."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from .. import layouts, sparse
from ..engine.tensor import MaskedTensor
from ..pair import Pair
from ..select import select
from ..sparse import layers
from .entrance import Input, as_result, enter_input, result_in_pattern, run_op
from .reductions.run import aten
from .registry import as_torch, form


@as_torch(packed=F.layer_norm)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """Layer normalization with the mean and variance of the valid entries: ``(x - mean) / sqrt(var + eps)``.

    The statistics are over the last ``len(normalized_shape)`` dimensions. Masked entries are 0 in a plain result and
    stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern; its statistics are those of the stored entries.

    Args:
        input (Tensor): ``(*, normalized_shape)``, floating point, of any layout; plain or a MaskedTensor.
        normalized_shape (tuple of int): The last dimensions of ``input``.
        weight (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: multiplies the result.
        bias (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: added to the result.
        eps (float, optional): Added to the variance for numerical stability. Default: 1e-5.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
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
    return run_norm(aten.layer_norm.default, layers.layer_norm, input, mask, list(normalized_shape), weight, bias, eps)


@as_torch(packed=F.rms_norm)
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """RMS normalization with the mean square of the valid entries: ``x / sqrt(mean(x ** 2) + eps)``.

    The mean is over the last ``len(normalized_shape)`` dimensions. Masked entries are 0 in a plain result and stay
    masked in a MaskedTensor. A sparse ``input`` keeps its pattern; its mean is that of the stored entries.

    Args:
        input (Tensor): ``(*, normalized_shape)``, floating point, of any layout; plain or a MaskedTensor.
        normalized_shape (tuple of int): The last dimensions of ``input``.
        weight (Tensor, optional): Shape ``normalized_shape``, in ``input``'s dtype: multiplies the result.
        eps (float, optional): Added to the mean square; by default the dtype's machine epsilon.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
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
    return run_norm(aten.rms_norm.default, layers.rms_norm, input, mask, list(normalized_shape), weight, eps)


@form
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """Group normalization with the mean and variance of the valid entries of each group of channels.

    The result is ``(x - mean) / sqrt(var + eps)``. Masked entries are 0 in a plain result and stay masked in a
    MaskedTensor. A sparse ``input`` keeps its pattern; its statistics are those of the stored entries.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain or a MaskedTensor.
        num_groups (int): The number of groups, a divisor of ``C``.
        weight (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: multiplies the result.
        bias (Tensor, optional): ``(C,)``, in ``input``'s dtype, plain: added to the result.
        eps (float, optional): Added to the variance for numerical stability. Default: 1e-5.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
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
    return run_norm(aten.group_norm.default, layers.group_norm, input, mask, num_groups, weight, bias, eps)


@form
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, mask: Tensor | None = None
) -> Tensor:
    """Local response normalization over channels, in which masked entries count as 0.

    With ``m`` the mean of ``x ** 2`` over ``size`` neighbouring channels, the result is ``x / (k + alpha * m) **
    beta``. Masked entries are 0 in a plain result and stay masked in a MaskedTensor.

    Args:
        input (Tensor): ``(N, C, *)``, floating point, of any layout; plain or a MaskedTensor.
        size (int): The number of neighbouring channels.
        alpha (float, optional): The factor of the mean. Default: 0.0001.
        beta (float, optional): The exponent. Default: 0.75.
        k (float, optional): Added to the scaled mean. Default: 1.0.

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
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
    given = enter_input(input, mask)
    if given.is_sparse:
        return result_in_pattern(given, sparse.local_response_norm(given.data, given.mask, size, alpha, beta, k))
    x = Input(Pair(select(given.data, given.mask, 0), given.mask), given.masked) if given.mask is not None else given
    data = F.local_response_norm(x.data, size, alpha, beta, k)
    return as_result(Pair(data, given.mask), given.masked, 0) if given.mask is not None else data


def run_norm(op: Any, form: Callable[..., Tensor], input: Tensor, mask: Tensor | None, *arguments: Any) -> Tensor:
    """The op on strided data, or its sparse rule, which takes the same arguments."""
    given = enter_input(input, mask)
    if not given.is_sparse:
        return as_result(run_op(op, given.x, *arguments), given.masked, 0)
    for parameter in arguments:
        if isinstance(parameter, Tensor) and (type(parameter) is MaskedTensor or layouts.is_sparse(parameter)):
            raise TypeError(
                f"the parameters of a norm layer with a {given.data.layout} input must be plain strided tensors, got "
                f"{type(parameter).__name__} of layout {parameter.layout}"
            )
    return result_in_pattern(given, form(given.data, given.mask, *arguments))
