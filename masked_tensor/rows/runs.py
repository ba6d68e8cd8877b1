"""Ops along time, or along the keys of scores: each run of sequences of one length is one call of the plain op."""

from typing import Any

import torch
from torch import Tensor

from ..op import Form, NoForm, Rule
from . import features
from .features import alone
from .lifts import either
from .order import GRID
from .packed import Packed, made
from .products import pieces
from .views import position


def along_time(at: int = 1, *, ranked: bool = False) -> Form:
    """An op of one tensor along one dimension, argument ``at``, that keeps the shape: softmax, cumsum, sort.

    ``ranked``: it tells places, or moves entries: both are what they are in the grid only if sequences are prefixes.
    """

    def make(rule: Rule, op: Rule) -> Rule:
        def form(x: Any, *args: Any, **kwargs: Any) -> Any:
            alone(x, args, kwargs)
            dim = kwargs["dim"] if "dim" in kwargs else args[at - 1] if len(args) >= at else -1
            axis = _axis(x, dim, ranked)
            rest = {k: v for k, v in kwargs.items() if k != "dim"}
            before, after = args[: at - 1], args[at:]
            results = [op(p, *before, axis, *after, **rest) for p in pieces(x)]
            if isinstance(results[0], Tensor):
                return made(_joined(results, x), x)
            return tuple(made(_joined(parts, x), x) for parts in zip(*results, strict=True))

        return form

    return Form("along time", make)


def along(at: int = 1, *, ranked: bool = False) -> Form:
    """An op of one tensor along one dimension, of features or of time."""
    return either(features.along(at), along_time(at, ranked=ranked))


def _axis(x: Packed, dim: Any, ranked: bool) -> int:
    if not isinstance(dim, int) or x.inner is not None or not x.values.numel():
        raise NoForm
    atoms = x.order[position(dim, x)]
    if len(atoms) != 1 or not 0 < atoms[0] < x.first or (ranked and not (x.first == GRID and x.rows.prefix)):
        raise NoForm
    return atoms[0]


def _joined(parts: Any, x: Packed) -> Tensor:
    return torch.cat([p.reshape(-1, *x.values.shape[1:]) for p in parts])
