"""Batch norm: the statistics of each channel over the valid entries of the batch."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .normalize import both, group_norm, scaled, standard


def native_batch_norm(op: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, *rest: Any, **kwargs: Any) -> Any:
    x = both(x)
    if x.data.dim() < 2:  # empty: there is no channel
        return (x,)
    training, _, eps = rest
    ones = [1] * (x.data.dim() - 2)
    channels = (x.data.shape[1], *ones)
    if training:
        data, mean, rstd = standard(x, torch.arange(channels[0]).reshape(channels), eps)
        return scaled(data, x.mask, weight, bias, channels), mean, rstd
    mean, var = both(mean), both(var)
    data = (x.data - mean.data.reshape(channels)) / (var.data.reshape(channels) + eps).sqrt()
    mask = x.mask & mean.mask.reshape(channels) & var.mask.reshape(channels)
    empty = both(torch.zeros(0, dtype=x.data.dtype))
    return scaled(data, mask, weight, bias, channels), empty, empty


def legit_batch_norm(op: Any, x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
    stats = rest if len(rest) == 5 else (None, None, *rest)
    return native_batch_norm(op, x, weight, bias, *stats)


def batch_norm_with_update(op: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, m: float, eps: float) -> Any:
    reserve = both(torch.zeros(0, dtype=torch.uint8))
    return (*native_batch_norm(op, x, weight, bias, mean, var, True, m, eps), reserve)


def batch_norm(
    op: Any,
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Masked:
    return native_batch_norm(op, x, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def instance_norm(
    op: Any,
    x: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Masked:
    if not use_input_stats:
        return batch_norm(op, x, running_mean, running_var, weight, bias, False, momentum, eps)
    return group_norm(op, x, both(x).data.shape[1], weight, bias, eps)


ORACLES = {
    "nn.functional.batch_norm": batch_norm,
    "native_batch_norm": native_batch_norm,
    "_native_batch_norm_legit": legit_batch_norm,
    "_batch_norm_with_update": batch_norm_with_update,
    "nn.functional.instance_norm": instance_norm,
}
