"""Ops along time, or along the keys of scores: each run of sequences of one length is one call of the plain op."""

from typing import Any

import torch
from torch import Tensor

from ..op import Form, NoForm, Rule, Takes
from ..pair import Pair
from . import per_token
from .dim_order import GRID
from .packed import Packed, made
from .products import pieces
from .reduction import means, over_time
from .views import arranged, position

WHOLE = Takes(whole=(0,))


def along_time(at: int = 1, *, ranked: bool = False) -> Form:
    """An op of one tensor along one dimension, argument ``at``, that keeps the shape: softmax, cumsum, sort.

    ``ranked``: it tells places, or moves entries: both are what they are in the grid only if sequences are prefixes.
    """

    def make(rule: Rule, op: Rule) -> Rule:
        def form(x: Packed, *args: Any, **kwargs: Any) -> Any:
            dim = kwargs["dim"] if "dim" in kwargs else args[at - 1] if len(args) >= at else -1
            axis = _axis(x, dim, ranked)
            if len(args) >= at:
                args = (*args[: at - 1], axis, *args[at:])
            else:
                kwargs = {**kwargs, "dim": axis}
            results = [op(p, *args, **kwargs) for p in pieces(x)]
            if isinstance(results[0], Tensor):
                return made(_joined(results, x), x)
            return tuple(made(_joined(parts, x), x) for parts in zip(*results, strict=True))

        return form

    return Form("along time", make, WHOLE)


def along(at: int = 1, *, ranked: bool = False) -> tuple[Form, Form]:
    """An op of one tensor along one dimension, of features or of time."""
    return per_token.along(at), along_time(at, ranked=ranked)


def _sequenced(rule: Rule, op: Rule) -> Rule:
    """Group and instance norm of ``(B, C, T)``: each sequence by itself, over its own length."""

    def form(x: Packed, *args: Any, **kwargs: Any) -> Packed:
        if len(x.order) != 3 or (x.order[0], x.order[2]) != ((0,), (1,)) or not x.values.numel():
            raise NoForm
        if isinstance(args[0], int) and x.shape[1] % args[0]:
            raise NoForm  # the strided rule says what is wrong
        if len(args) > 4 and not (args[2] is args[3] is None and args[4]):
            raise NoForm  # statistics that run along with it
        y = arranged(x, [1])
        parts = [op(p.transpose(1, 2), *args, **kwargs).transpose(1, 2) for p in pieces(y)]
        return made(_joined(parts, y), y)

    return form


def _averaged(rule: Rule, op: Rule) -> Rule:
    def form(x: Packed, output_size: Any) -> Pair:
        if len(x.order) != 3 or x.order[2] != (1,) or list(output_size) != [1]:
            raise NoForm
        return over_time(x, [2], True, means, None)

    return form


sequenced = Form("by sequence", _sequenced, WHOLE)  #: group and instance norm
averaged = Form("mean over time", _averaged, WHOLE)  #: an average pool of all of it


def _axis(x: Packed, dim: Any, ranked: bool) -> int:
    if not isinstance(dim, int) or not x.values.numel():
        raise NoForm
    atoms = x.order[position(dim, x)]
    if len(atoms) != 1 or not 0 < atoms[0] < x.first or (ranked and not (x.first == GRID and x.rows.prefix)):
        raise NoForm
    return atoms[0]


def _joined(parts: Any, x: Packed) -> Tensor:
    return torch.cat([p.reshape(-1, *x.values.shape[1:]) for p in parts])
