"""``lengths=``: which steps of a padded batch exist.  A mask does not say it: a missing step is also masked."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import errors, masks
from ...compat import has_real_memory, is_wrapped
from ...kernels.devices import is_host

SIDES = ("right", "left")


def check_side(side: str) -> None:
    """Raises unless ``side`` names one."""
    if side not in SIDES:
        raise ValueError(f"padding_side is where the padding goes, 'right' or 'left', got {side!r}")


def as_lengths(lengths: Any, device: torch.device | None = None) -> Tensor:
    """``lengths`` as a tensor; an empty list, which names no dtype, as one of integers."""
    given = torch.as_tensor(lengths, device=device)
    return given if isinstance(lengths, Tensor) or given.numel() else given.long()


def padded_length(name: str, longest: int, length: int | None, multiple: int | None) -> int:
    """How long a batch is padded to: to its longest sequence, to ``length``, or to the next ``multiple`` of it."""
    if length is not None and multiple is not None:
        raise ValueError(f"{name}: give length= or pad_to_multiple_of=, not both")
    for key, least, value in (("length", 0, length), ("pad_to_multiple_of", 1, multiple)):
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__")):
            raise TypeError(f"{name}: {key} must be an int, got {type(value).__name__}")
        if value is not None and value < least:
            raise ValueError(f"{name}: {key} must be {least} or more, got {value}")
    if length is not None and longest > length:
        raise ValueError(
            f"{name}: a sequence of {longest} steps does not fit length={length}; cut it first (sequence[:{length}])"
        )
    if length is not None:
        return int(length)
    return longest if multiple is None else -(-longest // multiple) * multiple


def time_elsewhere(lengths: Tensor, shape: Sequence[int], time: int) -> str:
    """The way out where ``lengths`` do not fit ``time``, but another dimension of a batch-first ``shape``."""
    low, high = (int(v) for v in lengths.aminmax())
    fits = [d for d in range(1, len(shape)) if d != time and 0 <= low <= high <= shape[d]]
    d = min(fits, key=lambda d: shape[d], default=None)  # the longest sequence has most often no padding
    return "" if d is None else f"; if time is dimension {d} of the shape {tuple(shape)}, give dim={d}"


def steps_that_exist(
    name: str, lengths: Any, side: str, data: Tensor, time: int, mask: Tensor | None
) -> tuple[Tensor, bool]:
    """A mask that broadcasts to ``data``, and whether ``mask`` was seen to be False elsewhere.

    The batch is dimension 0, or 1 if time is 0.

    ``mask`` says which entries are valid: none may lie past an end. Values are read of memory on the CPU alone.
    """
    shape, batch = data.shape, 1 if time == 0 else 0
    if isinstance(lengths, str):
        raise ValueError(f"{name}: lengths must be integers or 'full', got {lengths!r}")
    lengths = as_lengths(lengths, data.device)
    if lengths.dtype.is_floating_point or lengths.dtype.is_complex or lengths.dtype is torch.bool:
        raise TypeError(f"{name}: lengths must be integers or 'full', got {errors.dtype_name(lengths.dtype)}")
    if len(shape) < 2 or tuple(lengths.shape) != (shape[batch],):
        raise ValueError(
            f"{name}: lengths needs one length per sequence of a batch (batch, time, ...): the shape is {tuple(shape)} "
            f"with time at dim={time}, and lengths has shape {tuple(lengths.shape)}"
        )
    steps = masks.lengths_to_mask(lengths, shape[time])
    exists = steps.flip(1) if side == "left" else steps
    over = [shape[d] if d in (batch, time) else 1 for d in range(len(shape))]
    exists = (exists if batch < time else exists.t()).reshape(over)
    if has_real_memory(lengths) and is_host(lengths.device) and not is_wrapped(lengths) and lengths.numel():
        low, high = (int(v) for v in lengths.aminmax())
        if low < 0 or high > shape[time]:
            raise ValueError(f"{name}: lengths must lie between 0 and {shape[time]}, got {low} to {high}")
        if mask is not None and has_real_memory(mask) and not is_wrapped(mask):
            behind = masks.compact(masks.logical_and(mask, masks.expand_to(~exists, mask.shape)))
            if behind.numel() and masks.to_bytes(behind).amax():
                raise ValueError(
                    f"{name}: there are valid entries past the end of a sequence, as lengths say it; is padding_side="
                    f"{side!r} right?"
                )
            return exists, True
    return exists, False
