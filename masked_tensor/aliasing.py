"""Alias families: a tensor and its views share one validity.

Results share their inputs' masks, so a mask is never written in place while shared.  The first view makes a *family*.
Until someone writes, every member keeps the mask its rule gave it.  The first write that changes validity materialises
one bool per element of the memory the root covers; from then on each member's mask is the view of that buffer with the
member's own size, stride and offset.  The geometry of the data is the geometry of the mask: no view chain is replayed.
"""

import torch
from torch import Tensor

from . import masks
from .pair import Pair, Payload


class Family:
    """What the members of an alias family share."""

    __slots__ = ("buffer", "itemsize", "offset", "payload", "root", "tracked", "version")

    def __init__(self, root: Pair) -> None:
        self.root = root
        self.itemsize = root.data.element_size()
        self.offset = root.data.storage_offset()
        self.payload = root.payload
        self.buffer: Tensor | None = None
        self.version = 0  #: counts writes to validity or payload
        self.tracked = 0  #: counts writes that autograd recorded

    def materialise(self) -> Tensor:
        """The family's own bool per element, made on the first write."""
        if self.buffer is None:
            data = self.root.data
            span = sum((size - 1) * stride for size, stride in zip(data.shape, data.stride(), strict=True)) + 1
            self.buffer = torch.zeros(max(span, 0), dtype=torch.bool, device=data.device)
            self.buffer.as_strided(data.shape, data.stride()).copy_(self.root.mask)
        return self.buffer

    def mask_of(self, data: Tensor) -> Tensor:
        """The live validity of a member's memory."""
        size, width = data.element_size(), self.itemsize
        offset = data.storage_offset() * size // width - self.offset
        stride = [s * size // width for s in data.stride()]  # a real view of complex data steps two by two
        return self.materialise().as_strided(data.shape, stride, offset)


def refreshed(pair: Pair, family: Family) -> Pair:
    """A member's pair after the family's validity or payload has changed."""
    mask = pair.mask if family.buffer is None else family.mask_of(pair.data)
    return Pair(pair.data, mask, family.payload)


def write_validity(pair: Pair, family: Family | None, mask: Tensor, payload: Payload) -> Pair:
    """The member's pair after its validity became ``mask`` (its data was already written)."""
    mask = masks.fit(mask, pair.data.shape)
    if family is None:
        return Pair(pair.data, mask, payload)
    changed = not masks.same(mask, pair.mask)
    if not changed and payload is family.payload:
        return Pair(pair.data, mask, payload)
    if changed:
        family.mask_of(pair.data).copy_(mask)
    if payload is not family.payload:
        family.payload = Payload.ANY  # other members may hold either
    family.version += 1
    return refreshed(pair, family)
