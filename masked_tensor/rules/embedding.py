"""Embedding: a masked id has a masked row, and a bag skips it; its value is never used and no row gets its gradient.

A masked id is replaced by one that is safe to look up: the padding index if there is one (torch gives it no gradient),
else 0, whose gradient then gains an exact zero.  Where an explicit zero would still be seen (a sparse gradient, a
frequency), the gradient is computed with an extra row for the masked ids.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import errors, masks, pair
from ..compat import in_transform, is_tracked
from ..op import Op
from ..packing import per_token as packed
from ..pair import Pair
from ..select import fill_masked, select, zero_masked

Operand = Pair | Tensor


def embedding(
    weight: Operand,
    indices: Operand,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Pair:
    """``weight[indices]``; a masked weight passes on its mask."""
    table, ids = pair.as_pair(weight), pair.as_pair(indices)
    safe = select(ids.data, ids.mask, max(padding_idx, 0))
    mask = ids.mask.unsqueeze(-1)
    if type(weight) is Pair:
        mask = masks.logical_and(mask, _look_up_mask(table.mask, safe))
        sparse = False  # the gradient of a masked tensor has the tensor's own layout
    shape = (*ids.data.shape, *table.data.shape[1:])
    if table.data.shape[0] == 0:  # nothing to look up: every id must be masked, else torch's own error
        safe = safe if type(indices) is not Pair else safe[:0]
        data = torch.embedding(table.data, safe.flatten(), padding_idx, scale_grad_by_freq, sparse)
        return Pair(data.sum().expand(shape), masks.expand_to(mask, shape))
    if scale_grad_by_freq and padding_idx < 0 and type(indices) is Pair and in_transform():
        rows = table.data.shape[0]  # a padding row behind the table, as in _Lookup
        wide = torch.cat([table.data, table.data.new_zeros(1, *table.data.shape[1:])])
        data = torch.embedding(wide, select(ids.data, ids.mask, rows), rows, True, sparse)
        return Pair(data, masks.expand_to(mask, shape))
    skips = padding_idx < 0 and (sparse or scale_grad_by_freq) and type(indices) is Pair
    if skips and is_tracked(table.data) and not in_transform():
        data = _Lookup.apply(table.data, safe, ids.mask, scale_grad_by_freq, sparse)
    else:
        data = torch.embedding(table.data, safe, padding_idx, scale_grad_by_freq, sparse)
    return Pair(data, masks.expand_to(mask, shape))


def _look_up_mask(mask: Tensor, ids: Tensor) -> Tensor:
    """Rows of a weight's mask; a mask that is constant along the rows' entries stays so.

    Not by ``mask[ids]``, which reads an id without dimensions on the host.
    """
    rows = mask.narrow(-1, 0, 1) if masks.is_constant(mask, -1) else mask
    return rows.index_select(0, ids.flatten()).reshape(*ids.shape, *rows.shape[1:])


class _Lookup(torch.autograd.Function):
    """A lookup whose gradient leaves out the masked ids: they belong to a padding row behind the table."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor, mask: Tensor, by_frequency: bool, sparse: bool) -> Tensor:
        ctx.save_for_backward(ids, mask)
        ctx.rows, ctx.by_frequency, ctx.sparse = weight.shape[0], by_frequency, sparse
        return torch.embedding(weight, ids)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        ids, mask = ctx.saved_tensors
        rows = ctx.rows
        ids = select(ids, mask, rows)
        if ctx.sparse:
            # Which rows a sparse gradient names depends on the ids' values in plain torch as well.
            kept = ids.flatten() != rows
            values = grad.reshape(-1, grad.shape[-1])[kept]
            size = (rows, grad.shape[-1])
            table = torch.sparse_coo_tensor(ids.flatten()[kept][None], values, size, check_invariants=False)
            return table, None, None, None, None
        full = torch.ops.aten.embedding_dense_backward(grad, ids, rows + 1, rows, ctx.by_frequency)
        return full[:rows], None, None, None, None


def renorm(weight: Operand, indices: Operand, max_norm: float, norm_type: float) -> Operand:
    """``max_norm``: rows named by valid ids are rescaled in place (plain torch also reads the ids on the host).

    The norm of a row of a masked weight is that of its valid entries.
    """
    ids = indices.data[indices.mask] if isinstance(indices, Pair) else indices.flatten()
    if not isinstance(weight, Pair):
        return torch.embedding_renorm_(weight, ids, max_norm, norm_type)
    table = weight.data.detach()
    rows = table[ids]
    norm = torch.linalg.vector_norm(select(rows, weight.mask[ids], 0), norm_type, -1, keepdim=True)
    scale = torch.where(norm > max_norm, max_norm / (norm + 1e-7), 1)
    table[ids] = rows * scale  # ids that are equal write the same
    return weight


def one_hot(ids: Pair, num_classes: int = -1) -> Pair:
    """A masked id has a masked row; without ``num_classes`` the largest valid id decides."""
    data = torch.nn.functional.one_hot(select(ids.data, ids.mask, 0), num_classes)
    return Pair(data, masks.expand_to(ids.mask.unsqueeze(-1), data.shape))


def embedding_bag(
    weight: Operand, indices: Operand, offsets: Operand, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Operand | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Sum (mode 0), mean (1) or max (2) of each bag's rows; a masked id or sample weight skips its entry.

    A bag is masked iff it has entries and all of them are masked; one without entries is 0; padding is not an entry.
    The other outputs are those of the plain op, over the entries that are left.
    """
    if isinstance(offsets, Pair):
        raise errors.unsupported("aten::embedding_bag", ["offsets"])  # a bag without a beginning is no bag
    table, ids, padding = pair.as_pair(weight), pair.as_pair(indices), -1 if padding_idx is None else padding_idx
    rows = table.data.shape[0]
    if rows and padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be from {-rows} to {rows - 1}, got {padding_idx}")
    padding += rows if padding < 0 and padding_idx is not None else 0
    mask, samples = ids.mask, None
    if per_sample_weights is not None:
        samples = pair.as_pair(per_sample_weights)
        mask = masks.logical_and(mask, samples.mask)
    sparse = sparse and type(weight) is not Pair  # the gradient of a masked tensor has the tensor's own layout
    starts = offsets[:-1] if include_last_offset else offsets
    order, begins = _valid_first(mask, starts, exact=sparse or scale_grad_by_freq)
    safe = select(ids.data, mask, 0)[order]
    weights = None if samples is None else zero_masked(samples)[order]

    bag = partial(_bag, safe, begins, scale_grad_by_freq, sparse, padding)
    named = ~(ids.mask & (ids.data == padding)) if padding >= 0 else torch.ones_like(mask)
    entries, empty = _per_bag(mask & named, starts), _per_bag(named, starts) == 0
    if type(weight) is not Pair:
        out, *rest = bag(table.data, mode, weights)
        valid = ((entries > 0) | empty).unsqueeze(-1)
    else:
        out, *rest = bag(fill_masked(table, float("-inf") if mode == 2 else 0), 0 if mode == 1 else mode, weights)
        with torch.no_grad():
            entries = bag(table.mask.to(table.data.dtype), 0, None)[0][: starts.shape[0]]
        valid = (entries > 0) | empty.unsqueeze(-1)
        if mode == 1:
            out = out[: starts.shape[0]] / entries.clamp_min(1)
    out = out[: starts.shape[0]]
    return Pair(out, masks.expand_to(valid, out.shape)), *rest


def _bag(
    ids: Tensor, begins: Tensor, by_frequency: bool, sparse: bool, padding: int, rows: Tensor, kind: int, weights: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    op = torch.ops.aten._embedding_bag.default
    result: tuple[Tensor, Tensor, Tensor, Tensor] = op(
        rows, ids, begins, by_frequency, kind, sparse, weights, False, padding
    )
    return result


def _valid_first(mask: Tensor, starts: Tensor, exact: bool) -> tuple[Tensor, Tensor]:
    """An order of the entries with the valid ones first, and where the bags begin in it.

    The masked entries make one more bag at the end, which gets no gradient.  ``exact`` leaves them out altogether: a
    sparse gradient or a frequency would still name them.
    """
    before = torch.cat([mask.new_zeros(1, dtype=starts.dtype), mask.cumsum(0, dtype=starts.dtype)])
    if exact:
        return mask.nonzero().squeeze(1), before[starts]
    return (~mask).to(torch.uint8).argsort(stable=True), before[
        torch.cat([starts, starts.new_full((1,), mask.shape[0])])
    ]


def _per_bag(mask: Tensor, starts: Tensor) -> Tensor:
    """The number of True entries in each bag."""
    before = torch.cat([mask.new_zeros(1, dtype=starts.dtype), mask.cumsum(0, dtype=starts.dtype)])
    ends = torch.cat([starts[1:], starts.new_full((1,), mask.shape[0])])
    return before[ends] - before[starts]


def low_level_bag(*arguments: Any) -> tuple[Any, ...]:
    """_embedding_bag and _embedding_bag_forward_only: here a padding index of -1 means none."""
    if len(arguments) == 9 and arguments[-1] < 0:
        arguments = arguments[:-1]
    return embedding_bag(*arguments)


OPS = [
    Op("embedding", embedding, packed=packed.append_feature(1)),
    Op("embedding_renorm_", renorm, each=True),
    Op("embedding_bag", embedding_bag),
    Op("_embedding_bag", low_level_bag),
    Op("_embedding_bag_forward_only", low_level_bag),
    Op("one_hot", one_hot, packed=packed.append_feature(0)),
]
