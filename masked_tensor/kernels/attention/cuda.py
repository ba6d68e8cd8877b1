"""Attention on packed batches by the GPU's kernels for sequences of any length: one call for all of them.

A kernel is given where each sequence begins and how long one can be at most, so that nothing is read on the host, and
graphs that are being compiled call the same kernels.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...compat import in_transform, is_fake, is_tracked
from ...op import NoRule
from ...select import guard, select
from ...shapes import symbolic_shapes
from . import efficient_op

DEVICES = ("cuda",)
HALVES = (torch.float16, torch.bfloat16)

_aten: Any = torch.ops.aten


def is_supported(*values: Tensor) -> bool:
    """Whether the values lie where there are such kernels, or will when a graph runs, and are not transformed."""
    return all(x.device.type in DEVICES and (type(x) is Tensor or is_fake(x)) for x in values) and not in_transform()


def attend(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float | None,
    alike: bool = True, window: int | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """``(N, H, D)`` of queries, keys and values to ``(N, H, D)``; and which queries see a key, if some may see none.

    ``queries`` and ``keys`` know where their tokens lie (``packing/grid.py``); ``alike``: in the same places.  Each
    head of keys serves as many of queries.  Raises NoRule for dtypes that the kernels do not take, and where heads
    of keys do not divide those of queries; and for a ``window``, of keys less than so many steps away, where only the
    efficient kernel serves, which has none.
    """
    if not q.dtype == k.dtype == v.dtype or q.dtype not in (*HALVES, torch.float32):
        raise NoRule
    if not k.shape[1] == v.shape[1] or q.shape[1] % k.shape[1]:
        raise NoRule
    seen = None
    if not alike:
        seen = (keys.lengths > 0)[queries.batch]
        q = guard(q, seen[:, None, None].expand(q.shape))  # of a query without keys the kernel's gradient is anything
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    width = v.shape[-1]
    size = (max(q.shape[-1], width) + 7) // 8 * 8  # the kernels want heads of one size, a multiple of 8
    trained = any(is_tracked(x) for x in (q, k, v))
    q, k, v = (_laid_out(x, size) for x in (q, k, v))
    kernel = choose_kernel(q, dropout, trained)
    if window is not None and kernel is _efficient:
        raise NoRule
    narrow = {} if window is None else {"window": window}
    bounds = (_sequence_bounds(grid) for grid in (queries, keys))
    out = kernel(q, k, v, *bounds, dropout, causal, scale, **narrow)[..., :width]
    return (out, None) if seen is None else (select(out, seen[:, None, None], 0), seen)


def _laid_out(x: Tensor, size: int) -> Tensor:
    """``(N, H, size)`` as the kernels read it: each head without gaps, at an address that 16 bytes divide.

    What lies so already is not copied, such as the parts of one projection to queries, keys and values; in a graph,
    what lies so whatever its sizes are.
    """
    if x.shape[-1] != size:
        return F.pad(x, (0, size - x.shape[-1]))
    steps = (x.storage_offset(), *x.stride()[:-1])
    holds = bool if type(x) is Tensor else _holds_of_all_sizes
    if holds(x.stride(-1) == 1) and all(holds(n * x.dtype.itemsize % 16 == 0) for n in steps):
        return x
    return x.clone(memory_format=torch.contiguous_format)


def _holds_of_all_sizes(condition: Any) -> bool:
    """Whether a graph for all sizes may rely on it; it becomes no guard."""
    found: bool = symbolic_shapes().statically_known_true(condition)
    return found


def _sequence_bounds(grid: Any) -> tuple[Tensor, int]:
    """Where each sequence begins, as the kernels count, and the length that none exceeds."""
    return grid.bounds, grid.shape[1]


#: The kernel that was activated in the place of flash (FA3, FA4), if any; a torch without the question has none.
_activated: Callable[[], str | None] = getattr(torch.nn.attention, "current_flash_attention_impl", lambda: None)


@lru_cache(maxsize=1)
def _public_kernel() -> Callable[..., Tensor] | None:
    """``varlen_attn``, if this torch's has what is needed; imported when it is first used, which takes a second."""
    found: Callable[..., Tensor] = import_module("torch.nn.attention.varlen").varlen_attn
    return found if {"scale", "window_size", "enable_gqa"} <= inspect.signature(found).parameters.keys() else None


#: Capabilities with less memory for a block: torch forbids the training of wide heads by its flash kernel there.
SMALL_BLOCKS = ((8, 6), (8, 9), (12, 0), (12, 1))
WIDEST, WIDEST_IN_SMALL = 256, 192
LEAST = (8, 0)  #: the capability from which on all kernels serve


def choose_kernel(q: Tensor, dropout: float = 0.0, trained: bool = False) -> Any:
    """The flash kernel where torch allows it, by its public call where that serves; else the efficient kernel.

    torch's private operators check nothing that ``scaled_dot_product_attention`` checks before it calls them
    (``sdp_utils.cpp``), so it is checked here: dtype, width, capability, and an activated FA3 or FA4, which has no
    dropout.
    """
    if not _flash_serves(q, dropout, trained):
        return _efficient
    return _flash if dropout or _public_kernel() is None else _varlen


def _flash_serves(q: Tensor, dropout: float, trained: bool) -> bool:
    width, capability = q.shape[-1], _capability(q)
    if q.dtype not in HALVES or width > WIDEST or capability < LEAST or not torch.backends.cuda.flash_sdp_enabled():
        return False
    if trained and width > WIDEST_IN_SMALL and capability in SMALL_BLOCKS:
        return False
    return not (dropout and _activated())


def _capability(q: Tensor) -> tuple[int, int]:
    """That of the device, asked once, so that no graph depends on it; of a stand-in, the least that has all kernels."""
    return _capability_of(q.device.index) if q.is_cuda else LEAST


@lru_cache
def _capability_of(index: int | None) -> tuple[int, int]:
    return torch.cuda.get_device_capability(index) if torch.cuda.is_available() else LEAST


def _sides(causal: bool, window: int | None) -> tuple[int, int]:
    """How many keys before a query and after it are seen, as the kernels count; -1 for all of them."""
    most = -1 if window is None else window - 1
    return most, 0 if causal else most


def _varlen(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float,
    window: int | None = None,
) -> Any:  # fmt: skip
    """torch's public attention of sequences of any length: grouped heads without copies, no dropout."""
    (starts, most), (key_starts, key_most) = queries, keys
    sides = _sides(causal, window)
    kernel: Any = _public_kernel()  # choose_kernel asked whether there is one
    return kernel(q, k, v, starts, key_starts, most, key_most, scale=scale, window_size=sides, enable_gqa=True)


def _flash(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float,
    window: int | None = None,
) -> Any:  # fmt: skip
    """What the public call runs, with dropout; the kernel also groups heads."""
    (starts, most), (key_starts, key_most) = queries, keys
    before, after = (None, None) if window is None else _sides(causal, window)
    return _aten._flash_attention_forward(
        q, k, v, starts, key_starts, most, key_most, dropout, causal, False, scale=scale, window_size_left=before,
        window_size_right=after,
    )[0]  # fmt: skip


def _efficient(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float
) -> Any:
    """The kernel for every width, for float32 and for older devices; fewer heads of keys are repeated."""
    (starts, most), (key_starts, key_most) = queries, keys
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) if x.shape[1] != q.shape[1] else x for x in (k, v))
    q, k, v = (x.unsqueeze(0) for x in (q, k, v))
    if type(q) is not Tensor:
        return efficient_op.attend(q, k, v, starts, key_starts, most, key_most, dropout, causal, scale).squeeze(0)
    recorded = any(is_tracked(x) for x in (q, k, v))
    return _aten._efficient_attention_forward(
        q, k, v, None, starts, key_starts, most, key_most, dropout, int(causal), recorded, scale=scale
    )[0].squeeze(0)
