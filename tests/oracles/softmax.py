"""Softmax: one slice at a time, plain torch on the valid entries alone."""

from typing import Any

import torch

from ..helpers.harness import Masked


def slices(function: Any, x: Masked, dim: int, dtype: torch.dtype | None) -> Masked:
    data = x.data if dtype is None else x.data.to(dtype)
    mask = x.mask.expand(data.shape)
    if data.dim() == 0 or data.numel() == 0:
        return Masked(function(data, dim), mask)
    rows, valid = (t.movedim(dim, -1).reshape(-1, data.shape[dim]) for t in (data, mask))
    out = torch.stack(
        [torch.zeros_like(r).masked_scatter(v, function(r[v], 0)) for r, v in zip(rows, valid, strict=True)]
    )
    return Masked(out.reshape(data.movedim(dim, -1).shape).movedim(-1, dim), mask)


def softmax(op: Any, x: Masked, dim: int, dtype: torch.dtype | None = None, **_: Any) -> Masked:
    return slices(torch.softmax, x, dim, dtype)


def log_softmax(op: Any, x: Masked, dim: int, dtype: torch.dtype | None = None) -> Masked:
    return slices(torch.log_softmax, x, dim, dtype)


def softmin(op: Any, x: Masked, dim: int, dtype: torch.dtype | None = None) -> Masked:
    return slices(lambda row, dim: torch.softmax(-row, dim), x, dim, dtype)


def safe_softmax(op: Any, x: Masked, dim: int, dtype: torch.dtype | None = None) -> Masked:
    def zeros_for_infinity(row: torch.Tensor, dim: int) -> torch.Tensor:
        return torch.zeros_like(row) if (row == float("-inf")).all() else torch.softmax(row, dim)

    return slices(zeros_for_infinity, x, dim, dtype)


ORACLES = {
    "softmax": softmax,
    "softmax.with_dtype": softmax,
    "log_softmax": log_softmax,
    "log_softmax.with_dtype": log_softmax,
    "nn.functional.softmin": softmin,
    "nn.functional.softmin.with_dtype": softmin,
    "torch.ops.aten._safe_softmax.default": safe_softmax,
}
