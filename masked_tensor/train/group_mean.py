"""A mean over the ranks of a process group: the sums are added before they are divided.

The gradient is scaled so that the average over ranks, which data-parallel wrappers take, is the gradient of that mean:
``d mean / d total = ranks / number``.
"""

from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from ..extend.means import unwrapped
from ..extend.ranks import group_size, group_timeout
from . import errors

Group = Any  # a ProcessGroup, of which torch may have been built without

#: What a rank sends its sums for.  Ranks that send them for different things would add up unlike numbers.
LOSS, FINISH, METRIC, FAILED = range(4)


def all_reduce_sums(
    sums: Tensor, group: Group, kind: int, parts: int = 0, loss: object = ""
) -> tuple[Tensor, Tensor | None]:
    """The sums (at most three, float64) of all ranks, and whether these sent them for the same: None if that was seen.

    Each rank sends two numbers and their squares: one of ``kind`` and of how many ``parts`` it has kept, the other of
    the name of the ``loss``.  All ranks sent the same number iff (sum of numbers)^2 == ranks * (sum of squares).  Where
    reading is free it is read, and ranks that differ raise; on an accelerator it is left to the caller, who may wait.
    """
    if group is None:
        return sums, None
    signs = kind + 4 * (parts % 1024), loss_sign(loss)  # small: a square, times ranks^2, is exact in float64
    squares = [n * n for n in signs]
    sent = torch.tensor([0, 0, 0, *signs, *squares], dtype=torch.float64, device=sums.device)  # one size: gloo aborts
    sent[: len(sums)] = sums
    try:
        group.allreduce([sent]).wait()
    except RuntimeError as error:
        raise errors.other_ranks_missing(group_timeout(group)) from error
    alike = (sent[3:5].square() == group_size(group) * sent[5:]).all()
    if not sums.is_cpu:
        return sent[: len(sums)], alike
    if not alike:
        raise errors.ranks_differ()
    return sent[: len(sums)], None


def loss_sign(loss: object) -> int:
    """A number below 4096 for an op or its name, the same in all processes."""
    return crc32(str(loss).encode()) % 4096


def group_mean(
    total: Tensor,
    number: Tensor,
    valid: Tensor,
    unit: Tensor | None,
    group: Group,
    ranks: int,
    parts: int,
    loss: object,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """``(total, number, valid)`` of this rank to the sum over the group, divided by ``unit`` or by the summed number.

    Gives the quotient, whether an entry is valid on any rank, the group's sum and number, and what
    :func:`all_reduce_sums` says of the ranks.  The gradient is ``ranks`` times that of this rank's part.  The number
    has no gradient: torch gives the weights of a loss none.
    """
    with torch.no_grad():
        sent = torch.stack([total.double(), number.double(), valid.double()])
        sums, alike = all_reduce_sums(sent, group, LOSS, parts, loss)
        whole, count, some = sums.unbind()
        divisor = count if unit is None else torch.where(unit != 0, unit, count)
        divisor = torch.where(divisor != 0, divisor, 1)
        factor = ranks / divisor
    mean = total * factor.to(total.dtype)  # its derivative is that of the mean; its value is this rank's part of it
    mean.detach().copy_(whole / divisor)
    return mean, some > 0, unwrapped(sums[:2]), alike
