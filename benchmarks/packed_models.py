"""The models of ``benchmarks.packed`` that torch does not have: they know nothing of masks."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Conformer(nn.Module):
    """A block of a Conformer: half a feed-forward, attention, convolution, half a feed-forward."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.halves = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            for _ in range(2)
        )
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm, self.before, self.last = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.widen, self.narrow = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
        self.depthwise, self.batch = nn.Conv1d(width, width, 15, padding=7, groups=width), nn.BatchNorm1d(width)

    def forward(self, x: Any, hidden: Tensor | None = None) -> Any:
        x = x + 0.5 * self.halves[0](x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, key_padding_mask=hidden, need_weights=False)[0]
        y = F.glu(self.widen(self.before(x).transpose(1, 2)), 1)
        y = y if hidden is None else y.masked_fill(hidden[:, None], 0)
        x = x + self.narrow(F.silu(self.batch(self.depthwise(y)))).transpose(1, 2)
        return self.last(x + 0.5 * self.halves[1](x))


class ByHand(nn.Module):
    """A block of a Transformer that writes its attention as two products and a softmax."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any, hidden: Tensor | None = None) -> Any:
        q, k, v = (y.unflatten(-1, (8, -1)).transpose(1, 2) for y in self.project(self.first(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
        x = x + self.mix((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.feed(self.second(x))
