"""Sliding windows over masks: which outputs of a convolution or pooling are valid.

The *core* of a window is what remains of it after taking the padding off each side: positions ``o * stride`` to
``o * stride + span``, ``span = dilation * (kernel - 1) - padding``.  An output is valid iff its core is; if nothing
remains (``span < 0``) iff any position in ``[o * stride + span, o * stride]`` is.  On a padded batch this gives exactly
the outputs of the unpadded rows: with the length ``n`` of a row, ``o * stride + span <= n - 1`` *is* torch's formula
for the number of outputs.  Windows are boxes, so dimensions are handled one after the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .. import masks
from ..layouts import meshes
from ..masks import sides
from ..settings import current

Combine = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Window:
    """The window along one dimension; ``ceil``: the last window may overhang (pooling's ``ceil_mode``)."""

    kernel: int
    stride: int = 1
    left: int = 0
    right: int = 0
    dilation: int = 1
    ceil: bool = False

    @property
    def span(self) -> int:
        """How far the core reaches beyond its first position."""
        span = self.dilation * (self.kernel - 1) - self.left - self.right
        # An overhanging window may lack up to stride - 1 positions, but must start inside the input.
        return max(span - self.stride + 1, -self.left) if self.ceil else span

    def number(self, steps: Tensor, any_tap: bool) -> Tensor:
        """How many windows rows of so many ``steps`` have, or with ``any_tap`` how many begin before their ends."""
        return (steps - 1 - (-self.left if any_tap else self.span)).div(self.stride, rounding_mode="floor") + 1

    def reached(self, steps: Tensor, extra: int) -> Tensor:
        """How many outputs rows of so many ``steps`` have if the window is that of a transposed convolution."""
        return (steps - 1) * self.stride + self.span + extra + 1


def per_dim(value: int | Sequence[int], dims: int) -> list[int]:
    """One number per dimension."""
    if isinstance(value, int):
        return [value] * dims
    return list(value) * dims if len(value) == 1 else list(value)


def is_constant(mask: Tensor, dims: int) -> bool:
    """Whether ``mask`` cannot vary over its last ``dims`` dims."""
    return masks.is_constant(mask, range(-dims, 0))


def narrow_windows(mask: Tensor, dims: int) -> Tensor:
    """``mask`` with its last ``dims`` dims, along which it is constant, narrowed to size 1."""
    return masks.first_slice(mask, range(-dims, 0))


def narrow_leading(mask: Tensor, dims: int) -> Tensor:
    """``mask`` with the constant dims before the last ``dims`` narrowed to size 1."""
    small = masks.compact(mask)
    return small.expand(*small.shape[: mask.dim() - dims], *mask.shape[mask.dim() - dims :])


def valid_outputs(mask: Tensor, windows: Sequence[Window], sizes: Sequence[int], outputs: Sequence[int]) -> Tensor:
    """Validity of the windows over the last dims of ``mask``.

    ``sizes`` are the true sizes of these dims, ``outputs`` the numbers of windows; a dim of size 1 is constant, and
    stays so.  The rule is the one set by ``meaning(convolution=)``.
    """
    rule, given = current().convolution, mask
    first = mask.dim() - len(windows)
    if rule != "core" and any(mask.shape[first + i] != size for i, size in enumerate(sizes)):
        mask = mask.expand(*mask.shape[:first], *sizes)  # a window that sees only padding differs from its neighbours
    # Nothing masked can be in a window that sees only padding.
    apart = rule == "any" and not all(map(_touches, windows, sizes, outputs))
    seen = torch.ones(tuple(sizes), dtype=torch.bool, device=mask.device) if apart else mask
    for i, (window, count) in enumerate(zip(windows, outputs, strict=True)):
        if rule == "core":
            mask = core_outputs(mask, first + i, window, count)
        else:
            mask = tap_outputs(mask, first + i, window, count, rule == "all")
            seen = tap_outputs(seen, i, window, count, False) if apart else seen
    mask = masks.realize(mask | ~seen if apart else mask)
    sides.note_as(mask, (first + i for i, window in enumerate(windows) if window.stride == 1), given)
    return mask


def left_dims(mask: Tensor, windows: Sequence[Window], every: bool = False) -> list[int]:
    """Along which of its last dims ``mask`` is known to be padded on the left, and its windows lie apart."""
    dims = len(windows)
    return [i - dims for i, w in enumerate(windows) if (every or w.stride > 1) and sides.is_left(mask, i - dims)]


def _touches(window: Window, size: int, outputs: int) -> bool:
    """Whether each window sees something else than padding."""
    last = window.dilation * (window.kernel - 1) - window.left  # of the first window; then the first of the last
    return size >= window.dilation and last >= 0 and (outputs - 1) * window.stride - window.left < size


def counts(windows: Sequence[Window]) -> Callable[[int, Tensor], Tensor]:
    """How many windows there are along a dim, counted from the last, in rows of so many steps."""
    any_tap = current().convolution == "any"
    return lambda dim, steps: windows[dim].number(steps, any_tap)


def valid_transposed(
    mask: Tensor, windows: Sequence[Window], extra: Sequence[int], sizes: Sequence[int], outputs: Sequence[int]
) -> Tensor:
    """Validity of the outputs of a transposed convolution (``extra``: its output_padding)."""
    rule = current().convolution
    first = mask.dim() - len(windows)
    if rule == "core":
        for i, (window, more, count) in enumerate(zip(windows, extra, outputs, strict=True)):
            if mask.shape[first + i] != 1:
                owner = _owner(window, more, mask.shape[first + i], count, mask.device)
                mask = mask.index_select(first + i, meshes.replicate_like(owner, mask))
        return masks.realize(mask)
    # An input reaches the outputs whose windows, slid over the input spread out by the stride, contain it.
    mask = mask.expand(*mask.shape[:first], *sizes)
    seen = torch.ones(tuple(sizes), dtype=torch.bool, device=mask.device)
    for i, (window, more, count) in enumerate(zip(windows, extra, outputs, strict=True)):
        reach = window.dilation * (window.kernel - 1)
        flipped = Window(window.kernel, 1, reach - window.left, reach - window.right + more, window.dilation)
        mask = tap_outputs(
            _insert_between(mask, first + i, window.stride, rule == "all"), first + i, flipped, count, rule == "all"
        )
        seen = tap_outputs(_insert_between(seen, i, window.stride, False), i, flipped, count, False)
    return masks.realize(mask if rule == "all" else mask | ~seen)


def _owner(window: Window, extra: int, size: int, outputs: int, device: torch.device) -> Tensor:
    """Which input an output of a transposed convolution belongs to."""
    ahead = torch.arange(outputs, device=device) - window.span - extra
    return ahead.neg().div(window.stride, rounding_mode="floor").neg().clamp(0, size - 1)


def _insert_between(mask: Tensor, dim: int, stride: int, value: bool) -> Tensor:
    """``mask`` with ``stride - 1`` constant entries between neighbours along ``dim``."""
    if stride == 1:
        return mask
    blank = torch.full((), value, device=mask.device).expand(*mask.shape, stride - 1)
    wide = torch.cat([mask.unsqueeze(-1), blank], -1).movedim(-1, dim + 1).flatten(dim, dim + 1)
    return wide.narrow(dim, 0, wide.shape[dim] - stride + 1)


def core_outputs(mask: Tensor, dim: int, window: Window, outputs: int) -> Tensor:
    """The core rule along ``dim``."""
    span = window.span
    if mask.shape[dim] == 1 or outputs == 0:
        return mask if outputs else mask.narrow(dim, 0, 0)
    excess = torch.sym_max((outputs - 1) * window.stride + max(span, 0) + 1 - mask.shape[dim], 0)
    if span < 0:
        wide = _pad(mask, dim, -span, excess, False)
        return _strided_outputs(_combine_taps(wide, dim, 1 - span, 1, torch.bitwise_or), dim, window.stride, outputs)
    wide = _pad(mask, dim, 0, excess, True)
    return _strided_outputs(_combine_taps(wide, dim, span + 1, 1, torch.bitwise_and), dim, window.stride, outputs)


def tap_outputs(mask: Tensor, dim: int, window: Window, outputs: int, every: bool) -> Tensor:
    """Whether every tap (padding counts as valid), or any tap (padding counts as masked), is valid."""
    if outputs == 0:
        return mask.narrow(dim, 0, 0)
    needed = (outputs - 1) * window.stride + window.dilation * (window.kernel - 1) + 1
    wide = _pad(mask, dim, window.left, torch.sym_max(needed - window.left - mask.shape[dim], 0), every)
    combine = torch.bitwise_and if every else torch.bitwise_or
    return _strided_outputs(
        _combine_taps(wide, dim, window.kernel, window.dilation, combine), dim, window.stride, outputs
    )


def count_taps(mask: Tensor, dim: int, window: Window, outputs: int) -> Tensor:
    """The sum over the taps along ``dim`` of an integer tensor (0 outside it)."""
    needed = (outputs - 1) * window.stride + window.dilation * (window.kernel - 1) + 1
    wide = _pad(mask, dim, window.left, torch.sym_max(needed - window.left - mask.shape[dim], 0), False)
    total = _strided_outputs(wide, dim, window.stride, outputs)
    for tap in range(1, window.kernel):
        offset = tap * window.dilation
        total = total + _strided_outputs(
            wide.narrow(dim, offset, wide.shape[dim] - offset), dim, window.stride, outputs
        )
    return total


def _pad(mask: Tensor, dim: int, left: int, right: int, value: bool) -> Tensor:
    if left < 0:  # a transposed convolution that crops
        mask, left = mask.narrow(dim, -left, mask.shape[dim] + left), 0
    if left == 0 and type(right) is int and right == 0:  # of a traced size nothing is asked
        return mask
    return pad(mask, [0, 0] * (mask.dim() - 1 - dim) + [left, right], value=value)


def _strided_outputs(mask: Tensor, dim: int, stride: int, outputs: int) -> Tensor:
    if stride == 1:
        return mask if mask.shape[dim] == outputs else mask.narrow(dim, 0, outputs)
    index = [slice(None)] * dim + [slice(0, (outputs - 1) * stride + 1, stride)]
    return mask[tuple(index)]


def _combine_taps(mask: Tensor, dim: int, taps: int, step: int, combine: Combine) -> Tensor:
    """``combine`` over ``taps`` positions ``step`` apart, from each position on; doubling: log2(taps) passes."""
    covered = 1
    while covered < taps:
        more = min(covered, taps - covered)
        length = mask.shape[dim] - more * step
        mask = combine(mask.narrow(dim, 0, length), mask.narrow(dim, more * step, length))
        covered += more
    return mask
