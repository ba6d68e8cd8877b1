"""``x[key] = value`` where nothing is tracked: straight into the family's memory, at the cost of the written entries.

A loop that fills rows is everyday code; a view and an op for each row would cost many times the write itself.
"""

from typing import Any

import torch
from torch import Tensor

from ... import masks, shapes
from ...compat import in_transform
from ...pair import Pair, Payload
from ...select import zero_masked
from ..alias_records import WrappedHistory, family_of, history_of
from ..aliases import write_data
from ..tensor import MaskedTensor, pair_of


def place(x: MaskedTensor, key: Any, value: Any) -> bool:
    """Writes ``value`` at ``key``, which is of positions alone; False if it is no simple case: nothing was written."""
    if x._packed is not None or x._graph_input or type(x._pair.data) is not Tensor or not _simple(x, value):
        return False
    part = x._pair.data[key]
    mask: Any = True
    payload = Payload.ZERO  # nothing is under what is valid
    kind = type(value)
    if value is None:
        return 0 not in part.stride() and _place_nothing(x, part)  # torch refuses one place of many
    if kind is MaskedTensor:
        pair = pair_of(value)
        if x._alias.past_autograd:  # a derivative may read what lies under this mask
            pair = Pair(zero_masked(pair), pair.mask, Payload.ZERO)
        mask, payload, value = pair.mask, pair.payload, pair.data
        if mask.shape != part.shape:
            if not shapes.can_expand(mask.shape, part.shape):
                return False
            mask = mask.expand(part.shape)
        if type(x._alias.history) is WrappedHistory:  # the holder of the memory reads the masked-out data: it stays
            value = torch.where(mask, value, part)
    family = family_of(x)
    as_before = (
        family.buffer is None and mask is not True and masks.same_memory(mask, pair_of(x).mask[key])
    )  # x[key] += y
    family.tell_saved()
    known = family.payload
    if mask is True or as_before:
        if known is Payload.ZERO:  # what becomes valid is written while it is masked
            family.forget()
        if isinstance(value, Tensor) and value.shape == part.shape:
            part.copy_(value)  # nothing here is tracked
        else:
            x._pair.data[key] = value
    else:
        payload = write_data(x, part, Pair(value, mask, payload)).payload
    if not as_before:
        family.write(part, mask)
    if payload is Payload.ZERO:
        family.payload = known
    family.version += 1
    return True


def _place_nothing(x: MaskedTensor, part: Tensor) -> bool:
    """``x[key] = None``: what was there stays under the mask, where a thread that has just read the mask may read it.

    Not where a derivative may read what lies under the mask.
    """
    family = family_of(x)
    family.tell_saved()
    family.forget()
    family.write(part, False)
    if x._alias.past_autograd:
        part.zero_()
    return True


def _simple(x: MaskedTensor, value: Any) -> bool:
    """Whether autograd has no part in it, no mask is hard, and the value is of the kind of ``x``."""
    family, data = x._alias.family, x._pair.data
    if family is not None and (family.hard or family.graph_input):
        return False
    if data.layout is not torch.strided or in_transform() or torch.is_inference_mode_enabled():
        return False
    kind = type(value)
    if kind is Tensor or (kind is MaskedTensor and value._packed is None):
        if value.dtype is not data.dtype or value.layout is not torch.strided or value.device != data.device:
            return False
    elif not (value is None or ((kind is float or kind is int) and data.is_floating_point())):
        return False
    history = history_of(x)
    if history is not None:
        base = history.base()
        if base is not None and base.requires_grad:
            return False
    if not torch.is_grad_enabled():
        return True
    return not (x._alias.is_behind or x.requires_grad or (isinstance(value, Tensor) and value.requires_grad))
