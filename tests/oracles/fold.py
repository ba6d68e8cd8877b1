"""Windows laid out as columns, window by window."""

import itertools
import math
from typing import Any

import torch

from ..helpers.harness import Masked
from .windows import core, each, zero


def unfold(op: Any, x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Masked:
    value = op(zero(x), kernel_size, dilation, padding, stride)
    kernel, dilation, padding, stride = (each(v, 2) for v in (kernel_size, dilation, padding, stride))
    windows = list(zip(kernel, stride, padding, padding, dilation, strict=True))
    sizes = x.data.shape[-2:]
    outputs = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, (k, s, p, _, d) in zip(sizes, windows, strict=True)]
    given = x.mask if x.data.dim() == 4 else x.mask.unsqueeze(0)
    valid = torch.zeros(value.shape, dtype=torch.bool).view(-1, given.shape[1], math.prod(kernel), math.prod(outputs))
    for n, c in itertools.product(*map(range, given.shape[:2])):
        valid[n, c] = core(given[n, c], windows, outputs).flatten()
    return Masked(value, valid.view(value.shape))


ORACLES = {"nn.functional.unfold": unfold}
