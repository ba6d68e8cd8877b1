"""Nodes of a graph: what enters a flat module in compiled code, attends in it and leaves it, as Dynamo writes it."""

from typing import Any

import torch
from torch import Tensor

from ....engine.boundary.enter_leave import enter, leave
from ....engine.dynamo import mark_opaque
from ....engine.tensor import MaskedTensor
from ....kernels.attention.graph_library import LIBRARY
from ....packing import Packed
from ....packing.dim_order import GRID, identity_order
from ....packing.flat_attention import attend_within
from ....packing.grid import Grid
from ....packing.packed import pack_values
from ....pair import Pair
from ....rules.cross_entropy import IGNORED
from ....select import select
from ..tokens import stored_tokens, tokens_of, whole_steps

LIBRARY.define("expected(Tensor places, Tensor holds, str message) -> Tensor")


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


def entered(x: MaskedTensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens ``(1, N, ...)`` and positions ``(1, N)``; places ``(N,)`` and lengths ``(B,)``."""
    tokens = tokens_of(whole_steps(x))
    return tokens.values, tokens.position_ids, tokens.grid.index, tokens.grid.lengths


def entered_beside(x: MaskedTensor, batch: MaskedTensor) -> Tensor:
    """Another masked input as tokens; that it has the same steps is asked when the graph runs."""
    own = stored_tokens(batch).grid
    if x._packed is not None:
        tokens = tokens_of(whole_steps(x))
        order = torch.arange(tokens.values.shape[1], device=x.device)
        return tokens.values.index_select(1, _expected(order, (tokens.grid.index == own.index).all()))
    pair = enter(x, torch.is_grad_enabled())
    steps = pair.mask.flatten(GRID).all(GRID) if pair.mask.dim() > GRID else pair.mask
    index = _expected(own.index, (steps == own.mask).all())
    return pair.data.flatten(0, 1).index_select(0, index)[None]


def entered_labels(x: MaskedTensor, batch: MaskedTensor) -> Tensor:
    """Masked labels at the tokens, -100 where they are missing."""
    own, pair = stored_tokens(batch).grid, enter(x, False)
    steps = pair.mask.flatten(GRID).any(GRID) if pair.mask.dim() > GRID else pair.mask
    index = _expected(own.index, (own.mask | ~steps).all())
    return select(pair.data, pair.mask, IGNORED).flatten(0, 1).index_select(0, index)[None]


def agreed(index: Tensor, attention_mask: Tensor, batch: MaskedTensor) -> Tensor:
    """The places, if an attention mask says the same."""
    own = stored_tokens(batch).grid
    told = enter(attention_mask, False)
    plain = select(told.data, told.mask, 0) if isinstance(told, Pair) else told
    return _expected(index, ((plain != 0) == own.mask).all())


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
    grid = stored_tokens(batch).grid
    record = Packed(values[0], grid.on(values.device), identity_order(values.dim()))
    result: MaskedTensor = leave(pack_values(values[0], record))
    return result


mark_opaque(attend_compiled, packed_batch, entered, entered_beside, entered_labels, agreed, left)


def _check_expected(places: Tensor, holds: Tensor, message: str) -> Tensor:
    torch._assert_async(holds, message)
    return places.clone()


LIBRARY.impl("expected", _check_expected, "CompositeExplicitAutograd")
torch.library.register_fake("masked_tensor::expected", lambda places, *rest: torch.empty_like(places), lib=LIBRARY)
