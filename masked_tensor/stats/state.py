"""The state of running statistics, which is never written into: adding to it, or merging it, makes a new one."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from . import histogram, options
from .moments import by_group
from .moments.columns import Moments, merge_moments, no_moments
from .moments.pairs import PairMoments, merge_pairs
from .sketch import PARTS, Sketch, no_sketch


@dataclass(frozen=True, eq=False)
class State:
    """What was asked for, and what data have given since."""

    features: int
    chosen: tuple[str, ...] | None  #: the names that were asked for
    dim: int
    edges: Tensor | None  #: (F, n)
    correction: Tensor
    columns: Tensor  #: (F,), the names as numbers, NaN where they are not known
    names: tuple[str, ...] | None
    moments: Moments  #: of (F,), or (G, F) with groups
    missed: Tensor  #: the same, how many entries were masked
    keys: Tensor | None  #: (G,), int64, rising, of groups
    pairs: PairMoments | None  #: of (F, F), if covariances are kept
    bins: Tensor | None  #: (F, n + 1)
    sketch: Sketch | None

    @property
    def size(self) -> int:
        """That of the sketch, 0 without one."""
        return 0 if self.sketch is None else int(self.sketch.waiting.shape[-1] // 4)

    @property
    def has_more_than_moments(self) -> bool:
        return self.pairs is not None or self.edges is not None or self.sketch is not None

    def is_used(self) -> bool:
        """Whether any entry was given, valid or not."""
        return self.has_valid() or bool((self.missed > 0).any())

    def has_valid(self) -> bool:
        return bool((self.moments.number > 0).any())

    def tensors(self) -> dict[str, Tensor | None]:
        """All tensors by the names that they have in a state dict."""
        parts = dict.fromkeys(PARTS) if self.sketch is None else {name: getattr(self.sketch, name) for name in PARTS}
        return {
            "moments": torch.stack(self.moments),
            "missed": self.missed,
            "keys": self.keys,
            "pairs": None if self.pairs is None else torch.stack(self.pairs),
            "edges": self.edges,
            "bins": self.bins,
            "columns": self.columns,
            "correction": self.correction,
            **parts,
        }


class Part(NamedTuple):
    """What some data give, to be added to a state."""

    columns: Tensor
    names: tuple[str, ...] | None
    moments: Moments
    missed: Tensor
    keys: Tensor | None = None
    pairs: PairMoments | None = None
    bins: Tensor | None = None
    sketch: Sketch | None = None  # that of all data, not of these alone


def empty_state(
    features: int,
    chosen: tuple[str, ...] | None,
    dim: int,
    cov: bool,
    edges: Tensor | None,
    correction: float,
    size: int,
) -> State:
    """The state before any data."""
    if not 0 <= correction < torch.inf:
        raise ValueError(f"correction must be a number, at least 0, got {correction}")
    edges = None if edges is None else histogram.checked_edges(edges, features)
    kept = torch.tensor(float(correction), dtype=torch.float64)
    return _empty(features, chosen, dim, edges, kept, cov, size, torch.device("cpu"))


def cleared(state: State) -> State:
    """The state as it was made."""
    cov, device = state.pairs is not None, state.missed.device
    options_ = state.features, state.chosen, state.dim, state.edges, state.correction
    return _empty(*options_, cov, state.size, device)


def _empty(
    features: int, chosen: tuple[str, ...] | None, dim: int, edges: Tensor | None, correction: Tensor, cov: bool,
    size: int, device: torch.device,
) -> State:  # fmt: skip
    def zeros(*shape: int) -> Tensor:
        return torch.zeros(*shape, dtype=torch.float64, device=device)

    return State(
        features, chosen, dim, edges, correction,
        columns=zeros(features).fill_(torch.nan) if chosen is None else options.columns_of(chosen, device),
        names=chosen,
        moments=no_moments(features, device),
        missed=zeros(features),
        keys=None,
        pairs=PairMoments(*zeros(5, features, features)) if cov else None,
        bins=None if edges is None else zeros(features, edges.shape[1] + 1),
        sketch=no_sketch(features, size, device) if size else None,
    )  # fmt: skip


def add(state: State, part: Part) -> State:
    """The state with these data added."""
    (mine, missed), (given, more), keys = _aligned(state, part)
    return replace(
        state,
        columns=part.columns,
        names=part.names if state.names is None else state.names,
        moments=merge_moments([mine, given]),
        missed=missed + more,
        keys=keys,
        pairs=None if state.pairs is None or part.pairs is None else merge_pairs([state.pairs, part.pairs]),
        bins=None if state.bins is None or part.bins is None else state.bins + part.bins,
        sketch=part.sketch,
    )


Counted = tuple[Moments, Tensor]  # moments, and how many entries were missing


def _aligned(state: State, part: Part) -> tuple[Counted, Counted, Tensor | None]:
    """Moments and missing counts of this state and of a part, for the same groups; and which those are."""
    mine, given = (state.moments, state.missed), (part.moments, part.missed)
    if part.keys is None or (state.keys is not None and torch.equal(state.keys, part.keys)):
        return mine, given, part.keys
    keys = part.keys if state.keys is None else torch.cat([state.keys, part.keys]).unique()
    none = by_group.empty_moments(len(keys), state.features, keys.device)
    zeros = part.missed.new_zeros(len(keys), state.features)

    def spread(moments: Moments, missed: Tensor, own: Tensor) -> Counted:
        at = torch.searchsorted(keys, own)
        wide = by_group.put_groups(torch.stack(moments), at, none)
        return Moments(*wide), by_group.put_groups(missed, at, zeros)

    return (Moments(*none), zeros) if state.keys is None else spread(*mine, state.keys), spread(*given, part.keys), keys
