"""A write is one step: who is interrupted in its middle, or reads in another thread, sees no value that nobody wrote.

Data and validity are two memories, so one is written first.  An entry that becomes masked keeps its value, or is masked
before it is overwritten; one that becomes valid has its value before.  What is promised of the masked-out data is taken
back before, and a family's version is raised before what it counts.
"""

import torch
from torch import Tensor

from .. import masks, settings
from ..compat import in_transform, shares_memory
from ..pair import Pair, Payload
from .tensor import MaskedTensor, set_pair


def write_data(x: MaskedTensor, part: Tensor, new: Pair) -> Pair:
    """Writes the data of ``new`` into ``part`` of that of ``x``, before validity is written. Gives what is to be there.

    A write that fails has changed nothing.
    """
    if type(part) is not Tensor or 0 in part.stride() or in_transform():  # traced; torch refuses; one of many
        part.copy_(new.data)
        return new
    # A thread may read under a mask of long ago: of few entries only the valid ones are written.  Of many that would
    # cost twenty times the copy; and a derivative may read what lies under the mask.
    few = part.numel() < settings.FEW and not x._alias.past_autograd
    pair, family, before = x._pair, x._alias.family, None
    known = Payload.ANY if family is None else family.payload
    if family is None:
        set_pair(x, Pair(part, pair.mask if few else masks.logical_and(pair.mask, new.mask)))
    elif few:
        family.forget()
    else:
        before = family.narrow(part, new.mask)
    try:
        if few:
            write_valid(part, new)
        else:
            part.copy_(new.data)
    except Exception:
        if family is None:
            set_pair(x, pair)
        else:
            family.restore(part, before, known)
        raise
    return Pair(new.data, new.mask) if few else new


def write_valid(data: Tensor, new: Pair) -> None:
    """Writes the valid entries of ``new`` into ``data``."""
    if data.dtype is new.data.dtype and type(data) is Tensor and not (in_transform() or shares_memory(data, new.data)):
        torch.where(new.mask, new.data, data, out=data)
    else:
        data.copy_(torch.where(new.mask, new.data, data))
