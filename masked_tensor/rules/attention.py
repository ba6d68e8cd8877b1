"""Attention: a masked key or value has weight exactly 0, and the row of a masked query is masked.

Keys that are masked as a whole (padding) reach torch's fused kernels as a compact bool mask ``(B, 1, 1, S)``; causal
and user masks are AND-ed with it; an additive -inf hides a key just as False in a bool mask does.  A query that sees
nothing is masked, with zero gradient.  Entries masked one by one follow the matrix product: a key is seen if its score
has at least one valid pair and its value at least one valid entry; an output is valid if a seen value is.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import masks, pair, shapes
from ..compat import in_dual_level, in_transform, is_tracked
from ..kernels.attention.fused import additive
from ..masks import sides
from ..op import Op, StorageRule, Takes
from ..packing import attention as packed
from ..pair import Pair
from ..select import guard, select, zero_masked, zeroed_result
from ..shared import product_validity
from ..shared.product_validity import any_valid_pair
from ..shared.rows import ends

Operand = Pair | Tensor


class Visibility(NamedTuple):
    """What the kernel is given, and what comes out."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None  #: for the kernel: bool or additive, every query sees something
    is_causal: bool
    seen: Tensor  #: (..., L, S) which key each query sees
    some: Tensor  #: (..., L or 1, 1) the queries that see a key
    queries: Tensor  #: (..., L, 1) the valid queries


def scaled_dot_product_attention(
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Pair:
    """``softmax(query @ key.T * scale + attn_mask) @ value`` on the kernels that torch chooses."""
    sight = _visibility(query, key, value, attn_mask, is_causal)
    if in_dual_level():  # the fused kernels have no derivative in forward mode
        math, parts = torch.ops.aten._scaled_dot_product_attention_math.default, (*sight[:3], _additive(sight))
        data, _ = math(*parts, dropout_p, sight.is_causal, None, scale=scale, enable_gqa=enable_gqa)
    else:
        data = torch.nn.functional.scaled_dot_product_attention(
            *sight[:4], dropout_p, sight.is_causal, scale=scale, enable_gqa=enable_gqa
        )
    valid = None if attn_mask is not None else _of_itself(query, key, value, data)
    valid = _valid(sight, value, data) if valid is None else valid
    return zeroed_result(data, valid)  # the zeros in place: backward, where out is saved, 0 times out


def attention_math(
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    **keywords: Any,
) -> tuple[Pair, Pair]:
    """The unfused form, which also returns the weights."""
    sight = _visibility(query, key, value, attn_mask, is_causal)
    op = torch.ops.aten._scaled_dot_product_attention_math.default
    data, weights = op(*sight[:3], _additive(sight), dropout_p, sight.is_causal, dropout_mask, **keywords)
    seen = masks.logical_and(_heads(sight.seen, weights), _heads(sight.queries, weights))
    return Pair(data, _valid(sight, value, data)), Pair(weights, masks.expand_to(seen, weights.shape))


def attention_flash(
    query: Operand,
    key: Operand,
    value: Operand,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Operand | None = None,
    scale: float | None = None,
) -> tuple[Pair, Pair]:
    """The CPU's fused form, which also returns the logarithms of the normalisers."""
    sight = _visibility(query, key, value, attn_mask, is_causal)
    op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
    data, normaliser = op(*sight[:3], dropout_p, sight.is_causal, attn_mask=_additive(sight), scale=scale)
    rows = masks.logical_and(sight.some, sight.queries).squeeze(-1)
    return zeroed_result(data, _valid(sight, value, data)), Pair(normaliser, masks.expand_to(rows, normaliser.shape))


def choose_unfused(*args: Any, **kwargs: Any) -> int:
    """Which kernel a decomposed call should take: the unfused one (0), whose parts all have rules."""
    return 0


def _visibility(query: Operand, key: Operand, value: Operand, attn_mask: Operand | None, is_causal: bool) -> Visibility:
    q, k, v = pair.as_pair(query), pair.as_pair(key), pair.as_pair(value)
    rows = k.data.shape[:-1] == v.data.shape[:-1] and masks.is_constant(k.mask, -1)
    if rows and type(key) is Pair and type(value) is not Pair:  # weight 0 is not enough: 0 times an inf is NaN
        v = Pair(v.data, k.mask.narrow(-1, 0, 1).expand(v.data.shape))
    gradients = in_transform() or any(is_tracked(x.data) for x in (q, k, v))
    needs_zero = gradients or not masks.is_constant(q.mask, -1)
    shape = (q.data.shape[-2], k.data.shape[-2])
    queries = _valid_rows(q.mask).unsqueeze(-1)
    first = zero_masked(q, owned=True) if needs_zero else guard(q.data, q.mask, owned=True)
    operands = (first, zero_masked(k, owned=True), zero_masked(v, owned=True))
    shifted = is_causal and not masks.same_memory(q.mask, k.mask) and any(sides.is_left(x.mask, -2) for x in (q, k))
    if type(key) is not Pair and type(value) is not Pair and attn_mask is None and not shifted:
        seen = masks.full(shape, q.data.device, True)
        return Visibility(*operands, None, is_causal, seen, masks.any(seen, -1, True), queries)
    if attn_mask is None and not shifted and masks.is_constant(k.mask, -1) and masks.same_memory(v.mask, k.mask):
        dtype = q.data.dtype  # with the mask of the keys, all that it depends on
        of = ("keys", is_causal, q.mask.shape[-3:-2], shape, dtype)
        hidden = masks.derive(
            k.mask, of, lambda: _keep_keys(_before(_visible_keys(q, k, v), shape, is_causal), shape, dtype)
        )
        return _by_mask(operands, hidden, queries)
    seen = _visible_keys(q, k, v)
    seen = seen & _earlier(q, k) if shifted else _before(seen, shape, is_causal)
    if attn_mask is None:
        return _by_mask(operands, _hide_keys(seen, shape), queries)
    return _by_user(operands, attn_mask, seen, shape, queries)


def _by_user(
    operands: tuple[Tensor, Tensor, Tensor], attn_mask: Operand, seen: Tensor, shape: tuple[int, int], queries: Tensor
) -> Visibility:
    """With a mask of the user as well: it may have been written since the last layer, so nothing of it is kept."""
    data = pair.data_of(attn_mask)
    hides = data if data.dtype is torch.bool else data != float("-inf")
    seen = seen & (masks.compact(attn_mask.mask) & hides if type(attn_mask) is Pair else hides)
    if data.dtype is torch.bool:
        return _by_mask(operands, _hide_keys(seen, shape), queries)
    some = masks.any(seen, -1, True)
    wide = shapes.broadcast_two(data.shape, seen.shape)
    added = select((zero_masked(attn_mask) if type(attn_mask) is Pair else data).expand(wide), seen, float("-inf"))
    return Visibility(
        *operands, select(added, some, 0), False, masks.expand_to(seen, _expand_mask(seen, shape)), some, queries
    )


def _before(seen: Tensor, shape: tuple[int, int], is_causal: bool) -> Tensor:
    return seen & torch.ones(shape, dtype=torch.bool, device=seen.device).tril() if is_causal else seen


def _earlier(q: Pair, k: Pair) -> Tensor:
    """The causal mask of rows that are known to be padded on the left, in which steps count from each row's first."""
    query, key = (
        torch.arange(x.data.shape[-2], device=x.data.device).unsqueeze(-1) - _first_steps(x, q.data) for x in (q, k)
    )
    return key.mT <= query


def _first_steps(x: Pair, query: Tensor) -> Tensor:
    """Where the rows begin: (..., heads or 1, 1, 1)."""
    if not sides.is_left(x.mask, -2):
        return torch.zeros((), dtype=torch.int64, device=x.data.device)
    first, _ = ends.first_and_last(masks.compact(_valid_rows(x.mask).unsqueeze(-1)), -2)
    return _repeat_heads(first, query.shape[-3] if query.dim() > 2 else 1)


def _valid_rows(mask: Tensor) -> Tensor:
    """Which rows hold anything valid."""
    return mask.select(-1, 0) if masks.is_constant(mask, -1) else product_validity.is_present(mask, -1)


def _visible_keys(q: Pair, k: Pair, v: Pair) -> Tensor:
    """Which keys can be seen, compact: ``(..., 1, S)``, or ``(..., L, S)`` where that depends on the query's mask."""
    heads = q.mask.shape[-3] if q.mask.dim() > 2 else 1
    values = masks.compact(_valid_rows(v.mask).unsqueeze(-2))
    if masks.same_memory(k.mask, v.mask) and masks.is_constant(k.mask, -1):
        return _repeat_heads(values, heads)
    if masks.is_constant(q.mask, -1) or masks.is_constant(k.mask, -1):
        keys = masks.compact(_valid_rows(k.mask).unsqueeze(-2))
    else:
        keys = product_validity.product_mask(q.mask, _repeat_heads(k.mask, heads).mT)
    return _repeat_heads(keys, heads) & _repeat_heads(values, heads)


def _repeat_heads(mask: Tensor, heads: int) -> Tensor:
    """A mask over key heads as one over query heads (grouped queries); of no key heads, nothing is masked."""
    if mask.dim() > 2 and not mask.shape[-3]:
        return masks.full((*mask.shape[:-3], heads, *mask.shape[-2:]), mask.device, True)
    if mask.dim() < 3 or mask.shape[-3] in (1, heads) or heads == 1:
        return mask
    return mask.repeat_interleave(heads // mask.shape[-3], -3)


def _expand_mask(seen: Tensor, shape: tuple[int, int]) -> tuple[int, ...]:
    return (*seen.shape[:-2], *shape)


def _by_mask(operands: tuple[Tensor, ...], hidden: tuple[Tensor, ...], queries: Tensor) -> Visibility:
    """With a bool mask for the kernel, which knows of no causal one."""
    query, key, value = operands
    mask, seen, some = hidden
    return Visibility(query, key, value, mask, False, seen, some, queries)


def _hide_keys(seen: Tensor, shape: tuple[int, int]) -> tuple[Tensor, ...]:
    """The kernel's mask, which key each query sees, and the queries that see one.

    For the kernel a query that sees nothing looks everywhere: its row is masked, and the kernel makes no NaN.
    Contiguous before it is expanded: one that steps through memory would be copied to ``(B, H, L, S)`` by the kernel.
    """
    some = masks.any(seen, -1, True)
    mask = masks.expand_to((seen | ~some).contiguous(), (*seen.shape[:-1], shape[1]))
    return mask, masks.expand_to(seen, _expand_mask(seen, shape)), some


def _keep_keys(seen: Tensor, shape: tuple[int, int], dtype: torch.dtype) -> tuple[Tensor, ...]:
    """As :func:`_hide_keys`, with what the kernel adds: it would make that of a bool mask in every call."""
    mask, seen, some = _hide_keys(seen, shape)
    return additive(mask, dtype) if masks.is_quiet() else mask, seen, some


def shown_keys(keys: Tensor, queries: int, is_causal: bool, dtype: torch.dtype) -> Tensor | None:
    """What the kernel adds for keys ``(S, B, C)``, whose mask does not vary along C, ``(B, 1, queries, S)``.

    It is kept with their mask: every layer adds the same.
    """

    def make() -> Tensor:
        seen = keys.select(-1, 0).T[:, None, None, :]
        shape = queries, seen.shape[-1]
        return additive(_hide_keys(_before(seen, shape, is_causal), shape)[0], dtype)

    found: Tensor = masks.derive(keys, ("shown", queries, is_causal, dtype), make)
    return found


def _additive(sight: Visibility) -> Tensor | None:
    """The kernel's mask for the forms that only add it."""
    if sight.mask is None or sight.mask.dtype is not torch.bool:
        return sight.mask
    return select(torch.zeros_like(sight.mask, dtype=sight.query.dtype), sight.mask, float("-inf"))


def _valid(sight: Visibility, value: Operand, data: Tensor) -> Tensor:
    """The mask of the output: valid queries that see a valid value; without entries, all that is valid of the query."""
    if any(0 in x.shape for x in sight[:3]):
        return masks.expand_to(masks.full((), data.device) if 0 in data.shape else sight.queries, data.shape)
    if type(value) is not Pair or masks.is_constant(value.mask, -1):
        some = sight.some
    else:
        some = any_valid_pair(sight.seen, _repeat_heads(value.mask, data.shape[-3] if data.dim() > 2 else 1))
    return masks.expand_to(masks.logical_and(some, sight.queries), data.shape)


def _of_itself(query: Operand, key: Operand, value: Operand, data: Tensor) -> Tensor | None:
    """The mask of the output of self-attention: each valid query sees its own key, so that what is valid stays so."""
    if type(query) is not Pair or type(key) is not Pair or type(value) is not Pair or data.shape != query.mask.shape:
        return None
    same = masks.same_memory(query.mask, key.mask) and masks.same_memory(value.mask, key.mask)
    return query.mask if same and masks.is_constant(key.mask, -1) and 0 not in data.shape else None


def _heads(mask: Tensor, weights: Tensor) -> Tensor:
    return _repeat_heads(mask, weights.shape[-3] if weights.dim() > 2 else 1)


OPS = [
    Op(
        "scaled_dot_product_attention",
        scaled_dot_product_attention,
        packed=StorageRule("a rule of its own", packed.attention_rule, Takes(stored=("query", "key", "value"))),
    ),
    Op("_scaled_dot_product_attention_math", attention_math),
    Op("_scaled_dot_product_flash_attention_for_cpu", attention_flash),
    Op("_fused_sdp_choice", choose_unfused),
]
