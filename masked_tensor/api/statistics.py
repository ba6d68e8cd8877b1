"""Statistics of data that come in batches: they merge over batches, workers, ranks and restarts."""

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import compat
from ..engine.boundary.enter_leave import enter, leave
from ..layouts.elements import canonical, is_sparse
from ..pair import Pair, Payload, as_pair
from ..select import select
from ..shared.group_mean import group_size, resolve_group
from ..shared.moments import (
    Moments,
    merge_moments,
    moments_of,
    moments_of_entries,
    move_products,
    products_of,
    zeros_of,
)
from ..shared.squares import zero_rounding
from ..sparse.reduction import take_valid

_STATE = ("count", "center", "squares", "low", "high")


class RunningStatistics(nn.Module):
    """Statistics of the columns of data that come in batches; called, it standardises.

    ``update`` adds a batch, ``merge`` adds what another object has seen, ``all_reduce`` adds up all ranks. The result
    is that of all data at once, for any split. What is masked takes no part. A NaN that is valid makes the statistics
    of its column NaN, as in torch; mask it first (:func:`masked_invalid`).

    The state is float64 buffers: ``state_dict``, ``torch.save``, distributed checkpoints and ``.to(device)`` work. They
    stay float64 through ``.half()``, and DistributedDataParallel does not send them. On a device without float64 (MPS)
    they stay on the CPU, where batches are brought to.

    Args:
        features (int): The number of columns.
        dim (int, optional): The dimension of the columns in what is given to ``update``. By default the last.
        cov (bool, optional): Whether covariances are kept, of which there are ``features * features``.
        edges (Tensor, optional): Rising edges of histograms, ``(n,)``, or ``(features, n)`` for each column its own.
            Any real dtype. Quantiles are read from them.

    Raises:
        ValueError: ``edges`` do not rise, or have another shape.

    Example:
        >>> stats = mt.RunningStatistics(2)
        >>> for batch in ([[1.0, 10.0], [None, 30.0]], [[3.0, None]]):
        ...     _ = stats.update(mt.masked_tensor(batch))
        >>> stats.mean.tolist(), stats.var().tolist(), stats.count.tolist()
        ([2.0, 20.0], [2.0, 200.0], [2.0, 2.0])
        >>> stats(torch.tensor([[2.0, 30.0]]))
        tensor([[0., 1.]])

    References:
        Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """

    count: Tensor
    center: Tensor  # as a difference from the origin
    squares: Tensor
    low: Tensor
    high: Tensor
    origin: Tensor
    products: Any  # a tensor, or None without cov=
    edges: Any  # tensors, or None without edges=
    bins: Any
    _begun = False  # each column has an origin: then the device is not asked again

    def __init__(self, features: int, *, dim: int = -1, cov: bool = False, edges: Tensor | None = None) -> None:
        super().__init__()
        self.dim, self.features = dim, features
        for name in (*_STATE, "origin"):
            self.register_buffer(name, torch.zeros(features, dtype=torch.float64))
        self.register_buffer("products", torch.zeros(4, features, features, dtype=torch.float64) if cov else None)
        edges = None if edges is None else _checked_edges(edges, features)
        self.register_buffer("edges", edges)
        bins = None if edges is None else torch.zeros(features, edges.shape[1] + 1, dtype=torch.float64)
        self.register_buffer("bins", bins)
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
        fills = {"low": torch.inf, "high": -torch.inf, "origin": torch.nan}
        for name, buffer in self.named_buffers(recurse=False):
            if name != "edges":
                buffer.fill_(fills.get(name, 0))
        self._begun = False
        return self

    @torch.no_grad()
    def update(self, x: Tensor, weight: Tensor | None = None) -> "RunningStatistics":
        """Adds a batch, and returns itself.

        Args:
            x (Tensor): Masked or plain, any real dtype; strided of any shape, or packed, or a sparse
                matrix. What a plain sparse tensor does not store is 0.
            weight (Tensor, optional): How often each entry counts, not negative, any real dtype; its shape broadcasts
                to that of ``x``. An entry of weight 0, or whose weight is masked, takes no part.

        Returns:
            RunningStatistics: Itself.

        Raises:
            ValueError: ``x`` has another number of columns.
            TypeError: ``x`` is complex, or sparse where weights, covariances or histograms are asked for.

        Example:
            >>> values, weights = torch.tensor([[1.0], [4.0]]), torch.tensor([[2.0], [1.0]])
            >>> stats = mt.RunningStatistics(1).update(values, weights)
            >>> stats.mean.tolist()
            [2.0]
        """
        pair: Pair = as_pair(enter(x.detach(), False))
        if pair.data.dim() == 0 or pair.data.shape[self.dim] != self.features:
            raise ValueError(
                f"update() takes {self.features} columns along dim {self.dim}, got {tuple(pair.data.shape)}"
            )
        if pair.data.is_complex():
            raise TypeError("statistics are of real numbers, got complex ones; update with torch.view_as_real(x)")
        if is_sparse(pair.data):
            if weight is not None or self.products is not None or self.edges is not None or pair.data.dim() != 2:
                raise TypeError(
                    "update() of a sparse tensor takes a matrix, and gives no covariances, histograms or weighted "
                    "statistics; use x.to_dense()"
                )
            return self._add_sparse(pair, type(x) is Tensor)
        heavy = None if weight is None else as_pair(enter(weight.detach(), False))
        shape = pair.data.shape
        data, mask = (self._rows(part) for part in (pair.data, pair.mask))
        if heavy is not None:
            share, valid = (self._rows(torch.broadcast_to(part, shape)) for part in (heavy.data, heavy.mask))
            mask = mask & valid & (share != 0)
            return self._add_rows(data, mask, select(share.double(), mask, 0))
        return self._add_rows(data, mask, None)

    def _rows(self, x: Tensor) -> Tensor:
        return x.to(self.count.device).movedim(self.dim, -1).reshape(-1, self.features)

    def _add_rows(self, x: Tensor, mask: Tensor, weight: Tensor | None) -> "RunningStatistics":
        if not x.is_floating_point():
            x = x.double()
        if len(x):
            self._begin(x, mask)
        origin = self._origin()
        self._set(merge_moments([self._moments(), moments_of(x, mask, weight, origin)]))
        if self.products is not None:
            self.products += products_of(x, mask, weight, origin)
        if self.edges is not None:
            at = torch.searchsorted(self.edges, x.double().T.contiguous())  # (F, N)
            add = mask.T.double() if weight is None else mask.T * weight.T
            self.bins.scatter_add_(1, at, add.contiguous())
        return self

    def _begin(self, x: Tensor, mask: Tensor) -> None:
        """An origin near the data for each column that has none: the first valid, finite entry of it."""
        if self._begun:
            return
        self._begun = not bool(self.origin.isnan().any())
        if not self._begun:
            found, first = (mask & x.isfinite()).to(torch.uint8).max(0)
            value = x.gather(0, first.unsqueeze(0)).squeeze(0).double()
            self.origin.copy_(torch.where(self.origin.isnan() & (found != 0), value, self.origin))

    def _add_sparse(self, pair: Pair, zeros: bool) -> "RunningStatistics":
        data = canonical(pair.data.to(self.count.device))
        mask = None if zeros else pair.mask.to(self.count.device)
        taken = take_valid(data, mask)
        column, value = taken.coordinate(1), taken.values.double()
        self.origin.copy_(self.origin.nan_to_num())  # 0, which is what most of it is
        stored = moments_of_entries(column, value, self.origin)
        parts = [self._moments(), stored]
        if zeros:
            parts.append(zeros_of(data.shape[0] - stored.count, self.origin))
        self._set(merge_moments(parts))
        return self

    def merge(self, other: "RunningStatistics") -> "RunningStatistics":
        """Adds what ``other`` has seen, and returns itself.

        Args:
            other (RunningStatistics): With the same columns, covariances and edges.

        Returns:
            RunningStatistics: Itself.

        Raises:
            ValueError: ``other`` was made in another way.

        Example:
            >>> a, b = (mt.RunningStatistics(1).update(torch.full((n, 1), float(n))) for n in (1, 3))
            >>> a.merge(b).mean.tolist()
            [2.5]
        """
        mine, given = dict(self.named_buffers()), dict(other.named_buffers())
        alike = mine.keys() == given.keys() and all(mine[n].shape == given[n].shape for n in mine)
        if not alike or (self.edges is not None and not torch.equal(self.edges, other.edges.to(self.edges.device))):
            raise ValueError("merge() takes statistics of the same columns, with the same cov= and edges=")
        state = {name: buffer.to(self.count.device) for name, buffer in given.items()}
        by = (state["origin"] - torch.where(self.origin.isnan(), state["origin"], self.origin)).nan_to_num()
        self.origin.copy_(torch.where(self.origin.isnan(), state["origin"], self.origin))
        moved = Moments(*(state[name] + by if name == "center" else state[name] for name in _STATE))
        self._set(merge_moments([self._moments(), moved]))
        if self.products is not None:
            self.products += move_products(state["products"], by)
        if self.bins is not None:
            self.bins += state["bins"]
        return self

    def all_reduce(self, group: "dist.ProcessGroup | dist.device_mesh.DeviceMesh | None" = None) -> "RunningStatistics":
        """The statistics of all ranks, the same on each; this object stays that of its own rank.

        Args:
            group (ProcessGroup, optional): The ranks, or a one-dimensional DeviceMesh; by default the default group.

        Returns:
            RunningStatistics: A new object. Without torch.distributed a copy.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [2.0]]))
            >>> stats.all_reduce().mean.tolist()
            [1.5]
        """
        group = resolve_group(group)
        buffers = [b for name, b in self.named_buffers() if name != "edges"]
        own = torch.cat([b.flatten() for b in buffers])
        found = [own]
        if group is not None:
            sent = own.to(compat.group_device(group))
            found = [torch.empty_like(sent) for _ in range(group_size(group))]
            dist.all_gather(found, sent, group=group)
        whole = self._alike()
        for state in found:
            part = self._alike()
            places = [b for name, b in part.named_buffers() if name != "edges"]
            for buffer, piece in zip(places, state.to(own.device).split([b.numel() for b in places]), strict=True):
                buffer.copy_(piece.view(buffer.shape))
            whole.merge(part)
        return whole

    def _alike(self, edges: Tensor | None = None) -> "RunningStatistics":
        """A new one with the same options."""
        edges = self.edges if edges is None else edges
        new = RunningStatistics(self.features, dim=self.dim, cov=self.products is not None, edges=edges)
        return new.to(self.count.device)

    def _origin(self) -> Tensor:
        return self.origin.nan_to_num()

    def _moments(self) -> Moments:
        return Moments(*(getattr(self, name) for name in _STATE))

    def _set(self, moments: Moments) -> None:
        for name in _STATE:
            getattr(self, name).copy_(getattr(moments, name))

    # ----------------------------------------------------------------------------------------------------- what is read

    @property
    def mean(self) -> Tensor:
        """The mean of each column, ``(features,)`` in float64; masked where nothing was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).mean.tolist()
            [2.0]
        """
        return _masked(self._origin() + self.center, self.count > 0)

    def var(self, correction: float = 1) -> Tensor:
        """The variance of each column.

        Args:
            correction (float, optional): What is taken off the count, as in :func:`torch.var`. Default: 1.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where the count is not above ``correction``.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).var(correction=0).tolist()
            [1.0]
        """
        some = (self.count > 0) & (self.count > correction)
        return _masked(self.squares / torch.where(some, self.count - correction, 1), some)

    def std(self, correction: float = 1) -> Tensor:
        """The standard deviation of each column: the root of :meth:`var`.

        Args:
            correction (float, optional): As in :meth:`var`. Default: 1.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where the count is not above ``correction``.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [5.0]])).std(correction=0).tolist()
            [2.0]
        """
        return self.var(correction).sqrt()

    @property
    def amin(self) -> Tensor:
        """The least entry of each column, ``(features,)`` in float64; masked where nothing was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).amin.tolist()
            [1.0]
        """
        return _masked(self.low, self.count > 0)

    @property
    def amax(self) -> Tensor:
        """The greatest entry of each column, ``(features,)`` in float64; masked where nothing was valid.

        Example:
            >>> mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]])).amax.tolist()
            [3.0]
        """
        return _masked(self.high, self.count > 0)

    def cov(self, correction: float = 1) -> Tensor:
        """The covariances, each over the rows where both columns are valid, as ``pandas`` counts.

        Args:
            correction (float, optional): What is taken off the number of rows. Default: 1.

        Returns:
            MaskedTensor: ``(features, features)`` in float64; masked where no more than ``correction`` rows are valid.

        Raises:
            RuntimeError: The object was made without ``cov=True``.

        Example:
            >>> x = torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
            >>> mt.RunningStatistics(2, cov=True).update(x).cov().tolist()
            [[1.0, 2.0], [2.0, 4.0]]
        """
        number, sums, _, mixed = self._products()
        some = (number > 0) & (number > correction)
        away = mixed - sums * sums.T / torch.where(number > 0, number, 1)
        return _masked(away / torch.where(some, number - correction, 1), some)

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
        number, sums, powers, mixed = self._products()
        n = torch.where(number > 0, number, 1)
        apart = zero_rounding(powers - sums * sums / n, powers, number)
        together = torch.where((apart != 0) & (apart.T != 0), mixed - sums * sums.T / n, 0)
        return _masked((together / (apart * apart.T).sqrt()).clamp(-1, 1), number > 1)

    def _products(self) -> Tensor:
        if self.products is None:
            raise RuntimeError("these statistics keep no covariances: make them with cov=True")
        return cast(Tensor, self.products)

    @property
    def histogram(self) -> Tensor:
        """The sum of weights between the edges, ``(features, n + 1)`` in float64; the first and last are outside.

        A bin takes its upper edge, and not its lower one.

        Raises:
            RuntimeError: The object was made without ``edges``.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.tensor([0.0, 1.0]))
            >>> stats.update(torch.tensor([[0.5], [1.0], [2.0]])).histogram.tolist()
            [[0.0, 2.0, 1.0]]
        """
        self._edges()
        found: Tensor = self.bins
        return found

    def _edges(self) -> Tensor:
        if self.edges is None:
            raise RuntimeError("these statistics keep no histograms: make them with edges=torch.linspace(low, high, n)")
        found: Tensor = self.edges
        return found

    def quantile(self, q: float) -> Tensor:
        """The quantile of each column, read from its histogram: off by at most :meth:`quantile_error`.

        Args:
            q (float): From 0 to 1.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where nothing was valid.

        Raises:
            RuntimeError: The object was made without ``edges``.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 101))
            >>> stats = stats.update(torch.linspace(0, 1, 1001)[:, None])
            >>> stats.quantile(0.25).round(decimals=2).tolist()
            [0.25]
        """
        low, high, inside = self._bracket(q)
        return _masked(low + (high - low) * inside, self.count > 0)

    def quantile_error(self, q: float) -> Tensor:
        """By how much :meth:`quantile` may be off at most: the width of the bins in which the quantile lies.

        Args:
            q (float): From 0 to 1.

        Returns:
            MaskedTensor: ``(features,)`` in float64; masked where nothing was valid.

        Raises:
            RuntimeError: The object was made without ``edges``.

        Example:
            >>> stats = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 5))
            >>> stats.update(torch.rand(100, 1)).quantile_error(0.5).tolist()
            [0.25]
        """
        low, high, _ = self._bracket(q)
        return _masked(high - low, self.count > 0)

    def refined(self, q: float) -> "RunningStatistics":
        """New, empty statistics whose edges divide the bins in which the quantile lies: for a second pass.

        Args:
            q (float): From 0 to 1.

        Returns:
            RunningStatistics: With as many edges for each column; a pass through the same data makes the error of this
            quantile smaller by about their number.

        Raises:
            RuntimeError: The object was made without ``edges``.

        Example:
            >>> x = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
            >>> first = mt.RunningStatistics(1, edges=torch.linspace(0, 1, 11)).update(x)
            >>> second = first.refined(0.255).update(x)
            >>> first.quantile_error(0.255) > 9 * second.quantile_error(0.255)
            masked_tensor([True], valid=1/1)
        """
        low, high, _ = self._bracket(q)
        steps = torch.linspace(0, 1, self._edges().shape[1], dtype=torch.float64, device=low.device)
        return self._alike(torch.where(self.count > 0, low, 0).unsqueeze(1) + (high - low).unsqueeze(1) * steps)

    def _bracket(self, q: float) -> tuple[Tensor, Tensor, Tensor]:
        """Of each column: values between which the quantile lies, and where between them, from 0 to 1."""
        edges, bins = self._edges(), self.bins
        edge = torch.cat([self.low.unsqueeze(1), edges.expand(len(bins), -1), self.high.unsqueeze(1)], 1)
        edge = edge.clamp(self.low.unsqueeze(1), self.high.unsqueeze(1))
        upto = bins.cumsum(1)
        rank = q * (self.count - 1).clamp_min(0)  # of the entries, from 0: as torch.quantile interpolates
        first, last = (
            (upto <= r.unsqueeze(1)).sum(1).clamp_max(bins.shape[1] - 1) for r in (rank.floor(), rank.ceil())
        )
        before = _pick(upto, first) - _pick(bins, first)
        share = (rank + 0.5 - before) / (_pick(upto, last) - before).clamp_min(1)
        low, high = _pick(edge, first), _pick(edge, last + 1)
        return low.nan_to_num(), torch.where(self.count > 0, high, 0), share.clamp(0, 1)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` minus the mean over the deviation, in the dtype of ``x`` (the default one for integers).

        The deviation has correction 0 and counts as 1 where it is 0, as in scikit-learn's ``StandardScaler``; a column
        of which nothing was seen is left as it is.

        Args:
            x (Tensor): Masked or plain, any real dtype, with the columns along ``dim``.

        Returns:
            Tensor: Of the shape and mask of ``x``.

        Example:
            >>> stats = mt.RunningStatistics(1).update(torch.tensor([[1.0], [3.0]]))
            >>> stats(mt.masked_tensor([[5.0], [None]])).tolist()
            [[3.0], [None]]
        """
        dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
        some = self.count > 0
        mean = torch.where(some, self._origin() + self.center, 0)
        scale = torch.where(some, self.squares / torch.where(some, self.count, 1), 1).sqrt()
        scale = torch.where(scale == 0, 1, scale)
        shape = [1] * x.dim()
        shape[self.dim] = self.features
        high = mean.to(dtype)  # the mean in two parts, or a float32 of 1e4 would be off by 1e-3
        low = (mean - high.double()).to(dtype)
        high, low, scale = (part.to(x.device).view(shape) for part in (high, low, scale.to(dtype)))
        away = x - high
        if away.requires_grad:
            return (away - low) / scale
        return away.sub_(low).div_(scale)  # in memory of its own: fresh memory costs most

    def extra_repr(self) -> str:
        """What stands in the parentheses of a printed module."""
        options = [f"dim={self.dim}"] * (self.dim != -1) + ["cov=True"] * (self.products is not None)
        return ", ".join([str(self.features), *options])

    def _load_from_state_dict(self, *args: Any) -> None:
        self._begun = False
        super()._load_from_state_dict(*args)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RunningStatistics":
        """Moves between devices; float64 stays float64."""
        for name, buffer in list(self.named_buffers(recurse=False)):
            device = fn(buffer[:0].float()).device
            self.register_buffer(name, buffer if device.type == "mps" else buffer.to(device))
        return self


def _pick(x: Tensor, at: Tensor) -> Tensor:
    """Of each row of ``x`` the entry at ``at``."""
    return x.gather(1, at.unsqueeze(1)).squeeze(1)


def _masked(value: Tensor, mask: Tensor) -> Tensor:
    result: Tensor = leave(Pair(torch.where(mask, value, 0), mask, Payload.ZERO))
    return result


def _checked_edges(edges: Tensor, features: int) -> Tensor:
    edges = torch.as_tensor(edges).detach().double()
    edges = edges.unsqueeze(0) if edges.dim() == 1 else edges
    if edges.dim() != 2 or edges.shape[0] not in (1, features) or not bool((edges.diff(dim=1) >= 0).all()):
        raise ValueError(f"edges must rise, and be (n,) or ({features}, n), got {tuple(edges.shape)}")
    return edges.expand(features, -1).contiguous()
