"""Running statistics: buffers updated with the statistics of each batch, where it has any."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import pair
from ..compat import in_transform
from ..pair import Pair
from .standardize import Parameter


@torch.no_grad()
def track(
    running_mean: Parameter,
    running_var: Parameter,
    momentum: float,
    mean: Tensor,
    variance: Tensor,
    number: Tensor,
    by_channel: Callable[[Tensor], Tensor],
) -> None:
    """Moves the buffers towards the batch's statistics, where it has any; no value is looked at.

    The statistics are those of groups, of which a channel may have several: they are averaged, and ``by_channel`` adds
    up the numbers of the groups of each channel.
    """
    unbiased = None if running_var is None else variance * (number / (number - 1).clamp_min_(1))
    for buffer, new, least in ((running_mean, mean, 1), (running_var, unbiased, 2)):
        if buffer is None or new is None:
            continue
        known = number >= least
        data: Any = pair.data_of(buffer)
        if number.numel() == data.numel():
            known, new = known.reshape(-1), new.reshape(-1)
        else:
            groups = by_channel(known.to(new.dtype))
            known, new = groups > 0, by_channel(torch.where(known, new, 0)) / groups.clamp_min(1)
        if type(buffer) is Pair:
            known = known & buffer.mask  # what a buffer does not know stays unknown
        # As torch's kernels do it: past the version, since a kernel that ran before this one keeps the buffer.
        target = data if in_transform() else data.data
        target.copy_(torch.where(known, torch.lerp(data.to(new.dtype), new, momentum), data))
