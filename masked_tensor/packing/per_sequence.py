"""Ops along time, or along the keys of scores: each run of sequences of one length is one call of the plain op."""

from typing import Any

import torch
from torch import Tensor

from ..compat import in_transform
from ..kernels.identity import identity
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair, Payload
from ..select import select
from . import per_token
from .dim_order import GRID
from .packed import Packed, pack_values
from .products import split_blocks
from .reduction import MEANS, reduce_time
from .views import feature_dim, features_last

WHOLE, RANKED, STORED = Takes(whole=(0,), within=0), Takes(whole=(0,)), Takes(stored=(0,))


def along_time(at: int = 1, *, ranked: bool = False, fill: str | None = None) -> StorageRule:
    """An op of one tensor along one dimension, argument ``at``, that keeps the shape: softmax, cumsum, sort.

    ``ranked``: it tells places, or moves entries: both are what they are in the grid only if sequences are prefixes.
    ``fill``: of a scan, the reduction whose identity stands for a masked entry, whose result is masked.
    """

    def make(rule: Rule, op: Rule) -> Rule:
        def on_packed(x: Packed, *args: Any, **kwargs: Any) -> Any:
            dim = kwargs["dim"] if "dim" in kwargs else args[at - 1] if len(args) >= at else -1
            axis = _axis(x, dim, ranked)
            if len(args) >= at:
                args = (*args[: at - 1], axis, *args[at:])
            else:
                kwargs = {**kwargs, "dim": axis}
            inner, y = x.inner, x
            if inner is not None:
                if fill is None or in_transform():
                    raise NoRule
                y = Packed(select(x.values, inner, identity(fill, x.values.dtype)), x.grid, x.order)

            def packed(parts: Any) -> Packed:
                data = _join_parts(parts, x)
                return pack_values(data if inner is None else Pair(data, inner, Payload.ANY), x)

            results = [op(p, *args, **kwargs) for p in split_blocks(y)]
            return packed(results) if isinstance(results[0], Tensor) else tuple(map(packed, zip(*results, strict=True)))

        return on_packed

    return StorageRule("along time", make, STORED if fill else RANKED if ranked else WHOLE)


def along_any(at: int = 1, *, ranked: bool = False, fill: str | None = None) -> tuple[StorageRule, StorageRule]:
    """An op of one tensor along one dimension, of features or of time."""
    return per_token.along_feature(at), along_time(at, ranked=ranked, fill=fill)


def _per_sequence_norm(rule: Rule, op: Rule) -> Rule:
    """Group and instance norm of ``(B, C, T)``: each sequence by itself, over its own length."""

    def on_packed(x: Packed, *args: Any, **kwargs: Any) -> Packed:
        if len(x.order) != 3 or (x.order[0], x.order[2]) != ((0,), (1,)) or not x.values.numel():
            raise NoRule
        if isinstance(args[0], int) and x.shape[1] % args[0]:
            raise NoRule  # the strided rule says what is wrong
        if len(args) > 4 and not (args[2] is args[3] is None and args[4]):
            raise NoRule  # statistics that run along with it
        y = features_last(x, [1])
        parts = [op(p.transpose(1, 2), *args, **kwargs).transpose(1, 2) for p in split_blocks(y)]
        return pack_values(_join_parts(parts, y), y)

    return on_packed


def _average_pool(rule: Rule, op: Rule) -> Rule:
    def on_packed(x: Packed, output_size: Any) -> Pair:
        if len(x.order) != 3 or x.order[2] != (1,) or list(output_size) != [1]:
            raise NoRule
        return reduce_time(x, [2], True, MEANS, None)

    return on_packed


per_sequence_norm = StorageRule("by sequence", _per_sequence_norm, WHOLE)  #: group and instance norm
average_pool = StorageRule("mean over time", _average_pool, RANKED)  #: an average pool of all of it


def _axis(x: Packed, dim: Any, ranked: bool) -> int:
    if not isinstance(dim, int) or not x.values.numel():
        raise NoRule
    atoms = x.order[feature_dim(dim, x)]
    if len(atoms) != 1 or not 0 < atoms[0] < x.first or (ranked and not (x.first == GRID and x.grid.prefix)):
        raise NoRule
    return atoms[0]


def _join_parts(parts: Any, x: Packed) -> Tensor:
    return torch.cat([p.reshape(-1, *x.values.shape[1:]) for p in parts])
