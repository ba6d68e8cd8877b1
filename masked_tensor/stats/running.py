"""Statistics of batched data, which merge over batches, workers, ranks and restarts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..extend.arguments import names_arguments
from ..extend.data import ArrowTable, set_buffers
from ..extend.ranks import resolve_group
from . import adding, loading, options, reading, sketch, summary, travel
from .columns import by_name, check_columns
from .moments.columns import Moments
from .moments.pairs import PairMoments
from .state import State, add, cleared, empty_state


class RunningStatistics(nn.Module):
    """Statistics of the columns of batched data, masked entries left out; calling it standardizes a batch.

    ``update(x)`` adds a batch, ``merge(other)`` another object, and ``all_reduce()`` all ranks. The result equals that
    of all data at once, however they are split. A valid NaN makes the statistics of its column NaN, as in torch; mask
    it first with :func:`masked_invalid`. A call that raises changes nothing.

    :attr:`count`, :attr:`mean`, :attr:`var`, :attr:`std`, :attr:`amin` and :attr:`amax` are properties, without
    parentheses; :meth:`cov`, :meth:`corr` and :meth:`quantile` are methods. With ``n`` valid entries in a column::

        std = sqrt(sum((x - mean) ** 2) / (n - correction))       # n - 1 by default
        stats(x) = (x - mean) / sqrt(sum((x - mean) ** 2) / n)    # as scikit-learn's StandardScaler; always n

    pandas and polars frames and Arrow tables are accepted directly, and their columns are matched by name. ``columns``
    selects some of them; by default the first table sets them, and later tables need the same columns in any order.
    Tensors have no names: their columns are matched by position, with a UserWarning if names are known;
    :func:`to_arrow` adds names. NaN in a float column of pandas is valid, with a UserWarning;
    ``frame.convert_dtypes()`` masks it and keeps the names.

    The state consists of buffers in float64, except counts, so ``state_dict``, ``torch.save``, distributed checkpoints
    and ``.to(device)`` work. ``.half()`` does not convert it, and DistributedDataParallel does not broadcast it. For a
    device without float64 (MPS), the state stays on the CPU and batches are moved there. With ``sketch`` or groups it
    grows; a distributed checkpoint needs fixed sizes, so save :meth:`to_arrow` there.

    Args:
        features (int, optional): The number of columns; optional with ``columns``.
        columns (list of str, optional): The names of the columns.
        dim (int, optional): The dimension of the columns in the data for ``update``. Default: -1.
        cov (bool, optional): Whether to keep covariances, which are ``features * features`` numbers. Default: False.
        edges (Tensor, optional): Rising edges of histograms, ``(n,)``, or ``(features, n)`` for different edges per
            column; any real dtype. Quantiles are read from the histograms.
        correction (float, optional): Subtracted from the count in the divisor of :attr:`var`, :attr:`std` and
            :meth:`cov`, as in :func:`torch.var`. Default: 1.
        sketch (bool or int, optional): Whether to keep quantiles without ``edges``, or the buffer size ``k`` for it;
            True is 2048. They are exact for up to 8,192 entries of a column; for ``n`` entries the rank error is about
            ``log2(n / k) / (2 * k)``, 0.2 % for a million, in ``8 * k * (4 + log2(n / k))`` bytes per column. Default:
            False.

    Raises:
        ValueError: Neither ``features`` nor ``columns`` is given, or they differ.
        ValueError: Two columns have the same name.
        ValueError: ``edges`` do not rise, or have another shape.
        ValueError: ``correction`` is negative.
        ValueError: ``sketch`` is 1 or negative.
        TypeError: ``features`` is not an integer.

    Example:
        >>> stats = mt.RunningStatistics(2)
        >>> for batch in ([[1.0, 10.0], [None, 30.0]], [[3.0, None]]):
        ...     _ = stats.update(mt.masked_tensor(batch))
        >>> stats.mean.tolist(), stats.var.tolist(), stats.count.tolist()
        ([2.0, 20.0], [2.0, 200.0], [2.0, 2.0])
        >>> stats(torch.tensor([[2.0, 30.0]]))
        tensor([[0., 1.]])

    References:
        Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """

    #: The columns of what :meth:`to_arrow` gives, as Spark writes a schema.
    SCHEMA = travel.SCHEMA
    each_rank_its_own = True  #: DistributedDataParallel leaves the buffers alone

    moments: Tensor
    missed: Tensor
    keys: Any  # a tensor, or None, as those below
    pairs: Any
    edges: Any
    bins: Any
    columns: Tensor
    correction: Tensor
    waiting: Any
    _names: tuple[str, ...] | None = None
    _begun = False  # a valid entry was seen: then the device is not asked again

    @names_arguments
    def __init__(
        self,
        features: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        dim: int = -1,
        cov: bool = False,
        edges: Tensor | None = None,
        correction: float = 1,
        sketch: bool | int = False,
    ) -> None:
        chosen = None if columns is None else tuple(columns)
        if features is None and chosen is None:
            raise ValueError("RunningStatistics needs the number of columns, or columns= with their names")
        if features is not None and not hasattr(features, "__index__"):
            raise TypeError(
                f"RunningStatistics expects the number of columns, got {features!r}; pass names as columns="
            )
        number = len(chosen or ()) if features is None else index(features)
        if chosen is not None and (len(chosen) != number or isinstance(columns, str)):
            raise ValueError(f"columns must be a list of {number} names, got {columns!r}")
        size = sketch if type(sketch) is int else 2048 * sketch
        if size < 0 or size == 1:
            raise ValueError(f"sketch must be True, False or a number from 2 on, got {sketch}")
        super().__init__()
        self.dim, self.features, self._chosen, self._names = dim, number, chosen, chosen
        for name, buffer in empty_state(number, chosen, dim, cov, edges, correction, size).tensors().items():
            self.register_buffer(name, buffer)

    @property
    def _state(self) -> State:
        """What is kept, as the pure functions of this room take it."""
        kept = None if self.waiting is None else sketch.Sketch(*(getattr(self, name) for name in sketch.PARTS))
        moments, pairs = Moments(*self.moments), None if self.pairs is None else PairMoments(*self.pairs)
        return State(
            self.features, self._chosen, self.dim, self.edges, self.correction, self.columns, self._names, moments,
            self.missed, self.keys, pairs, self.bins, kept,
        )  # fmt: skip

    def _keep(self, state: State, begun: bool) -> None:
        """The one place where data change the buffers: all of them or, after an exception, none."""
        set_buffers(self, state.tensors())
        self._begun, self._names = begun, state.names

    def _options(self) -> Tensor:
        return options.options_of(dict(self.named_buffers()))

    def _check_begun(self, taker: str) -> None:
        """Raises unless a valid entry was seen."""
        self._begun = self._begun or self._state.has_valid()
        if not self._begun:
            raise RuntimeError(f"{taker} was called before a valid entry was seen: call update(x) or merge() first")

    def reset(self) -> "RunningStatistics":
        """Forget all data, and return the object.

        Returns:
            RunningStatistics: The object itself, as it was created.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.ones(3, 1))
            >>> stats.reset().count.tolist()
            [0.0]
        """
        self._keep(cleared(self._state), False)
        return self

    @torch.no_grad()
    def update(self, x: Any, weight: Tensor | None = None, *, group: Any = None) -> "RunningStatistics":
        """Add a batch, and return the object.

        Args:
            x (Tensor): Masked or plain, any real dtype; strided of any shape, packed, or a sparse matrix, in which
                entries that are not stored are 0. Anything else that :func:`masked_tensor` accepts is read in float64,
                with table columns matched by name.
            weight (Tensor, optional): How often each entry counts: nonnegative, any real dtype, broadcastable to ``x``.
                Entries with weight 0 or a masked weight do not count; covariances require one weight per row.
            group (Tensor or str, optional): The key of each row: ``(N,)`` nonnegative integers in anything that
                :func:`masked_tensor` accepts, or the name of the table column that holds them. Each group has its own
                statistics, ``(groups, features)`` in the order of :attr:`groups`.

        Returns:
            RunningStatistics: The object itself.

        Raises:
            ValueError: ``x`` has another number of columns, or other names.
            ValueError: ``weight`` does not broadcast to ``x``.
            ValueError: A weight that counts is negative or NaN (not checked on a GPU).
            ValueError: There is not one key for each row, or a key is masked or negative.
            ValueError: Some batches have a ``group`` and others have none.
            TypeError: ``x`` is complex.
            TypeError: ``x`` is sparse, and weights, covariances, histograms or groups are used.
            TypeError: ``weight`` is given for a sketch.
            TypeError: ``group`` is given with ``cov``, ``edges`` or ``sketch``.

        Example:
            >>> values, weights = torch.tensor([[1.0], [4.0]]), torch.tensor([[2.0], [1.0]])
            >>> stats = mt.RunningStatistics(1).update(values, weights)
            >>> stats.mean.tolist()
            [2.0]
            >>> stats = mt.RunningStatistics(1).update(values, group=torch.tensor([7, 3]))
            >>> stats.groups.tolist(), stats.mean.tolist()
            ([3, 7], [[4.0], [1.0]])
        """
        group = x[group] if isinstance(group, str) else group
        state = self._state
        state = add(state, adding.part_of_batch(state, x, weight, group))
        self._keep(state, self._begun or state.has_valid())
        return self

    @torch.no_grad()
    @names_arguments
    def merge(self, other: "RunningStatistics") -> "RunningStatistics":
        """Add the data of ``other``, and return the object.

        Args:
            other (RunningStatistics): An object with the same columns, covariances, edges and correction.

        Returns:
            RunningStatistics: The object itself.

        Raises:
            ValueError: ``other`` has other settings, or other column names.

        Example:
            >>> a, b = (mt.RunningStatistics(1).update(torch.full((n, 1), float(n))) for n in (1, 3))
            >>> a.merge(b).mean.tolist()
            [2.5]
        """
        options.check_alike(self._options(), other._options(), "merge()")
        state = self._state
        state = add(state, adding.part_of_state(state, other._state))
        self._keep(state, self._begun or state.has_valid())
        return self

    @staticmethod
    @names_arguments
    def merge_all(states: "Iterable[RunningStatistics]") -> "RunningStatistics":
        """New statistics of all data that the given ones have seen; those do not change.

        They are added up in pairs, and pairs of pairs, so that of an iterator only about ``log2(n)`` are held at once.

        Args:
            states (iterable of RunningStatistics): At least one, made alike.

        Returns:
            RunningStatistics: As the first was made.

        Raises:
            TypeError: One of them is nothing of the kind.
            ValueError: There is none, or one was made in another way, or its columns have other names.

        Example:
            >>> parts = [mt.RunningStatistics(1).update(torch.full((n, 1), float(n))) for n in (1, 3)]
            >>> mt.RunningStatistics.merge_all(parts).mean.tolist()
            [2.5]
        """
        sums: list[tuple[int, RunningStatistics]] = []  # of how many states, and of each at most one of a size
        for state in states:
            if not isinstance(state, RunningStatistics):
                raise TypeError(f"merge_all() expects a list of RunningStatistics, got one with {type(state).__name__}")
            one, size = state._alike(state.edges).merge(state), 1
            while sums and sums[-1][0] == size:
                one, size = sums.pop()[1].merge(one), 2 * size
            sums.append((size, one))
        if not sums:
            raise ValueError("merge_all() needs at least one state, got none")
        whole = sums.pop()[1]
        while sums:
            whole = sums.pop()[1].merge(whole)
        return whole

    @torch.no_grad()
    def all_reduce(self, group: "dist.ProcessGroup | dist.device_mesh.DeviceMesh | None" = None) -> "RunningStatistics":
        """The statistics of all ranks, the same on each rank; this object does not change.

        Args:
            group (ProcessGroup, optional): The ranks, or a one-dimensional DeviceMesh. Default: the default group.

        Returns:
            RunningStatistics: A new object; without torch.distributed, a copy.

        Raises:
            ValueError: A rank has other settings or column names. It is raised on all ranks.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [2.0]]))
            >>> stats.all_reduce().mean.tolist()
            [1.5]
        """
        group = resolve_group(group)
        whole = self._alike(self.edges).merge(self)
        if group is None:
            return whole
        grouped = 1 if self.keys is not None else -int(self._state.is_used())
        options.check_ranks(self._options(), self.columns, self.edges, grouped, group)
        total: RunningStatistics = travel.add_ranks(whole, RunningStatistics, group)
        return total.to(self.moments.device)

    def _alike(self, edges: Tensor | None) -> "RunningStatistics":
        """A new one with the same options."""
        new = RunningStatistics(
            self.features,
            columns=self._chosen,
            dim=self.dim,
            cov=self.pairs is not None,
            edges=edges,
            correction=float(self.correction),
            sketch=self._state.size,
        )
        return new.to(self.moments.device)

    # -------------------------------------------------------------------------------------------------- how it travels

    def to_arrow(self) -> ArrowTable:
        """The state as a table with one row, which any engine can transport; :meth:`from_arrow` reads it back.

        Options are columns, and buffers are lists. All statistics have the same columns (:attr:`SCHEMA`), so the rows
        of many workers form one table. Reading it back unpickles nothing.

        Returns:
            ArrowTable: A table with one row, for ``pyarrow.table``, ``pyarrow.record_batch``, ``polars.DataFrame`` and
            so on.

        Example:
            >>> stats = mt.RunningStatistics(columns=["a"]).update(torch.tensor([[1.0], [3.0]]))
            >>> mt.RunningStatistics.from_arrow(stats.to_arrow())
            RunningStatistics(1)
               count  missing  mean    std  min  max
            a      2        0     2  1.414    1    3

        References:
            https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
        """
        return travel.to_arrow(travel.to_row(self._state))

    @staticmethod
    def from_arrow(rows: Any) -> "RunningStatistics":
        """The statistics of all rows together.

        Args:
            rows (table): Results of :meth:`to_arrow`, one or more, as a table of pyarrow, polars, pandas or another
                library with Arrow support.
            anything
                else that speaks Arrow.

        Returns:
            RunningStatistics: An object with their settings.

        Raises:
            ValueError: There is no row, or a row is damaged or of another version.
            ValueError: The rows have different settings.
            TypeError: ``rows`` is not such a table.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]]))
            >>> mt.RunningStatistics.from_arrow(stats.to_arrow()).mean.tolist()
            [2.0]
        """
        return RunningStatistics.merge_all(travel.from_row(row, RunningStatistics) for row in travel.rows_of(rows))

    def map_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """An iterator over one record batch: the state of statistics like these after all ``batches``.

        It is for engines that pass each worker its part of a table in batches, such as
        ``frame.mapInArrow(stats.map_batches, stats.SCHEMA)`` in Spark. This object does not change.

        Args:
            batches (iterable): Tables, as :meth:`update` accepts them.

        Returns:
            iterator: One ``pyarrow.RecordBatch``, for :meth:`from_arrow`.

        Raises:
            ImportError: pyarrow is not installed.
            ValueError: As :meth:`update` does.

        Example:
            >>> stats = mt.RunningStatistics(columns=["a"])
            >>> stats.map_batches([])  # doctest: +ELLIPSIS
            <generator object ...>
        """
        part = self._alike(self.edges)
        for batch in batches:
            part.update(batch)
        yield summary.library("pyarrow").record_batch(part.to_arrow())

    def to_pandas(self) -> Any:
        """The statistics of each column as a ``pandas.DataFrame``, as they are printed.

        Returns:
            pandas.DataFrame: A row for each column, or for each group and column, with ``count``, ``missing``,
            ``mean``, ``std``, ``min`` and ``max``, and quartiles if quantiles are kept; NaN where a statistic is
            masked.

        Raises:
            ImportError: pandas is not installed.

        Example:
            >>> stats = mt.RunningStatistics(columns=["a"]).update(torch.tensor([[1.0], [3.0]]))
            >>> stats.to_pandas().loc["a", "mean"]  # doctest: +SKIP
            2.0
        """
        return summary.frame_of(self)

    def summary(self) -> ArrowTable:
        """The statistics of each column as an Arrow table, with the rows of :meth:`to_pandas`.

        Returns:
            ArrowTable: A table for ``pyarrow.table``, ``polars.DataFrame`` and so on.

        Example:
            >>> len(mt.RunningStatistics(columns=["a", "b"]).summary())
            2
        """
        return summary.table_of(self)

    # ----------------------------------------------------------------------------------------------------- what is read

    @property
    def names(self) -> list[str] | None:
        """The names of the columns; None if they are not known.

        Example:
            >>> mt.RunningStatistics(columns=["a", "b"]).names
            ['a', 'b']
        """
        return None if self._names is None else list(self._names)

    @property
    def groups(self) -> Tensor | None:
        """The keys of the groups, ``(groups,)`` in int64, in ascending order; None without groups.

        With groups, statistics such as :attr:`mean` have the shape ``(groups, features)``, in this order.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.ones(3, 1), group=[5, 2, 5])
            >>> stats.groups.tolist(), stats.count.tolist()
            ([2, 5], [[1.0], [2.0]])
        """
        return None if self.keys is None else self.keys.clone()

    @property
    def missing(self) -> Tensor:
        """The number of masked entries of each column, including padding, ``(features,)`` in float64.

        Example:
            >>> mt.RunningStatistics(1).update(mt.masked_tensor([[1.0], [None]])).missing.tolist()
            [1.0]
        """
        return self.missed.clone()

    @property
    def count(self) -> Tensor:
        """The number of valid entries of each column, or the sum of their weights, ``(features,)`` in float64.

        Example:
            >>> mt.RunningStatistics(1).update(mt.masked_tensor([[1.0], [None]])).count.tolist()
            [1.0]
        """
        return self.moments[0].clone()

    @property
    def mean(self) -> Tensor:
        """The mean of each column, ``(features,)`` in float64; masked where no entry was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).mean.tolist()
            [2.0]
        """
        return reading.known(self._state, self._state.moments.mean)

    @property
    def var(self) -> Tensor:
        """The variance of each column, ``(features,)`` in float64; masked where the count is not above ``correction``.

        Example:
            >>> mt.RunningStatistics(1, correction=0).update(torch.tensor([[1.0], [3.0]])).var.tolist()
            [1.0]
        """
        state = self._state
        return reading.over_count(state, state.moments.squares, state.moments.number)

    @property
    def std(self) -> Tensor:
        """The standard deviation of each column, ``sqrt(var)``: ``(features,)`` in float64; see :attr:`var`.

        Example:
            >>> mt.RunningStatistics(1, correction=0).update(torch.tensor([[1.0], [5.0]])).std.tolist()
            [2.0]
        """
        return self.var.sqrt()

    @property
    def amin(self) -> Tensor:
        """The smallest valid entry of each column, ``(features,)`` in float64; masked where no entry was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).amin.tolist()
            [1.0]
        """
        return reading.known(self._state, self._state.moments.low)

    @property
    def amax(self) -> Tensor:
        """The largest valid entry of each column, ``(features,)`` in float64; masked where no entry was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).amax.tolist()
            [3.0]
        """
        return reading.known(self._state, self._state.moments.high)

    @property
    def histogram(self) -> Tensor:
        """The number of entries in each bin, or the sum of their weights, ``(features, n + 1)`` in float64.

        The bins are those of :func:`numpy.histogram`: each includes its lower edge, and the last its upper edge as
        well. One more bin before them and one after hold the values outside; valid NaN is in the last.

        Raises:
            RuntimeError: The object was made without ``edges``.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.tensor([0.0, 1.0, 2.0]))
            >>> stats.update(torch.tensor([[0.5], [1.0], [2.0], [3.0]])).histogram.tolist()
            [[0.0, 1.0, 2.0, 1.0]]
        """
        return reading.histogram_of(self._state)[1].clone()

    def cov(self) -> Tensor:
        """The covariance matrix, each entry over the rows in which both columns are valid, as in pandas.

        Returns:
            MaskedTensor: ``(features, features)`` in float64; masked where at most ``correction`` rows are valid.

        Raises:
            RuntimeError: The object was made without ``cov=True``.

        Example:
            >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
            >>> mt.RunningStatistics(2, cov=True).update(x).cov().tolist()
            [[1.0, 2.0], [2.0, 4.0]]
        """
        pairs = reading.pairs_of(self._state)
        return reading.over_count(self._state, pairs.mixed, pairs.number)

    def corr(self) -> Tensor:
        """The correlation matrix, each entry over the rows in which both columns are valid, as in pandas.

        Returns:
            MaskedTensor: ``(features, features)`` in float64; masked where fewer than two rows are valid, NaN where a
            column is constant.

        Raises:
            RuntimeError: The object was made without ``cov=True``.

        Example:
            >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
            >>> mt.RunningStatistics(2, cov=True).update(x).corr().tolist()
            [[1.0, 1.0], [1.0, 1.0]]
        """
        pairs = reading.pairs_of(self._state)
        both, root, info = pairs.squares * pairs.squares.mT, pairs.squares.sqrt(), torch.finfo(torch.float64)
        ordinary = (both >= info.tiny) & (both <= info.max)
        value = torch.where(ordinary, pairs.mixed / both.sqrt(), pairs.mixed / root / root.mT)
        return reading.masked(value.clamp(-1, 1), pairs.number > 1)

    def corrcoef(self) -> Tensor:
        """The correlation matrix, as :meth:`corr`; torch's name for it.

        Returns:
            MaskedTensor: ``(features, features)`` in float64, as from :meth:`corr`.

        Raises:
            RuntimeError: The object was made without ``cov=True``.

        Example:
            >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
            >>> mt.RunningStatistics(2, cov=True).update(x).corrcoef().tolist()
            [[1.0, 1.0], [1.0, 1.0]]
        """
        return self.corr()

    @names_arguments
    def quantile(self, q: float | Sequence[float] | Tensor) -> Tensor:
        """The quantile of each column, from its sketch or histogram, with an error of at most :meth:`quantile_error`.

        It approximates :func:`torch.quantile`; whole-number weights count as repetitions. With other weights it is the
        smallest entry at which the cumulative weight reaches ``q`` of the total, as in
        ``numpy.quantile(method="inverted_cdf")``. With both a sketch and edges, the sketch is used.

        Args:
            q (float, or list or Tensor of float): From 0 to 1. Several, ``(n,)``, in a floating-point dtype, are read
                in one pass.

        Returns:
            MaskedTensor: ``(features,)`` in float64, or ``(n, features)`` for several; masked where no entry was valid.

        Raises:
            RuntimeError: The object was made without ``sketch`` and ``edges``.
            ValueError: ``q`` is not from 0 to 1.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 101))
            >>> stats = stats.update(torch.linspace(0, 1, 1001)[:, None])
            >>> stats.quantile(0.25).round(decimals=2).tolist()
            [0.25]
            >>> stats.quantile([0.25, 0.75]).round(decimals=2).tolist()
            [[0.25], [0.75]]
        """
        return reading.known(self._state, reading.quantiles(self._state, q)[0])

    @names_arguments
    def quantile_error(self, q: float | Sequence[float] | Tensor) -> Tensor:
        """The largest possible error of :meth:`quantile`, in the unit of the column.

        For a histogram, it is the width of the bins that contain the quantile; for a sketch, the distance to the
        entries that are :meth:`rank_error` away.

        Args:
            q (float, or list or Tensor of float): From 0 to 1. Several, ``(n,)``, in a floating-point dtype, are read
                in one pass.

        Returns:
            MaskedTensor: ``(features,)`` in float64, or ``(n, features)`` for several; masked where no entry was valid.

        Raises:
            RuntimeError: The object was made without ``sketch`` and ``edges``.
            ValueError: ``q`` is not from 0 to 1.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 5))
            >>> stats.update(torch.linspace(0, 1, 100)[:, None]).quantile_error(0.3).tolist()
            [0.25]
        """
        return reading.known(self._state, reading.quantiles(self._state, q)[1])

    def rank_error(self) -> Tensor:
        """The largest possible rank error of :meth:`quantile`, as a fraction of all entries: a bound for any data.

        ``quantile(q)`` is between the exact quantiles of ``q - rank_error()`` and ``q + rank_error()``. The actual
        error of a sketch is usually at most a quarter of it.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where no entry was valid.

        Raises:
            RuntimeError: The object was made without ``sketch``.

        Example:
            >>> stats = mt.RunningStatistics(1, sketch=True).update(torch.randn(8192, 1))
            >>> stats.rank_error().tolist()
            [0.0]
        """
        kept = self._state.sketch
        if kept is None:
            raise RuntimeError("these statistics keep no sketch: make them with sketch=True")
        return reading.over_number(self._state, sketch.rank_errors(kept))

    @names_arguments
    def refined(self, q: float) -> "RunningStatistics":
        """New, empty statistics with finer edges around a quantile, for a second pass over the data.

        Args:
            q (float): The quantile, from 0 to 1.

        Returns:
            RunningStatistics: As many edges per column, so that a pass over the same data reduces the error of this
            quantile by about their number. A column without data, or whose bin is not finite, keeps its edges.

        Raises:
            RuntimeError: The object was made without ``edges``, or has no data.
            ValueError: ``q`` is not from 0 to 1.
            ValueError: A column contains a valid NaN, so it has no quantile.

        Example:
            >>> x = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
            >>> first = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 11)).update(x)
            >>> second = first.refined(0.255).update(x)
            >>> first.quantile_error(0.255) > 9 * second.quantile_error(0.255)
            masked_tensor([True], valid=1/1)
        """
        low, high, _ = (part.unsqueeze(1) for part in reading.bracket_of(self._state, q))
        self._check_begun("refined()")
        wrong = low.isnan().squeeze(1).nonzero().flatten().tolist()
        if wrong:
            raise ValueError(
                f"refined() of columns {wrong}, which hold a valid NaN: it has no quantile; mask it before update(), "
                "with masked_invalid(x)"
            )
        edges = reading.histogram_of(self._state)[0]
        steps = torch.linspace(0, 1, edges.shape[1], dtype=torch.float64, device=low.device)
        new = self._alike(torch.where((high - low).isfinite(), low + (high - low) * steps, edges))
        set_buffers(new, {"columns": self.columns})
        return new

    def forward(self, x: Any, *, group: Any = None) -> Tensor:
        """The standardized batch, ``(x - mean) / deviation``, in the dtype of ``x`` or the default dtype for integers.

        The standard deviation has correction 0 and is replaced by 1 where it is 0, as in scikit-learn's
        ``StandardScaler``. A column without data is not changed.

        Args:
            x (Tensor): Masked or plain, any real dtype, with the columns along ``dim``; or a table, whose columns are
                matched by name and read in float64.
            group (Tensor or str, optional): The key of each row, as in :meth:`update`; a row is standardized with the
                statistics of its group.

        Returns:
            Tensor: The shape and mask of ``x``.

        Raises:
            RuntimeError: No valid entry has been added.
            ValueError: ``x`` has another number of columns, or other names.
            ValueError: There are groups, and ``group`` is not given or contains a new key.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]]))
            >>> stats(mt.masked_tensor([[5.0], [None]])).tolist()
            [[3.0], [None]]
        """
        group = x[group] if isinstance(group, str) else group
        state = self._state
        x, _, _ = by_name(state, x, "stats(x)")
        check_columns(state, x, "stats(x)")
        self._check_begun("stats(x)")
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        moments = state.moments
        scale = (moments.squares / torch.where(moments.number > 0, moments.number, 1)).sqrt()
        scale = torch.where(scale == 0, 1, scale)
        high = moments.mean.to(dtype)  # the mean in two parts, or a float32 of 1e4 would be off by 1e-3
        low = (moments.mean - high.double()).to(dtype)
        place = reading.place_of(state, x, group)
        high, low, scale = (place(part.to(x.device)) for part in (high, low, scale.to(dtype)))
        away: Tensor = x - high
        if away.requires_grad:
            return (away - low) / scale
        return away.sub_(low).div_(scale)  # in memory of its own: fresh memory costs most

    def _load_from_state_dict(self, *args: Any) -> None:
        if loading.load(self, super()._load_from_state_dict, *args):
            self._begun = False

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RunningStatistics":
        loading.move(self, fn)
        return self

    def extra_repr(self) -> str:
        """What stands in the parentheses of a printed module."""
        given = [f"dim={self.dim}"] * (self.dim != -1) + ["cov=True"] * (self.pairs is not None)
        given += ["sketch=True"] * (self.waiting is not None)
        return ", ".join([str(self.features), *given])

    def __repr__(self) -> str:
        """The table of what is known."""
        return summary.text_of(self)

    def _repr_html_(self) -> str:
        return summary.html_of(self)
