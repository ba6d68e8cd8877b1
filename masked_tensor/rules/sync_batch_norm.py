"""Synchronized batch normalization: statistics over the valid entries of a channel in the batches of all ranks.

``nn.SyncBatchNorm`` gathers two numbers per channel from every rank, and uses the batch size as the count.  A
masked batch has a separate count for every channel, so here the count travels inside the first number: a float64 whose
two halves are the mean and the number of valid entries, in float32.  Only these rules read it.
"""

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import is_tracked
from ..op import Op
from ..pair import Pair, Payload
from ..select import select, zero_masked
from ..shared.norm_buffers import track

Operand = Pair | Tensor


def _join_statistics(mean: Tensor, number: Tensor) -> Tensor:
    return torch.stack([mean, number], -1).float().view(torch.float64).squeeze(-1)


def _split_statistics(joined: Tensor) -> tuple[Tensor, Tensor]:
    mean, number = joined.contiguous().unsqueeze(-1).view(torch.float32).unbind(-1)
    return mean, number


def stats(x: Pair, eps: float) -> tuple[Tensor, Tensor]:
    """This rank's means with their counts, and variances (divided by n), per channel."""
    if x.data.dtype is torch.float64:
        raise NotImplementedError("nn.SyncBatchNorm of a float64 masked tensor: its statistics travel in float32")
    dims = _sum_channels(x)
    number = masks.count(x.mask, dims, True)
    divisor = number.clamp_min(1)
    data = zero_masked(x).float()
    mean = data.sum(dims, True) / divisor
    variance = select(data - mean, x.mask, 0).square().sum(dims, True) / divisor
    return _join_statistics(mean.flatten(), number.flatten()), variance.flatten().double()


def gather_statistics(
    x: Pair,
    joined: Tensor,
    variances: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """The mean of all ranks with its count, and the reciprocal standard deviation; updates the buffers.

    ``joined`` and ``variances`` are ``(ranks, channels)``; ``counts``, the sizes of the batches, say nothing here.
    """
    means, numbers = (t.double() for t in _split_statistics(joined))
    number = numbers.sum(0)
    divisor = number.clamp_min(1)
    mean = (means * numbers).sum(0) / divisor
    variance = ((variances + (means - mean).square()) * numbers).sum(0) / divisor
    track(running_mean, running_var, momentum, mean, variance, number, lambda t: t)
    return _join_statistics(mean, number), torch.where(number == 0, 1, variance + eps).rsqrt()


def normalize_elements(
    x: Pair, weight: Tensor | None, bias: Tensor | None, joined: Tensor, rstd: Tensor, eps: float
) -> Pair:
    """``(x - mean) * rstd * weight + bias``."""
    result = (x.data - _reshape_channels(_split_statistics(joined)[0], x)) * _reshape_channels(
        rstd if weight is None else rstd * weight, x
    )
    result = result if bias is None else result + _reshape_channels(bias, x)
    return Pair(select(result.to(x.data.dtype), x.mask, 0), x.mask, Payload.ZERO)


def backward_sums(
    grad: Operand, x: Pair, joined: Tensor, rstd: Tensor, weight: Tensor | None, *wanted: bool
) -> tuple[Tensor, ...]:
    """This rank's sums of the gradient g and of ``g * (x - mean)``, and the gradients of weight and bias."""
    g = zero_masked(pair.as_pair(grad))
    if is_tracked(g):
        raise RuntimeError("nn.SyncBatchNorm has no second derivative: its backward exchanges sums between ranks")
    centre = select(x.data - _reshape_channels(_split_statistics(joined)[0], x), x.mask, 0)
    total, moment = g.float().sum(_sum_channels(x)), (g * centre).sum(_sum_channels(x))
    dtype = total.dtype if weight is None else weight.dtype
    return total, moment, (moment * rstd).to(dtype), total.to(dtype)


def backward(
    grad: Operand,
    x: Pair,
    joined: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    total: Tensor,
    moment: Tensor,
    counts: Tensor,
) -> Pair:
    """``(g - total / n - (x - mean) * rstd ** 2 * moment / n) * rstd * weight``, with the sums and n of all ranks."""
    mean, number = _split_statistics(joined)
    share = number.clamp_min(1).reciprocal()
    result = zero_masked(pair.as_pair(grad)) - _reshape_channels(total * share, x)
    result = result - (x.data - _reshape_channels(mean, x)) * _reshape_channels(rstd.square() * moment * share, x)
    result = result * _reshape_channels(rstd if weight is None else rstd * weight, x)
    return Pair(select(result.to(x.data.dtype), x.mask, 0), x.mask, Payload.ZERO)


def _reshape_channels(t: Tensor, x: Pair) -> Tensor:
    return t.float().view(-1, *(1 for _ in x.data.shape[2:]))


def _sum_channels(x: Pair) -> tuple[int, ...]:
    return tuple(d for d in range(x.data.dim()) if d != 1)


OPS = [
    Op("batch_norm_stats", stats),
    Op("batch_norm_gather_stats_with_counts", gather_statistics),
    Op("batch_norm_elemt", normalize_elements),
    Op("batch_norm_backward_reduce", backward_sums),
    Op("batch_norm_backward_elemt", backward),
]
