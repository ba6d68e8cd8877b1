"""Distributed checkpoints: what ``torch.distributed.checkpoint`` asks of a tensor that is stored in parts.

A part is stored as a masked tensor, data and mask together, and read into one: so a checkpoint may be read on another
number of ranks, and into other placements.  A packed tensor is stored packed, by one rank, and a packed target
also takes its lengths.  Each part is marked as masked in the checkpoint's own metadata, from which
``dcp_to_torch_save`` makes the tensors it reads into.
"""

import sys
from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any

import torch

from ... import masks
from ...engine.tensor import MaskedTensor, add_members, pair_of, wrap
from ...layouts import meshes
from ...pair import Pair
from ...patches.places import READ_EMPTY, STAGE, wrap_when_imported
from ..batches.packing import packed
from ..copies import pickling
from .mesh import align, to_local

_TORCH = "torch.distributed.checkpoint"
_MARK = "masked"  # an attribute of a part's metadata, which goes unseen where this package is not installed


def _dtensor(x: MaskedTensor) -> Any:
    """The data of a masked tensor of DTensors; None of another."""
    data = None if x._packed is not None else pair_of(x).data
    return data if meshes.is_distributed(data) else None


def _holds_part(x: MaskedTensor, data: Any) -> bool:
    """Whether this rank holds a part of ``x``; lays the mask out as the data, as long as all ranks are asked."""
    if data.device_mesh.get_coordinate() is None:
        return False
    align(x)
    return True


def create_write_items(x: MaskedTensor, fqn: str, value: Any) -> list[Any]:
    """What this rank stores of ``x``: its part, or the whole if it is on no mesh."""
    data: Any = _dtensor(x)
    if data is not None and not _holds_part(x, data):
        return []
    items = [_expect_whole(x, fqn)] if data is None else data.__create_write_items__(fqn, data)
    for item in items:
        setattr(item.tensor_data.chunk, _MARK, "strided" if x._packed is None else "packed")
    return items


def _expect_whole(x: MaskedTensor, fqn: str) -> Any:
    plan, metadata = sys.modules[f"{_TORCH}.planner"], sys.modules[f"{_TORCH}.metadata"]
    (chunk,) = create_chunk_list(x)
    properties = metadata.TensorProperties.create_from_tensor(x)
    stored = plan.TensorWriteData(chunk=chunk, properties=properties, size=x.size())
    index = metadata.MetadataIndex(fqn, chunk.offsets)
    return plan.WriteItem(index=index, type=plan.WriteItemType.TENSOR, tensor_data=stored)


def create_chunk_list(x: MaskedTensor) -> list[Any]:
    """Which parts of ``x`` lie on this rank."""
    data: Any = _dtensor(x)
    if data is None:
        start = torch.Size([0] * x.dim())
        return [sys.modules[f"{_TORCH}.metadata"].ChunkStorageMetadata(offsets=start, sizes=x.size())]
    chunks: list[Any] = data.__create_chunk_list__() if _holds_part(x, data) else []
    return chunks


def get_tensor_shard(x: MaskedTensor, index: Any) -> MaskedTensor:
    """This rank's part, into which a checkpoint is read: it shares memory and validity with ``x``."""
    if _dtensor(x) is None:
        if index.offset is not None and any(index.offset):
            raise ValueError(f"FQN: {index.fqn!r} is not distributed, it has no part at {index.offset}")
        return x
    with torch.no_grad():
        return to_local(x)


def _empty_as_stored(set_up: Callable[..., None]) -> Callable[..., None]:
    """A checkpoint that is read without a state dict (``dcp_to_torch_save``) is read into masked tensors."""

    def set_up_planner(self: Any, state_dict: Any, metadata: Any = None, is_coordinator: bool = False) -> None:
        set_up(self, state_dict, metadata, is_coordinator)
        for name, stored in metadata.state_dict_metadata.items():
            marks = [getattr(chunk, _MARK) for chunk in getattr(stored, "chunks", ()) if hasattr(chunk, _MARK)]
            if name in self.state_dict and marks:
                x = self.state_dict[name]
                empty = wrap(Pair(x, masks.full(x.shape, x.device, False)))
                empty = packed(empty) if marks == ["packed"] and x.dim() > 1 else empty
                self.state_dict[name] = empty
                *path, last = (metadata.planner_data or {}).get(name, (name,))
                reduce(getitem, path, self.original_state_dict)[last] = empty

    return set_up_planner


def _stage(offload: Callable[..., Any]) -> Callable[..., Any]:
    """An asynchronous save stages data and mask as it does plain tensors; it knows tensors by their memory."""

    def offload_tensor(self: Any, x: Any, memo: Any, non_blocking: bool = False) -> Any:
        if type(x) is not MaskedTensor:
            return offload(self, x, memo, non_blocking)
        make, (kind, parts) = pickling.reduce_ex(x if x.is_leaf else x.detach(), None)
        parts = {name: _from_start(part) for name, part in parts.items()}
        staged = make(kind, self.deepcopy_with_tensor_offload(parts, memo, non_blocking=non_blocking))
        memo[id(x)] = staged
        return staged

    return offload_tensor


def _from_start(part: Any) -> Any:
    """A DTensor whose memory begins later (a mask that came in one message with its data) cannot be staged by torch."""
    return part.clone() if meshes.is_distributed(part) and meshes.local_part(part).storage_offset() else part


add_members(
    __create_write_items__=create_write_items,
    __create_chunk_list__=create_chunk_list,
    __get_tensor_shard__=get_tensor_shard,
)
wrap_when_imported(READ_EMPTY, _empty_as_stored)
wrap_when_imported(STAGE, _stage)
