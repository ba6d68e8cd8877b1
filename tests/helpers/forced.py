"""Packing forced on: every masked tensor that is created and can be packed is packed.

``MASKED_TENSOR_PACKED=1 python -m pytest tests/test_pointwise.py`` runs any tests so.  Nothing in the package knows of
it: the last step of all ways to create a masked tensor is replaced.  ``MASKED_TENSOR_CAPACITY=7`` stores 7 masked steps
more.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from masked_tensor import MaskedTensor
from masked_tensor.api.batches import align, batch
from masked_tensor.api.containers import collate
from masked_tensor.api.make import create
from masked_tensor.compat import in_transform, is_readable_memory
from masked_tensor.pair import Pair

MORE = int(os.environ.get("MASKED_TENSOR_CAPACITY", "0"))
_MODULES = (align, batch, collate, create)


def fits(x: MaskedTensor) -> bool:
    """Whether a new tensor is one that ``packed()`` packs, now: outside graphs and transforms, of plain data."""
    return (
        x.layout is torch.strided
        and x.dim() > 1
        and x.shape.numel() > 0
        and type(x._pair.data) is torch.Tensor
        and is_readable_memory(x._pair.data)
        and not x.is_meta
        and not torch.compiler.is_compiling()
        and not in_transform()
    )


def forced(x: MaskedTensor, dims: tuple[int, int] = (0, 1)) -> MaskedTensor:
    """Packed, at a capacity if the run asks for one."""
    if not MORE:
        return x.packed(dims)
    made = x.unpacked().packed(dims)  # what is packed already, as all is with MASKED_TENSOR_PACKED, may be so by others
    return made if made._packed is None else x.packed(dims, capacity=made._packed.stored[0] + MORE)


@contextmanager
def packing() -> Iterator[None]:
    """While it lasts, whatever is created is packed."""
    usual = create.as_result

    def as_result(pair: Pair) -> MaskedTensor:
        made = usual(pair)
        return forced(made) if fits(made) else made

    for module in _MODULES:
        module.as_result = as_result  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in _MODULES:
            module.as_result = usual  # type: ignore[attr-defined]
