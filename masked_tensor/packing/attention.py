"""Attention on packed batches: adjacent sequences of one length are one call of the fused kernel.

There is no padding anywhere, so nothing is computed for it and no mask is made of it: a key that is stored is valid,
and one that is not takes no part.  Masks of the user and learned biases are cut per call.  A query that sees nothing is
masked, as in the strided rule.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .. import kernels, masks
from ..compat import is_readable_memory
from ..kernels.attention import cuda, graph_op
from ..kernels.attention.fused import Run, formula
from ..op import NoRule, Rule
from ..pair import Payload
from ..select import select
from . import attention_together
from .blocks import positions_of_run, runs_of, select_along
from .dim_order import GRID, Order
from .grid import Grid, same_places
from .missing import run_over_missing
from .packed import Packed, drop_full_inner, pack_values
from .valid_first import valid_first
from .views import feature_axis


def scaled_dot_product_attention(
    query: Packed, key: Packed, value: Packed, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Packed:  # fmt: skip
    """``softmax(query @ key.T * scale + attn_mask) @ value`` of each sequence, all seen as ``(B, .., T, D)``."""
    at_once = attn_mask is None and cuda.is_supported(query.values, key.values, value.values)
    if not at_once and not all(is_readable_memory(x.grid.index) for x in (query, key, value)):
        return _attend_traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if not same_places(key.grid, value.grid):
        raise NoRule
    if is_causal and not same_places(query.grid, key.grid):
        raise NoRule  # which key comes before a query is told by places, not by ranks
    q, k, v = (split_heads(x) for x in (query, key, value))
    if not enable_gqa and not q.shape[1] == k.shape[1] == v.shape[1]:
        raise NoRule
    if at_once:
        alike = same_places(query.grid, key.grid)
        out, some = cuda.attend(q, k, v, query.grid, key.grid, dropout_p, is_causal, scale, alike)
        return _as_query(query, out, None if some is None else some[:, None].expand(out.shape[:2]))
    rest = dropout_p, is_causal, scale, enable_gqa
    if attn_mask is None:
        return _as_query(query, attend_tokens((q, k, v), query.grid, key.grid, *rest), None)
    out, some = _attend_masked(query, key, (q, k, v), attn_mask, *rest)
    return _as_query(query, out, some)


def attend_tokens(
    given: tuple[Tensor, ...], queries: Grid, keys: Grid, dropout_p: float, is_causal: bool, scale: float | None,
    enable_gqa: bool,
) -> Tensor:  # fmt: skip
    """Attention without a mask, of queries, keys and values ``(N, H, D)`` on the CPU."""
    runs = runs_of(queries, keys)
    if queries is keys and (rows := attention_together.rows_of(queries, runs, given[0][0].numel())):
        return attention_together.attend(rows, runs, given, dropout_p, is_causal, scale, enable_gqa)
    return _by_run(given, runs, [None] * len(runs), dropout_p, is_causal, scale, enable_gqa)


def _attend_masked(
    query: Packed, key: Packed, given: tuple[Tensor, ...], attn_mask: Tensor, dropout_p: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The values, and which queries see something."""
    runs = runs_of(query.grid, key.grid)
    seen = [_visible(attn_mask, run, query, key.grid, is_causal) for run in runs]
    heads = given[0].shape[1]
    sight = [
        some.expand(run.number, heads, run.queries).transpose(1, 2).flatten(0, 1)
        for (_, some), run in zip(seen, runs, strict=True)
    ]
    out = _by_run(given, runs, [visible for visible, _ in seen], dropout_p, False, scale, enable_gqa)
    return out, torch.cat(sight)


def _by_run(
    given: tuple[Tensor, ...], runs: list[Run], shown: Sequence[Tensor | None], dropout_p: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> Tensor:  # fmt: skip
    """One call for each run, with its mask."""
    out: Tensor = kernels.run("attention", formula, given, runs, shown, dropout_p, is_causal, scale, enable_gqa)
    return out


def _attend_traced(
    query: Packed, key: Packed, value: Packed, attn_mask: Any, dropout_p: float, is_causal: bool,
    scale: float | None, enable_gqa: bool,
) -> Packed:  # fmt: skip
    """In a graph, where no length is known: one op, for attention within one set of tokens."""
    if query.grid.host or not (query.grid is key.grid is value.grid) or attn_mask is not None:
        raise NoRule
    given = tuple(split_heads(x) for x in (query, key, value))
    return _as_query(query, _by_graph_op(given, query.grid.lengths, dropout_p, is_causal, scale, enable_gqa), None)


def _by_graph_op(
    given: tuple[Tensor, ...], lengths: Tensor, dropout_p: float, is_causal: bool, scale: float | None,
    enable_gqa: bool,
) -> Tensor:  # fmt: skip
    q, k, v = given
    if enable_gqa and k.shape[1] and q.shape[1] % k.shape[1] == 0 and k.shape[1] == v.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    if not graph_op.is_supported(q, k, v):
        raise NoRule
    return graph_op.attend(q, k, v, lengths, dropout_p, is_causal, scale)


def attention_rule(strided: Rule, op: Rule) -> Rule:
    """For tokens that are all valid; and for others, left out where they can be looked at, else put last."""

    def attend(query: Packed, key: Packed, value: Packed, *args: Any, **kwargs: Any) -> Any:
        if query.inner is None and key.inner is None and value.inner is None:
            return scaled_dot_product_attention(query, key, value, *args, **kwargs)
        try:
            return _attend_valid_first(query, key, value, *args, **kwargs)
        except NoRule:
            given = query, key, value, *args
            return run_over_missing(scaled_dot_product_attention, strided, given, kwargs, 0, True)

    return attend


def _attend_valid_first(
    query: Packed, key: Packed, value: Packed, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
    *, scale: float | None = None, enable_gqa: bool = False,
) -> Packed:  # fmt: skip
    """Where no value may be looked at, within tokens of which the same are masked in all three."""
    batch = query, key, value
    if attn_mask is not None or any(x.inner is None or x.grid is not query.grid for x in batch):
        raise NoRule
    if is_readable_memory(query.grid.index):
        raise NoRule
    order = valid_first(query)
    if any(valid_first(x) is not order for x in batch):
        raise NoRule
    q, k, v = (order.ordered(split_heads(x), x.payload) for x in batch)
    if not enable_gqa and not q.shape[1] == k.shape[1] == v.shape[1]:
        raise NoRule
    if cuda.is_supported(q, k, v):
        out, _ = cuda.attend(q, k, v, order, order, dropout_p, is_causal, scale)
    elif query.grid.host:
        raise NoRule
    else:
        out = _by_graph_op((q, k, v), order.lengths, dropout_p, is_causal, scale, enable_gqa)
    return _as_query(query, order.stored(out), order.valid[:, None].expand(out.shape[:2]), Payload.ZERO)


def split_heads(x: Packed) -> Tensor:
    """The values as ``(N, H, D)``; raises NoRule unless ``x`` is seen as ``(B, .., T, D)``, heads in between."""
    if x.first != GRID or not x.values.numel():
        raise NoRule
    heads = _head_axes(x.order)
    y, at = feature_axis(x, -1)
    values, last = y.values, [at] if y.order[-1] else []
    if y is not x:
        heads = _head_axes(y.order)
    elif heads == (1,) and at == 2 == values.dim() - 1:
        return values
    size = values.shape[at] if last else 1
    return values.permute(0, *heads, *last).reshape(values.shape[0], -1, size)


@lru_cache(maxsize=256)
def _head_axes(order: Order) -> tuple[int, ...]:
    """Which dimensions of the values are heads, as they are read: the same in every layer; raises NoRule as above."""
    lead = [atom for dim in order[:-2] for atom in dim]
    if len(order) < 3 or order[-2] != (1,) or lead[:1] != [0] or any(a < GRID for a in (*lead[1:], *order[-1])):
        raise NoRule
    return tuple(a - GRID + 1 for a in lead[1:])


def _visible(mask: Tensor, run: Run, query: Packed, keys: Grid, is_causal: bool) -> tuple[Tensor, Tensor]:
    """The part of a mask that a run needs, and which queries see something: those that do not are let see all."""
    wide: Tensor = mask[(None,) * (4 - mask.dim())] if mask.dim() < 4 else mask
    if wide.dim() > 4 or wide.shape[-2] not in (1, query.grid.shape[1]) or wide.shape[-1] not in (1, keys.shape[1]):
        raise NoRule
    wide = _unfold_heads(wide, query)
    if wide.shape[0] > 1:
        wide = wide[run.sequences]
    grid, columns = (positions_of_run(r, run) for r in (query.grid, keys))
    part = select_along(select_along(wide, -2, grid), -1, columns)
    seen = part if part.dtype is torch.bool else part.detach() != -torch.inf
    if is_causal:
        earlier = torch.ones(run.queries, run.keys, dtype=torch.bool, device=part.device).tril()
        seen, part = seen & earlier, part & earlier if part.dtype is torch.bool else select(part, earlier, -torch.inf)
    some = seen.any(-1, keepdim=True)
    free = part | ~some if part.dtype is torch.bool else torch.where(some, part, 0)
    return free, some.squeeze(-1)


def _unfold_heads(mask: Tensor, query: Packed) -> Tensor:
    """A mask ``(1, B * H, L, S)``, of queries seen as ``(B * H, L, D)``, as ``(B, H, L, S)``."""
    merged = len(query.order) == 3
    if not merged or mask.shape[1] == 1:
        return mask
    split: Tensor = mask[0].unflatten(0, (query.grid.shape[0], -1))
    return split


def _as_query(query: Packed, out: Tensor, seen: Tensor | None, payload: Payload = Payload.ANY) -> Packed:
    """``(N, H, D)`` in the order of the query; where a head of a query saw nothing it is masked."""
    heads = [a for dim in query.order[:-2] for a in dim if a >= GRID]
    sizes = [query.sizes[a] for a in heads]
    new = iter(range(GRID, GRID + len(heads)))
    order: Order = tuple(tuple(a if a < GRID else next(new) for a in dim) for dim in query.order[:-1])
    values = out.unflatten(1, sizes) if len(sizes) > 1 else out if sizes else out.squeeze(1)
    order = (*order, (GRID + len(heads),))
    if seen is None:
        return pack_values(values, Packed(values, query.grid, order))
    inner = (seen.unflatten(1, sizes) if len(sizes) > 1 else seen if sizes else seen.squeeze(1)).unsqueeze(-1)
    whole = drop_full_inner(Packed(values, query.grid, order, masks.expand_to(inner, values.shape), payload))
    return pack_values(whole.operand(), whole)
