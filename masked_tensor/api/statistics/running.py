"""Statistics of data that come in batches: they merge over batches, workers, ranks and restarts."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ... import compat
from ...engine.boundary.enter_leave import enter, leave
from ...layouts.elements import canonical, is_sparse
from ...pair import Pair, Payload, as_pair
from ...select import select
from ...shared import histogram
from ...shared.group_mean import group_size, resolve_group
from ...shared.moments import Moments, merge_moments, moments_of, moments_of_entries, no_moments, zeros_of
from ...shared.pair_moments import PairMoments, pair_moments_of
from ...sparse.reduction import take_valid
from . import options
from .state import StatisticsState


class RunningStatistics(StatisticsState):
    """Statistics of the columns of data that come in batches; called, it standardises.

    ``update`` adds a batch, ``merge`` adds what another object has seen, ``all_reduce`` adds up all ranks. The result
    is that of all data at once, for any split and any order. What is masked takes no part. A NaN that is valid makes
    the statistics of its column NaN, as in torch; mask it first (:func:`masked_invalid`). A call that raises changes
    nothing, and states that were made in another way are refused.

    Tables that have names (pandas, polars, Arrow) may be given as they are. Their columns then go by name: a later
    table may have them in another order, and one with other names is refused. A tensor goes by position.

    The state is float64 buffers: ``state_dict``, ``torch.save``, distributed checkpoints and ``.to(device)`` work. They
    stay float64 through ``.half()``, and DistributedDataParallel does not send them. On a device without float64 (MPS)
    they stay on the CPU, where batches are brought to.

    Args:
        features (int): The number of columns.
        dim (int, optional): The dimension of the columns in what is given to ``update``. By default the last.
        cov (bool, optional): Whether covariances are kept, of which there are ``features * features``.
        edges (Tensor, optional): Rising edges of histograms, ``(n,)``, or ``(features, n)`` for each column its own.
            Any real dtype. Quantiles are read from them.
        correction (float, optional): What :attr:`var`, :attr:`std` and :meth:`cov` take off the count, as in
            :func:`torch.var`. Default: 1.

    Raises:
        ValueError: ``edges`` do not rise, or have another shape, or ``correction`` is negative.

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

    def __init__(
        self, features: int, *, dim: int = -1, cov: bool = False, edges: Tensor | None = None, correction: float = 1
    ) -> None:
        super().__init__(features, dim, cov, edges, correction)
        self.reset()

    def reset(self) -> "RunningStatistics":
        """Forgets all data, and returns itself.

        Returns:
            RunningStatistics: Itself, as it was made.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.ones(3, 1))
            >>> stats.reset().count.tolist()
            [0.0]
        """
        state = {name: torch.zeros_like(buffer) for name, buffer in self._state().items()}
        state["moments"] = torch.stack(no_moments(self.features, self.moments.device))
        state["columns"] += torch.nan
        compat.set_buffers(self, state)
        self._begun = False
        return self

    @torch.no_grad()
    def update(self, x: Any, weight: Tensor | None = None) -> "RunningStatistics":
        """Adds a batch, and returns itself.

        Args:
            x (Tensor): Masked or plain, any real dtype; strided of any shape, or packed, or a sparse
                matrix. What a plain sparse tensor does not store is 0. Or anything else that :func:`masked_tensor`
                takes, read in float64; the columns of a table go by name.
            weight (Tensor, optional): How often each entry counts, not negative, any real dtype; its shape broadcasts
                to that of ``x``. An entry of weight 0, or whose weight is masked, takes no part. Covariances need one
                weight for each row.

        Returns:
            RunningStatistics: Itself.

        Raises:
            ValueError: ``x`` has another number of columns, or other names, or ``weight`` does not fit.
            TypeError: ``x`` is complex, or sparse where weights, covariances or histograms are asked for.

        Example:
            >>> values, weights = torch.tensor([[1.0], [4.0]]), torch.tensor([[2.0], [1.0]])
            >>> stats = mt.RunningStatistics(1).update(values, weights)
            >>> stats.mean.tolist()
            [2.0]
        """
        x, columns = self._by_name(x, "update()")
        self._check(x, "update()")
        pair: Pair = as_pair(enter(x.detach(), False))
        if pair.data.is_complex():
            raise TypeError("statistics are of real numbers, got complex ones; update with torch.view_as_real(x)")
        if is_sparse(pair.data):
            if weight is not None or self.pairs is not None or self.edges is not None or pair.data.dim() != 2:
                raise TypeError(
                    "update() of a sparse tensor takes a matrix, and gives no covariances, histograms or weighted "
                    "statistics; use x.to_dense()"
                )
            self._add(columns, self._moments_of_sparse(pair, type(x) is Tensor))
            return self
        data, mask = self._rows(pair.data), self._rows(pair.mask)
        heavy = None if weight is None else as_pair(enter(weight.detach(), False))
        each, single = None, None
        if heavy is not None:
            each, seen, single = self._weights(heavy, pair.data.shape)
            mask = mask & seen
            each = select(each, mask, 0)
        data = data if data.is_floating_point() else data.double()
        moments = moments_of(data, mask, each)
        pairs = None if self.pairs is None else pair_moments_of(data, mask, single, moments.mean)
        bins = None if self.edges is None else histogram.bins_of(data, mask, each, self.edges)
        self._add(columns, moments, pairs, bins)
        return self

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
        data = canonical(pair.data.to(self.moments.device))
        mask = None if zeros else pair.mask.to(self.moments.device)
        taken = take_valid(data, mask)
        stored = moments_of_entries(taken.coordinate(1), taken.values.double(), self.features)
        return merge_moments([stored, zeros_of(data.shape[0] - stored.number)]) if zeros else stored

    @torch.no_grad()
    def merge(self, other: "RunningStatistics") -> "RunningStatistics":
        """Adds what ``other`` has seen, and returns itself.

        Args:
            other (RunningStatistics): With the same columns, covariances, edges and correction.

        Returns:
            RunningStatistics: Itself.

        Raises:
            ValueError: ``other`` was made in another way, or its columns have other names.

        Example:
            >>> a, b = (mt.RunningStatistics(1).update(torch.full((n, 1), float(n))) for n in (1, 3))
            >>> a.merge(b).mean.tolist()
            [2.5]
        """
        options.check_alike(self._options(), other._options(), "merge()")
        given = {name: buffer.to(self.moments.device) for name, buffer in other._state().items()}
        at = options.places_of(self.columns, given["columns"], "merge()")
        moments, pairs, bins = given["moments"], given.get("pairs"), given.get("bins")
        if at is not None:
            if self.edges is not None and not torch.equal(self.edges, self.edges[at]):
                raise ValueError("merge() takes columns with edges of their own in the same order, got another")
            moments, bins = moments[:, at], None if bins is None else bins[at]
            pairs = None if pairs is None else pairs[:, at][:, :, at]
        columns = torch.where(self.columns.isnan(), given["columns"], self.columns)
        self._add(columns, Moments(*moments), None if pairs is None else PairMoments(*pairs), bins)
        return self

    @torch.no_grad()
    def all_reduce(self, group: "dist.ProcessGroup | dist.device_mesh.DeviceMesh | None" = None) -> "RunningStatistics":
        """The statistics of all ranks, the same on each; this object stays that of its own rank.

        Args:
            group (ProcessGroup, optional): The ranks, or a one-dimensional DeviceMesh; by default the default group.

        Returns:
            RunningStatistics: A new object. Without torch.distributed a copy.

        Raises:
            ValueError: On all ranks, if one made its statistics in another way, or has columns of other names.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [2.0]]))
            >>> stats.all_reduce().mean.tolist()
            [1.5]
        """
        group = resolve_group(group)
        own = torch.cat([b.flatten() for b in self._state().values()])
        found = [own]
        if group is not None:
            options.check_ranks(self._options(), group)
            sent = own.to(compat.group_device(group))
            found = [torch.empty_like(sent) for _ in range(group_size(group))]
            dist.all_gather(found, sent, group=group)
        whole = self._alike(self.edges)
        for numbers in found:
            part = self._alike(self.edges)
            places = part._state()
            pieces = numbers.to(own.device).split([b.numel() for b in places.values()])
            shaped = {name: piece.view(b.shape) for (name, b), piece in zip(places.items(), pieces, strict=True)}
            compat.set_buffers(part, shaped)
            whole.merge(part)
        return whole

    def _alike(self, edges: Tensor | None) -> "RunningStatistics":
        """A new one with the same options."""
        new = RunningStatistics(
            self.features, dim=self.dim, cov=self.pairs is not None, edges=edges, correction=float(self.correction)
        )
        return new.to(self.moments.device)

    # ----------------------------------------------------------------------------------------------------- what is read

    @property
    def count(self) -> Tensor:
        """The number of valid entries of each column, or the sum of their weights, ``(features,)`` in float64.

        Example:
            >>> mt.RunningStatistics(1).update(mt.masked_tensor([[1.0], [None]])).count.tolist()
            [1.0]
        """
        return self._moments.number.clone()

    @property
    def mean(self) -> Tensor:
        """The mean of each column, ``(features,)`` in float64; masked where nothing was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).mean.tolist()
            [2.0]
        """
        return self._known(self._moments.mean)

    @property
    def var(self) -> Tensor:
        """The variance of each column, ``(features,)`` in float64; masked where the count is not above ``correction``.

        Example:
            >>> mt.RunningStatistics(1, correction=0).update(torch.tensor([[1.0], [3.0]])).var.tolist()
            [1.0]
        """
        return self._over_count(self._moments.squares, self._moments.number)

    @property
    def std(self) -> Tensor:
        """The root of :attr:`var`.

        Example:
            >>> mt.RunningStatistics(1, correction=0).update(torch.tensor([[1.0], [5.0]])).std.tolist()
            [2.0]
        """
        return self.var.sqrt()

    @property
    def amin(self) -> Tensor:
        """The least entry of each column, ``(features,)`` in float64; masked where nothing was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).amin.tolist()
            [1.0]
        """
        return self._known(self._moments.low)

    @property
    def amax(self) -> Tensor:
        """The greatest entry of each column, ``(features,)`` in float64; masked where nothing was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).amax.tolist()
            [3.0]
        """
        return self._known(self._moments.high)

    @property
    def histogram(self) -> Tensor:
        """The sum of weights between the edges, ``(features, n + 1)`` in float64.

        The bins are those of :func:`numpy.histogram`: each takes its lower edge and not its upper one, the last takes
        both. One more bin stands before them and one after, for what lies outside. A valid NaN is in the last of all.

        Raises:
            RuntimeError: The object was made without ``edges``.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.tensor([0.0, 1.0, 2.0]))
            >>> stats.update(torch.tensor([[0.5], [1.0], [2.0], [3.0]])).histogram.tolist()
            [[0.0, 1.0, 2.0, 1.0]]
        """
        return self._histogram()[1].clone()

    def cov(self) -> Tensor:
        """The covariances, each over the rows where both columns are valid, as ``pandas`` counts.

        Returns:
            MaskedTensor: ``(features, features)`` in float64; masked where no more than ``correction`` rows are valid.

        Raises:
            RuntimeError: The object was made without ``cov=True``.

        Example:
            >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
            >>> mt.RunningStatistics(2, cov=True).update(x).cov().tolist()
            [[1.0, 2.0], [2.0, 4.0]]
        """
        pairs = self._pairs()
        return self._over_count(pairs.mixed, pairs.number)

    def corr(self) -> Tensor:
        """The correlations, each over the rows where both columns are valid, as ``pandas`` counts.

        Returns:
            MaskedTensor: ``(features, features)`` in float64; masked where fewer than two rows are valid; NaN where a
            column is constant.

        Raises:
            RuntimeError: The object was made without ``cov=True``.

        Example:
            >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
            >>> mt.RunningStatistics(2, cov=True).update(x).corr().tolist()
            [[1.0, 1.0], [1.0, 1.0]]
        """
        pairs = self._pairs()
        both, root, info = pairs.squares * pairs.squares.mT, pairs.squares.sqrt(), torch.finfo(torch.float64)
        ordinary = (both >= info.tiny) & (both <= info.max)
        value = torch.where(ordinary, pairs.mixed / both.sqrt(), pairs.mixed / root / root.mT)
        return _masked(value.clamp(-1, 1), pairs.number > 1)

    def _known(self, value: Tensor) -> Tensor:
        return _masked(value, self._moments.number > 0)

    def _over_count(self, squares: Tensor, count: Tensor) -> Tensor:
        some = (count > 0) & (count > self.correction)
        return _masked(squares / torch.where(some, count - self.correction, 1), some)

    def _pairs(self) -> PairMoments:
        if self.pairs is None:
            raise RuntimeError("these statistics keep no covariances: make them with cov=True")
        return PairMoments(*self.pairs)

    def _histogram(self) -> tuple[Tensor, Tensor]:
        if self.edges is None:
            raise RuntimeError("these statistics keep no histograms: make them with edges=torch.linspace(low, high, n)")
        return self.edges, self.bins

    def quantile(self, q: float) -> Tensor:
        """The quantile of each column, read from its histogram: off by at most :meth:`quantile_error`.

        It is that of :func:`torch.quantile`, with weights that are whole numbers as if entries were repeated. With
        others it is the least entry up to which the weights add up to ``q`` of their sum, as
        ``numpy.quantile(method="inverted_cdf")`` has it.

        Args:
            q (float): From 0 to 1.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where nothing was valid.

        Raises:
            RuntimeError: The object was made without ``edges``.
            ValueError: ``q`` is not from 0 to 1.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 101))
            >>> stats = stats.update(torch.linspace(0, 1, 1001)[:, None])
            >>> stats.quantile(0.25).round(decimals=2).tolist()
            [0.25]
        """
        low, high, inside = self._bracket(q)
        between = low * (1 - inside) + high * inside
        return self._known(torch.where(low == high, low, between))

    def quantile_error(self, q: float) -> Tensor:
        """By how much :meth:`quantile` may be off at most: the width of the bins in which the quantile lies.

        Args:
            q (float): From 0 to 1.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where nothing was valid.

        Raises:
            RuntimeError: The object was made without ``edges``.
            ValueError: ``q`` is not from 0 to 1.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 5))
            >>> stats.update(torch.linspace(0, 1, 100)[:, None]).quantile_error(0.3).tolist()
            [0.25]
        """
        low, high, _ = self._bracket(q)
        return self._known(torch.where(low == high, 0, high - low))

    def refined(self, q: float) -> "RunningStatistics":
        """New, empty statistics whose edges divide the bins in which the quantile lies: for a second pass.

        Args:
            q (float): From 0 to 1.

        Returns:
            RunningStatistics: With as many edges for each column; a pass through the same data makes the error of this
            quantile smaller by about their number. A column of which nothing was seen, or whose bin is not finite,
            keeps its edges.

        Raises:
            RuntimeError: The object was made without ``edges``, or nothing was added to it.
            ValueError: ``q`` is not from 0 to 1, or a column holds a valid NaN, which has no quantile.

        Example:
            >>> x = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
            >>> first = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 11)).update(x)
            >>> second = first.refined(0.255).update(x)
            >>> first.quantile_error(0.255) > 9 * second.quantile_error(0.255)
            masked_tensor([True], valid=1/1)
        """
        low, high, _ = (part.unsqueeze(1) for part in self._bracket(q))
        self._check_begun("refined()")
        wrong = low.isnan().squeeze(1).nonzero().flatten().tolist()
        if wrong:
            raise ValueError(
                f"refined() of columns {wrong}, which hold a valid NaN: it has no quantile; mask it before update(), "
                "with masked_invalid(x)"
            )
        steps = torch.linspace(0, 1, self.edges.shape[1], dtype=torch.float64, device=low.device)
        new = self._alike(torch.where((high - low).isfinite(), low + (high - low) * steps, self.edges))
        compat.set_buffers(new, {"columns": self.columns})
        return new

    def _bracket(self, q: float) -> tuple[Tensor, Tensor, Tensor]:
        return histogram.bracket(*self._histogram(), self._moments.low, self._moments.high, q)

    def _check_begun(self, taker: str) -> None:
        self._begun = self._begun or bool((self._moments.number > 0).any())
        if not self._begun:
            raise RuntimeError(f"{taker} was called before a valid entry was seen: call update(x) or merge() first")

    def forward(self, x: Any) -> Tensor:
        """``x`` minus the mean over the deviation, in the dtype of ``x`` (the default one for integers).

        The deviation has correction 0 and counts as 1 where it is 0, as in scikit-learn's ``StandardScaler``; a column
        of which nothing was seen is left as it is.

        Args:
            x (Tensor): Masked or plain, any real dtype, with the columns along ``dim``. Or a table, whose columns go by
                name and are read in float64.

        Returns:
            Tensor: Of the shape and mask of ``x``.

        Raises:
            RuntimeError: No valid entry was seen before.
            ValueError: ``x`` has another number of columns, or other names.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]]))
            >>> stats(mt.masked_tensor([[5.0], [None]])).tolist()
            [[3.0], [None]]
        """
        x, _ = self._by_name(x, "stats(x)")
        self._check(x, "stats(x)")
        if not self._begun:
            self._check_begun("stats(x)")
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        moments = self._moments
        scale = (moments.squares / torch.where(moments.number > 0, moments.number, 1)).sqrt()
        scale = torch.where(scale == 0, 1, scale)
        shape = [1] * x.dim()
        shape[self.dim] = self.features
        high = moments.mean.to(dtype)  # the mean in two parts, or a float32 of 1e4 would be off by 1e-3
        low = (moments.mean - high.double()).to(dtype)
        high, low, scale = (part.to(x.device).view(shape) for part in (high, low, scale.to(dtype)))
        away: Tensor = x - high
        if away.requires_grad:
            return (away - low) / scale
        return away.sub_(low).div_(scale)  # in memory of its own: fresh memory costs most

    def extra_repr(self) -> str:
        """What stands in the parentheses of a printed module."""
        given = [f"dim={self.dim}"] * (self.dim != -1) + ["cov=True"] * (self.pairs is not None)
        return ", ".join([str(self.features), *given])


def _masked(value: Tensor, mask: Tensor) -> Tensor:
    result: Tensor = leave(Pair(torch.where(mask, value, 0), mask, Payload.ZERO))
    return result
