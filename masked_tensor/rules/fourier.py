"""Fourier transforms: a fully valid slice along the transformed dimensions has the plain result, others are masked.

The short-time transform follows the same rule: its windows are slices, cut from each row at the row's own ends, so a
padded batch has the windows of its rows.  Its inverse is the least-squares signal of the fully valid frames; a sample
is valid if the frames before and after it are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair
from ..compat import OpOverload
from ..op import Op, ops
from ..pair import Pair
from ..select import select, zero_masked
from ..shared import windows
from ..shared.windows import Window
from .padding import border_pad, constant_pad

Operand = Pair | Tensor
PADDING: dict[str, tuple[OpOverload, Callable[..., Pair]]] = {
    "constant": (torch.ops.aten.constant_pad_nd.default, constant_pad),
    "reflect": (torch.ops.aten.reflection_pad1d.default, partial(border_pad, mode="reflect")),
    "replicate": (torch.ops.aten.replication_pad1d.default, partial(border_pad, mode="replicate")),
    "circular": (torch.ops.aten._pad_circular.default, partial(border_pad, mode="circular")),
}


def transform(op: OpOverload, x: Pair, dim: Sequence[int], *how: Any) -> Pair:
    """The transforms along ``dim``: they are linear and do not mix slices, so no guard is needed."""
    data = op(x.data, dim, *how)
    mask = masks.all(x.mask, tuple(dim), keepdim=True) if dim else x.mask
    return Pair(data, masks.expand_to(mask, data.shape))


def stft(
    x: Operand,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Operand | None = None,
    *how: Any,
    **named: Any,
) -> Pair:
    """The windows of each row: ``(..., frequency, frame)``, without padding (``torch.stft`` pads first)."""
    x = pair.as_pair(x)
    length, hop = win_length or n_fft, hop_length or n_fft // 4
    taper, known = window, masks.full((), x.data.device)
    if type(window) is Pair:
        known = masks.all(window.mask)
        taper = torch.where(known, window.data, 1)
    op = torch.ops.aten.stft.default
    data = op(zero_masked(x), n_fft, hop_length, win_length, taper, *how, **named)
    options = dict(zip(("normalized", "onesided", "return_complex", "align_to_window"), how, strict=False)) | named
    core = Window(length if options.get("align_to_window") else n_fft, hop)
    frames = data.shape[-1 if data.is_complex() else -2]
    mask = windows.core_outputs(windows.narrow_leading(x.mask, 1), x.data.dim() - 1, core, frames)
    mask = masks.logical_and(mask.expand(*mask.shape[:-1], frames), known).unsqueeze(-2)
    return Pair(data, masks.expand_to(mask if data.is_complex() else mask.unsqueeze(-1), data.shape))


def centred_stft(
    x: Operand,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Operand | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    *how: Any,
    **named: Any,
) -> Pair:
    """The same, padded at each row's own ends."""
    x = pair.as_pair(x)
    if center:
        op, pad = PADDING[pad_mode]
        wide = pad(op, pair.moved(x, torch.unsqueeze, 0), [n_fft // 2, n_fft // 2])
        x = pair.moved(wide, torch.squeeze, 0)
    return stft(x, n_fft, hop_length, win_length, window, *how, **named)


def istft(
    x: Operand,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Operand | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Pair:
    """``torch.istft``: the sum of the overlapping frames over the sum of the squared windows of the valid ones."""
    x = pair.as_pair(x)
    frames = masks.all(x.mask, -2)
    data = select(x.data, masks.expand_to(frames.unsqueeze(-2), x.data.shape), 0)
    if type(window) is Pair:
        whole = masks.all(window.mask)
        frames, window = masks.logical_and(frames, whole), torch.where(whole, window.data, 1)
    how = (center, normalized, onesided, length, return_complex)
    y = torch.istft(data, n_fft, hop_length, win_length, window, *how)
    if masks.is_constant(frames, -1):
        return Pair(y, masks.expand_to(masks.first_slice(frames, (-1,)), y.shape))
    hop, trim = hop_length or n_fft // 4, n_fft // 2 if center else 0
    mask = _valid_samples(frames, y.shape[-1], hop, trim + (trim if length is None else 0) - n_fft + 1)
    taper = _taper(window, n_fft, win_length or n_fft, data.real)
    full, seen = (_overlap_add(f, taper.square(), hop, trim, y.shape[-1]) for f in (torch.ones_like(frames), frames))
    heavy = seen.abs() > 1e-11  # what torch asks of all frames; beyond them ``length`` adds zeros
    ratio = torch.where(heavy, full / torch.where(heavy, seen, 1), 1)
    return Pair(y * ratio, mask & (heavy | (full == 0)))


def _valid_samples(frames: Tensor, size: int, hop: int, shift: int) -> Tensor:
    """Validity ``(..., size)`` of the samples of frames ``(..., T)``: each row has its own first and last frame.

    A sample is covered by the frames from ``first`` to ``last``, less what is trimmed from the end: any of them will
    do.  If nothing is left it lies between two frames, and needs both.
    """
    place = torch.arange(size, device=frames.device)
    end = frames.shape[-1] - 1
    first = -(-(place + shift)).div(hop, rounding_mode="floor")
    last = place // hop
    inside, first, last = first <= last, first.clamp(0, end), last.clamp(0, end)
    seen = frames.cumsum(-1)
    some = seen[..., last] - seen[..., first] + frames[..., first].long() > 0
    return torch.where(inside, some, frames[..., first] & frames[..., last])


def _taper(window: Tensor | None, n_fft: int, win_length: int, like: Tensor) -> Tensor:
    """The window in the middle of a frame."""
    taper = like.new_ones(win_length) if window is None else window.detach()
    return torch.nn.functional.pad(taper, ((n_fft - win_length) // 2, (n_fft - win_length + 1) // 2))


def _overlap_add(frames: Tensor, weight: Tensor, hop: int, start: int, size: int) -> Tensor:
    """The sum over the ``frames`` ``(..., T)`` of their ``weight`` at each of ``size`` samples."""
    lines = frames.reshape(-1, 1, frames.shape[-1]).to(weight.dtype)
    with masks.no_autocast(frames.device):
        total = torch.conv_transpose1d(lines, weight.view(1, 1, -1), stride=hop)
    total = torch.nn.functional.pad(total, (0, max(0, start + size - total.shape[-1])))
    return total[..., start : start + size].reshape(*frames.shape[:-1], size)


OPS = [
    *ops("_fft_c2c _fft_r2c _fft_c2r", transform, generic=True),
    Op("stft.default", stft, batched=True),
    Op("stft.center", centred_stft, batched=True),
    Op("istft", istft, batched=True),
]
