"""A linear layer and the cross entropy of its result in one op: the two rules, one after the other.

Torch's chunked form is there to hold fewer logits at a time; here they are made at once.
"""

import importlib.util
from typing import Any

from torch import Tensor

from .. import pair
from ..averaging import MEAN, NONE, SUM
from ..op import Op
from ..pair import Pair
from .cross_entropy import cross_entropy
from .matmul import linear

_CHUNKED = "torch.nn.modules.linear_cross_entropy"  # torch defines the ops when they are first used
Operand = Pair | Tensor


def chunked(
    x: Operand,
    layer: Operand,
    target: Operand,
    bias: Operand | None,
    weight: Operand | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    *_: Any,
) -> tuple[Pair, ...]:
    """The loss; the gradients that torch's op hands on to its own backward are empty."""
    kind = {"mean": MEAN, "sum": SUM}[reduction]
    loss = cross_entropy(linear(x, layer, bias), target, _constant(weight), kind, ignore_index, label_smoothing)
    empty = pair.plain(loss.data.new_empty(0))
    return loss, empty, empty, empty


def chunked_entries(
    x: Operand,
    layer: Operand,
    target: Operand,
    bias: Operand | None,
    weight: Operand | None,
    ignore_index: int,
    *_: Any,
) -> Pair:
    """One loss for each sample."""
    return cross_entropy(linear(x, layer, bias), target, _constant(weight), NONE, ignore_index)


def _constant(weight: Operand | None) -> Operand | None:
    """The weights of the classes get no gradient, as in torch's ops."""
    if weight is None:
        return None
    weight = pair.of(weight)
    return Pair(weight.data.detach(), weight.mask, weight.payload)


ROWS = []
if importlib.util.find_spec(_CHUNKED):  # from torch 2.13 on
    importlib.import_module(_CHUNKED)
    ROWS += [
        Op("torch_nn::_linear_cross_entropy_batch_chunked", chunked),
        Op("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction", chunked_entries),
    ]
