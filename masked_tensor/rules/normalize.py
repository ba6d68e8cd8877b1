"""Normalization: the statistics of a group are those of its valid entries; validity stays as it is.

A group without valid entries is masked, with zero gradient.  Where the mask is constant over the groups (padded rows
under a LayerNorm), torch's own kernel runs and the mask passes through.  A masked weight or bias masks what it scales.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import in_dual_level, in_transform, is_tracked
from ..errors import expect_shape
from ..kernels.precision import rounds_noticeably
from ..op import Op
from ..packing import per_token as packed
from ..packing.per_sequence import per_sequence_norm
from ..pair import Pair
from ..select import guard, zero_masked, zeroed_result
from ..shared.memory_format import make_dense, suggest_format
from ..shared.standardize import Parameter, reshape_parameter, smallest_eps, standardize
from ..sparse import layers
from ..sparse.rules import sparse_rule

Operand = Pair | Tensor


def layer_norm(
    x: Operand,
    normalized_shape: Sequence[int],
    weight: Parameter = None,
    bias: Parameter = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Pair:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the valid entries of the last dimensions."""
    return native_layer_norm(x, normalized_shape, weight, bias, eps, False)[0]


def native_layer_norm(
    x: Operand, normalized_shape: Sequence[int], weight: Parameter, bias: Parameter, eps: float, statistics: bool = True
) -> tuple[Pair, ...]:
    """The form that also returns the mean and reciprocal standard deviation of every group, if requested."""
    x = pair.as_pair(x)
    dims = _last(x, normalized_shape)
    found = _run_torch(torch.native_layer_norm, x, dims, normalized_shape, weight, bias, eps)
    if found is not None:
        data, mean, rstd = found
        if not statistics:
            return (zeroed_result(data, x.mask),)
        groups = masks.any(x.mask, dims, True)
        return zeroed_result(data, x.mask), _statistic(mean, groups), _statistic(rstd, groups)
    scale, shift = _align_parameters(x, normalized_shape, weight, bias)
    result, s = standardize(make_dense(x), dims, eps, scale, shift)
    groups, dtype = s.number != 0, x.data.dtype
    return result, Pair(s.mean.detach().to(dtype), groups), Pair(s.rstd.detach().to(dtype), groups)  # as torch's own


def rms_norm(x: Operand, normalized_shape: Sequence[int], weight: Parameter = None, eps: float | None = None) -> Pair:
    """``x / sqrt(mean(x * x) + eps) * weight`` over the valid entries of the last dimensions."""
    return fused_rms_norm(x, normalized_shape, weight, eps, False)[0]


def fused_rms_norm(
    x: Operand, normalized_shape: Sequence[int], weight: Parameter, eps: float | None, statistic: bool = True
) -> tuple[Pair, ...]:
    """The form that also returns the reciprocal root mean square of every group, if requested."""
    x = pair.as_pair(x)
    dims = _last(x, normalized_shape)
    (wide,) = _align_parameters(x, normalized_shape, weight)  # torch's kernel would broadcast other shapes
    found = _run_torch(torch.ops.aten._fused_rms_norm.default, x, dims, normalized_shape, weight, eps)
    if found is not None:
        data, rstd = found
        if not statistic:
            return (zeroed_result(data, x.mask),)
        return zeroed_result(data, x.mask), _statistic(rstd, masks.any(x.mask, dims, True))
    eps = smallest_eps(x.data.dtype) if eps is None else eps
    result, s = standardize(make_dense(x, channels_last=True), dims, eps, wide, centred=False)
    return result, Pair(s.rstd, s.number != 0)


def group_norm(
    x: Operand,
    num_groups: int,
    weight: Parameter = None,
    bias: Parameter = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Pair:
    """``(x - mean) / sqrt(var + eps) * weight + bias`` over the valid entries of each group of channels."""
    x = pair.as_pair(x)
    if x.data.shape[1] % num_groups:
        raise RuntimeError(
            f"Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.data.shape)} and num_groups={num_groups}"
        )
    data = _run_torch(torch.group_norm, x, range(1, x.data.dim()), num_groups, weight, bias, eps)
    return Pair(data, x.mask) if data is not None else _normalize_groups(x, num_groups, weight, bias, eps)[0]


def native_group_norm(
    x: Operand, weight: Parameter, bias: Parameter, n: int, channels: int, size: int, groups: int, eps: float
) -> tuple[Pair, Pair, Pair]:
    """The form that also returns the mean and reciprocal standard deviation of every group, ``(n, groups)``."""
    x = pair.as_pair(x)
    if tuple(x.data.shape[:2]) != (n, channels) or x.data.numel() != n * channels * size or size < 1:
        raise RuntimeError(
            f"native_group_norm: the input must have {n} samples of {channels} channels of {size} entries, got shape "
            f"{tuple(x.data.shape)}"
        )
    return _normalize_groups(x, groups, weight, bias, eps)


def _normalize_groups(x: Pair, groups: int, weight: Parameter, bias: Parameter, eps: float) -> tuple[Pair, Pair, Pair]:
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None:
            expect_shape(name, pair.data_of(parameter), (x.data.shape[1],))
    x, shape = make_dense(x, channels_last=True), x.data.shape
    split = (shape[0], groups, shape[1] // groups, *shape[2:])
    parts = Pair(x.data.reshape(split), masks.reshape(x.mask, split), x.payload)
    dims = tuple(range(2, len(split)))
    channels = (1, *split[1:3], *(1 for _ in shape[2:]))
    wide, s = standardize(parts, dims, eps, reshape_parameter(weight, channels), reshape_parameter(bias, channels))
    valid = x.mask if masks.same_memory(wide.mask, parts.mask) else masks.reshape(wide.mask, shape)
    data = wide.data.reshape(shape).contiguous(memory_format=suggest_format(x.data))
    result = Pair(data, valid, wide.payload)
    some = (s.number != 0).reshape(shape[0], groups)
    mean, rstd = (t.reshape(some.shape).to(x.data.dtype) for t in (s.mean, s.rstd))
    return result, _statistic(mean, some), _statistic(rstd, some)


def weight_norm(v: Operand, g: Operand, dim: int = 0) -> Pair:
    """``v * (g / norm(v))``, the norm over the valid entries of each slice along ``dim``."""
    return weight_norm_interface(v, g, dim)[0]


def weight_norm_interface(v: Operand, g: Operand, dim: int = 0) -> tuple[Pair, Pair]:
    """The form that also returns the norms."""
    v = pair.as_pair(v)
    data = zero_masked(v)
    dims = [d for d in range(data.dim()) if d != dim % data.dim()] if dim != -1 else list(range(data.dim()))
    some = masks.any(v.mask, dims, True)
    norm = torch.linalg.vector_norm(data, 2, dims, keepdim=True)
    scale = pair.as_pair(g)
    mask = masks.logical_and(v.mask, scale.mask)
    result = data * (zero_masked(scale) / torch.where(some, norm, 1))
    return Pair(result, masks.expand_to(mask, result.shape)), _statistic(norm, some)


def renorm(x: Pair, p: float, dim: int, maxnorm: float) -> Pair:
    """Slices along ``dim`` whose norm over the valid entries exceeds ``maxnorm`` are scaled down to it."""
    return Pair(torch.renorm(zero_masked(x), p, dim, maxnorm), x.mask)


def _last(x: Pair, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    ndim = x.data.dim()
    return tuple(range(max(0, ndim - len(normalized_shape)), ndim))


def _run_torch(kernel: Any, x: Pair, dims: Sequence[int], *arguments: Any) -> Any:
    """What torch's kernel gives of the data and ``arguments``, in the dtype of ``x``; None where it does not serve.

    It serves where the mask is constant over the groups and no parameter is masked, and not in forward mode, which with
    another derivative around it is wrong in torch.  ``arguments`` are the size of the groups, the parameters and
    ``eps``: groups of zeros need a dtype in which ``eps ** -0.5`` is finite.
    """
    _, *parameters, eps = arguments
    if not masks.is_constant(x.mask, dims) or any(type(p) is Pair for p in parameters) or in_dual_level():
        return None
    dtype = x.data.dtype
    if eps is not None and eps <= _LEAST.get(dtype, 0.0):
        if not rounds_noticeably(dtype) or eps <= _LEAST[torch.float32]:
            return None
        dtype = torch.float32
    if in_transform() or (parameters[0] is not None and is_tracked(parameters[0])):
        data = zero_masked(x, owned=True)  # masked-out data could reach the weight's gradient
    else:
        data = guard(x.data, x.mask, owned=True)
    if dtype is x.data.dtype:
        return kernel(data, *arguments)
    results = kernel(*(a.to(dtype) if isinstance(a, Tensor) else a for a in (data, *arguments)))
    return results.to(x.data.dtype) if isinstance(results, Tensor) else [r.to(x.data.dtype) for r in results]


# Half precision keeps 1 / sqrt(eps) in itself, and computes in float32.
_LEAST = {dtype: torch.finfo(dtype).tiny for dtype in (torch.bfloat16, torch.float32, torch.float64)}
_LEAST[torch.float16] = 2 * torch.finfo(torch.float16).max ** -2


def _align_parameters(x: Pair, normalized_shape: Sequence[int], *parameters: Parameter) -> list[Parameter]:
    """Parameters of the last dimensions with as many dimensions as the data; other sizes raise torch's errors."""
    shape = tuple(normalized_shape)
    if not shape or tuple(x.data.shape[-len(shape) :]) != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], "
            f"but got input of size {list(x.data.shape)}"
        )
    aligned: list[Parameter] = []
    for parameter in parameters:
        if parameter is not None:
            if tuple(pair.data_of(parameter).shape) != shape:
                raise RuntimeError(
                    f"Expected weight and bias to be of the shape of normalized_shape {list(shape)}, but got "
                    f"{list(pair.data_of(parameter).shape)}"
                )
            parameter = reshape_parameter(parameter, (*(1,) * (x.data.dim() - len(shape)), *shape))
        aligned.append(parameter)
    return aligned


def _statistic(data: Tensor, mask: Tensor) -> Pair:
    return Pair(data, masks.expand_to(mask, data.shape))


OPS = [
    Op("layer_norm", layer_norm, sparse=sparse_rule(layers.keep_pattern(layers.layer_norm)), packed=packed.normalize),
    Op("native_layer_norm", native_layer_norm, packed=packed.normalize),
    Op("rms_norm", rms_norm, sparse=sparse_rule(layers.keep_pattern(layers.rms_norm)), packed=packed.normalize),
    Op("_fused_rms_norm", fused_rms_norm, packed=packed.normalize),
    Op("group_norm", group_norm, sparse=sparse_rule(layers.keep_pattern(layers.group_norm)), packed=per_sequence_norm),
    Op("native_group_norm", native_group_norm),
    Op("_weight_norm", weight_norm),
    Op("_weight_norm_interface", weight_norm_interface),
    Op("renorm", renorm),
]
