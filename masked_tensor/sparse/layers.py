"""The norm layers of sparse tensors, with the arguments of the operators: which elements make up a group.

The result has the pattern of the input; ``mask=None`` is that of what is stored.
"""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from ..errors import expect_shape
from ..pair import Pair
from ..shared.norm_buffers import track
from ..shared.standardize import smallest_eps
from .norms import normalize_by, standardize


def keep_pattern(function: Callable[..., Tensor]) -> Callable[..., Pair]:
    """A function of ``(x, mask, *arguments)`` whose result has the pattern of ``x``, as a rule for sparse pairs."""

    def rule(x: Pair, *arguments: Any, **keywords: Any) -> Pair:
        return Pair(function(x.data, x.mask, *arguments, **keywords), x.mask)

    return rule


def layer_norm(
    x: Tensor,
    mask: Tensor | None,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
    *,
    centred: bool = True,
) -> Tensor:
    """Groups are the elements of the last dimensions."""
    lead, shape = x.dim() - len(normalized_shape), tuple(x.shape)
    if lead < 0 or not normalized_shape or shape[lead:] != tuple(normalized_shape):
        raise RuntimeError(
            f"the last dimensions of the input must be normalized_shape={list(normalized_shape)}, got an input of "
            f"shape {list(shape)}"
        )
    kept = dict.fromkeys(range(lead), 1)
    return standardize(x, mask, kept, range(lead, len(shape)), weight, bias, eps, centred)[0]


def rms_norm(
    x: Tensor,
    mask: Tensor | None,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """The same without the mean."""
    eps = smallest_eps(x.dtype) if eps is None else eps
    return layer_norm(x, mask, normalized_shape, weight, None, eps, centred=False)


def group_norm(
    x: Tensor,
    mask: Tensor | None,
    groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Groups are runs of channels of a row."""
    channels = x.shape[1]
    if channels % groups:
        raise RuntimeError(f"num_groups={groups} must divide the number of channels, got shape {list(x.shape)}")
    return standardize(x, mask, {0: 1, 1: max(1, channels // groups)}, (1,), weight, bias, eps)[0]


def instance_norm(x: Tensor, mask: Tensor | None, *arguments: Any) -> Tensor:
    """Groups are the channels of each row."""
    return _by_channel(x, mask, {0: 1, 1: 1}, *arguments)


def batch_norm(x: Tensor, mask: Tensor | None, *arguments: Any) -> Tensor:
    """Groups are the channels."""
    return _by_channel(x, mask, {1: 1}, *arguments)


def _by_channel(
    x: Tensor,
    mask: Tensor | None,
    kept: dict[int, int],
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """With the batch's statistics, which move the running ones, or in evaluation with the running ones."""
    channels = x.shape[1]
    for name, buffer in (("running_mean", running_mean), ("running_var", running_var)):
        if buffer is not None:
            expect_shape(name, buffer, (channels,))
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("evaluation needs running_mean and running_var")
        return normalize_by(x, mask, running_mean, running_var, weight, bias, eps)
    result, s = standardize(x, mask, kept, (1,), weight, bias, eps)

    def add_up(groups: Tensor) -> Tensor:
        return groups.new_zeros(channels).index_add(0, s.keys % channels, groups)

    track(running_mean, running_var, momentum, s.mean, s.variance, s.number, add_up)
    return result
