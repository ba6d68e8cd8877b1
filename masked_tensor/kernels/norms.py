"""Norms of what is filled: with 0, or with inf where a negative order would see the 0."""

from typing import Any

import torch
from torch import Tensor

from ..pair import Pair, Payload
from ..select import fill_masked, zero_masked
from .table import run

_NAMES = {None: "norm2", 1: "norm1", 2: "norm2", float("inf"): "norminf"}


def norm(
    x: Pair, dims: tuple[int, ...], keepdim: bool, op: Any, p: float | None, given: Any, keywords: dict[str, Any]
) -> Tensor:
    """``sum(abs(x) ** p) ** (1 / p)``; ``given`` and ``keywords`` are the other arguments of ``op``."""
    options = x.payload, dims, keepdim, keywords.get("dtype"), op, p, given, keywords
    result: Tensor = run(_NAMES.get(p, "norm"), formula, (x.data, x.mask), *options)
    return result


def formula(
    data: Tensor, mask: Tensor, payload: Payload, dims: Any, keepdim: bool, dtype: torch.dtype | None, op: Any,
    p: float | None, given: Any, keywords: dict[str, Any],
) -> Tensor:  # fmt: skip
    """By torch's own op, whatever its name."""
    x = Pair(data, mask, payload)
    filled = fill_masked(x, float("inf")) if p is not None and p < 0 else zero_masked(x)
    # torch's derivative along a dimension compares the result with entries that have the dtype of the input.
    cast = dtype is not None and (filled.is_floating_point() or filled.is_complex())  # others raise in torch's words
    result: Tensor = op(filled.to(dtype) if cast else filled, p, *given, **keywords)
    return result
