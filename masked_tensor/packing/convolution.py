"""Convolution over time: the sequences stand on one tape, with as many zeros between two as the window reaches out.

Of a convolution that keeps the length, an output is valid where its centre is (the core rule), so the tokens stay.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from ..op import NoRule
from .packed import Packed, pack_values
from .scatter_gather import gather_tokens, scatter_tokens
from .views import features_last


def conv1d(
    x: Packed, weight: Tensor, bias: Tensor | None = None,
    stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Packed:  # fmt: skip
    """``conv1d`` of ``(B, C, T)`` that keeps the length, over prefixes."""
    step, wide = _single(stride), _single(dilation)
    reach = wide * (weight.shape[-1] - 1)
    pad = reach / 2 if padding == "same" else 0 if padding == "valid" else _single(padding)
    if len(x.order) != 3 or x.order != ((0,), x.order[1], (1,)) or step != 1 or 2 * pad != reach:
        raise NoRule
    if weight.dim() != 3 or weight.shape[1] * groups != x.shape[1]:
        raise NoRule
    y = features_last(x, [1])
    if reach == 0 and groups == 1:
        return pack_values(F.linear(y.values, weight.squeeze(-1), bias), y)
    if not y.values.shape[0] or not y.grid.prefix:
        raise NoRule
    gap = int(pad)
    tape = y.grid.tape(gap)
    out = F.conv1d(scatter_tokens(y.values, tape).t()[None], weight, bias, 1, 0, wide, groups)[0].t()
    return pack_values(gather_tokens(out, y.grid.tape(gap, read=True)), y)


def _single(value: Any) -> int:
    values = [value] if isinstance(value, int) else list(value)
    if len(set(values)) != 1:
        raise NoRule
    return int(values[0])
