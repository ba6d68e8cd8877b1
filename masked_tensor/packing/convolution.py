"""Convolution over time: the sequences stand on one tape, with as many masked places between two as the window reaches.

Of a convolution that keeps the length, an output is valid where its centre is (the core rule), so the tokens stay.
"""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair
from ..shared.windows import Window
from .packed import Packed, pack_values
from .scatter_gather import gather_mask, gather_tokens, scatter_mask, scatter_tokens
from .views import features_last


def _conv1d(rule: Rule, op: Rule) -> Rule:
    """``conv1d`` of ``(B, C, T)`` that keeps the length, over sequences without a step that is not stored."""

    def on_packed(
        x: Packed, weight: Tensor, bias: Tensor | None = None,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Packed:  # fmt: skip
        step, wide = _single(stride), _single(dilation)
        reach = wide * (weight.shape[-1] - 1)
        pad = reach // 2 if padding == "same" else 0 if padding == "valid" else _single(padding)
        window = Window(weight.shape[-1], step, pad, pad, wide)
        if len(x.order) != 3 or x.order != ((0,), x.order[1], (1,)) or step != 1 or reach % 2 or window.span:
            raise NoRule
        if weight.dim() != 3 or weight.shape[1] * groups != x.shape[1]:
            raise NoRule
        y = features_last(x, [1])
        if reach == 0 and groups == 1 and y.inner is None:
            return pack_values(F.linear(y.values, weight.squeeze(-1), bias), y)
        if not y.values.shape[0] or not y.grid.contiguous:
            raise NoRule
        read = y.grid.tape(pad, read=True)
        if y.inner is None:
            tape = scatter_tokens(y.values, y.grid.tape(pad))
            out = F.conv1d(tape.t()[None], weight, bias, 1, 0, wide, groups)[0].t()
            return pack_values(gather_tokens(out, read), y)
        data, mask = scatter_tokens(y.values, read), scatter_mask(y.inner, read)
        found = rule(Pair(data.t()[None], mask.t()[None], y.payload), weight, bias, 1, pad, wide, groups)
        return pack_values(Pair(gather_tokens(found.data[0].t(), read), gather_mask(found.mask[0].t(), read)), y)

    return on_packed


conv1d = StorageRule("over time", _conv1d, Takes(stored=("input",)))  #: of a convolution that keeps the length


def _single(value: Any) -> int:
    values = [value] if isinstance(value, int) else list(value)
    if len(set(values)) != 1:
        raise NoRule
    return int(values[0])
