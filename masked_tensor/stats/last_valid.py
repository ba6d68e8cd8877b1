"""A forward fill across batches: the last valid value of each column, for each key."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, cast

import torch
from torch import Tensor

from ..extend import Pair, Payload, select
from ..extend.arguments import expect_int, names_arguments
from ..extend.data import ArrowTable, plain, read_table, wrap
from . import options, travel
from .moments import by_group

_TYPES = {
    "version": "bigint",
    "part": "double",
    "features": "bigint",
    "names": "array<string>",
    "limit": "bigint",
    "keys": "array<bigint>",
    "rows": "array<bigint>",
    "values": "array<double>",
    "since": "array<bigint>",
}


class LastValid:
    """A forward fill across batches, which carries the last valid value of each column to the next batch.

    ``last.update(x)`` adds a batch, whose rows follow all earlier ones, and ``last(x)`` returns a batch filled: each
    masked entry gets the last valid value before it in the batch, otherwise the carried one, and stays masked if there
    is none. For any split into batches this equals ``pandas.DataFrame.groupby(key).ffill()`` of all rows at once. The
    call changes nothing; pass :meth:`update` the batch as it was, not filled.

    If different workers hold the parts, fill in two passes: each worker sends :meth:`to_arrow` of its part, one row,
    and :meth:`before` returns what precedes each part.

    Args:
        columns (list of str or int): The names of the columns to use from a table, or the number of columns of tensors
            ``(N, F)``.
        limit (int, optional): The largest number of rows of a key that a value is carried. Default: no limit.

    Raises:
        TypeError: ``columns`` is neither an integer nor a list of names.
        TypeError: ``limit`` is not an integer.
        ValueError: There is no column, or a name occurs twice.
        ValueError: ``limit`` is below 1.

    Example:
        >>> last = mt.LastValid(1)
        >>> for batch in ([[1.0], [None]], [[None], [4.0]]):
        ...     x = mt.masked_tensor(batch)
        ...     print(last(x).tolist())
        ...     _ = last.update(x)
        [[1.0], [1.0]]
        [[1.0], [4.0]]

    References:
        ``pandas.core.groupby.DataFrameGroupBy.ffill``.
    """

    #: The columns of what :meth:`to_arrow` gives, as Spark writes a schema.
    SCHEMA = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())

    @names_arguments
    def __init__(self, columns: Sequence[str] | int, *, limit: int | None = None) -> None:
        number = index(columns) if hasattr(columns, "__index__") else None
        if number is None and not isinstance(columns, Sequence):
            raise TypeError(f"columns must be a list of names, or their number, got {type(columns).__name__}")
        self._names = None if number is not None else tuple(cast("Sequence[str]", columns))
        self.features = len(self._names) if self._names is not None else cast("int", number)
        if isinstance(columns, str) or self.features < 1 or len(set(self._names or ())) < len(self._names or ()):
            raise ValueError(f"columns must be a list of different names, or their number, got {columns!r}")
        self.limit = None if limit is None else expect_int("limit", limit, 1)
        none = torch.zeros(0, self.features, dtype=torch.int64)
        self._keys, self._rows, self._last, self._since = none[:, 0], none[:, 0], none.double(), none

    def update(self, x: Any, *, group: Any = None) -> "LastValid":
        """Add a batch, whose rows follow all earlier ones, and return the object.

        Args:
            x (Tensor or table): ``(N, F)``, masked or plain, any real dtype, or anything that :func:`masked_tensor`
                accepts; stored as float64. Columns of a table are matched by name.
            group (Tensor or str, optional): The key of each row: ``(N,)`` nonnegative integers, or the name of the
                table column that holds them. Values are not carried from one key to another.

        Returns:
            LastValid: The object itself.

        Raises:
            ValueError: ``x`` has other columns.
            ValueError: There is not one key for each row, or a key is masked or negative.
            TypeError: ``x`` is complex or sparse.

        Example:
            >>> last = mt.LastValid(["pulse"])
            >>> x = torch.tensor([[60.0], [80.0]])
            >>> last.update(x, group=[7, 3])(mt.masked_tensor([[None], [None]]), group=[3, 7]).tolist()
            [[80.0], [60.0]]
        """
        pair, keys = self._read(x, group, "update()")
        self._take(self._of(pair, keys))
        return self

    def __call__(self, x: Any, *, group: Any = None) -> Tensor:
        """The batch, filled from earlier rows and batches; the object does not change.

        Args:
            x (Tensor or table): As in :meth:`update`.
            group (Tensor or str, optional): As in :meth:`update`.

        Returns:
            MaskedTensor: ``(N, F)``, with the columns in the order of ``columns``, in the dtype of ``x``, or float64
            for a table. It has no gradient.

        Raises:
            ValueError, TypeError: As :meth:`update` does.

        Example:
            >>> mt.LastValid(1)(mt.masked_tensor([[None], [2.0], [None]])).tolist()
            [[None], [2.0], [2.0]]
        """
        pair, keys = self._read(x, group, "last(x)")
        order, begin = _sorted(keys)
        data, mask = pair.data[order], pair.mask[order]
        found, place = mask.contiguous().view(torch.uint8).cummax(0)  # 1 from the first valid one on
        inside, step = found.view(torch.bool) & (place >= begin.unsqueeze(1)), torch.arange(len(data)).unsqueeze(1)
        at, there = by_group.rows_of_groups(self._keys, keys[order])
        carried, since = self._at(at, there)
        away = torch.where(inside, step - place, step - begin.unsqueeze(1) + 1 + since)
        known = inside | (since >= 0)
        known = known if self.limit is None else known & (away <= self.limit)
        values = torch.where(inside, data.gather(0, place), carried.to(data.dtype))
        values, known = (torch.empty_like(part).index_copy_(0, order, part) for part in (values, known))
        filled: Tensor = wrap(Pair(select(values, known, 0), known, Payload.ZERO))
        return filled.to(x.device) if isinstance(x, Tensor) else filled

    @names_arguments
    def merge(self, later: "LastValid") -> "LastValid":
        """Add the data of ``later``, which follow all data of this object, and return the object.

        Args:
            later (LastValid): An object with the same columns and limit.

        Returns:
            LastValid: The object itself.

        Raises:
            ValueError: ``later`` has other columns, or another limit.

        Example:
            >>> rows = mt.masked_tensor([[1, 2]]), mt.masked_tensor([[3, None]])
            >>> first, second = (mt.LastValid(2).update(row) for row in rows)
            >>> first.merge(second)(mt.masked_tensor([[None, None]])).tolist()
            [[3.0, 2.0]]
        """
        if (self._names, self.features, self.limit) != (later._names, later.features, later.limit):
            raise ValueError(
                f"merge() needs the same columns and limit, got {later._names or later.features}, limit={later.limit} "
                f"beside {self._names or self.features}, limit={self.limit}"
            )
        self._take((later._keys, later._rows, later._last, later._since))
        return self

    def to_arrow(self, part: float = 0) -> ArrowTable:
        """The state as a table with one row, which any engine can transport; :meth:`from_arrow` reads it back.

        :meth:`before` reads the rows of several parts.

        Args:
            part (float, optional): A number that increases in the order of the parts: an index, or the time of the
                first row. Default: 0.

        Returns:
            ArrowTable: A table with one row, for ``pyarrow.table``, ``polars.DataFrame`` and so on.

        Example:
            >>> len(mt.LastValid(["pulse"]).to_arrow(part=3))
            1
        """
        buffers = {"keys": self._keys, "rows": self._rows, "values": self._last, "since": self._since}
        return travel.to_arrow(
            {
                "version": travel.VERSION,
                "part": float(part),
                "features": self.features,
                "names": self._names,
                "limit": 0 if self.limit is None else self.limit,
                **{name: buffer.flatten() for name, buffer in buffers.items()},
            },
            _TYPES,
        )

    @staticmethod
    def from_arrow(rows: Any) -> "LastValid":
        """The state of all parts together, in the order of their numbers.

        Args:
            rows (table): Results of :meth:`to_arrow` for one or more parts, as a table of pyarrow, polars, pandas or
                another library with Arrow support.

        Returns:
            LastValid: An object with their settings.

        Raises:
            ValueError: There is no row, or two parts have the same number.
            ValueError: A row is damaged, or the parts have different settings.
            TypeError: ``rows`` is not such a table.

        Example:
            >>> last = mt.LastValid(1).update(torch.tensor([[5.0]]))
            >>> mt.LastValid.from_arrow(last.to_arrow())(mt.masked_tensor([[None]])).tolist()
            [[5.0]]
        """
        parts = _parts(rows)
        whole = parts[min(parts)]
        for number in sorted(parts)[1:]:
            whole.merge(parts[number])
        return whole

    @staticmethod
    def before(rows: Any) -> "dict[float, LastValid]":
        """For each part, by number, the state of all parts before it.

        Args:
            rows (table): Results of :meth:`to_arrow` for all parts.

        Returns:
            dict: For the number of each part, a LastValid that fills it.

        Raises:
            ValueError, TypeError: As :meth:`from_arrow` does.

        Example:
            >>> last = mt.LastValid(1).update(torch.tensor([[5.0]]))
            >>> before = mt.LastValid.before(last.to_arrow(part=0))
            >>> before[0](mt.masked_tensor([[None]])).tolist()  # nothing comes before the first
            [[None]]
        """
        parts = _parts(rows)
        numbers = sorted(parts)
        total, found = parts[numbers[0]]._empty(), {}
        for number in numbers:
            found[number] = total._empty().merge(total)
            total.merge(parts[number])
        return found

    # ----------------------------------------------------------------------------------------------------------- within

    def _empty(self) -> "LastValid":
        return LastValid(self.features if self._names is None else self._names, limit=self.limit)

    def _read(self, x: Any, group: Any, taker: str) -> tuple[Pair, Tensor]:
        """The columns as a pair on the CPU, and the key of each row."""
        group = x[group] if isinstance(group, str) else group

        def choose(names: Sequence[str]) -> list[int] | None:
            return None if self._names is None else options.choose(self._names, names, taker)

        if isinstance(x, Tensor):
            pair = plain(x)
        else:
            pair, _ = read_table(x, torch.float64, choose)
        if pair.data.dim() != 2 or pair.data.shape[1] != self.features:
            raise ValueError(f"{taker} expects rows of {self.features} columns, got {tuple(pair.data.shape)}")
        if pair.data.is_complex() or pair.data.layout is not torch.strided:
            raise TypeError(
                f"{taker} expects strided real numbers, got {pair.data.layout} {pair.data.dtype}; use x.to_dense() "
                "or torch.view_as_real(x)"
            )
        pair = Pair(pair.data.cpu(), pair.mask.cpu())
        if group is None:
            return pair, torch.zeros(len(pair.data), dtype=torch.int64)
        return pair, options.keys_of(group, pair.data.shape[:1], taker).cpu()

    def _of(self, pair: Pair, keys: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The state of one batch."""
        groups, at = keys.unique(return_inverse=True)
        order, begin = _sorted(keys)
        place = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order)) - begin)  # among its key's rows
        rows = torch.bincount(at, minlength=len(groups))
        step = torch.where(pair.mask, torch.arange(len(order)).unsqueeze(1), -1)
        last = torch.full((len(groups), self.features), -1).scatter_reduce(
            0, at.unsqueeze(1).expand(step.shape), step, "amax"
        )
        since = torch.where(last >= 0, rows.unsqueeze(1) - 1 - _take_rows(place.unsqueeze(1), last), -1)
        values = _take_rows(pair.data.double(), last)
        return groups, rows, torch.where(last >= 0, values, 0), since

    def _take(self, later: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
        """Adds a state that comes after this one: all of it or, after an exception, nothing."""
        keys, rows, values, since = later
        groups = torch.cat([self._keys, keys]).unique()
        mine, given = (by_group.rows_of_groups(own, groups) for own in (self._keys, keys))
        old, age = self._at(*mine)
        new, young = _spread(values, since, *given)
        added = _take_rows(rows.unsqueeze(1), given[0].unsqueeze(1)) * given[1].unsqueeze(1)
        before = _take_rows(self._rows.unsqueeze(1), mine[0].unsqueeze(1)) * mine[1].unsqueeze(1)
        known = young >= 0
        age = torch.where(age >= 0, age + added, -1)
        self._keys, self._rows = groups, (before + added).squeeze(1)
        self._last, self._since = torch.where(known, new, old), torch.where(known, young, age)

    def _at(self, at: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        return _spread(self._last, self._since, at, there)

    def __repr__(self) -> str:
        names = self.features if self._names is None else list(self._names)
        limit = "" if self.limit is None else f", limit={self.limit}"
        return f"LastValid({names}{limit}): {len(self._keys)} keys, {int(self._rows.sum())} rows"


def _sorted(keys: Tensor) -> tuple[Tensor, Tensor]:
    """The rows by key, each key's in their order; and where the rows of the same key begin."""
    sorted_keys, order = keys.sort(stable=True)
    return order, torch.searchsorted(sorted_keys, sorted_keys)


def _take_rows(x: Tensor, place: Tensor) -> Tensor:
    """``x[place[i, j], j]``, anything where the place is none."""
    if not len(x):
        return x.new_zeros(place.shape)
    return x.expand(-1, place.shape[1]).gather(0, place.clamp_min(0))


def _spread(values: Tensor, since: Tensor, at: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """A state's values, and how long ago they were, for other keys; -1 where nothing was seen."""
    if not len(values):
        shape = (len(at), values.shape[1])
        return values.new_zeros(shape), since.new_full(shape, -1)
    return values[at], torch.where(there.unsqueeze(1), since[at], -1)


def _parts(rows: Any) -> dict[float, LastValid]:
    """The state of each part by its number."""
    found: dict[float, LastValid] = {}
    for row in travel.rows_of(rows):
        lacking = sorted(_TYPES.keys() - row.keys())
        if lacking or row["version"] != travel.VERSION:
            raise ValueError(
                f"LastValid reads what its to_arrow() of this version gave (version {travel.VERSION}), got "
                + (f"a table without {', '.join(lacking)}" if lacking else f"version {row['version']}")
            )
        if row["part"] in found:
            raise ValueError(f"two parts have the number {row['part']}: to_arrow(part=index), rising in their order")
        found[row["part"]] = _from_row(row)
    if not found:
        raise ValueError("from_arrow() needs at least one row, got none")
    return found


def _from_row(row: Mapping[str, Any]) -> LastValid:
    state = LastValid(row["names"] or int(row["features"]), limit=int(row["limit"]) or None)
    keys, rows, values, since = (row[name] for name in ("keys", "rows", "values", "since"))
    try:
        shape = (len(keys), state.features)
        state._keys, state._rows = keys.to(torch.int64, copy=True), rows.to(torch.int64, copy=True)
        state._last = values.to(torch.float64, copy=True).view(shape)
        state._since = since.to(torch.int64, copy=True).view(shape)
    except (RuntimeError, TypeError, AttributeError) as reason:
        raise ValueError(f"the row is not whole, or was changed: {reason}") from reason
    if len(rows) != len(keys) or bool((keys.diff() <= 0).any()) or bool((state._since < -1).any()):
        raise ValueError("the row is not whole, or was changed: its keys do not rise")
    return state
