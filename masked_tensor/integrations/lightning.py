"""Lightning: a value that is masked does not count in what is logged, over steps and ranks."""

from inspect import BoundArguments
from typing import Any

import torch
from torch import Tensor

from .. import MaskedTensor
from ..extend.libraries import replace
from .places import LIGHTNING_LOG, LIGHTNING_MEAN, LIGHTNING_SYNC
from .wrapping import Function, call, data_of, mask_of, ratio, sum_and_count, with_masked


def _sync(function: Function, given: BoundArguments) -> Any:
    """The mean of the ranks that have a value."""
    result, op = given.arguments["result"], given.arguments["reduce_op"]
    if op not in ("mean", "avg", torch.distributed.ReduceOp.AVG):
        return call(function, given)
    given.arguments.update(result=sum_and_count(result), reduce_op=torch.distributed.ReduceOp.SUM)
    return ratio(call(function, given))


def _update(function: Function, given: BoundArguments) -> Any:
    """``function`` of ``(self, value, batch_size)``: a masked value weighs nothing."""
    metric, value, size = given.arguments["self"], given.arguments["value"], given.arguments["batch_size"]
    if not metric.is_tensor:
        return call(function, given)
    if value.dtype not in (torch.float32, torch.float64):
        value = value.to(torch.get_default_dtype())
    meta = metric.meta
    if meta.on_step:
        step = meta.sync(value.clone())
        metric._forward_cache = step.filled(torch.nan) if type(step) is MaskedTensor else step
        if not meta.on_epoch:
            metric.value = metric._forward_cache
            return None
    valid, data = mask_of(value), data_of(value)
    if meta.is_mean_reduction:
        metric.value = metric.value + data * size
        metric.cumulated_batch_size = metric.cumulated_batch_size + size * valid
    elif meta.is_max_reduction or meta.is_min_reduction:
        metric.value = torch.where(valid, meta.reduce_fx(metric.value, data), metric.value)
    elif meta.is_sum_reduction:
        metric.value = metric.value + data
    return None


def _mean(compute: Function) -> Function:
    """With the count as a float: the mean of counts over ranks would be cut to an integer."""

    def computed(metric: Any) -> Any:
        count: Tensor | None = getattr(metric, "cumulated_batch_size", None)
        if count is not None and not count.is_floating_point():
            metric.cumulated_batch_size = count.to(metric.value.dtype)
        try:
            return compute(metric)
        finally:
            if count is not None:
                metric.cumulated_batch_size = count

    return computed


replace(LIGHTNING_SYNC, with_masked(_sync))
replace(LIGHTNING_LOG, with_masked(_update))
replace(LIGHTNING_MEAN, _mean)
