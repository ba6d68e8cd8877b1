"""The state of running statistics: buffers that are replaced all at once, or not at all."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..extend.data import has_nan_for_missing, read_table, set_buffers, sparse_tensor, wrap
from . import group_moments, histogram, options
from .moments import Moments, merge_moments, no_moments
from .pair_moments import PairMoments, merge_pairs
from .sketch import PARTS, Sketch, no_sketch

_STATE = ("moments", "missed", "keys", "pairs", "bins", "columns", *PARTS)  # what data change; the others are options
_WHOLE = ("keys", "counts", "halvings")  # are int64
_GROWS = ("moments", "missed", "keys", *PARTS)  # whose shape data change, too


class Part(NamedTuple):
    """What some data give: moments and the like, to be added to a state."""

    columns: Tensor
    names: tuple[str, ...] | None
    moments: Moments  # (F,), or (G, F) with groups
    missed: Tensor  # the same
    keys: Tensor | None = None  # (G,), rising
    pairs: PairMoments | None = None
    bins: Tensor | None = None
    sketch: Sketch | None = None  # that of all data, not of these alone


class StatisticsState(nn.Module):
    """What is kept of data in columns, how it grows, and how it is loaded; what it means is not known here."""

    moments: Tensor  # (6, F), the fields of Moments; (6, G, F) with groups
    missed: Tensor  # (F,) or (G, F), how many entries were masked
    keys: Any  # (G,), int64, of groups; None without
    pairs: Any  # (5, F, F), the fields of PairMoments, or None without cov=
    edges: Any  # (F, n), or None without edges=
    bins: Any  # (F, n + 1), or None
    columns: Tensor  # (F,), the names as numbers, NaN where they are not known
    correction: Tensor
    waiting: Any  # the fields of Sketch, or None without sketch=
    _names: tuple[str, ...] | None = None
    _begun = False  # something was seen: then the device is not asked again
    each_rank_its_own = True  #: DistributedDataParallel leaves the buffers alone

    def __init__(
        self,
        features: int,
        chosen: tuple[str, ...] | None,
        dim: int,
        cov: bool,
        edges: Tensor | None,
        correction: float,
        sketch: int,
    ) -> None:
        super().__init__()
        if not 0 <= correction < torch.inf:
            raise ValueError(f"correction must be a number, at least 0, got {correction}")
        self.dim, self.features, self._chosen = dim, features, chosen
        edges = None if edges is None else histogram.checked_edges(edges, features)
        self.register_buffer("moments", torch.zeros(6, features, dtype=torch.float64))
        self.register_buffer("missed", torch.zeros(features, dtype=torch.float64))
        self.register_buffer("keys", None)
        self.register_buffer("pairs", torch.zeros(5, features, features, dtype=torch.float64) if cov else None)
        self.register_buffer("edges", edges)
        bins = None if edges is None else torch.zeros(features, edges.shape[1] + 1, dtype=torch.float64)
        self.register_buffer("bins", bins)
        self.register_buffer("columns", torch.zeros(features, dtype=torch.float64))
        self.register_buffer("correction", torch.tensor(float(correction), dtype=torch.float64))
        empty = buffers_of(no_sketch(features, sketch)) if sketch else dict.fromkeys(PARTS)
        for name, buffer in empty.items():
            self.register_buffer(name, buffer)

    def _clear(self) -> None:
        """As it was made."""
        device = self.moments.device
        state: dict[str, Tensor | None] = {name: torch.zeros_like(x) for name, x in self._state().items()}
        state["moments"] = torch.stack(no_moments(self.features, device))
        state["missed"] = torch.zeros(self.features, dtype=torch.float64, device=device)
        if self.waiting is not None:
            state |= buffers_of(no_sketch(self.features, self._size(), device))
        names = self._chosen
        state["columns"] = (
            torch.full_like(self.columns, torch.nan) if names is None else options.columns_of(names, device)
        )
        set_buffers(self, {**state, "keys": None})
        self._names, self._begun = self._chosen, False

    def _by_name(self, x: Any, taker: str) -> tuple[Tensor, Tensor, tuple[str, ...] | None]:
        """``x`` as a tensor, a table's columns in the order of the first one; and the names of the columns."""
        x = sparse_tensor(x)
        if isinstance(x, Tensor):
            return x, self.columns, self._names

        def choose(names: Sequence[str]) -> list[int] | None:
            return None if self._chosen is None else options.choose(self._chosen, names, taker)

        pair, names = read_table(x, torch.float64, choose)
        if has_nan_for_missing(x, pair):
            warnings.warn(
                f"NaN in a {type(x).__name__} of floats is a valid value; frame.convert_dtypes() masks it",
                stacklevel=5,
            )
        table: Tensor = wrap(pair)
        if not names:
            return table, self.columns, self._names
        table = table.movedim(-1, self.dim)
        self._check(table, taker)
        given = options.columns_of(names, self.columns.device)
        at = options.places_of(self.columns, given, taker, names)
        if at is None:
            return table, given, tuple(names)
        return table.index_select(self.dim, at.to(table.device)), self.columns, self._names

    def _check(self, x: Tensor, taker: str) -> None:
        if not -x.dim() <= self.dim < x.dim() or x.shape[self.dim] != self.features:
            raise ValueError(f"{taker} takes {self.features} columns along dim {self.dim}, got {tuple(x.shape)}")

    def _rows(self, x: Tensor) -> Tensor:
        return x.to(self.moments.device).movedim(self.dim, -1).reshape(-1, self.features)

    def _keys_of(self, group: Any, x: Tensor, taker: str) -> Tensor:
        """The key of each row of ``x``, int64 ``(N,)``."""
        shape = x.movedim(self.dim, -1).shape[:-1]
        return options.keys_of(group, shape, taker).to(self.moments.device).flatten()

    def _add(self, part: Part) -> None:
        """The one place where data change the state: all of it or, after an exception, nothing."""
        mine, given, keys = self._aligned(part)
        state = {
            "columns": part.columns,
            "moments": torch.stack(merge_moments([Moments(*mine[0]), Moments(*given[0])])),
            "missed": mine[1] + given[1],
        }
        if keys is not None:
            state["keys"] = keys
        if part.pairs is not None:
            state["pairs"] = torch.stack(merge_pairs([PairMoments(*self.pairs), part.pairs]))
        if part.bins is not None:
            state["bins"] = self.bins + part.bins
        if part.sketch is not None:
            state |= buffers_of(part.sketch)
        begun = self._begun or bool((state["moments"][0] > 0).any())
        names = part.names if self._names is None else self._names
        set_buffers(self, state)
        self._begun, self._names = begun, names

    def _aligned(self, part: Part) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], Tensor | None]:
        """Moments and missing counts of this state and of a part, for the same groups; and which those are."""
        mine, given = (self.moments, self.missed), (torch.stack(part.moments), part.missed)
        if part.keys is None or (self.keys is not None and torch.equal(self.keys, part.keys)):
            return mine, given, part.keys
        keys = part.keys if self.keys is None else torch.cat([self.keys, part.keys]).unique()
        empty = (
            group_moments.empty_moments(len(keys), self.features, keys.device),
            given[1].new_zeros(len(keys), self.features),
        )

        def spread(values: tuple[Tensor, Tensor], own: Tensor) -> tuple[Tensor, Tensor]:
            at = torch.searchsorted(keys, own)
            return tuple(group_moments.put_groups(v, at, e) for v, e in zip(values, empty, strict=True))  # type: ignore[return-value]  # two

        return empty if self.keys is None else spread(mine, self.keys), spread(given, part.keys), keys

    def _used(self) -> bool:
        """Whether any entry was given, valid or not."""
        return bool((self._moments.number > 0).any() or (self.missed > 0).any())

    def _options(self) -> Tensor:
        return options.options_of(dict(self.named_buffers()))

    def _state(self) -> dict[str, Tensor]:
        return {name: buffer for name, buffer in self.named_buffers() if name in _STATE}

    def _sketch(self) -> Sketch | None:
        return None if self.waiting is None else Sketch(*(getattr(self, name) for name in PARTS))

    def _size(self) -> int:
        return 0 if self.waiting is None else int(self.waiting.shape[-1] // 4)

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
        fresh: dict[str, Any] = {name: buffer.clone() for name, buffer in own.items()} | {"keys": None}
        for name in _GROWS:
            if name in given:
                kind = torch.int64 if name in _WHOLE else torch.float64
                fresh[name] = torch.zeros(given[name].shape, dtype=kind, device=self.moments.device)
        try:
            set_buffers(self, fresh)  # within: an interrupt right after it is taken back, too
            super()._load_from_state_dict(state, prefix, local, strict, missing, other, wrong)
            whole = len(missing) + len(other) + len(wrong) == found
        finally:
            if whole:
                self._begun = False
            else:
                set_buffers(self, {"keys": None, **own})

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "StatisticsState":
        """Moves between devices; float64 stays float64."""
        for name, buffer in list(self.named_buffers(recurse=False)):
            device = fn(buffer.new_empty(0, dtype=torch.float32)).device
            self.register_buffer(name, buffer if device.type == "mps" else buffer.to(device))
        return self


def buffers_of(sketch: Sketch) -> dict[str, Tensor]:
    """The parts of a sketch by name."""
    return {name: getattr(sketch, name) for name in PARTS}
