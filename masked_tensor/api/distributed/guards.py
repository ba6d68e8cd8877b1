"""Masked parameters are refused when torch's data-parallel wrappers are made: these work on memory, past a mask."""

import gc
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch import distributed as dist

from ...compat import ignore_in_ddp, lent_parameters
from ...engine.tensor import MaskedTensor
from ...patches.places import (
    DATA_PARALLEL,
    FSDP_DIVISOR,
    FSDP_PARAMETER,
    FSDP_PARAMETERS,
    PIPELINE_SENDS,
    wrap_when_imported,
)


def _refuse(tensors: Iterable[Any], wrapper: str) -> None:
    if any(type(p) is MaskedTensor for p in tensors):
        raise TypeError(
            f"{wrapper} cannot hold a masked parameter: its optimizer, buckets and shards are plain memory; keep the "
            "parameter plain and the mask as a buffer, and mask where it is used: as_masked_tensor(self.weight, "
            "self.mask)"
        )


def _check_before(check: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Has an ``__init__`` called after ``check`` of its arguments."""

    def wrap(init: Callable[..., None]) -> Callable[..., None]:
        def checked(self: Any, *args: Any, **kwargs: Any) -> None:
            check(*args, **kwargs)
            init(self, *args, **kwargs)

        return checked

    return wrap


def _check_module(module: Any = None, *args: Any, **kwargs: Any) -> None:
    if not isinstance(module, nn.Module):
        return  # torch says so
    _refuse(module.parameters(), "DistributedDataParallel")
    _leave_statistics(module)
    synced = kwargs.get("init_sync", True) or kwargs.get("broadcast_buffers", True)
    if synced and any(type(b) is MaskedTensor for b in module.buffers()):
        raise TypeError(
            "DistributedDataParallel sends buffers in one piece with plain tensors, which cannot hold a mask: give it "
            "broadcast_buffers=False and init_sync=False, and send what ranks do not share: torch.distributed.broadcast"
            "(tensor, 0)"
        )


def _leave_statistics(module: nn.Module) -> None:
    """Has DistributedDataParallel not send buffers that are each rank's own, as those of running statistics are."""
    owners = {name: m for name, m in module.named_modules() if getattr(m, "each_rank_its_own", False)}
    own = [f"{name}.{buffer}".lstrip(".") for name, m in owners.items() for buffer, _ in m.named_buffers()]
    if own:
        ignore_in_ddp(module, own)


def _check_parameter(param: Any, *args: Any, **kwargs: Any) -> None:
    _refuse([param], "fully_shard")


def _check_parameters(params: Any, *args: Any, **kwargs: Any) -> None:
    _refuse(params, "FullyShardedDataParallel")


_RANKS: WeakKeyDictionary[Any, frozenset[int]] = WeakKeyDictionary()  # of torch's own records of sharded parameters


def _note_ranks(init: Callable[..., None]) -> Callable[..., None]:
    """Notes over which ranks FSDP2 adds up the gradients of a parameter: those that share it, and those of copies."""

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        info = getattr(self, "mesh_info", None)
        groups = [getattr(info, f"{kind}_process_group", None) for kind in ("shard", "replicate")]
        _RANKS[self] = frozenset(rank for g in groups if g is not None for rank in dist.get_process_group_ranks(g))

    return noted


def check_data_ranks(group: Any, parameters: Iterable[Tensor] | None) -> None:
    """Raises if FSDP2 adds up the gradients of ``parameters`` (of all that are trained) over more than ``group``."""
    if group is None or not _RANKS:
        return
    members, chosen = set(dist.get_process_group_ranks(group)), {id(p) for p in parameters or ()}
    others = _ranks_of(chosen) - members
    if others and not chosen:
        gc.collect()  # of a model that is gone, whose records hold each other
        others = _ranks_of(chosen) - members
    if others:
        raise RuntimeError(
            f"mean_over(group=...) has the ranks {sorted(members)}, but FSDP2 adds up gradients over its mesh, "
            f"also {sorted(others)}: the gradient would not be that of the mean; give it the mesh that "
            "fully_shard was given, or group=None for all ranks"
        )


def sharded(parameters: Iterable[Tensor]) -> list[Tensor]:
    """The parameters that get gradients: FSDP2 lends a model whole ones between forward and backward.

    A forward pass without backward, as of an evaluation, leaves those of the outermost module in place.
    """
    shards = {id(whole): each.sharded_param for each in _RANKS for whole in lent_parameters(each)}
    return [shards.get(id(p), p) for p in parameters]


def _ranks_of(chosen: set[int]) -> set[int]:
    """The ranks over which FSDP2 adds up gradients of the parameters with these ids, or of all that are trained."""
    found: set[int] = set()
    for sharded, ranks in _RANKS.items():
        p = getattr(sharded, "sharded_param", None)
        if p is not None and p.requires_grad and (not chosen or id(p) in chosen):
            found |= ranks
    return found


_DIVISORS: WeakKeyDictionary[nn.Module, float] = WeakKeyDictionary()


def gradient_divisors() -> set[float]:
    """What FSDP2 modules of this process were told to divide the sums of their gradients by."""
    return set(_DIVISORS.values())


def _note_divisor(change: Callable[..., None]) -> Callable[..., None]:
    def noted(self: nn.Module, factor: float, *args: Any, **kwargs: Any) -> None:
        change(self, factor, *args, **kwargs)
        _DIVISORS[self] = factor

    return noted


def _refuse_masked(ops: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """What a pipeline stage sends: the next one has made a plain tensor to receive it, or the process would die."""

    def checked(self: Any, *args: Any, **kwargs: Any) -> list[Any]:
        found = ops(self, *args, **kwargs)
        if any(type(op.tensor) is MaskedTensor for op in found):
            raise TypeError(
                "a pipeline stage cannot send a masked tensor, the next one receives into plain memory: return the "
                "data and the mask, (x.filled(0), x.get_mask()), and begin the next stage with as_masked_tensor(data, "
                "mask)"
            )
        return found

    return checked


wrap_when_imported(PIPELINE_SENDS, _refuse_masked)
wrap_when_imported(DATA_PARALLEL, _check_before(_check_module))
wrap_when_imported(FSDP_PARAMETER, lambda init: _check_before(_check_parameter)(_note_ranks(init)))
wrap_when_imported(FSDP_PARAMETERS, _check_before(_check_parameters))
wrap_when_imported(FSDP_DIVISOR, _note_divisor)
