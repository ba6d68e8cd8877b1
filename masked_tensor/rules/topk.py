"""The k greatest or least entries: only valid ones, then a masked tail where fewer than k are valid.

In long rows few entries are read: each of the k greatest lies in one of the k blocks with the greatest maxima.
"""

import torch
from torch import Tensor

from .. import masks, settings
from ..compat import is_readable_memory
from ..kernels import reduce
from ..op import Op
from ..packing import per_token as packed
from ..pair import Pair, moved
from ..sparse import sorting
from ..sparse.rules import sparse_rule
from .order import by_pieces, has_integers, integers, is_constant_along, order


def topk(x: Pair, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Pair, Pair]:
    """``torch.topk``: past the valid entries the result is masked."""
    if is_constant_along(x, dim):
        values, indices = torch.topk(x.data, k, dim, largest, sorted)
        mask = masks.expand_to(x.mask.narrow(dim, 0, 1), values.shape) if x.data.dim() and x.data.shape[dim] else x.mask
        return Pair(values, masks.expand_to(mask, values.shape), x.payload), Pair(
            indices, masks.expand_to(mask, values.shape)
        )
    if has_integers(x.data.dtype):
        indices = _top_positions(Pair(x.data.detach(), x.mask, x.payload), k, dim, largest, sorted)
    else:
        if not 0 <= k <= x.data.shape[dim]:
            raise RuntimeError("selected index k out of range")
        indices = order(x, dim, descending=largest).narrow(dim, 0, k).contiguous()
    mask = x.mask.gather(dim, indices)
    return Pair(x.data.gather(dim, indices), mask, x.payload), Pair(indices, mask)


def _top_positions(x: Pair, k: int, dim: int, largest: bool, sorted: bool) -> Tensor:
    size = _block(x.data, k, dim, largest)
    if size is None:
        return by_pieces(lambda part: torch.topk(integers(part, not largest), k, dim, largest, sorted)[1], x, dim)
    blocks = moved(x, torch.unflatten, -1, (-1, size))
    last = (blocks.data.dim() - 1,)
    bound = Pair(reduce("amax" if largest else "amin", blocks, last, False), masks.any(blocks.mask, last))
    best = torch.topk(integers(bound, not largest), k, -1, largest, False)[1]
    rows = torch.arange(best.numel() // k).reshape(*best.shape[:-1], 1) * blocks.data.shape[-2] + best
    data, mask = (
        t.reshape(-1, size).index_select(0, rows.view(-1)).view(*best.shape[:-1], -1)
        for t in (blocks.data, blocks.mask)
    )
    place = torch.topk(integers(Pair(data, mask), not largest), k, -1, largest, sorted)[1]
    return best.gather(-1, place // size) * size + place % size


def _block(data: Tensor, k: int, dim: int, largest: bool) -> int | None:
    """The size of the blocks: it divides the row, and k blocks are a small part of it.  None: look at every entry.

    NaN is the greatest, so that it hides the least number of its block: then every entry is looked at.
    """
    n, hidden = data.shape[dim], data.is_floating_point() and not largest
    if not is_readable_memory(data) or data.numel() < settings.BLOCKS or hidden or dim % data.dim() != data.dim() - 1:
        return None
    return next((size for size in (32, *range(48, 15, -1)) if n % size == 0 and 0 < 4 * k * size <= n), None)


OPS = [Op("topk", topk, sparse=sparse_rule(sorting.topk), packed=packed.along_feature(2))]
