"""Functional batch and instance normalization, with the statistics of the valid elements in the running ones too."""

from torch import Tensor

from ..sparse import layers
from .form import aten
from .norm_layers import run_norm


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
    """torch's instance_norm with the statistics of the valid elements of each channel; 0 at masked-out ones.

    ``input`` is ``(N, C, *)``; running statistics are updated in place.  Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
    >>> mt.instance_norm(x, eps=0.0, mask=m)
    tensor([[[-1.,  0.,  1.]]])
    """
    arguments = (weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)
    return run_norm(aten.instance_norm.default, layers.instance_norm, input, mask, *arguments)


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
    """torch's batch_norm with the statistics (running ones too) of the valid elements; 0 at masked-out ones.

    ``input`` is ``(N, C, *)``.  While training, ``running_mean`` and ``running_var`` are updated in place, the variance
    with ``n / (n - 1)``, ``n`` the number of valid elements of a channel.  Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.tensor([[1.0], [99.0], [3.0]]), torch.tensor([[True], [False], [True]])
    >>> mean = torch.zeros(1)
    >>> mt.batch_norm(x, mean, torch.ones(1), training=True, momentum=1.0, eps=0.0, mask=m)
    tensor([[-1.],
            [ 0.],
            [ 1.]])
    >>> mean
    tensor([2.])
    """
    arguments = (weight, bias, running_mean, running_var, training, momentum, eps, False)
    return run_norm(aten.batch_norm.default, layers.batch_norm, input, mask, *arguments)
