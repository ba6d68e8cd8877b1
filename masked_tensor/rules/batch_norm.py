"""Batch and instance normalization: statistics over the valid entries of a channel, in the batch and in the buffers.

In training, a channel without valid entries keeps its running statistics, and a channel with one valid entry keeps its
running variance, whose unbiased estimate divides by n - 1.  In evaluation the running statistics are constants, and
validity passes through.  In instance normalization, a row contributes to the running statistics if it has valid
entries.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import in_transform, is_tracked
from ..errors import expect_shape
from ..kernels.precision import rounds_noticeably
from ..op import Op
from ..packing import per_token as packed
from ..packing.per_sequence import per_sequence_norm
from ..pair import Pair
from ..select import guard, zero_masked
from ..shared.memory_format import make_dense
from ..shared.norm_buffers import track
from ..shared.standardize import Parameter, Statistics, reshape_parameter, standardize
from ..sparse import layers
from ..sparse.rules import sparse_rule

Operand = Pair | Tensor


def batch_norm(
    x: Operand,
    weight: Parameter,
    bias: Parameter,
    running_mean: Parameter,
    running_var: Parameter,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Pair:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` per channel (dimension 1)."""
    x, parameters = pair.as_pair(x), (weight, bias, running_mean, running_var)
    if x.data.dim() < 2:  # empty, or torch's own error
        plain: Any = (p.data if type(p) is Pair else p for p in parameters)
        op: Any = torch.batch_norm
        return Pair(op(x.data, *plain, training, momentum, eps, False), x.mask)
    return _normalize(x, *parameters, training=training, momentum=momentum, eps=eps)[0]


def native_batch_norm(
    x: Operand,
    weight: Parameter,
    bias: Parameter,
    running_mean: Parameter,
    running_var: Parameter,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Pair, Pair, Pair]:
    """The form that also returns the batch's mean and reciprocal standard deviation (empty in evaluation)."""
    x = pair.as_pair(x)
    parameters = (weight, bias, running_mean, running_var)
    result, s = _normalize(x, *parameters, training=training, momentum=momentum, eps=eps)
    if s is None:
        nothing = pair.plain_pair(x.data.new_empty(0))
        return result, nothing, nothing
    some = (s.number != 0).reshape(-1)
    mean, rstd = (Pair(t.detach().reshape(-1).to(x.data.dtype), some) for t in (s.mean, s.rstd))  # as torch's own
    return result, mean, rstd


def _normalize(
    x: Pair, *parameters: Parameter, training: bool, momentum: float, eps: float
) -> tuple[Pair, Statistics | None]:
    """The result, and in training the statistics of the channels."""
    weight, bias, running_mean, running_var = parameters
    _expect_channels(x, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    if not training:
        return _evaluate(x, weight, bias, running_mean, running_var, eps), None
    _expect_dtypes(x, *parameters)
    dims = tuple(d for d in range(x.data.dim()) if d != 1)
    channels = _channels(x)
    dense = make_dense(x, channels_last=True)
    result, s = standardize(dense, dims, eps, reshape_parameter(weight, channels), reshape_parameter(bias, channels))
    track(running_mean, running_var, momentum, s.mean, s.variance, s.number, _by_channel(x))
    return result, s


def instance_norm(
    x: Operand,
    weight: Parameter,
    bias: Parameter,
    running_mean: Parameter,
    running_var: Parameter,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Pair:
    """The same per channel of each sample."""
    x = pair.as_pair(x)
    if not use_input_stats:
        dtype = x.data.dtype if weight is None else pair.data_of(weight).dtype  # torch takes buffers of any
        running_mean, running_var = (_convert(p, dtype) for p in (running_mean, running_var))
        return _evaluate(x, weight, bias, running_mean, running_var, eps)
    if x.data.dim() == 2:  # every entry is an instance of its own
        deep = pair.moved(x, torch.unsqueeze, -1)
        result = instance_norm(deep, weight, bias, running_mean, running_var, True, momentum, eps)
        return pair.moved(result, torch.squeeze, -1)
    _expect_channels(x, weight=weight, bias=bias, running_mean=running_mean, running_var=running_var)
    _expect_dtypes(x, weight, bias)
    x, channels, dims = make_dense(x), _channels(x), tuple(range(2, x.data.dim()))
    result, s = standardize(x, dims, eps, reshape_parameter(weight, channels), reshape_parameter(bias, channels))
    track(running_mean, running_var, momentum, s.mean, s.variance, s.number, _by_channel(x))
    return result


def _evaluate(
    x: Pair, weight: Parameter, bias: Parameter, running_mean: Parameter, running_var: Parameter, eps: float
) -> Pair:
    parameters = (weight, bias, running_mean, running_var)
    mask = x.mask
    for parameter in parameters:
        if type(parameter) is Pair:
            wide: Any = reshape_parameter(parameter, _channels(x))
            mask = masks.logical_and(mask, wide.mask)
    gradients = in_transform() or any(p is not None and is_tracked(pair.data_of(p)) for p in parameters)
    if mask is not x.mask:
        x = Pair(x.data, mask)
    data = zero_masked(x) if gradients else guard(x.data, mask)
    values: list[Any] = [zero_masked(p) if type(p) is Pair else p for p in parameters]
    w, b, mean, var = values
    if any(p is not None and is_tracked(p) for p in (mean, var)):  # torch's kernel takes them for constants
        channels = _channels(x)
        mean, var = mean.reshape(channels), var.reshape(channels)
        result: Any = (data - mean) * (var + eps).rsqrt()
        result = result if w is None else result * w.reshape(channels)
        return Pair(result if b is None else result + b.reshape(channels), mask)
    if x.data.shape[1] == 0:  # torch's own asks for the weight of the first channel
        return Pair(data.clone(), mask)
    return Pair(torch.batch_norm(data, w, b, mean, var, False, 0.0, eps, False), mask)


def _expect_channels(x: Pair, **parameters: Parameter) -> None:
    channels = x.data.shape[1:2]
    for name, parameter in parameters.items():
        if parameter is not None:
            stored = parameter.data if type(parameter) is Pair else parameter
            if x.data.dim() == 3 and stored.shape != channels and stored.shape == x.data.shape[2:]:
                raise RuntimeError(
                    f"batch norm of {stored.shape[0]} channels got an input of shape {tuple(x.data.shape)}, whose "
                    "channels must be in dimension 1; use x.transpose(1, 2)"
                )
            expect_shape(name, stored, channels)


def _expect_dtypes(x: Pair, weight: Parameter, bias: Parameter, *running: Parameter) -> None:
    """Raises what torch does for parameters and buffers of other dtypes than its kernels take."""
    given: Any = [None if p is None else pair.data_of(p).detach() for p in (weight, bias, *running)]
    dtypes = {t.dtype for t in given if t is not None}
    if dtypes <= {x.data.dtype} or (dtypes == {torch.float32} and rounds_noticeably(x.data.dtype)):
        return
    buffers: Any = [None if t is None else t.clone() for t in given[2:]] or [None, None]
    op: Any = torch.batch_norm
    op(x.data.new_zeros(2, x.data.shape[1]), *given[:2], *buffers, True, 0.0, 1.0, False)


def _convert(p: Parameter, dtype: torch.dtype) -> Parameter:
    if type(p) is Pair:
        return Pair(p.data.to(dtype), p.mask, p.payload)
    return None if p is None else p.to(dtype)


def _channels(x: Pair) -> tuple[int, ...]:
    return (1, x.data.shape[1], *(1 for _ in x.data.shape[2:]))


def _by_channel(x: Pair) -> Callable[[Tensor], Tensor]:
    """Adds up the statistics of several rows (instance normalization); a batch has one."""
    return lambda t: t.reshape(-1, x.data.shape[1]).sum(0)


def for_compilers(
    x: Operand, weight: Parameter, bias: Parameter, mean: Parameter, var: Parameter, momentum: float, eps: float, *,
    training: bool,
) -> tuple[Pair, ...]:  # fmt: skip
    """The form that compilers use, one for each mode."""
    return (*native_batch_norm(x, weight, bias, mean, var, training, momentum, eps), _reserve(x))


def without_buffers(
    x: Operand, weight: Parameter, bias: Parameter, training: bool, momentum: float, eps: float
) -> tuple[Pair, Pair, Pair]:
    """The form without running statistics."""
    return native_batch_norm(x, weight, bias, None, None, training, momentum, eps)


def with_running_statistics(
    x: Operand, weight: Parameter, bias: Parameter, mean: Parameter, var: Parameter, momentum: float, eps: float
) -> tuple[Pair, Pair, Pair]:
    """The form for evaluation, with running statistics."""
    return native_batch_norm(x, weight, bias, mean, var, False, momentum, eps)


def with_kernel_index(*arguments: Any) -> tuple[Pair | int, ...]:
    """The form that also names the kernel of its backward."""
    return (*native_batch_norm(*arguments[:8]), _reserve(arguments[0]), 0)


def with_reserve(*arguments: Any) -> tuple[Pair, ...]:
    """The form of a vendor's kernel, which keeps a buffer for its backward."""
    return (*native_batch_norm(*arguments), _reserve(arguments[0]))


def functional(
    x: Operand, weight: Parameter, bias: Parameter, mean: Tensor, var: Tensor, *rest: Any
) -> Sequence[Pair | Tensor]:
    """The forms that return the new running statistics instead of writing them."""
    mean, var = mean.clone(), var.clone()
    if len(rest) == 2:
        return (*for_compilers(x, weight, bias, mean, var, *rest, training=True), mean, var)
    return (*native_batch_norm(x, weight, bias, mean, var, *rest), mean, var)


def _reserve(x: Operand) -> Pair:
    return pair.plain_pair(torch.empty(0, dtype=torch.uint8, device=x.data.device))


OPS = [
    Op(
        "batch_norm",
        batch_norm,
        sparse=sparse_rule(layers.keep_pattern(layers.batch_norm)),
        packed=packed.batch_norm,
    ),
    Op(
        "instance_norm",
        instance_norm,
        sparse=sparse_rule(layers.keep_pattern(layers.instance_norm)),
        packed=per_sequence_norm,
    ),
    Op("native_batch_norm", native_batch_norm, packed=packed.batch_norm),
    Op("_native_batch_norm_legit", native_batch_norm),
    Op("_native_batch_norm_legit.no_stats", without_buffers),
    Op("_native_batch_norm_legit_no_training", with_running_statistics),
    Op("_native_batch_norm_legit_functional", functional),
    Op("_batch_norm_no_update", for_compilers, {"training": False}),
    Op("_batch_norm_with_update", for_compilers, {"training": True}),
    Op("_batch_norm_with_update_functional", functional),
    Op("_batch_norm_impl_index", with_kernel_index),
    Op("cudnn_batch_norm", with_reserve),
    Op("miopen_batch_norm", native_batch_norm),
]
