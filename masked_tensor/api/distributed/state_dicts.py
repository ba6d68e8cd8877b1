"""State dicts of models over many ranks: gathered, sent from the first rank and taken apart with their masks.

``torch.distributed.checkpoint.state_dict`` asks of each tensor whether it is a DTensor, and sends what is not as plain
memory.  A masked tensor of DTensors is treated as one; masks travel as objects do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ...engine.tensor import MaskedTensor, pair_of
from ...layouts import meshes
from ...patches.places import GATHER_STATE_DICT, PLACE_STATE_DICT, wrap_when_imported
from .mesh import distribute


@dataclass(frozen=True, slots=True)
class SentTensor:
    """A masked tensor among the objects that the first rank sends to all."""

    x: Tensor


def _on_mesh(x: Any) -> bool:
    return type(x) is MaskedTensor and x._packed is None and meshes.is_distributed(pair_of(x).data)


def _wrap_iterate(iterate: Callable[..., Any]) -> Callable[..., Any]:
    def iterated(x: Any, sharded: Any, of_dtensor: Any, of_tensor: Any, **kwargs: Any) -> Any:
        return iterate(x, sharded, of_dtensor, of_dtensor if _on_mesh(x) else of_tensor, **kwargs)

    return iterated


def _restore_placement(local: dict[str, Any], before: dict[str, Any], device: Any) -> None:
    """Each tensor as the model has it: in parts on the mesh where that is."""
    for key, x in local.items():
        if type(x) is SentTensor:
            x = local[key] = x.x.to(device)
        if _on_mesh(before.get(key)) and isinstance(x, Tensor) and not _on_mesh(x):
            local[key] = distribute(x, before[key])


def _wrap_place(place: Callable[..., Any]) -> Callable[..., Any]:
    def placed(full: dict[str, Any], local: dict[str, Any], device: Any, *args: Any, **kwargs: Any) -> None:
        before = dict(local)
        full = {key: SentTensor(x.detach().cpu()) if type(x) is MaskedTensor else x for key, x in full.items()}
        place(full, local, device, *args, **kwargs)
        _restore_placement(local, before, device)

    return placed


wrap_when_imported(GATHER_STATE_DICT, _wrap_iterate)
wrap_when_imported(PLACE_STATE_DICT, _wrap_place)
