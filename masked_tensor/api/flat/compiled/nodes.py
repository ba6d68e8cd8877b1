"""Nodes of a graph: what enters a flat module in compiled code, attends in it and leaves it, as Dynamo writes it."""

from typing import Any

import torch
from torch import Tensor

from ....engine.boundary.enter_leave import enter, leave
from ....engine.dynamo import mark_opaque
from ....engine.tensor import MaskedTensor
from ....kernels.attention.graph_library import LIBRARY
from ....op import NoRule
from ....packing import Packed
from ....packing.dim_order import GRID, identity_order
from ....packing.flat_attention import attend_within
from ....packing.grid import Grid
from ....packing.packed import pack_values
from ....packing.scatter_gather import scatter_mask
from ....packing.valid_first import ValidFirst, valid_first
from ....pair import Pair, Payload
from ....rules.cross_entropy import IGNORED
from ....select import select
from ..tokens import stored_tokens, tokens_of, whole_steps

LIBRARY.define("expected(Tensor places, Tensor holds, str message) -> Tensor")


UNCOUNTED = (
    "mt.flat: of a batch at a capacity a loss inside of the module would count what fills it up, since labels that are "
    "numbers have no value to be ignored; compute the loss outside: F.mse_loss(model(batch), target)"
)


def attend_compiled(
    query: Tensor, key: Tensor, value: Tensor, index: Tensor, lengths: Tensor, places: Tensor, *options: Any
) -> Tensor:
    """A node of a graph: attention within sequences that are known by tensors."""
    grid = Grid(index, (places.shape[0], places.shape[1]), True)
    grid.lengths = lengths
    return attend_within(grid, query, key, value, *options)


def packed_batch(x: MaskedTensor) -> MaskedTensor:
    """The batch, packed: in eager code, unless it is."""
    result: MaskedTensor = x if x._packed is not None else leave(stored_tokens(x))
    return result


def entered(x: MaskedTensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Tokens ``(1, N, ...)`` and positions ``(1, N)``; places ``(N,)``, lengths and sizes of what they lie in."""
    stored, order = _steps(x)
    if order is None:
        tokens = tokens_of(stored)
    else:
        values = order.filled(stored.values)
        tokens = tokens_of(Packed(values, order.whole, identity_order(values.dim() + 1)))
    grid = tokens.grid
    return tokens.values, tokens.position_ids, grid.index, grid.lengths, grid.index.new_empty((*grid.shape, 0))


def _steps(x: MaskedTensor) -> tuple[Packed, ValidFirst | None]:
    """The record of a batch; and the order of its steps, valid ones first, if some are masked as a whole."""
    stored = stored_tokens(x)
    if stored.inner is None or stored.grid.complete is not False:
        return whole_steps(x), None
    try:
        return stored, valid_first(stored)
    except NoRule:
        return whole_steps(x), None  # which says what is missing


def _gathered(x: Tensor, batch: MaskedTensor) -> tuple[Tensor, ValidFirst | None]:
    """A plain ``(B, T, ...)`` at the tokens of the batch, ``(1, N, ...)``; and their order, as in ``_steps``."""
    stored, order = _steps(batch)
    rows = x.flatten(0, 1).index_select(0, stored.grid.index)
    return (rows if order is None else order.filled(rows))[None], order


def entered_plain(x: Tensor, batch: MaskedTensor, label: bool) -> Tensor:
    """A plain input beside the batch as tokens; of labels, what fills the batch up has none."""
    rows, order = _gathered(x, batch)
    if order is None or not label:
        return rows
    if x.is_floating_point():
        raise ValueError(UNCOUNTED)
    known = torch.arange(rows.shape[1], device=rows.device) < order.ranks[-1]
    return select(rows, known.view(1, -1, *[1] * (rows.dim() - 2)).expand(rows.shape), IGNORED)


def entered_beside(x: MaskedTensor, batch: MaskedTensor) -> Tensor:
    """Another masked input as tokens; that it has the same steps is asked when the graph runs."""
    own = stored_tokens(batch)
    if x._packed is not None:
        values, _, index, _, _ = entered(x)
        return _if_expected(values, (index == entered(batch)[2]).all())
    pair = enter(x, torch.is_grad_enabled())
    steps = pair.mask.flatten(GRID).all(GRID) if pair.mask.dim() > GRID else pair.mask
    rows, _ = _gathered(pair.data, batch)
    return _if_expected(rows, (steps == _exists(own)).all())


def entered_labels(x: MaskedTensor, batch: MaskedTensor) -> Tensor:
    """Masked labels at the tokens; of classes -100 where they are missing."""
    if x.is_floating_point():
        if _steps(batch)[1] is not None:
            raise ValueError(UNCOUNTED)
        return entered_beside(x, batch)
    own, pair = _exists(stored_tokens(batch)), enter(x, False)
    steps = pair.mask.flatten(GRID).any(GRID) if pair.mask.dim() > GRID else pair.mask
    rows = entered_plain(select(pair.data, pair.mask, IGNORED), batch, True)
    return _if_expected(rows, (own | ~steps).all())


def agreed(index: Tensor, attention_mask: Tensor, batch: MaskedTensor) -> Tensor:
    """The places, if an attention mask says the same."""
    told = enter(attention_mask, False)
    plain = select(told.data, told.mask, 0) if isinstance(told, Pair) else told
    return _expected(index, ((plain != 0) == _exists(stored_tokens(batch))).all())


def _exists(stored: Packed) -> Tensor:
    """Which steps ``(B, T)`` of a batch exist."""
    if stored.inner is None or stored.grid.complete is not False:
        mask: Tensor = stored.grid.mask
        return mask
    return scatter_mask(valid_first(stored).valid, stored.grid).view(stored.grid.shape)


def _if_expected(tokens: Tensor, holds: Tensor) -> Tensor:
    """Tokens ``(1, N, ...)``, which depend on the check, so that it stays in the graph."""
    number = torch.arange(tokens.shape[1], device=tokens.device)
    return tokens.index_select(1, _expected(number, holds))


def _expected(places: Tensor, holds: Tensor) -> Tensor:
    result: Tensor = torch.ops.masked_tensor.expected(
        places,
        holds,
        "mt.flat: two masked inputs have different lengths, and all must have the same steps; a call without "
        "torch.compile says which",
    )
    return result


def left(values: Tensor, batch: MaskedTensor) -> MaskedTensor:
    """What a module makes of the tokens, packed as the batch is."""
    stored, order = _steps(batch)
    found: Tensor | Pair = values[0]
    if order is not None:
        rows = order.stored(values[0])
        valid = order.valid.view(-1, *[1] * (rows.dim() - 1)).expand(rows.shape)
        found = Pair(rows, valid, Payload.ANY)
    record = Packed(values[0], stored.grid.on(values.device), identity_order(values.dim()))
    result: MaskedTensor = leave(pack_values(found, record))
    return result


mark_opaque(attend_compiled, packed_batch, entered, entered_beside, entered_plain, entered_labels, agreed, left)


def _check_expected(places: Tensor, holds: Tensor, message: str) -> Tensor:
    torch._assert_async(holds, message)
    return places.clone()


LIBRARY.impl("expected", _check_expected, "CompositeExplicitAutograd")
torch.library.register_fake("masked_tensor::expected", lambda places, *rest: torch.empty_like(places), lib=LIBRARY)
