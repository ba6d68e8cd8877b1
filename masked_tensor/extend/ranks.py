"""The ranks of ``torch.distributed``: the group of an argument, its size, and the device of its numbers."""

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
    """The ProcessGroup of a user's argument; None without ``torch.distributed``, where there is one rank.

    Args:
        group (ProcessGroup or DeviceMesh or None): The group; None is the default group. A mesh must have one dimension
            or all ranks.

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
    """The number of ranks of a group.

    Args:
        group (ProcessGroup or None): The result of :func:`resolve_group`.

    Returns:
        int: The number of ranks, 1 for None.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.group_size(ranks.resolve_group(None))
        1
    """
    return ranks.group_size(group)


def group_device(group: Any) -> torch.device:
    """The device for numbers that a group communicates: the CPU for gloo, a GPU for NCCL.

    Args:
        group (ProcessGroup): The group.

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
    """A separate group of the same ranks, with the same timeout, for the collectives of one library; created once.

    Call it on all ranks of the group. The group of all ranks is created by all processes under the same name. A smaller
    group is created by its ranks alone, and its name depends on the number of groups of a process; if these differ, the
    ranks would wait for each other, so the group itself is returned.

    Args:
        group (ProcessGroup or DeviceMesh or None): As in :func:`resolve_group`.

    Returns:
        ProcessGroup or None: The group; None without ``torch.distributed``.

    Raises:
        ValueError: A DeviceMesh has several dimensions and not all ranks.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.own_group(None) is None
        True
    """
    return ranks.own_group(group)


def group_timeout(group: Any) -> object:
    """The time that a collective of a group waits for the other ranks.

    Args:
        group (ProcessGroup): The group.

    Returns:
        object: A ``timedelta``, or None if it is unknown.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> group = ranks.resolve_group(None)
        >>> None if group is None else ranks.group_timeout(group)
    """
    return compat.group_timeout(group)


def check_data_ranks(group: Any, parameters: Iterable[Tensor] | None) -> None:
    """Raise an error if FSDP2 sums the gradients of parameters over ranks other than those of a group.

    Args:
        group (ProcessGroup or None): The result of :func:`resolve_group`.
        parameters (iterable of Tensor): Parameters of any shape and dtype. None: all that are trained.

    Raises:
        RuntimeError: FSDP2 sums over other ranks.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.check_data_ranks(None, None)
    """
    guards.check_data_ranks(group, parameters)


def gradient_divisors() -> set[float]:
    """The gradient divide factors that were set on FSDP2 modules of this process.

    Returns:
        set of float: The factors; empty if ``set_gradient_divide_factor`` was not called.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> ranks.gradient_divisors()
        set()
    """
    return guards.gradient_divisors()


def sharded(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that receive gradients: with FSDP2, the shards instead of the whole parameters of a forward pass.

    Args:
        parameters (iterable of Tensor): Parameters of any shape and dtype, as from ``model.parameters()``.

    Returns:
        list of Tensor: The shard of each parameter that is currently whole, and the others unchanged.

    Example:
        >>> from masked_tensor.extend import ranks
        >>> len(ranks.sharded(torch.nn.Linear(2, 1).parameters()))
        2
    """
    return guards.sharded(parameters)
