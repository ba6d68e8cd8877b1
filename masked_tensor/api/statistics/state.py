"""The state of running statistics: buffers that are replaced all at once, or not at all."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ... import compat
from ...engine.boundary.enter_leave import leave
from ...shared import histogram
from ...shared.moments import Moments, merge_moments
from ...shared.pair_moments import PairMoments, merge_pairs
from ..containers import accepted_inputs, kinds
from . import options

_STATE = ("moments", "pairs", "bins", "columns")  # what data change; the others are options


class StatisticsState(nn.Module):
    """What is kept of data in columns, how it grows, and how it is loaded; what it means is not known here."""

    moments: Tensor  # (6, F), the fields of Moments
    pairs: Any  # (5, F, F), the fields of PairMoments, or None without cov=
    edges: Any  # (F, n), or None without edges=
    bins: Any  # (F, n + 1), or None
    columns: Tensor  # (F,), the names as numbers, NaN where they are not known
    correction: Tensor
    _begun = False  # something was seen: then the device is not asked again

    def __init__(self, features: int, dim: int, cov: bool, edges: Tensor | None, correction: float) -> None:
        super().__init__()
        if not 0 <= correction < torch.inf:
            raise ValueError(f"correction must be a number, at least 0, got {correction}")
        self.dim, self.features = dim, features
        edges = None if edges is None else histogram.checked_edges(edges, features)
        self.register_buffer("moments", torch.zeros(6, features, dtype=torch.float64))
        self.register_buffer("pairs", torch.zeros(5, features, features, dtype=torch.float64) if cov else None)
        self.register_buffer("edges", edges)
        bins = None if edges is None else torch.zeros(features, edges.shape[1] + 1, dtype=torch.float64)
        self.register_buffer("bins", bins)
        self.register_buffer("columns", torch.zeros(features, dtype=torch.float64))
        self.register_buffer("correction", torch.tensor(float(correction), dtype=torch.float64))

    def _by_name(self, x: Any, taker: str) -> tuple[Tensor, Tensor]:
        """``x`` as a tensor, a table's columns in the order of the first one; and the names of the columns."""
        if isinstance(x, Tensor):
            return x, self.columns
        pair, names = kinds.table(x, accepted_inputs.pair_of_input, torch.float64)
        table: Tensor = leave(pair)
        if not names:
            return table, self.columns
        table = table.movedim(-1, self.dim)
        self._check(table, taker)
        given = options.columns_of(names, self.columns.device)
        at = options.places_of(self.columns, given, taker, names)
        return (table, given) if at is None else (table.index_select(self.dim, at.to(table.device)), self.columns)

    def _check(self, x: Tensor, taker: str) -> None:
        if not -x.dim() <= self.dim < x.dim() or x.shape[self.dim] != self.features:
            raise ValueError(f"{taker} takes {self.features} columns along dim {self.dim}, got {tuple(x.shape)}")

    def _rows(self, x: Tensor) -> Tensor:
        return x.to(self.moments.device).movedim(self.dim, -1).reshape(-1, self.features)

    def _add(
        self, columns: Tensor, moments: Moments, pairs: PairMoments | None = None, bins: Tensor | None = None
    ) -> None:
        """The one place where data change the state: all of it or, after an exception, nothing."""
        state = {"columns": columns, "moments": torch.stack(merge_moments([self._moments, moments]))}
        if pairs is not None:
            state["pairs"] = torch.stack(merge_pairs([PairMoments(*self.pairs), pairs]))
        if bins is not None:
            state["bins"] = self.bins + bins
        begun = self._begun or bool((state["moments"][0] > 0).any())
        compat.set_buffers(self, state)
        self._begun = begun

    def _options(self) -> Tensor:
        return options.options_of(dict(self.named_buffers()))

    def _state(self) -> dict[str, Tensor]:
        return {name: buffer for name, buffer in self.named_buffers() if name in _STATE}

    @property
    def _moments(self) -> Moments:
        return Moments(*self.moments)

    def _load_from_state_dict(
        self, state: Any, prefix: str, local: Any, strict: bool, missing: list[str], other: list[str], wrong: list[str]
    ) -> None:
        """Loads all or nothing: what differs is refused before, and what was loaded in part is taken back."""
        own = dict(self.named_buffers(recurse=False))
        given = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        reason = options.why_refused(own, given)
        if reason:
            wrong.append(reason)
            return
        found, whole = len(missing) + len(other) + len(wrong), False
        compat.set_buffers(self, {name: buffer.clone() for name, buffer in own.items()})
        try:
            super()._load_from_state_dict(state, prefix, local, strict, missing, other, wrong)
            whole = len(missing) + len(other) + len(wrong) == found
        finally:
            if whole:
                self._begun = False
            else:
                compat.set_buffers(self, own)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "StatisticsState":
        """Moves between devices; float64 stays float64."""
        for name, buffer in list(self.named_buffers(recurse=False)):
            device = fn(buffer.new_empty(0, dtype=torch.float32)).device
            self.register_buffer(name, buffer if device.type == "mps" else buffer.to(device))
        return self
