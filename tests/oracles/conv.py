"""Convolutions, output by output."""

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .pointwise import masked
from .windows import core, each, zero


def conv(dims: int) -> Any:
    def oracle(op: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
               groups: int = 1) -> Masked:  # fmt: skip
        given = (stride, padding, dilation, groups)
        x, weight = masked(x), masked(weight)
        value = op(zero(x), zero(weight), None if bias is None else masked(bias).data, *given)
        kernel, stride, dilation = weight.data.shape[2:], each(stride, dims), each(dilation, dims)
        windows = []
        for i in range(dims):
            total = dilation[i] * (kernel[i] - 1) if padding == "same" else 0
            left = total // 2 if isinstance(padding, str) else each(padding, dims)[i]
            right = total - left if isinstance(padding, str) else left
            windows.append((kernel[i], stride[i], left, right, dilation[i]))
        outputs = value.shape[-dims:]

        def place(mask: Tensor) -> Tensor:
            return core(mask, windows, outputs)

        return channels(x, weight, bias, value, groups, False, place)

    return oracle


def conv_transpose(dims: int) -> Any:
    def oracle(op: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
               output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Masked:  # fmt: skip
        given = (stride, padding, output_padding, groups, dilation)
        x, weight = masked(x), masked(weight)
        value = op(zero(x), zero(weight), None if bias is None else masked(bias).data, *given)
        settings = [each(v, dims) for v in (weight.data.shape[2:], stride, padding, output_padding, dilation)]

        def place(mask: Tensor) -> Tensor:
            result = torch.zeros(value.shape[-dims:], dtype=torch.bool)
            for output in itertools.product(*map(range, result.shape)):
                source = tuple(
                    max(0, math.ceil((o + 2 * p - d * (k - 1) - more) / s))
                    for o, k, s, p, more, d in zip(output, *settings, strict=True)
                )
                result[output] = mask[source]
            return result

        return channels(x, weight, bias, value, groups, True, place)

    return oracle


def channels(x: Masked, weight: Masked, bias: Any, value: Tensor, groups: int, transposed: bool, place: Any) -> Masked:
    """One group of channels after the other; an output channel needs a valid weight and a valid bias."""
    dims = weight.data.dim() - 2
    given = x.mask if x.data.dim() == dims + 2 else x.mask.unsqueeze(0)
    result = torch.zeros(value.shape, dtype=torch.bool).view(-1, *value.shape[-dims - 1 :])
    inner, outer = given.shape[1] // groups, result.shape[1] // groups
    for n, g in itertools.product(range(len(given)), range(groups)):
        valid = place(given[n, g * inner : (g + 1) * inner].any(0))
        for c in range(outer):
            out = g * outer + c
            taps = weight.mask[g * inner : (g + 1) * inner, c] if transposed else weight.mask[out]
            known = bool(taps.any()) and (bias is None or bool(masked(bias).mask[out]))
            result[n, out] = valid & known
    return Masked(value, result.view(value.shape))


ORACLES = {
    **{f"nn.functional.conv{d}d": conv(d) for d in (1, 2, 3)},
    **{f"nn.functional.conv_transpose{d}d": conv_transpose(d) for d in (1, 2, 3)},
}
