"""``lengths=``: which steps of a padded batch exist.  A mask does not say it: a missing step is masked, too."""

from typing import Any

import torch
from torch import Tensor

from .. import errors, masks
from ..compat import has_real_memory, is_wrapped

SIDES = ("right", "left")


def check_side(side: str) -> None:
    """Raises unless ``side`` names one."""
    if side not in SIDES:
        raise ValueError(f"padding_side is where the padding goes, 'right' or 'left', got {side!r}")


def steps_that_exist(
    name: str, lengths: Any, side: str, data: Tensor, time: int, mask: Tensor | None
) -> tuple[Tensor, bool]:
    """A mask that broadcasts to ``data``, and whether ``mask`` was seen to be False elsewhere.

    The batch is dimension 0, or 1 if time is 0.

    ``mask`` says which entries are valid: none may lie behind an end. Values are read of memory on the CPU alone.
    """
    shape, batch = data.shape, 1 if time == 0 else 0
    if isinstance(lengths, str):
        raise ValueError(f"{name}: lengths must be integers or 'full', got {lengths!r}")
    lengths = torch.as_tensor(lengths, device=data.device)
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
    if has_real_memory(lengths) and lengths.is_cpu and not is_wrapped(lengths) and lengths.numel():
        low, high = (int(v) for v in lengths.aminmax())
        if low < 0 or high > shape[time]:
            raise ValueError(f"{name}: lengths must lie between 0 and {shape[time]}, got {low} to {high}")
        if mask is not None and has_real_memory(mask) and not is_wrapped(mask):
            behind = masks.compact(masks.logical_and(mask, masks.expand_to(~exists, mask.shape)))
            if behind.numel() and masks.to_bytes(behind).amax():
                raise ValueError(
                    f"{name}: there are valid entries behind the end of a sequence, as lengths say it; is padding_side="
                    f"{side!r} right?"
                )
            return exists, True
    return exists, False
