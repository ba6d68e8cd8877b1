"""The ranks of ``torch.distributed``: which group is meant, how many there are, and where their numbers lie."""

from typing import Any

import torch

from .. import compat
from ..shared import group_mean

__all__ = ["group_device", "group_size", "resolve_group"]


def resolve_group(group: Any) -> Any:
    """The ProcessGroup that a user names; None without ``torch.distributed``, where there is one rank.

    Args:
        group (ProcessGroup or DeviceMesh or None): None is the default group. A mesh has one dimension, or all ranks.

    Returns:
        ProcessGroup or None: The group.

    Raises:
        ValueError: A DeviceMesh has several dimensions and not all ranks.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.resolve_group(None) is None
        True
    """
    return group_mean.resolve_group(group)


def group_size(group: Any) -> int:
    """How many ranks a group has.

    Args:
        group (ProcessGroup or None): What :func:`resolve_group` gave.

    Returns:
        int: 1 for None.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.group_size(ranks.resolve_group(None))
        1
    """
    return group_mean.group_size(group)


def group_device(group: Any) -> torch.device:
    """Where numbers lie that a group sends and that belong to no tensor: on the CPU for gloo, on a GPU for NCCL.

    Args:
        group (ProcessGroup): A group.

    Returns:
        torch.device: The device.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> group = ranks.resolve_group(None)
        >>> torch.device("cpu") if group is None else ranks.group_device(group)
        device(type='cpu')
    """
    return compat.group_device(group)
