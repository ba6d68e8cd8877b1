"""Questions about whole tensors, entry by entry."""

from typing import Any

import torch

from masked_tensor.errors import MaskedValueError

from ..helpers.harness import Masked


def item(op: Any, x: Masked) -> Any:
    if not x.mask.all():
        raise MaskedValueError
    return x.data.item()


def equal(op: Any, x: Any, other: Any, **kwargs: Any) -> bool:
    """Entry by entry."""
    pairs = [v if isinstance(v, Masked) else Masked(v, torch.ones(v.shape, dtype=torch.bool)) for v in (x, other)]
    a, b = pairs
    if op is torch.equal and a.data.shape != b.data.shape:
        return False
    shape = torch.broadcast_shapes(a.data.shape, b.data.shape)
    if (a.mask.expand(shape) != b.mask.expand(shape)).any():
        return False
    valid = a.mask.expand(shape)
    return bool(op(a.data.expand(shape)[valid], b.data.expand(shape)[valid], **kwargs))


def isin(op: Any, elements: Any, tests: Any, **kwargs: Any) -> Any:
    """A loop over the valid test elements."""
    found = tests.data[tests.mask] if isinstance(tests, Masked) else tests
    if not isinstance(elements, Masked):
        return op(elements, found, **kwargs)
    data = torch.zeros(elements.data.shape, dtype=torch.bool)
    for value in torch.as_tensor(found).reshape(-1):
        data |= elements.data == value
    return Masked(data ^ kwargs.get("invert", False), elements.mask)


ORACLES = {"item": item, "equal": equal, "allclose": equal, "isin": isin}
XFAIL = {
    **{
        (name, "compiled"): "the answer is a Python value, which breaks the graph, as of plain tensors"
        for name in ("equal", "allclose", "item")
    },
    ("isin", "compiled"): "the number of valid test elements is data",
}
