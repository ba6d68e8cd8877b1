"""Average pooling, output by output."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked
from .windows import adaptive, core, each, hull, taps, zero


def avg_pool(dims: int) -> Any:
    def oracle(op: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: Any = None) -> Masked:  # fmt: skip
        rest = (kernel_size, stride, padding, ceil_mode, count_include_pad, *([divisor_override] if dims > 1 else []))
        value = op(zero(x), *rest)
        kernel, pad = each(kernel_size, dims), each(padding, dims)
        step = each(stride, dims) if stride else kernel
        windows = list(zip(kernel, step, pad, pad, [1] * dims, strict=True))
        valid = torch.zeros(value.shape, dtype=torch.bool)
        for lead in itertools.product(*map(range, value.shape[:-dims])):
            valid[lead] = core(x.mask[lead], windows, value.shape[-dims:], ceil_mode)
            if divisor_override is None and (ceil_mode or not count_include_pad):
                inside = hull(x.mask[lead])
                for output in itertools.product(*map(range, value.shape[-dims:])):
                    plain, row = (
                        taps(area, output, windows, pad if count_include_pad else [0] * dims)
                        for area in (torch.ones_like(inside), inside)
                    )
                    value[(*lead, *output)] *= plain / max(row, 1)
        return Masked(value, valid)

    return oracle


ORACLES = {
    **{f"nn.functional.avg_pool{d}d": avg_pool(d) for d in (1, 2, 3)},
    **{f"nn.functional.adaptive_avg_pool{d}d": adaptive(d, False) for d in (1, 2, 3)},
}
