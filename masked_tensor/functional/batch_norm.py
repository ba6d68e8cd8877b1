"""Functional batch and instance normalization, with the statistics of the valid elements in the running ones too."""

from torch import Tensor

from ..sparse import layers
from .norm_layers import run_norm
from .reductions.run import aten
from .registry import form


@form
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
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

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
        RuntimeError: The running statistics or parameters do not have one entry per channel.
        UnsupportedOpError: A parameter is masked and sparse.

    Example:
        >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
        >>> mt.instance_norm(x, eps=0.0, mask=m)
        tensor([[[-1.,  0.,  1.]]])

    References:
        ``torch.nn.functional.instance_norm``; Ulyanov et al., Instance normalization, 2016.
    """
    arguments = (weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)
    return run_norm(aten.instance_norm.default, layers.instance_norm, input, mask, *arguments)


@form
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
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

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is not a tensor, ``mask`` is not a plain bool or int tensor, or ``input`` is sparse and a
            parameter is not plain and strided.
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
    arguments = (weight, bias, running_mean, running_var, training, momentum, eps, False)
    return run_norm(aten.batch_norm.default, layers.batch_norm, input, mask, *arguments)
