"""Functional batch and instance normalization, with the statistics of the valid elements in the running ones too."""

from typing import Any

from torch import Tensor

from .. import sparse
from ..rules.batch_norm import track
from .entrance import Given
from .form import aten
from .norm_layers import normed


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
    return normed(aten.instance_norm.default, _sparse_instance_norm, input, mask, *arguments)


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

    >>> x, m, mean = torch.tensor([[1.0], [99.0], [3.0]]), torch.tensor([[True], [False], [True]]), torch.zeros(1)
    >>> mt.batch_norm(x, mean, torch.ones(1), training=True, momentum=1.0, eps=0.0, mask=m)
    tensor([[-1.],
            [ 0.],
            [ 1.]])
    >>> mean
    tensor([2.])
    """
    arguments = (weight, bias, running_mean, running_var, training, momentum, eps, False)
    return normed(aten.batch_norm.default, _sparse_batch_norm, input, mask, *arguments)


def _sparse_instance_norm(x: Given, *arguments: Any) -> Tensor:
    return _by_channel(x, {0: 1, 1: 1}, *arguments)


def _sparse_batch_norm(x: Given, *arguments: Any) -> Tensor:
    return _by_channel(x, {1: 1}, *arguments)


def _by_channel(
    x: Given,
    kept: dict[int, int],
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    _: bool,
) -> Tensor:
    """With the batch's statistics, which move the running ones, or in evaluation with the running ones."""
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("evaluation needs running_mean and running_var")
        return sparse.normalized_by(x.data, x.mask, running_mean, running_var, weight, bias, eps)
    result, s = sparse.standardize(x.data, x.mask, kept, (1,), weight, bias, eps)
    channels = x.data.shape[1]
    track(
        running_mean,
        running_var,
        momentum,
        s.mean,
        s.variance,
        s.number,
        lambda t: t.new_zeros(channels).index_add(0, s.keys % channels, t),
    )
    return result
