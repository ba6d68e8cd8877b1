"""``torch.testing.assert_close`` on masked tensors: the same masks, and close values where they are valid.

It offers subclasses no hook, and its own question, ``isclose(...).all()``, passes over every masked entry: tensors with
different masks would be found equal.  So its comparison of values is wrapped.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from ... import masks
from ...engine.tensor import MaskedTensor, pair_of
from ...pair import Pair, plain_pair
from ...patches.functions import compare_with
from ...select import zero_masked
from ..leave import convert


def comparable_values(actual: Tensor, expected: Tensor, fail: Callable[[str], None]) -> tuple[Tensor, Tensor]:
    """What is compared of two tensors: what is valid; a plain tensor is valid everywhere."""
    if type(actual) is not MaskedTensor and type(expected) is not MaskedTensor:
        return actual, expected
    ours, theirs = values_to_compare(actual), values_to_compare(expected)
    differ = int(masks.count(ours.mask ^ theirs.mask))
    if differ:
        fail(f"The masks differ at {differ} of {ours.mask.numel()} places.")
    return zero_masked(ours), zero_masked(theirs)


def values_to_compare(x: Tensor) -> Pair:
    """What is compared of ``x``: its values and mask, strided and out of the graph."""
    pair: Any = pair_of(convert.dense(x)) if type(x) is MaskedTensor else plain_pair(x.to_dense())
    return Pair(pair.data.detach(), pair.mask, pair.payload)


compare_with(comparable_values)
