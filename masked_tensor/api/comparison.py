"""``torch.testing.assert_close`` on masked tensors: the same masks, and close values where they are valid.

It offers subclasses no hook, and its own question, ``isclose(...).all()``, passes over every hole: tensors with
different masks would be found equal.  So its comparison of values is wrapped.
"""

from typing import Any

from torch import Tensor
from torch.testing._comparison import TensorLikePair

from .. import masks
from ..engine.tensor import MaskedTensor, pair_of
from ..pair import Pair, plain
from ..select import zeroed
from . import convert

_compare_values = TensorLikePair._compare_values


def compare_values(comparison: TensorLikePair, actual: Tensor, expected: Tensor) -> None:
    """Compares what is valid; a plain tensor is valid everywhere."""
    if type(actual) is MaskedTensor or type(expected) is MaskedTensor:
        ours, theirs = values(actual), values(expected)
        differ = int(masks.count(ours.mask ^ theirs.mask))
        if differ:
            comparison._fail(AssertionError, f"The masks differ at {differ} of {ours.mask.numel()} places.")
        actual, expected = zeroed(ours), zeroed(theirs)
    _compare_values(comparison, actual, expected)


def values(x: Tensor) -> Pair:
    """What is compared of ``x``: its values and mask, strided and out of the graph."""
    pair: Any = pair_of(convert.dense(x)) if type(x) is MaskedTensor else plain(x.to_dense())
    return Pair(pair.data.detach(), pair.mask, pair.payload)


TensorLikePair._compare_values = compare_values  # type: ignore[method-assign, assignment]
