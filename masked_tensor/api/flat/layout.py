"""Flat tokens as a plain padded batch, and back: the input of parts of a model that see each sequence apart."""

from typing import Any

import torch
from torch import Tensor

from .tokens import FlatTokens


class Layout:
    """Where the tokens lie in a batch ``(B, T)`` that is padded behind its sequences."""

    def __init__(self, tokens: FlatTokens) -> None:
        grid = tokens.grid
        self.sequences, self.number = grid.shape[0], grid.index.shape[0]
        self.time = max(grid.sizes, default=0)
        self.place = grid.batch * self.time + tokens.position_ids[0]  # of each token, (N,)
        step = torch.arange(self.time, device=grid.device)
        lengths = grid.lengths[:, None]
        self.valid = step < lengths
        # of each step the token, which of the padding is one of its own sequence: it sees what can be seen
        self.index = (grid.bounds[:-1, None].long() + step.minimum(lengths - 1)).clamp(0, self.number - 1)

    def pad(self, x: Tensor, fill: Any = 0) -> Tensor:
        """``(1, N, ...)`` as ``(B, T, ...)``."""
        wide = x.new_full((self.sequences * self.time, *x.shape[2:]), fill)
        return wide.index_copy(0, self.place, x[0]).view(self.sequences, self.time, *x.shape[2:])

    def unpad(self, x: Tensor) -> Tensor:
        """``(B, T, ...)`` as ``(1, N, ...)``."""
        return x.flatten(0, 1).index_select(0, self.place)[None]

    def keys(self, x: Tensor) -> Tensor:
        """What is said of keys, ``(1, H, 1, N)`` or ``(H, 1, N)``, as ``(B, H, 1, T)`` or ``(B * H, 1, T)``."""
        many = x.reshape(-1, 1, self.number)[:, :, self.index].permute(2, 0, 1, 3)
        return self._hidden(many, x)

    def pairs(self, x: Tensor, fill: float | None = None) -> Tensor:
        """What is said of pairs, ``(1, H, N, N)``, ``(1, N, N)`` or ``(H, N, N)``, for those within each sequence."""
        index = self.index
        many = x.reshape(-1, self.number, self.number)[:, index[:, :, None], index[:, None, :]].transpose(0, 1)
        return self._hidden(many, x, fill)

    def _hidden(self, many: Tensor, x: Tensor, fill: float | None = None) -> Tensor:
        """Values ``(B, H, T or 1, T)`` of ``x``'s form, with what hides a key where there is none."""
        if fill is None:
            fill = hiding(x.dtype) if x.is_floating_point() else 0
        many = many.masked_fill(~self.valid[:, None, None, :], fill)
        return many if x.dim() == 4 else many.flatten(0, 1)

    def mask(self, dtype: torch.dtype, causal: bool) -> Tensor:
        """What is added to scores: ``(B, 1, T or 1, T)``."""
        seen = self.valid[:, None, None, :]
        if causal:
            seen = seen & torch.ones(self.time, self.time, dtype=torch.bool, device=seen.device).tril()
        return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill(~seen, hiding(dtype))


def layout_of(tokens: FlatTokens) -> Layout:
    """The layout of these tokens, worked out once."""
    known = tokens.grid.known
    if "layout" not in known:
        known["layout"] = Layout(tokens)
    found: Layout = known["layout"]
    return found


def hiding(dtype: torch.dtype) -> float:
    """What is added to a score that does not count: finite, twice, and in float32."""
    return max(torch.finfo(dtype).min, torch.finfo(torch.float32).min) / 4
