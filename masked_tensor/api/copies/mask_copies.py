"""The copies of masks passed by the user: one for all tensors that are made with the same mask.

A mask is copied when it is taken in, because its owner may write into it.  Tensors that are made with one mask should
share the copy, as results share their operands' masks: the AND of a mask with itself is no work then, and the memory is
there once.  A copy that is still in use is found by where the caller's mask lies, and used again if it *equals* that
mask: making a tensor may look at values.  So nothing is promised of the caller's mask, and nothing kept of it.  A mask
is never written in place once a tensor has it.
"""

import torch
from torch import Tensor
from torch.utils.weak import TensorWeakRef

from ... import layouts, masks, settings
from ...compat import is_readable_memory, mode_is_active

_MOST = 64  #: as many copies are remembered, weakly
_COPIES: dict[tuple[int, torch.Size], TensorWeakRef] = {}


def own_copy(mask: Tensor) -> Tensor:
    """A compact copy of ``mask`` (bool) that nobody outside can write to: an earlier one, if that is equal."""
    small = masks.compact(mask)
    if (
        not (is_readable_memory(small) and small.is_contiguous())
        or torch.is_inference_mode_enabled()
        or mode_is_active()
    ):
        return layouts.copy_mask(mask)
    place = small.data_ptr(), mask.shape
    found = _COPIES.get(place)
    copy: Tensor | None = None if found is None else found()
    if copy is not None and copy.stride() == mask.stride() and _equal(masks.compact(copy), small):
        return copy
    copy = layouts.copy_mask(mask)
    if len(_COPIES) >= _MOST:
        _COPIES.clear()
    _COPIES[place] = TensorWeakRef(copy)
    masks.note_facts(copy)
    return copy


def _equal(a: Tensor, b: Tensor) -> bool:
    """Whether two contiguous masks hold the same; False for large ones that cannot be compared eight at a time."""
    if a.numel() < settings.FEW:
        return torch.equal(a, b)
    if a.numel() % 8 != 0 or b.storage_offset() % 8 != 0:
        return False
    return torch.equal(a.view(-1).view(torch.int64), b.view(-1).view(torch.int64))
