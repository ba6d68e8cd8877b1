"""Reductions: within the tokens, over everything, or over time by segments.

Within the tokens the result is packed; over everything it is that of the stored values, of which there is at least one;
over time each sequence is a segment, and one that stores nothing gives a masked entry.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair, settings, shapes
from ..compat import is_readable_memory, is_tracked
from ..kernels.identity import identity
from ..op import NoRule, Rule, StorageRule
from ..pair import Pair
from ..select import select
from . import dim_order as orders
from .dim_order import GRID
from .packed import Packed, pack_values, unpack
from .per_token import run_on_values
from .views import features_last


@dataclass(frozen=True)
class Segments:
    """How each sequence is reduced; what is masked in it is replaced by what changes nothing."""

    name: str | None  #: of the reduction whose identity stands for what is masked; None: it knows nothing of gaps
    #: ``(values (N, ..), x, number (B, ..)) -> (B, ..)``; ``number``: how many entries of each sequence are valid
    run: Callable[[Tensor, Packed, Tensor], Tensor]


def reduce_packed(
    at: int = 1, segments: Segments | None = None, *, counted: bool = False, keeps: bool = True
) -> StorageRule:
    """A reduction whose dimensions are argument ``at`` and whose ``keepdim`` follows, if it has one (``keeps``).

    ``segments`` reduces over time.  ``counted``: too few entries give a masked entry, of which the plain op knows
    nothing.
    """

    def make(rule: Rule, op: Rule) -> Rule:
        def on_packed(x: Packed, *args: Any, **kwargs: Any) -> Any:
            lead, (dim, keepdim) = args[: at - 1], _read_arguments(args[at - 1 :], kwargs)
            said = len(args) >= at or "dim" in kwargs
            if said and dim is not None and not isinstance(dim, int) and not len(dim):
                raise NoRule  # no dimension: nothing for some ops, all for others
            dims = shapes.canonical_dims(dim, len(x.order))
            rest = {k: v for k, v in kwargs.items() if k not in ("dim", "keepdim")}

            def kernel(y: Packed, at: list[int]) -> Any:
                d: Any = at[0] if isinstance(dim, int) else at
                chosen, operand = (rule, y.pair()) if counted else (run_on_values(y, rule, op), y.operand())
                return (
                    chosen(operand, *lead, d, keepdim=True, **rest)
                    if keeps
                    else _keep_dims(chosen(operand, *lead, d, **rest), len(at))
                )

            if all(orders.is_feature(x.order[d], x.first) for d in dims):
                return _reduce_features(x, dims, keepdim, kernel)
            if len(dims) == len(x.order):
                if not x.values.numel():
                    raise NoRule
                flat = _flatten(x)
                chosen = rule if counted else run_on_values(x, rule, op)
                over = {"dim": dim if dim is None else 0 if isinstance(dim, int) else [0]} if said else {}
                result = chosen(pair.as_pair(flat) if counted else flat, *lead, **over, **rest)
                return _as_scalars(result, (1,) * len(x.order) if keepdim else ())
            if segments is None or rest.get("dtype") is not None:
                raise NoRule
            return reduce_time(x, dims, keepdim, segments, kernel)

        return on_packed

    return StorageRule("reduction", make)


def count_packed() -> StorageRule:
    """``count_nonzero``, with no ``keepdim``: where none is stored it is 0, and valid, so the result is strided."""
    counts = reduce_packed(1, NONZERO, keeps=False)

    def make(rule: Rule, op: Rule) -> Rule:
        inside = counts.make(rule, op)

        def on_packed(x: Packed, *args: Any, **kwargs: Any) -> Pair:
            result = inside(x, *args, **kwargs)
            return pair.plain_pair(unpack(result).data if type(result) is Packed else pair.as_pair(result).data)

        return on_packed

    return StorageRule("reduction", make)


def _read_arguments(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, bool]:
    dim = args[0] if args else kwargs.get("dim")
    keepdim = args[1] if len(args) > 1 else kwargs.get("keepdim", False)
    if len(args) > 2:
        raise NoRule
    return dim, keepdim


def _keep_dims(result: Pair | Tensor, several: int) -> Pair:
    """What was reduced over the last dimensions, with 1 in place of each."""
    p = pair.as_pair(result)
    more = (...,) + (None,) * several
    return Pair(p.data[more], p.mask[more], p.payload)


def _flatten(x: Packed) -> Pair | Tensor:
    if x.inner is None:
        return x.values.reshape(-1)
    return Pair(x.values.reshape(-1), masks.reshape(x.inner, (x.inner.numel(),)), x.payload)


def _reduce_features(x: Packed, dims: Sequence[int], keepdim: bool, kernel: Any) -> Any:
    y = features_last(x, dims)
    result = kernel(y, list(range(y.values.dim() - len(dims), y.values.dim())))
    several = isinstance(result, (tuple, list))
    parts = tuple(_drop_dims(pack_values(r, y), () if keepdim else dims) for r in (result if several else (result,)))
    return parts if several else parts[0]


def _drop_dims(x: Packed, dims: Sequence[int]) -> Packed:
    """Without dimensions of which nothing is left."""
    order = tuple(o for d, o in enumerate(x.order) if d not in dims)
    return Packed(x.values, x.grid, order, x.inner, x.payload)


def _as_scalars(result: Any, shape: Sequence[int]) -> Any:
    if isinstance(result, (tuple, list)):
        return tuple(_as_scalars(r, shape) for r in result)
    return pair.moved(pair.as_pair(result), torch.reshape, tuple(shape))


def reduce_time(x: Packed, dims: Sequence[int], keepdim: bool, segments: Segments, kernel: Any) -> Pair:
    """Over time, and the features in ``dims``: each sequence is a segment, reduced by ``segments``."""
    inside = [d for d in dims if orders.is_feature(x.order[d], x.first)]
    grid = [x.order[d] for d in dims if d not in inside]
    if grid != [(1,)] or (0,) not in x.order or x.first != GRID:
        raise NoRule
    if inside and (segments is NONZERO or (segments is MEANS and x.inner is not None)):
        raise NoRule  # tokens count for as many entries as are valid in them
    y = _reduce_features(x, inside, True, kernel) if inside else x
    number = _segment_counts(y)
    values = y.values
    if y.inner is not None:
        if segments.name is None:
            raise NoRule
        values = select(values, y.inner, identity(segments.name, values.dtype))
    data = segments.run(values, y, number)
    read = [a for o in y.order for a in o if a != 1]
    shape = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    data, some = (
        t.permute([0 if a == 0 else a - GRID + 1 for a in read]).reshape(shape)
        for t in (data, (number > 0).expand(data.shape))
    )
    if not keepdim:
        gone = list(dims)
        data, some = data.squeeze(gone), some.squeeze(gone)
    return Pair(data, masks.expand_to(some, data.shape))


def segment_sums(values: Tensor, x: Packed) -> Tensor:
    """The sum of each sequence: of its stretches one entry after the other, then over those as torch adds."""
    wide = values.to(torch.int64) if not (values.is_floating_point() or values.is_complex()) else values
    if wide.dtype in (torch.float16, torch.bfloat16):
        return segment_sums(wide.float(), x).to(wide.dtype)
    place, number = x.grid.stretches
    if wide.dtype is torch.float32 and wide.numel() and is_readable_memory(wide) and not is_tracked(wide):
        parts = _sums_from(wide, x.grid.stretch_offsets)
        return parts if number == 1 else parts.unflatten(0, (-1, number)).sum(1)
    parts = wide.new_zeros((x.grid.shape[0] * number, *wide.shape[1:])).index_add(0, place, wide)
    return parts if number == 1 else parts.unflatten(0, (-1, number)).sum(1)


def _segment_counts(x: Packed) -> Tensor:
    """How many entries of each sequence are valid: (B, ..), of a size 1 where all features have the same."""
    if x.inner is None:
        return x.grid.lengths.reshape(-1, *(1,) * (x.values.dim() - 1))
    return _segment_trues(masks.compact(x.inner).expand(len(x.inner), *(-1,) * (x.inner.dim() - 1)), x)


def _segment_trues(flags: Tensor, x: Packed) -> Tensor:
    """How many of the ``flags`` (N, ..) of each sequence are True."""
    if not is_readable_memory(flags) or x.grid.shape[1] >= settings.EXACT or not flags.numel():
        return segment_sums(flags.to(torch.int64), x)
    return _sums_from(flags.float(), x.grid.offsets[:-1])  # exact for so few


def _sums_from(values: Tensor, begins: Tensor) -> Tensor:
    """Sums of float32 that lie behind one another, untracked: in a fraction of the time of ``index_add``."""
    rows = values.reshape(len(values), -1)
    sums = torch.nn.functional.embedding_bag(torch.arange(len(rows)), rows, begins, mode="sum")
    return sums.reshape(-1, *values.shape[1:])


def _means(values: Tensor, x: Packed, number: Tensor) -> Tensor:
    """The mean of each sequence; 0 for one of which nothing is valid."""
    if values.dtype in (torch.float16, torch.bfloat16):
        return _means(values.float(), x, number).to(values.dtype)
    if not (values.is_floating_point() or values.is_complex()):
        raise NoRule
    return segment_sums(values, x) / number.clamp_min(1).to(values.dtype)


def _extreme(name: str) -> Segments:
    """The greatest or least of each sequence."""

    def kernel(values: Tensor, x: Packed, _: Tensor) -> Tensor:
        start = values.new_zeros((x.grid.shape[0], *values.shape[1:]))
        at = x.grid.batch.reshape(-1, *(1,) * (values.dim() - 1)).expand(values.shape)
        return start.scatter_reduce(0, at, values, name, include_self=False)

    return Segments(name, kernel)


SUMS = Segments("sum", lambda values, x, _: segment_sums(values, x))
MEANS = Segments("mean", _means)
NONZERO = Segments("sum", lambda values, x, _: _segment_trues(values != 0, x).to(torch.int64))
EXTREMES = {name: _extreme(name) for name in ("amax", "amin")}
