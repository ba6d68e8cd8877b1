"""The ranks of ``torch.distributed``: which group is meant, how many there are, and where their numbers lie."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from .. import compat
from ..api.distributed import guards
from ..shared import ranks

__all__ = [
    "check_data_ranks",
    "gradient_divisors",
    "group_device",
    "group_size",
    "group_timeout",
    "own_group",
    "resolve_group",
    "sharded",
]


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
    return ranks.resolve_group(group)


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
    return ranks.group_size(group)


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


def own_group(group: Any) -> Any:
    """A group of the same ranks, with the same timeout, for the collectives of one library alone; it is made once.

    All processes make that of all ranks, whose name they count alike. That of some is made by those alone, and its
    name depends on how many groups a process has; where those differ they would wait for each other, and the group
    itself is used.

    Args:
        group (ProcessGroup or DeviceMesh or None): As in :func:`resolve_group`. All of its ranks call this.

    Returns:
        ProcessGroup or None: The group, None without ``torch.distributed``.

    Raises:
        ValueError: As :func:`resolve_group` does.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.own_group(None) is None
        True
    """
    return ranks.own_group(group)


def group_timeout(group: Any) -> object:
    """How long a collective of a group waits for the other ranks.

    Args:
        group (ProcessGroup): A group.

    Returns:
        object: A ``timedelta``, or None if it is not known.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> group = ranks.resolve_group(None)
        >>> None if group is None else ranks.group_timeout(group)
    """
    return compat.group_timeout(group)


def check_data_ranks(group: Any, parameters: Iterable[Tensor] | None) -> None:
    """Raises if FSDP2 adds up the gradients of parameters over other ranks than those of a group.

    Args:
        group (ProcessGroup or None): What :func:`resolve_group` gave.
        parameters (iterable of Tensor): Of any shape and dtype; None: all that are trained.

    Raises:
        RuntimeError: It does.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.check_data_ranks(None, None)
    """
    guards.check_data_ranks(group, parameters)


def gradient_divisors() -> set[float]:
    """What FSDP2 modules of this process were told to divide the sums of their gradients by.

    Returns:
        set of float: Empty where nobody called ``set_gradient_divide_factor``.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.gradient_divisors()
        set()
    """
    return guards.gradient_divisors()


def sharded(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that get gradients: with FSDP2 a model holds whole ones between forward and backward.

    Args:
        parameters (iterable of Tensor): Of any shape and dtype, as ``model.parameters()`` gives them.

    Returns:
        list of Tensor: The shards of those that are held whole for a while, the others as they are.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> len(ranks.sharded(torch.nn.Linear(2, 1).parameters()))
        2
    """
    return guards.sharded(parameters)
