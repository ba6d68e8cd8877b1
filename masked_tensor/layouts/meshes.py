"""Tensors that lie in parts on a device mesh (DTensor): how a mask lies beside its data.

Importing ``torch.distributed.tensor`` takes as long as importing this package, so it is never imported here: a tensor
can be a DTensor only if something else did.
"""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

NAME = "torch.distributed.tensor"


def distributed(x: Any) -> bool:
    """Whether ``x`` is a DTensor."""
    if type(x) is Tensor:
        return False
    kind = getattr(sys.modules.get(NAME), "DTensor", None)
    return kind is not None and isinstance(x, kind)


def placements_of_mask(placements: Sequence[Any]) -> list[Any]:
    """Those of its data; a mask has no terms that are still to be added, so it is whole where the data is partial."""
    replicate = sys.modules[NAME].Replicate
    return [replicate() if p.is_partial() else p for p in placements]


def beside(mask: Tensor, data: Any) -> Tensor:
    """``mask``, of the shape of ``data``, laid out on the mesh as ``data`` is; if ``data`` is plain, as it is.

    A plain mask is the whole one, the same on every rank: each takes its part, and nothing is sent.  Where it is
    constant along a dimension (stride 0) it stays so, and is the same on every rank along it.  Raises TypeError for a
    mask on a mesh beside plain data.
    """
    if not distributed(data):
        if distributed(mask):
            raise TypeError(
                "the mask is a DTensor and the data is not: distribute the data too (distribute_tensor(data, mesh, "
                "placements)), or give the whole mask, mask.full_tensor()"
            )
        return mask
    wanted = placements_of_mask(data.placements)
    if distributed(mask):
        placed: Any = mask
        return mask if list(placed.placements) == wanted else placed.redistribute(data.device_mesh, wanted)
    constant = [stride == 0 and size > 1 for stride, size in zip(mask.stride(), mask.shape, strict=True)]
    small = mask
    for dim, narrow in enumerate(constant):
        small = small.narrow(dim, 0, 1) if narrow else small
    module = sys.modules[NAME]
    wanted = [module.Replicate() if getattr(p, "dim", None) in _true(constant) else p for p in wanted]
    whole: Tensor = module.distribute_tensor(small, data.device_mesh, wanted, src_data_rank=None)
    return whole if not any(constant) else whole.expand(mask.shape)


def _true(flags: list[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]


def everywhere(x: Tensor, like: Any) -> Tensor:
    """A plain ``x`` that is the same on every rank, where ``like`` is: on its mesh, if it is a DTensor."""
    if not distributed(like):
        return x
    module = sys.modules[NAME]
    whole: Tensor = module.DTensor.from_local(x, like.device_mesh, [module.Replicate()] * like.device_mesh.ndim)
    return whole


def local(data: Any, mask: Any) -> tuple[Tensor, Tensor] | None:
    """This rank's parts; None if they could be had only by asking other ranks."""
    wanted = placements_of_mask(data.placements)
    if list(mask.placements) != wanted and not all(p.is_replicate() for p in mask.placements):
        return None
    return data.to_local(), mask.redistribute(mask.device_mesh, wanted).to_local()


def when_imported(name: str, act: Callable[[Any], None]) -> None:
    """Calls ``act`` with a module: now if it is there, else as soon as somebody imports it."""
    if name in sys.modules:
        act(sys.modules[name])
    elif torch.distributed.is_available():
        sys.meta_path.insert(0, _Waiting(name, act))


class _Waiting:
    """Finds no module by itself: it has what others find run on to ``act``."""

    def __init__(self, name: str, act: Callable[[Any], None]) -> None:
        self.name, self.act = name, act

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """How to import ``name``, if that is the one waited for."""
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                self.act(module)

            setattr(spec.loader, "exec_module", exec_module)  # noqa: B010 (a loader's own, which may be any object)
        return spec
