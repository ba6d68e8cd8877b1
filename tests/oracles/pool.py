"""Maximum pooling, output by output."""

import itertools
from typing import Any

import torch

from ..helpers.harness import Masked
from .windows import adaptive, core, each


def max_pool(dims: int) -> Any:
    def oracle(op: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
        shape = op(x.data, kernel_size, stride, padding, dilation, ceil_mode, False).shape
        kernel, pad, dilation = each(kernel_size, dims), each(padding, dims), each(dilation, dims)
        step = each(stride, dims) if stride else kernel
        value, index = torch.zeros(shape, dtype=x.data.dtype), torch.zeros(shape, dtype=torch.int64)
        valid = torch.zeros(shape, dtype=torch.bool)
        sizes = x.data.shape[-dims:]
        windows = list(zip(kernel, step, pad, pad, dilation, strict=True))
        for lead in itertools.product(*map(range, shape[:-dims])):
            valid[lead] = core(x.mask[lead], windows, shape[-dims:], ceil_mode)
            for output in itertools.product(*map(range, shape[-dims:])):
                places = itertools.product(
                    *(
                        [t for j in range(k) if 0 <= (t := o * s - p + j * d) < n]
                        for o, k, s, p, d, n in zip(output, kernel, step, pad, dilation, sizes, strict=True)
                    )
                )
                taps = [t for t in places if x.mask[lead][t]]
                if taps:
                    best = max(taps, key=lambda t: x.data[lead][t])
                    value[(*lead, *output)] = x.data[lead][best]
                    flat = 0
                    for t, n in zip(best, sizes, strict=True):
                        flat = flat * n + t
                    index[(*lead, *output)] = flat
                else:
                    value[(*lead, *output)] = -torch.inf
        return (Masked(value, valid), Masked(index, valid)) if return_indices else Masked(value, valid)

    return oracle


ORACLES = {
    **{f"nn.functional.max_pool{d}d": max_pool(d) for d in (1, 2, 3)},
    **{f"nn.functional.adaptive_max_pool{d}d": adaptive(d, True) for d in (1, 2, 3)},
}
