"""Fourier transforms by slices: whole along all transformed dimensions, or masked; signals frame by frame."""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..helpers.harness import Masked
from .slices import masked


def transform(kind: str, rank: int) -> Any:
    """``kind``: c2r transforms read ``n // 2 + 1`` entries of the last dimension; ``rank``: 1, 2 or 0 (n)."""

    def oracle(op: Any, x: Any, n: Any = None, dim: Any = None, norm: Any = None, **kwargs: Any) -> Masked:
        x = masked(x)
        size = kwargs.pop("s", n)
        sizes = [size] if isinstance(size, int) else None if size is None else list(size)
        axes = dim if dim is not None else {1: -1, 2: (-2, -1), 0: None}[rank]
        if axes is None:
            axes = range(x.data.dim() - len(sizes), x.data.dim()) if sizes else range(x.data.dim())
        axes = [a % x.data.dim() for a in ([axes] if isinstance(axes, int) else axes)]
        named = {"norm": norm} | ({} if dim is None else {"dim": dim})
        named |= {} if size is None else {"n" if rank == 1 else "s": size}
        data = op(x.data, **named)
        mask = x.mask
        for position, axis in enumerate(axes):
            if sizes is not None and sizes[position] != -1:
                read = sizes[position] // 2 + 1 if kind == "c2r" and axis == axes[-1] else sizes[position]
                mask = mask.narrow(axis, 0, min(read, mask.shape[axis]))
        for axis in axes:
            mask = mask.all(axis, keepdim=True)
        return Masked(data, mask.expand(data.shape).clone())

    return oracle


def stft(op: Any, x: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, **kw: Any):
    """Each row, from its first to its last valid sample, padded and cut by itself."""
    x, hop = masked(x), hop_length or n_fft // 4
    center, mode = kw.get("center", True), kw.get("pad_mode", "reflect")
    plain = None if window is None else masked(window).data
    data = op(x.data, n_fft, hop_length, win_length, plain, **kw)
    complex_result = data.is_complex()
    full = data if complex_result else torch.view_as_complex(data.contiguous())
    lines = full.reshape(-1, *full.shape[-2:])
    result = Masked(torch.zeros_like(lines), torch.zeros(lines.shape, dtype=torch.bool))
    values, valid = x.data.reshape(-1, x.data.shape[-1]), x.mask.reshape(-1, x.data.shape[-1])
    for i, (row, known) in enumerate(zip(values, valid, strict=True)):
        if window is not None and not masked(window).mask.all():
            continue
        places = known.nonzero()[:, 0]
        if not len(places):
            continue
        start, end, pad = int(places[0]), int(places[-1]) + 1, n_fft // 2 if center else 0
        part, seen = row[start:end], known[start:end]
        source = torch.arange(end - start)
        if center and mode == "reflect" and pad >= end - start:
            seen = F.pad(seen, (pad, pad), value=False)
            part = F.pad(part, (pad, pad))
        elif center:
            source = F.pad(source[None, None].double(), (pad, pad), mode=mode)[0, 0].long()
            part, seen = part[source], seen[source]
        for t in range(lines.shape[-1]):
            here = slice(t * hop - start, t * hop - start + n_fft)
            if here.start >= 0 and here.stop <= len(part) and seen[here].all():
                single = {**kw, "center": False, "return_complex": True}
                frame = torch.stft(part[here], n_fft, hop, win_length, plain, **single)
                result.data[i, :, t], result.mask[i, :, t] = frame[:, 0], True
    out, mask = result.data.reshape(full.shape), result.mask.reshape(full.shape)
    return Masked(out, mask) if complex_result else Masked(torch.view_as_real(out), mask[..., None].expand(data.shape))


def istft(op: Any, x: Any, n_fft: int, hop_length: Any = None, win_length: Any = None, window: Any = None, **kw: Any):
    """The sum of the whole frames over the sum of their squared windows, sample by sample."""
    x, hop = masked(x), hop_length or n_fft // 4
    plain = None if window is None else masked(window).data
    length = win_length or n_fft
    taper = torch.ones(length, dtype=torch.float64) if plain is None else plain
    taper = F.pad(taper, ((n_fft - length) // 2, (n_fft - length + 1) // 2))
    data = op(x.data, n_fft, hop_length, win_length, plain, **kw)
    spectra = x.data.reshape(-1, *x.data.shape[-2:])
    frames = x.mask.reshape(spectra.shape).all(1)
    if window is not None and not masked(window).mask.all():
        frames = torch.zeros_like(frames)
    trim = n_fft // 2 if kw.get("center", True) else 0
    size, last = data.shape[-1], frames.shape[-1] - 1
    result = Masked(
        torch.zeros(len(spectra), size, dtype=data.dtype), torch.zeros(len(spectra), size, dtype=torch.bool)
    )
    complex_result = data.is_complex()
    cut = trim if kw.get("length") is None else 0
    for i, (spectrum, whole) in enumerate(zip(spectra, frames, strict=True)):
        # each frame alone, through torch's own istft: what it adds is its signal times the window, squared
        signal = torch.zeros(last + 1, n_fft, dtype=data.dtype)
        for t in range(last + 1):
            signal[t] = _frame(spectrum[:, t], n_fft, kw, complex_result)
        for o in range(size):
            covering = [t for t in range(last + 1) if 0 <= o + trim - t * hop < n_fft]
            needed = [t for t in covering if t * hop <= o and o + trim + cut - t * hop < n_fft]
            if not needed:
                end = -(-(o + trim + cut - n_fft + 1) // hop)
                both = {min(max(o // hop, 0), last), min(max(end, 0), last)}
                if all(whole[t] for t in both):
                    needed = list(both)
            used = [t for t in covering if whole[t]]
            weight = sum(complex(taper[o + trim - t * hop]) ** 2 for t in used)
            if any(whole[t] for t in needed) and not covering:
                result.mask[i, o] = True  # beyond the last frame: zeros
            elif any(whole[t] for t in needed) and abs(weight) > 1e-11:
                total = sum(signal[t, o + trim - t * hop] * taper[o + trim - t * hop] for t in used)
                result.data[i, o], result.mask[i, o] = total / (weight if complex_result else weight.real), True
            elif frames.shape[-1] and whole.all():
                result.data[i, o], result.mask[i, o] = data.reshape(-1, size)[i, o], True
    return Masked(result.data.reshape(data.shape), result.mask.reshape(data.shape))


def _frame(spectrum: Tensor, n_fft: int, kw: Any, complex_result: bool) -> Tensor:
    norm = "ortho" if kw.get("normalized") else "backward"
    if complex_result:
        return torch.fft.ifft(spectrum, norm=norm)
    return torch.fft.irfft(spectrum[: n_fft // 2 + 1], n_fft, norm=norm)  # torch reads no more than that


C2R = ("irfft", "hfft")
ORACLES = {
    **{
        f"fft.{name}{tail}": transform("c2r" if name in C2R else "same", rank)
        for name, (tail, rank) in itertools.product(
            ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"), (("", 1), ("2", 2), ("n", 0))
        )
    },
    "stft": stft,
    "istft": istft,
}
