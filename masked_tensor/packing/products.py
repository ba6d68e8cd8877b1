"""Products of two packed tensors: queries times keys give blocks of scores, blocks times values are tokens again.

So attention that is written by hand, ``softmax(q @ k.mT) @ v``, is never padded.  What lies between the two products,
elementwise or a softmax, runs on the stored scores.
"""

from math import prod

import torch
from torch import Tensor

from ..compat import is_readable_memory
from ..kernels.attention.fused import split_runs
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Payload
from .attention import split_heads
from .blocks import Blocks, make_blocks
from .dim_order import GRID, Order
from .grid import same_places
from .packed import Packed, drop_full_inner, pack_values, values_at_tokens
from .views import transpose


def _product(rule: Rule, op: Rule) -> Rule:
    def on_packed(a: Packed, b: Packed) -> Packed:
        if a.shape[:-2] != b.shape[:-2] or b.first != GRID or not is_readable_memory(a.values):
            raise NoRule  # another shape, or lengths that cannot be read
        return _scores(a, b) if a.first == GRID else _weighted_values(a, b)

    return on_packed


def _scores(a: Packed, b: Packed) -> Packed:
    """``(B, .., T, D) @ (B, .., D, S)``."""
    queries, keys = split_heads(a), split_heads(transpose(b, -2, -1))
    heads: list[int] = []
    lead: list[tuple[int, ...]] = []
    for dim in a.order[:-2]:
        inside = [x for x in dim if x >= GRID]
        if inside:
            heads.append(prod(a.sizes[x] for x in inside))
        lead.append((*dim[: len(dim) - len(inside)], *([len(heads)] if inside else [])))  # the batch comes first
    grid = make_blocks(a.grid, b.grid, tuple(heads))
    order = (*lead, (1 + len(heads),), (2 + len(heads),))
    pairs = zip(split_runs(queries, grid.calls, True), split_runs(keys, grid.calls, False), strict=True)
    return Packed(torch.cat([(q @ k.mT).reshape(-1) for q, k in pairs]), grid, order)


def _weighted_values(a: Packed, b: Packed) -> Packed:
    """``(B, .., T, S) @ (B, .., S, D)`` of stored blocks."""
    grid = a.grid
    if type(grid) is not Blocks or not same_places(grid.keys, b.grid) or a.values.dim() != 1:
        raise NoRule
    if [x for dim in a.order for x in dim] != list(range(a.first)) or a.order[-1] != (a.first - 1,):
        raise NoRule
    if a.order[-2] != (a.first - 2,):
        raise NoRule
    values = split_runs(split_heads(b), grid.calls, False)
    parts = []
    for run, piece, v in zip(grid.calls, split_blocks(a), values, strict=True):
        out = piece.reshape(run.number, -1, run.queries, run.keys) @ v
        parts.append(out.transpose(1, 2).flatten(0, 1))
    data = torch.cat(parts)
    data = data.unflatten(1, grid.heads) if grid.heads else data.squeeze(1)
    lead: Order = tuple(tuple(x if x == 0 else x + 1 for x in dim) for dim in a.order[:-2])
    order = (*lead, (1,), (GRID + len(grid.heads),))
    return pack_values(data, Packed(data, grid.queries, order))


def split_blocks(x: Packed) -> list[Tensor]:
    """The values run by run, each with the dimensions of the grid: one split, whose gradient is one cat."""
    runs = x.grid.runs
    parts = x.values.split([prod(run) for run in runs])
    return [p.view(*run, *x.values.shape[1:]) for p, run in zip(parts, runs, strict=True)]


def _affine(rule: Rule, op: Rule) -> Rule:
    """``beta * summand + alpha * (a @ b)``: a query from which the summand hides every key is masked."""
    product = _product(rule, op)

    def on_packed(summand: Tensor, a: Packed, b: Packed, *, beta: float = 1, alpha: float = 1) -> Packed:
        scores: Packed = product(a, b)
        data = scores.values if alpha == 1 else scores.values * alpha
        if beta == 0:
            return pack_values(data, scores)
        if type(scores.grid) is not Blocks:
            raise NoRule
        added = values_at_tokens(summand, scores)
        result = pack_values(data + (added if beta == 1 else added * beta), scores)
        if not data.is_floating_point():
            return result
        shown = Packed((added.detach() != -torch.inf).expand(data.shape), scores.grid, scores.order)
        seen = torch.cat([p.any(-1, True).expand(p.shape).reshape(-1) for p in split_blocks(shown)])
        hidden = drop_full_inner(Packed(result.values, result.grid, result.order, seen, Payload.ANY))
        return result if hidden.inner is None else hidden

    return on_packed


product = StorageRule("blocks of scores", _product, Takes(whole=(0, 1)))  #: ``q @ k.mT`` and ``weights @ v``
affine = StorageRule(
    "blocks of scores", _affine, Takes(whole=(1, 2))
)  #: the same, added to what hides or biases scores
