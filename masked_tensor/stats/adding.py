"""What a batch, or another state, adds to running statistics."""

import warnings
from typing import Any

import torch
from torch import Tensor

from ..extend import Pair, masks, select
from ..extend.data import plain, sparse_tensor, stored_entries
from . import group_moments, histogram, options, sketch
from .moments import Moments, merge_moments, moments_of, moments_of_entries, zeros_of
from .pair_moments import PairMoments, pair_moments_of
from .state import Part, StatisticsState


class StatisticsAdding(StatisticsState):
    """What is given becomes a part of the state, or an error before anything changes."""

    def _part_of(self, x: Any, weight: Tensor | None, group: Any) -> Part:
        """What a batch adds."""
        x = sparse_tensor(x)
        if isinstance(x, Tensor) and self._names is not None and self.features > 1:
            warnings.warn(
                f"update() got a tensor, which has no names: its columns are taken as {list(self._names)} by their "
                "position; give the table itself (frame.convert_dtypes() masks NaN), or to_arrow(x, names)",
                stacklevel=4,
            )
        x, columns, names = self._by_name(x, "update()")
        self._check(x, "update()")
        keys = None if group is None else self._keys_of(group, x, "update()")
        self._check_groups(keys is not None, weight is not None)
        pair = plain(x)
        if pair.data.is_complex():
            raise TypeError("statistics are of real numbers, got complex ones; update with torch.view_as_real(x)")
        if pair.data.layout is not torch.strided:
            if weight is not None or keys is not None or self._more_than_moments() or pair.data.dim() != 2:
                raise TypeError(
                    "update() of a sparse tensor takes a matrix, and gives no covariances, histograms, sketches, "
                    "groups or weighted statistics; use x.to_dense()"
                )
            moments = self._moments_of_sparse(pair, type(x) is Tensor)
            return Part(columns, names, moments, pair.data.shape[0] - moments.number)
        data, mask = self._rows(pair.data), self._rows(pair.mask)
        missed = len(mask) - masks.count(mask, 0).double() if keys is None else mask
        heavy = None if weight is None else plain(weight)
        each, single = None, None
        if heavy is not None:
            each, seen, single = self._weights(heavy, pair.data.shape)
            mask = mask & seen
            each = select(each, mask, 0)
            if each.is_cpu and not bool((each >= 0).all()):  # no device is waited for
                raise ValueError(f"weights must not be negative or NaN, got {each[~(each >= 0)][0].item():g}")
        data = data if data.is_floating_point() else data.double()
        if keys is not None:
            groups, at = keys.unique(return_inverse=True)
            moments = group_moments.moments_of_groups(data, mask, each, at, len(groups))
            missed = group_moments.missing_of_groups(missed, at, len(groups))
            return Part(columns, names, moments, missed, groups)
        moments = moments_of(data, mask, each)
        pairs = None if self.pairs is None else pair_moments_of(data, mask, single, moments.mean)
        bins = None if self.edges is None else histogram.bins_of(data, mask, each, self.edges)
        mine = self._sketch()
        kept = None if mine is None else sketch.add_rows(mine, data, mask)
        return Part(columns, names, moments, missed, None, pairs, bins, kept)

    def _part_of_state(self, other: StatisticsState) -> Part:
        """What a state adds that was made in the same way."""
        given = {name: buffer.to(self.moments.device) for name, buffer in other._state().items()}
        at = options.check_order(self.columns, given["columns"], self.edges, "merge()")
        keys, pairs, bins = given.get("keys"), given.get("pairs"), given.get("bins")
        if (keys is None) != (self.keys is None):
            if (other if keys is None else self)._used():
                raise ValueError("merge() takes groups of both or of none: update(x, group=keys) in both")
            if keys is None:  # it has seen nothing
                keys, given["moments"], given["missed"] = self.keys[:0], self.moments[:, :0], self.missed[:0]
        moments, missed = given["moments"], given["missed"]
        kept = None if self.waiting is None else sketch.Sketch(*(given[name] for name in sketch.PARTS))
        if at is not None:
            moments, missed, bins = moments[..., at], missed[..., at], None if bins is None else bins[at]
            pairs = None if pairs is None else pairs[:, at][:, :, at]
            kept = kept and sketch.Sketch(kept.waiting[at], kept.items[:, at], kept.counts[at], kept.halvings[at])
        mine = self._sketch()
        both = None if kept is None or mine is None else sketch.merge_sketches(mine, kept)
        columns = torch.where(self.columns.isnan(), given["columns"], self.columns)
        means = None if pairs is None else PairMoments(*pairs)
        return Part(columns, other._names, Moments(*moments), missed, keys, means, bins, both)

    def _more_than_moments(self) -> bool:
        return self.pairs is not None or self.edges is not None or self.waiting is not None

    def _check_groups(self, grouped: bool, weighted: bool) -> None:
        """Raises unless what is given goes with what was given before."""
        if grouped and self._more_than_moments():
            raise TypeError(
                "groups have moments alone: leave out cov, edges and sketch, or keep statistics for each group"
            )
        if weighted and self.waiting is not None:
            raise TypeError("a sketch takes no weights; give edges for quantiles of weighted data, without sketch")
        if grouped != (self.keys is not None) and (self.keys is not None or self._used()):
            raise ValueError(
                "other batches have groups: give update(x, group=keys) for this one, too"
                if self.keys is not None
                else "other batches have no groups, so that this one can have none: use other statistics"
            )

    def _weights(self, weight: Pair, shape: torch.Size) -> tuple[Tensor, Tensor, Tensor | None]:
        """The weight of each entry, where it counts, and the weight of each row if covariances are kept."""
        if weight.data.is_complex():
            raise TypeError("a weight is a real number, got a complex one")
        try:
            wide = weight.data.expand(shape)
        except RuntimeError as reason:
            raise ValueError(
                f"weight must broadcast to the shape {tuple(shape)} of x, got {tuple(weight.data.shape)}"
            ) from reason
        each = self._rows(wide).double()
        seen = self._rows(weight.mask.expand(shape)) & (each != 0)
        if self.pairs is None:
            return each, seen, None
        if self.features > 1 and wide.stride(self.dim) != 0:
            raise ValueError(
                f"covariances need one weight for each row, of size 1 along dim {self.dim}, got "
                f"{tuple(weight.data.shape)}; leave out cov=True"
            )
        return each, seen, select(each[:, :1], seen.any(1, keepdim=True), 0)

    def _moments_of_sparse(self, pair: Pair, zeros: bool) -> Moments:
        device, rows = self.moments.device, pair.data.shape[0]
        moved = pair.data.to(device)
        column, values = stored_entries(moved if zeros else Pair(moved, pair.mask.to(device)), 1)
        stored = moments_of_entries(column, values.double(), self.features)
        return merge_moments([stored, zeros_of(rows - stored.number)]) if zeros else stored
