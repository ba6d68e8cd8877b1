"""Tensors divided over a device mesh (DTensor): how a mask is placed like its data.

Importing ``torch.distributed.tensor`` takes as long as importing this package, so it is never imported here: a tensor
can be a DTensor only if something else did.
"""

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..compat import shares_memory, unwrap_transforms

NAME = "torch.distributed.tensor"


def is_distributed(x: Any) -> bool:
    """Whether ``x`` is a DTensor."""
    if type(x) is Tensor:
        return False
    kind = getattr(sys.modules.get(NAME), "DTensor", None)
    return kind is not None and isinstance(x, kind)


def placements_of_mask(placements: Sequence[Any], terms: str | None = None) -> list[Any]:
    """Those of its data; a mask has no terms that are still to be added, so it is whole where the data is partial.

    With ``terms`` it has, by that reduction: each rank knows of its own terms which are valid.
    """
    module = sys.modules[NAME]
    return [(module.Partial(terms) if terms else module.Replicate()) if p.is_partial() else p for p in placements]


def place_like(mask: Tensor, data: Any) -> Tensor:
    """``mask``, of the shape of ``data``, laid out on the mesh as ``data`` is; if ``data`` is plain, as it is.

    A plain mask is the whole one, the same on every rank: each takes its part, and nothing is sent.  Where it is
    constant along a dimension (stride 0) it stays so, and is the same on every rank along it.  Raises TypeError for a
    mask on a mesh beside plain data.
    """
    if not is_distributed(data):
        if is_distributed(mask):
            raise TypeError(
                "the mask is a DTensor and the data is not: distribute the data too (distribute_tensor(data, mesh, "
                "placements)), or give the whole mask, mask.full_tensor()"
            )
        return mask
    wanted = placements_of_mask(data.placements)
    if is_distributed(mask):
        placed: Any = mask
        return mask if list(placed.placements) == wanted else placed.redistribute(data.device_mesh, wanted)
    constant = [stride == 0 and size > 1 for stride, size in zip(mask.stride(), mask.shape, strict=True)]
    small = mask
    for dim, narrow in enumerate(constant):
        small = small.narrow(dim, 0, 1) if narrow else small
    module = sys.modules[NAME]
    wanted = [module.Replicate() if getattr(p, "dim", None) in _all_true(constant) else p for p in wanted]
    made = distribute_whole(small, data.device_mesh, wanted)
    return made if not any(constant) else made.expand(mask.shape)


def distribute_whole(x: Tensor, mesh: Any, placements: Sequence[Any]) -> Tensor:
    """The DTensor of an ``x`` that all ranks have: each takes its part, and nothing is sent."""
    placed: Tensor = sys.modules[NAME].distribute_tensor(x, mesh, placements, src_data_rank=None)
    return placed


def _all_true(flags: list[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]


def replicate_like(x: Tensor, like: Any) -> Tensor:
    """A plain ``x`` that is the same on every rank, where ``like`` is: on its mesh, if it is a DTensor."""
    if not is_distributed(like):
        return x
    module = sys.modules[NAME]
    placed: Tensor = module.DTensor.from_local(x, like.device_mesh, [module.Replicate()] * like.device_mesh.ndim)
    return placed


def local_part(x: Any) -> Tensor:
    """The memory of ``x`` on this rank: of a DTensor its part (of partial data its terms), any other tensor itself.

    Alias families are of memory, and each rank has its own.
    """
    if type(x) is Tensor or not is_distributed(x):
        plain: Tensor = x
        return plain
    with torch.no_grad():
        part: Tensor = x.to_local()
    return part


def shares_local_memory(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share memory on this rank."""
    if type(a) is Tensor and type(b) is Tensor and shares_memory(a, b):
        return True
    shared: bool = shares_memory(local_part(a), local_part(b))
    return shared or (a is not b and shares_memory(unwrap_transforms(a), unwrap_transforms(b)))


def local_mask(mask: Tensor, data: Any) -> Tensor:
    """The part of ``mask`` that belongs to ``here(data)``."""
    return local_part(place_like(mask, data)) if is_distributed(data) else mask


def wrap_local_mask(mask: Tensor, data: Any) -> Tensor:
    """The mask of ``data`` of which this rank's part is ``mask``: of the same kind, laid out in the same way."""
    if not is_distributed(data):
        return mask
    made: Tensor = sys.modules[NAME].DTensor.from_local(
        mask, data.device_mesh, placements_of_mask(data.placements), shape=data.shape, stride=data.stride()
    )
    return made


def local_parts(data: Any, mask: Any) -> tuple[Tensor, Tensor] | None:
    """This rank's parts; None if they could be had only by asking other ranks."""
    wanted = placements_of_mask(data.placements)
    if list(mask.placements) != wanted and not all(p.is_replicate() for p in mask.placements):
        return None
    return data.to_local(), mask.redistribute(mask.device_mesh, wanted).to_local()
