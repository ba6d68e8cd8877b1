"""Norms, slice by slice."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .slices import Dim, masked, reduced


def norm(op: Any, x: Masked, p: Any = 2, dim: Dim = None, keepdim: bool = False, **keywords: Any) -> Masked:
    p = keywords.get("ord", p)
    p = 2 if p == "fro" or p is None else p
    return reduced(x, keywords.get("dim", dim), keepdim, lambda v: torch.linalg.vector_norm(v, p))


def dist(op: Any, x: Any, y: Any, p: float = 2) -> Masked:
    x, y = masked(x), masked(y)
    return norm(op, Masked(x.data - y.data, x.mask & y.mask), p)


ORACLES = {**dict.fromkeys(("norm", "norm.inf", "norm.fro", "linalg.vector_norm"), norm), "dist": dist}
