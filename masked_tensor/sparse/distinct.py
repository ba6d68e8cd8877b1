"""Equal values in sparse tensors, and how often they occur: the valid zeros that are not stored are only counted."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..layouts import validity
from ..layouts.elements import zeros_read
from ..shared.too_few import MASKED, TooFew
from .reduction import assemble_result, outputs, take_valid
from .slices import check_ordered, sort_into_slices
from .valid_positions import ValidPositions, first_unstored


def unique(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The distinct valid values and how often each occurs, strided."""
    t = take_valid(x, mask)
    found, counts = t.values.unique(return_counts=True)
    zeros = _count_valid(x, mask) - t.values.numel()
    zero = torch.zeros_like(zeros, dtype=found.dtype)
    found, inverse = torch.cat((found, zero[zeros > 0])).unique(return_inverse=True)
    counts = torch.cat((counts, zeros[zeros > 0]))
    return found, torch.zeros_like(found, dtype=torch.int64).index_add(0, inverse, counts)


def unique_consecutive(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The runs of equal values among the valid elements in row-major order, and their lengths, strided.

    Between two stored values whose ranks among the valid elements are not neighbours lies a run of zeros.
    """
    t = take_valid(x, mask)
    rank = ValidPositions(mask, x.shape, range(x.dim()), x.device).before(t.coordinate).expand(t.values.shape)
    rank, order = rank.sort()
    gaps = torch.diff(rank, prepend=rank.new_full((1,), -1), append=_count_valid(x, mask)) - 1
    stored = t.values[order]
    values = torch.stack((torch.zeros_like(stored), stored), 1).view(-1)
    values = torch.cat((values, stored.new_zeros(1)))  # zeros, value, zeros, value, ... zeros
    lengths = torch.cat((torch.stack((gaps[:-1], torch.ones_like(rank)), 1).view(-1), gaps[-1:]))
    present = (lengths > 0).nonzero().view(-1)
    values, lengths = values[present], lengths[present]
    run = runs(values.detach())
    size = torch.bincount(run)
    return values[size.cumsum(0) - size], torch.zeros_like(size).index_add(0, run, lengths)


def _count_valid(x: Tensor, mask: Tensor | None) -> Tensor:
    """The number of valid elements, 1-d."""
    number = validity.counts(mask, x.shape, range(x.dim()), torch.zeros(1, dtype=torch.int64, device=x.device))
    return torch.as_tensor(number, device=x.device).reshape(1)


def mode(
    x: Tensor,
    mask: Tensor | None,
    dims: Sequence[int],
    keepdim: bool,
    few: TooFew = MASKED,
) -> tuple[tuple[Tensor, Tensor | None], tuple[Tensor, Tensor | None]]:
    """The most frequent value, the least one of several, and the last position that has it."""
    t = take_valid(x, mask)
    check_ordered(t.values)
    o = outputs(t, dims, True, few.is_shown)  # the last position of a slice of zeros is not 0
    s, v, ids = o.slices, t.values, o.slices.ids
    weight, position = torch.ones_like(ids), t.position(dims)
    if s.zeros is not None:  # one more entry, which stands for all the zeros of its slice
        some = (s.zeros > 0).nonzero().view(-1)
        v, ids, weight = (
            torch.cat((v, v.new_zeros(some.shape))),
            torch.cat((ids, some)),
            torch.cat((weight, s.zeros[some])),
        )
        position = torch.cat((position, first_unstored(t, o, dims, last=True)[some]))
    order = sort_into_slices(ids, v.detach(), position)
    if order.numel() == 0:
        value, where = zeros_read(v, s.number), position.new_zeros(s.number)
    else:
        place = order[_last_of_longest(v.detach()[order], ids[order], weight[order], s.number)]
        value, where = v[place], position[place]
    values = assemble_result(value, o, x, dims, keepdim, few)
    return values, assemble_result(where, o, x, dims, keepdim, few.positions())


def _last_of_longest(v: Tensor, ids: Tensor, weight: Tensor, number: int) -> Tensor:
    """Where the heaviest run of equal values (the first of several) of each slice ends, or somewhere if it has none."""
    run = runs(v, ids)
    length = torch.bincount(run)
    heavy = torch.zeros_like(length).index_add(0, run, weight)
    end = length.cumsum(0) - 1
    owner = ids[end]
    most = heavy.new_zeros(number).scatter_reduce(0, owner, heavy, "amax")
    hit = (heavy == most[owner]).nonzero().view(-1)
    first = hit.new_full((number,), length.numel() - 1).scatter_reduce(0, owner[hit], hit, "amin")
    return end[first]


def runs(v: Tensor, ids: Tensor | None = None) -> Tensor:
    """The number of the run of equal neighbours (of one slice) that each value belongs to; every NaN is its own."""
    new = torch.zeros(v.shape, dtype=torch.bool, device=v.device)
    new[1:] = v[1:] != v[:-1]
    if ids is not None:
        new[1:] |= ids[1:] != ids[:-1]
    return new.cumsum(0)
