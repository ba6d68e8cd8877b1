"""Reads of steps by position, ``x[:, 0]``, ``x[:, -1]`` and ``argmax``: the step of each sequence."""

import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...rules.cross_entropy import IGNORED
from .layout import hiding, layout_of
from .tokens import FlatTokens

GET = Tensor.__getitem__
CROSS_ENTROPY = F.cross_entropy


def get(tokens: FlatTokens, x: Any, index: Any) -> Any:
    """``x[index]`` of hidden states ``(1, N, C)`` the first or the last step of each sequence, ``(B, C)``."""
    if not (isinstance(index, tuple) and len(index) > 1 and type(index[1]) is int and index[1] in (0, -1)):
        return None
    whole = isinstance(index[0], slice) and index[0] == slice(None)
    only = isinstance(index[0], Tensor) and index[0].dim() == 1 and index[0].shape[0] == 1
    if type(x) is not Tensor or x.dim() < 3 or not _is_row(tokens, x) or not (whole or only):
        return None
    found = x[0].index_select(0, _starts(tokens) if index[1] == 0 else _starts(tokens, last=True))
    return found[(slice(None), *index[2:])] if len(index) > 2 else found


def argmax(tokens: FlatTokens, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Where the greatest entry is of integers ``(1, N)`` that of each sequence, as places of the row, ``(B,)``."""
    is_row = type(x) is Tensor and x.dim() == 2 and _is_row(tokens, x) and not x.is_floating_point()
    if not is_row or dim not in (-1, 1) or keepdim:
        return None
    least = torch.iinfo(x.dtype).min
    return layout_of(tokens).pad(x, least).argmax(1) + _starts(tokens)


def cross_entropy(tokens: FlatTokens, input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Any:
    """torch's of scores ``(1, N)`` of which each sequence chooses a step, ``target`` ``(B,)``, among its own steps."""
    sequences = tokens.grid.shape[0]
    if not (type(input) is Tensor and input.dim() == 2 and _is_row(tokens, input) and target.shape == (sequences,)):
        return None
    layout, ignored = layout_of(tokens), inspect.signature(CROSS_ENTROPY).bind(input, target, *args, **kwargs)
    place = target - tokens.grid.time[_starts(tokens)]  # which is counted in the padded row
    known = (place >= 0) & (place < tokens.grid.lengths)
    ignored.arguments["input"] = layout.pad(input, hiding(input.dtype))
    ignored.arguments["target"] = place.where(known, ignored.arguments.get("ignore_index", IGNORED))
    return CROSS_ENTROPY(*ignored.args, **ignored.kwargs)


def _is_row(tokens: FlatTokens, x: Tensor) -> bool:
    return tuple(x.shape[:2]) == (1, tokens.grid.index.shape[0])


def _starts(tokens: FlatTokens, last: bool = False) -> Tensor:
    if 0 in tokens.grid.sizes:
        empty = tokens.grid.sizes.index(0)
        raise ValueError(
            f"mt.flat: sequence {empty} has no step that the model's pooler could read; leave it out of the batch"
        )
    return tokens.cu_seqlens[1:].long() - 1 if last else tokens.cu_seqlens[:-1].long()


#: What gives None where it is to be left to torch.
READERS: dict[Any, Any] = {GET: get, torch.argmax: argmax, Tensor.argmax: argmax, CROSS_ENTROPY: cross_entropy}
