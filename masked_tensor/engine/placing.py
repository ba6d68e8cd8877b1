"""``x[key] = value`` where nothing is tracked: straight into the memory of the family, at the cost of what is written.

A loop that fills rows is everyday code; a view and an op for each row would cost many times the write itself.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks, shapes
from ..compat import transforming
from ..pair import Payload
from .aliasing import Wrapping, history_of
from .members import family_of
from .tensor import MaskedTensor, pair_of


def place(x: MaskedTensor, key: Any, value: Any) -> bool:
    """Writes ``value`` at ``key``, which is of positions alone; False if it is no simple case: nothing was written."""
    if x._packed is not None or x._graph_input or type(x._pair.data) is not Tensor or not _simple(x, value):
        return False
    data = x._pair.data
    part = data[key]
    mask: Any = True
    payload = Payload.ZERO  # nothing is under what is valid
    if type(value) is MaskedTensor:
        pair = pair_of(value)
        if not shapes.broadcasts(pair.mask.shape, part.shape):
            return False
        mask, payload, value = pair.mask.expand(part.shape), pair.payload, pair.data
        if type(x._history) is Wrapping:  # the holder of the memory reads what lies under holes: it stays
            value = torch.where(mask, value, part)
    family = family_of(x)
    as_before = family.buffer is None and mask is not True and masks.same(mask, pair_of(x).mask[key])  # x[key] += y
    data[key] = value  # nothing here is tracked
    if not as_before:
        family.write(part, mask)
    if payload is Payload.ANY:
        family.payload = Payload.ANY
    family.version += 1
    return True


def _simple(x: MaskedTensor, value: Any) -> bool:
    """Whether autograd has no part in it, no mask is hard, and the value is of the kind of ``x``."""
    if x._family is not None and (x._family.hard or x._family.graph_input):
        return False
    if x._pair.data.layout is not torch.strided or transforming() or torch.is_inference_mode_enabled():
        return False
    history = history_of(x)
    base = None if history is None else history.base()
    if base is not None and base.requires_grad:
        return False
    if torch.is_grad_enabled():
        stale = history is not None and x._born != history.writes
        if x.requires_grad or stale or (isinstance(value, Tensor) and value.requires_grad):
            return False
    if isinstance(value, Tensor):
        known = type(value) is Tensor or (type(value) is MaskedTensor and value._packed is None)
        return known and value.dtype is x.dtype and value.layout is torch.strided and value.device == x.device
    return type(value) in (int, float) and x.dtype.is_floating_point
