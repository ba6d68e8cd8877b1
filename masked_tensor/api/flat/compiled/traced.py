"""A flat module in compiled code: Dynamo follows this, and the module; what it cannot follow are nodes of the graph.

A batch that is packed enters and leaves within one graph.  One that is not is packed first, by eager code, since how
many steps it has stands in its mask; what follows is one graph.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from ....compat import tree_leaves, tree_map
from ....engine.tensor import MaskedTensor
from ....errors import UnsupportedOpError
from ....packing.dim_order import GRID
from ..attention import Flat, order_for
from ..beside import refuse_other_labels
from ..call import with_what_it_wants
from ..verified import told
from .described import described
from .nodes import agreed, entered, entered_beside, entered_labels, entered_plain, left, packed_batch


def call_compiled(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The call of a flat module, as Dynamo follows it."""
    given = (args, kwargs)
    found = [x for x in tree_leaves(given) if type(x) is MaskedTensor and x.dim() > 1]
    if not found:
        return forward(module, *args, **kwargs)
    batch = packed_batch(found[0])
    values, position_ids, index, lengths, places = entered(batch)
    kwargs = dict(kwargs)
    if isinstance(kwargs.get("attention_mask"), Tensor):
        index = agreed(index, kwargs.pop("attention_mask"), batch)
    labels = kwargs.pop("labels", None)
    refuse_other_labels(labels, batch.shape[:GRID])
    if type(labels) is MaskedTensor:
        kwargs["labels"] = entered_labels(labels, batch)
    elif labels is not None:
        kwargs["labels"] = entered_plain(labels, batch, True) if _is_beside(labels, batch) else labels
    told_labels = kwargs.get("labels")

    def enter_one(x: Any) -> Any:
        if x is found[0]:
            return values
        if x is told_labels:
            return x
        if type(x) is MaskedTensor and x.dim() > 1:
            return entered_beside(x, batch)
        if _is_beside(x, batch):
            return entered_plain(x, batch, False)
        return x

    inside_args, inside_kwargs = tree_map(enter_one, (args, kwargs))
    first, cache, shifted, order, others, refusal = told(module, *described((inside_args, inside_kwargs), values))
    if refusal is not None:
        raise UnsupportedOpError(refusal)
    wanted = with_what_it_wants((first, cache, shifted), inside_kwargs, position_ids)
    mode = Flat(index, lengths, places)
    mode.order = order_for(index.shape[0], order, others, given)
    with mode:
        out = forward(module, *inside_args, **wanted)
    mode.be_clear(mode.same and mode.calls != len(mode.order))
    number = index.shape[0]
    return tree_map(lambda x: left(x, batch) if _is_row(x, number) else x, out)


def _is_beside(x: Any, batch: MaskedTensor) -> bool:
    """Whether this is a plain ``(B, T, ...)`` beside the batch."""
    if not isinstance(x, Tensor) or type(x) is MaskedTensor or x.dim() < GRID:
        return False
    return x.shape[0] == batch.shape[0] and x.shape[1] == batch.shape[1]


def _is_row(x: Any, number: int) -> bool:
    """Whether this is a plain ``(1, N, ...)``."""
    return isinstance(x, Tensor) and type(x) is not MaskedTensor and x.dim() > 1 and x.shape[:2] == (1, number)
