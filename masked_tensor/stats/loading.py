"""The buffers of running statistics as a state dict loads them: all or none."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..extend.data import set_buffers
from . import options
from .sketch import PARTS

_WHOLE = ("keys", "counts", "halvings")  # are int64
_GROWS = ("moments", "missed", "keys", *PARTS)  # whose shape data also change


def load(
    module: nn.Module, read: Callable[..., None], state: Any, prefix: str, local: Any, strict: bool,
    missing: list[str], other: list[str], wrong: list[str],
) -> bool:  # fmt: skip
    """Whether all was loaded: what differs is refused before, and what was loaded in part is taken back."""
    own = dict(module.named_buffers(recurse=False))
    given = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    reason = options.why_refused(own, given)
    if reason:
        wrong.append(reason)
        return False
    found, whole = len(missing) + len(other) + len(wrong), False
    fresh: dict[str, Any] = {name: buffer.clone() for name, buffer in own.items()} | {"keys": None}
    for name in _GROWS:
        if name in given:
            kind = torch.int64 if name in _WHOLE else torch.float64
            fresh[name] = torch.zeros(given[name].shape, dtype=kind, device=own["moments"].device)
    try:
        set_buffers(module, fresh)  # within: an interrupt right after it is also taken back
        read(state, prefix, local, strict, missing, other, wrong)
        whole = len(missing) + len(other) + len(wrong) == found
    finally:
        if not whole:
            set_buffers(module, {"keys": None, **own})
    return whole


def move(module: nn.Module, fn: Callable[[Tensor], Tensor]) -> None:
    """Moves between devices; float64 stays float64."""
    for name, buffer in list(module.named_buffers(recurse=False)):
        device = fn(buffer.new_empty(0, dtype=torch.float32)).device
        module.register_buffer(name, buffer if device.type == "mps" else buffer.to(device))
