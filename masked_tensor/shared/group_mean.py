"""One mean over the ranks of a process group: the sums are added before they are divided.

The gradient is scaled so that the average over ranks, which data-parallel wrappers take, is the gradient of that mean:
``d mean / d total = ranks / number``.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..compat import count_groups

Group = Any  # a ProcessGroup, of which torch may have been built without

# The order of calls.  Ranks hang if two of them issue the collectives of one group in different orders.  Ours are
# issued by the thread that computes the loss, where the loss divides: in the order of the losses in the program.  Those
# of a wrapper (DistributedDataParallel's buckets, FSDP's shards) are issued in backward, on a device by autograd's
# thread, when gradients happen to be ready: in between ours at times of its own.  So ours go through groups of their
# own: within each group the order is the program's, and between groups none is needed.
_OWN: dict[Group, Group] = {}


def resolve_group(group: Any) -> Group:
    """The ProcessGroup that a user names; None without torch.distributed: there is one rank."""
    if not (dist.is_available() and dist.is_initialized()):
        return None
    if group is None:
        group = dist.group.WORLD
    return group.get_group() if hasattr(group, "get_group") else group  # of a DeviceMesh


def own_group(group: Any) -> Group:
    """A group of the same ranks that nobody else uses.

    All processes make that of all ranks, whose name they count alike.  That of some is made by those alone, and its
    name depends on how many groups a process has; where those differ they would wait for each other, and the group
    itself is used.
    """
    group = resolve_group(group)
    if group is not None and group not in _OWN:
        members = dist.get_process_group_ranks(group)
        if len(members) == dist.get_world_size():
            _OWN[group] = dist.new_group()
        else:
            known: list[Any] = [None] * len(members)
            dist.all_gather_object(known, count_groups(), group=group)
            alike = len(set(known)) == 1
            _OWN[group] = dist.new_group(members, use_local_synchronization=True) if alike else group
    return _OWN.get(group)


def group_size(group: Group) -> int:
    """How many there are."""
    return 1 if group is None else dist.get_world_size(group)


def all_reduce_sums(sums: Tensor, group: Group) -> Tensor:
    """The sums of all ranks, added in float64."""
    if group is not None:
        group.allreduce([sums]).wait()
    return sums


def group_mean(
    total: Tensor, number: Tensor, valid: Tensor, unit: Tensor | None, group: Group
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``(total, number, valid)`` of this rank to the sum over the group, divided by ``unit`` or by the summed number.

    Gives the quotient, whether an entry is valid on any rank, the group's sum and the group's number.  The number
    has no gradient: torch gives the weights of a loss none.
    """
    with torch.no_grad():
        parts = torch.stack([total.double(), number.double(), valid.double()])
        whole, count, some = all_reduce_sums(parts, group).unbind()
        divisor = count if unit is None else torch.where(unit != 0, unit, count)
        divisor = torch.where(divisor != 0, divisor, 1)
        factor = group_size(group) / divisor
    mean = total * factor.to(total.dtype)  # its derivative is that of the mean; its value is this rank's part of it
    mean.detach().copy_(whole / divisor)
    return mean, some > 0, whole, count
