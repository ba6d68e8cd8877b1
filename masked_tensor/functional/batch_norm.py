"""Functional batch and instance normalization, with (running) statistics over the valid entries."""

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

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
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

    Returns:
        Tensor: ``input``'s shape and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        TypeError: ``input`` is sparse and a parameter is not plain and strided.
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
    arguments = (weight, bias, running_mean, running_var, training, momentum, eps, False)
    return run_norm(aten.batch_norm.default, layers.batch_norm, input, mask, *arguments)
