"""Attention on packed batches by the GPU's kernels for sequences of any length: one call for all of them.

A kernel is given where each sequence begins and how long one can be at most, so that nothing is read on the host.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..compat import has_real_memory, in_transform, is_tracked
from ..op import NoRule
from ..select import guard, select
from .grid import Grid, same_places

DEVICES = ("cuda",)
HALVES = (torch.float16, torch.bfloat16)

_aten: Any = torch.ops.aten


def is_supported(*values: Tensor) -> bool:
    """Whether the values lie where there are such kernels, and are not traced or transformed."""
    return all(x.device.type in DEVICES and has_real_memory(x) for x in values) and not in_transform()


def attend(
    q: Tensor, k: Tensor, v: Tensor, queries: Grid, keys: Grid, dropout: float, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor | None]:
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``; and which queries see a key, if some may see none.

    Fewer heads of keys than of queries are repeated.  Raises NoRule for dtypes that the kernels do not take.
    """
    if not q.dtype == k.dtype == v.dtype or q.dtype not in (*HALVES, torch.float32):
        raise NoRule
    seen = None
    if not same_places(queries, keys):
        seen = (keys.lengths > 0)[queries.batch]
        q = guard(q, seen[:, None, None].expand(q.shape))  # of a query without keys the kernel's gradient is anything
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) if x.shape[1] != q.shape[1] else x for x in (k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    width = v.shape[-1]
    size = (max(q.shape[-1], width) + 7) // 8 * 8  # the kernels want heads of one size, a multiple of 8
    q, k, v = (F.pad(x, (0, size - x.shape[-1])).contiguous() for x in (q, k, v))
    out = choose_kernel(q)(q, k, v, *(_sequence_bounds(grid) for grid in (queries, keys)), dropout, causal, scale)[
        ..., :width
    ]
    return (out, None) if seen is None else (select(out, seen[:, None, None], 0), seen)


def _sequence_bounds(grid: Grid) -> tuple[Tensor, int]:
    """Where each sequence begins, as the kernels count, and the length that none exceeds."""
    return grid.offsets.int(), grid.shape[1]


def choose_kernel(q: Tensor) -> Any:
    """The flash kernel for heads in half precision of up to 256, where it is not switched off; else the other."""
    fits = q.dtype in HALVES and q.shape[-1] <= 256 and torch.backends.cuda.flash_sdp_enabled()
    return _flash if fits and (not q.is_cuda or torch.cuda.get_device_capability(q.device) >= (8, 0)) else _efficient


def _flash(q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float) -> Any:
    (starts, most), (key_starts, key_most) = queries, keys
    return _aten._flash_attention_forward(
        q, k, v, starts, key_starts, most, key_most, dropout, causal, False, scale=scale
    )[0]


def _efficient(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float
) -> Any:
    (starts, most), (key_starts, key_most) = queries, keys
    one = (x.unsqueeze(0) for x in (q, k, v))
    recorded = any(is_tracked(x) for x in (q, k, v))
    return _aten._efficient_attention_forward(
        *one, None, starts, key_starts, most, key_most, dropout, int(causal), recorded, scale=scale
    )[0].squeeze(0)
