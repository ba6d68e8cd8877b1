"""What a batch, or another state, adds to running statistics, checked before anything changes; see state.py."""

import warnings
from typing import Any

import torch
from torch import Tensor

from ..extend import Pair, masks, select
from ..extend.data import plain, sparse_tensor, stored_entries
from . import histogram, options, sketch
from .columns import by_name, check_columns, keys_of_rows, rows_of
from .moments import by_group
from .moments.columns import Moments, merge_moments, moments_of, moments_of_entries, zeros_of
from .moments.pairs import PairMoments, pair_moments_of
from .state import Part, State


def part_of_batch(state: State, x: Any, weight: Tensor | None, group: Any) -> Part:
    """What a batch adds."""
    x = sparse_tensor(x)
    if isinstance(x, Tensor) and state.names is not None and state.features > 1:
        warnings.warn(
            f"update() got a tensor, which has no names: its columns are taken as {list(state.names)} by their "
            "position; give the table itself (frame.convert_dtypes() masks NaN), or to_arrow(x, names)",
            stacklevel=4,
        )
    x, columns, names = by_name(state, x, "update()")
    check_columns(state, x, "update()")
    keys = None if group is None else keys_of_rows(state, group, x, "update()")
    _check_groups(state, keys is not None, weight is not None)
    pair = plain(x)
    if pair.data.is_complex():
        raise TypeError("statistics are of real numbers, got complex ones; update with torch.view_as_real(x)")
    if pair.data.layout is not torch.strided:
        if weight is not None or keys is not None or state.has_more_than_moments or pair.data.dim() != 2:
            raise TypeError(
                "update() of a sparse tensor needs a matrix, and computes no covariances, histograms, sketches, "
                "groups or weighted statistics; use x.to_dense()"
            )
        moments = _moments_of_sparse(state, pair, type(x) is Tensor)
        return Part(columns, names, moments, pair.data.shape[0] - moments.number)
    data, mask = rows_of(state, pair.data), rows_of(state, pair.mask)
    missed = len(mask) - masks.count(mask, 0).double() if keys is None else mask
    heavy = None if weight is None else plain(weight)
    each, single = None, None
    if heavy is not None:
        each, seen, single = _weights(state, heavy, pair.data.shape)
        mask = mask & seen
        each = select(each, mask, 0)
        if each.is_cpu and not bool((each >= 0).all()):  # no device is waited for
            raise ValueError(f"weights must not be negative or NaN, got {each[~(each >= 0)][0].item():g}")
    data = data if data.is_floating_point() else data.double()
    if keys is not None:
        groups, at = keys.unique(return_inverse=True)
        moments = by_group.moments_of_groups(data, mask, each, at, len(groups))
        missed = by_group.missing_of_groups(missed, at, len(groups))
        return Part(columns, names, moments, missed, groups)
    moments = moments_of(data, mask, each)
    pairs = None if state.pairs is None else pair_moments_of(data, mask, single, moments.mean)
    bins = None if state.edges is None else histogram.bins_of(data, mask, each, state.edges)
    mine = state.sketch
    kept = None if mine is None else sketch.add_rows(mine, data, mask)
    return Part(columns, names, moments, missed, None, pairs, bins, kept)


def part_of_state(state: State, other: State) -> Part:
    """What a state adds that was made in the same way."""
    device = state.missed.device
    at = options.check_order(state.columns, other.columns.to(device), state.edges, "merge()")
    moments, missed, keys = torch.stack(other.moments).to(device), other.missed.to(device), other.keys
    pairs = None if other.pairs is None else torch.stack(other.pairs).to(device)
    bins = None if other.bins is None else other.bins.to(device)
    kept = None if other.sketch is None else sketch.Sketch(*(getattr(other.sketch, p).to(device) for p in sketch.PARTS))
    if (keys is None) != (state.keys is None):
        if (other if keys is None else state).is_used():
            raise ValueError("merge() needs groups in both or in neither; call update(x, group=keys) in both")
        if state.keys is not None:  # the other one has seen nothing
            keys, moments, missed = state.keys[:0], torch.stack(state.moments)[:, :0], state.missed[:0]
    if at is not None:
        moments, missed, bins = moments[..., at], missed[..., at], None if bins is None else bins[at]
        pairs = None if pairs is None else pairs[:, at][:, :, at]
        kept = kept and sketch.Sketch(kept.waiting[at], kept.items[:, at], kept.counts[at], kept.halvings[at])
    both = None if kept is None or state.sketch is None else sketch.merge_sketches(state.sketch, kept)
    columns = torch.where(state.columns.isnan(), other.columns.to(device), state.columns)
    means = None if pairs is None else PairMoments(*pairs)
    keys = None if keys is None else keys.to(device)
    return Part(columns, other.names, Moments(*moments), missed, keys, means, bins, both)


def _check_groups(state: State, grouped: bool, weighted: bool) -> None:
    """Raises unless what is given goes with what was given before."""
    if grouped and state.has_more_than_moments:
        raise TypeError("groups have moments alone: leave out cov, edges and sketch, or keep statistics for each group")
    if weighted and state.sketch is not None:
        raise TypeError("sketch=True does not support weights; use edges= for quantiles of weighted data")
    if grouped != (state.keys is not None) and (state.keys is not None or state.is_used()):
        raise ValueError(
            "other batches have groups; call update(x, group=keys) for this one as well"
            if state.keys is not None
            else "other batches have no groups, so that this one can have none: use other statistics"
        )


def _weights(state: State, weight: Pair, shape: torch.Size) -> tuple[Tensor, Tensor, Tensor | None]:
    """The weight of each entry, where it counts, and the weight of each row if covariances are kept."""
    if weight.data.is_complex():
        raise TypeError("a weight is a real number, got a complex one")
    try:
        wide = weight.data.expand(shape)
    except RuntimeError as reason:
        raise ValueError(
            f"weight must broadcast to the shape {tuple(shape)} of x, got {tuple(weight.data.shape)}"
        ) from reason
    each = rows_of(state, wide).double()
    seen = rows_of(state, weight.mask.expand(shape)) & (each != 0)
    if state.pairs is None:
        return each, seen, None
    if state.features > 1 and wide.stride(state.dim) != 0:
        raise ValueError(
            f"covariances need one weight for each row, of size 1 along dim {state.dim}, got "
            f"{tuple(weight.data.shape)}; leave out cov=True"
        )
    return each, seen, select(each[:, :1], seen.any(1, keepdim=True), 0)


def _moments_of_sparse(state: State, pair: Pair, zeros: bool) -> Moments:
    device, rows = state.missed.device, pair.data.shape[0]
    moved = pair.data.to(device)
    column, values = stored_entries(moved if zeros else Pair(moved, pair.mask.to(device)), 1)
    stored = moments_of_entries(column, values.double(), state.features)
    return merge_moments([stored, zeros_of(rows - stored.number)]) if zeros else stored
