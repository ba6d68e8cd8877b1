"""The ranks of ``torch.distributed``: which group is meant, how many there are, and a group of our own."""

from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import torch.distributed as dist

from ..compat import count_groups, group_timeout

Group = Any  # a ProcessGroup, of which torch may have been built without

# The order of calls.  Ranks hang if two of them issue the collectives of one group in different orders.  Ours are
# issued by the thread that computes the loss, where the loss divides: in the order of the losses in the program.  Those
# of a wrapper (DistributedDataParallel's buckets, FSDP's shards) are issued in backward, on a device by autograd's
# thread, when gradients happen to be ready: in between ours at times of its own.  So ours go through groups of their
# own: within each group the order is the program's, and between groups none is needed.
# Torch keeps a group until ``destroy_process_group``, and nothing here keeps it longer.
_OWN: WeakKeyDictionary[Group, ReferenceType[Group]] = WeakKeyDictionary()


def resolve_group(group: Any) -> Group:
    """The ProcessGroup that a user names; None without torch.distributed: there is one rank."""
    if not (dist.is_available() and dist.is_initialized()):
        return None
    if group is None:
        group = dist.group.WORLD
    if getattr(group, "ndim", 1) > 1:  # of a DeviceMesh
        if group.size() != dist.get_world_size():
            raise ValueError(
                f"mean_over expects a DeviceMesh of one dimension, or one of all ranks, got one of {group.ndim} with "
                f"{group.size()} of {dist.get_world_size()} ranks; flatten it to one dimension, or leave group=None "
                "for all ranks"
            )
        return dist.group.WORLD
    return group.get_group() if hasattr(group, "get_group") else group


def own_group(group: Any) -> Group:
    """A group of the same ranks, with the same timeout, that nothing else uses.

    All processes make that of all ranks, whose name they count alike.  That of some is made by those alone, and its
    name depends on how many groups a process has; where those differ they would wait for each other, and the group
    itself is used.
    """
    group = resolve_group(group)
    if group is None:
        return None
    own = _OWN[group]() if group in _OWN else None
    if own is None:
        own = _make_group(group)
        _OWN[group] = ref(own)
    return own


def _make_group(group: Group) -> Group:
    members, timeout = dist.get_process_group_ranks(group), group_timeout(group)
    if len(members) == dist.get_world_size():
        return dist.new_group(timeout=timeout)
    known: list[Any] = [None] * len(members)
    dist.all_gather_object(known, count_groups(), group=group)
    alike = len(set(known)) == 1
    return dist.new_group(members, timeout=timeout, use_local_synchronization=True) if alike else group


def group_size(group: Group) -> int:
    """How many there are."""
    return 1 if group is None else dist.get_world_size(group)
