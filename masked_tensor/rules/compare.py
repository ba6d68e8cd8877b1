"""Comparisons of whole tensors: two are equal if their masks and their valid values are equal.

``equal``, ``allclose``, ``item`` and ``is_nonzero`` answer with a Python value, so they read the data.  ``isin`` looks
for each valid element among the valid test elements.
"""

from typing import Any

import torch
from torch import Tensor

from .. import errors, masks, pair
from ..compat import OpOverload
from ..op import Op, ops
from ..pair import Pair
from ..select import select


def equal(x: Pair | Tensor, other: Pair | Tensor) -> bool:
    """Same shape, same mask, same valid values (NaN differs from itself, as in torch)."""
    a, b = pair.as_pair(x), pair.as_pair(other)
    if a.data.shape != b.data.shape or not _same_mask(a.mask, b.mask):
        return False
    return torch.equal(select(a.data, a.mask), select(b.data, a.mask))


def allclose(
    x: Pair | Tensor, other: Pair | Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Same mask after broadcasting, and valid values that are close."""
    a, b = pair.as_pair(x), pair.as_pair(other)
    shape = torch.broadcast_shapes(a.data.shape, b.data.shape)
    mask = masks.expand_to(a.mask, shape)
    if not _same_mask(mask, masks.expand_to(b.mask, shape)):
        return False
    close = torch.isclose(a.data, b.data, rtol, atol, equal_nan)
    return bool((close | ~mask).all())


def _same_mask(a: Tensor, b: Tensor) -> bool:
    return masks.same_memory(a, b) or bool(torch.equal(a, b))


def item(x: Pair) -> Any:
    """The Python number in a valid tensor of one entry."""
    return _valid_scalar(x, "item()").item()


def is_nonzero(x: Pair) -> bool:
    """``bool(x)``."""
    return torch.is_nonzero(_valid_scalar(x, "bool()"))


def _valid_scalar(x: Pair, action: str) -> Tensor:
    if x.mask.numel() == 1 and not x.mask.item():
        raise errors.masked_scalar(action)
    return x.data


def is_any_true(x: Pair) -> Tensor:
    """Whether any valid entry is True, as a plain tensor; anomaly detection calls it on gradients."""
    return masks.any(x.data & x.mask)


def is_all_true(x: Pair) -> Tensor:
    """Whether every valid entry is True, as a plain tensor."""
    return masks.all(x.data | ~x.mask)


def assert_async(op: OpOverload, x: Pair, *args: Any) -> Any:
    """An assertion that is checked on the device; a masked entry never fails it."""
    return op(select(x.data, x.mask, 1), *args)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """The answer for a masked element is masked; a masked test element equals nothing."""
    if type(test_elements) is Pair:
        test_elements = test_elements.data[test_elements.mask]
    if type(elements) is not Pair:
        return torch.isin(elements, test_elements, assume_unique=assume_unique, invert=invert)
    # The caller's promise is about valid elements: under the mask may lie what is valid elsewhere.
    found = torch.isin(elements.data, test_elements, invert=invert)
    return Pair(found, elements.mask)


OPS = [
    Op("equal", equal),
    Op("allclose", allclose),
    Op("_local_scalar_dense", item),
    Op("item", item),
    Op("is_nonzero", is_nonzero),
    Op("_is_any_true", is_any_true),
    Op("_is_all_true", is_all_true),
    *ops("_assert_async _functional_assert_async", assert_async, generic=True),
    Op("isin", isin, each=True),
]
