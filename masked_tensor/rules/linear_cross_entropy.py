"""A linear layer and the cross entropy of its result in one op: the two rules in sequence.

Torch's chunked form holds fewer logits at a time; here all logits are computed at once.
"""

import importlib.util
from typing import Any

from torch import Tensor

from .. import masks, pair
from ..op import Op
from ..packing import losses as packed
from ..pair import Pair
from ..shared.averaging import MEAN, NONE, SUM
from .cross_entropy import cross_entropy
from .matmul import linear

_CHUNKED = "torch.nn.modules.linear_cross_entropy"  # torch defines the ops when they are first used
Operand = Pair | Tensor


def linear_cross_entropy_in_chunks(
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
    """The loss; the gradients that torch's op passes to its own backward are empty."""
    kind = {"mean": MEAN, "sum": SUM}[reduction]
    loss = _loss(x, layer, target, bias, weight, kind, ignore_index, label_smoothing)
    empty = pair.plain_pair(loss.data.new_empty(0))
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
    return _loss(x, layer, target, bias, weight, NONE, ignore_index)


def _loss(
    x: Operand, layer: Operand, target: Operand, bias: Operand | None, weight: Operand | None, *rest: Any
) -> Pair:
    """As torch's ops: in full precision under autocast, and without a gradient for the weights of the classes."""
    if weight is not None:
        classes = pair.as_pair(weight)
        weight = Pair(classes.data.detach(), classes.mask, classes.payload)
    with masks.no_autocast(pair.data_of(x).device):
        return cross_entropy(linear(x, layer, bias), target, weight, *rest)


if importlib.util.find_spec(_CHUNKED):
    importlib.import_module(_CHUNKED)

_BATCHES = "torch_nn::_linear_cross_entropy_batch_chunked"  # from torch 2.13 on
OPS = [
    Op(_BATCHES, linear_cross_entropy_in_chunks, packed=packed.linear_class_loss, optional=True),
    Op(f"{_BATCHES}_no_reduction", chunked_entries, packed=packed.linear_class_loss, optional=True),
]
