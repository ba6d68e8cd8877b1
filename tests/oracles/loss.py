"""Losses: plain torch on the valid entries alone, sample by sample where a sample is more than an entry."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ..helpers.harness import Masked


def both(x: Any) -> Masked:
    return x if isinstance(x, Masked) else Masked(x, torch.ones(x.shape, dtype=torch.bool))


def reduced(entries: Tensor, mask: Tensor, reduction: str, weight: Tensor | None = None) -> Masked:
    if reduction == "none":
        return Masked(entries, mask)
    if mask.numel() and not mask.any():
        return Masked(entries.new_zeros(()), torch.tensor(False))
    total = entries[mask].sum()
    if reduction == "mean":
        total = total / (mask.sum() if weight is None else weight[mask].sum())
    return Masked(total, torch.tensor(True))


def by_entry(op: Any, *args: Any, reduction: str = "mean", **kwargs: Any) -> Masked:
    """The op on one-dimensional tensors of the valid entries."""
    named = {**dict(enumerate(args)), **kwargs}
    operands = {k: both(v) for k, v in named.items() if isinstance(v, Masked | Tensor)}
    datas = torch.broadcast_tensors(*(v.data for v in operands.values()))
    mask = torch.ones(datas[0].shape, dtype=torch.bool)
    for operand in operands.values():
        mask = mask & operand.mask
    flat = {**named, **{k: d[mask] for k, d in zip(operands, datas, strict=True)}}
    args = tuple(flat.pop(i) for i in range(len(args)))
    values = op(*args, reduction="none", **flat)
    return reduced(torch.zeros(mask.shape, dtype=values.dtype).masked_scatter(mask, values), mask, reduction)


def kl_div(op: Any, x: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Masked:
    """Its ``batchmean`` divides by the number of rows with a valid entry."""
    result = by_entry(
        F.kl_div, x, target, reduction="sum" if reduction == "batchmean" else reduction, log_target=log_target
    )
    if reduction != "batchmean" or not both(x).data.dim():
        return result
    valid = torch.broadcast_tensors(both(x).mask, both(target).mask)
    rows = (valid[0] & valid[1]).reshape(len(both(x).data), -1).any(1).sum()
    return Masked(result.data / rows.clamp(min=1), result.mask)


def samples(x: Masked, dim: int) -> tuple[Tensor, Tensor]:
    """Data and mask with one row per sample."""
    return tuple(t.movedim(dim, -1).reshape(-1, t.shape[dim]) for t in (x.data, x.mask.expand(x.data.shape)))


def gaussian_nll_loss(
    op: Any, x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Masked:
    x, target, var = both(x), both(target), both(var)
    if var.data.shape != x.data.shape and x.data.shape[:-1] == var.data.shape:
        var = Masked(var.data.unsqueeze(-1), var.mask.unsqueeze(-1))
    return by_entry(F.gaussian_nll_loss, x, target, var, full=full, eps=eps, reduction=reduction)


ENTRYWISE = """
    mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss
    hinge_embedding_loss margin_ranking_loss poisson_nll_loss
"""


ORACLES = {
    f"nn.functional.{name}": oracle
    for name, oracle in (
        *dict.fromkeys(ENTRYWISE.split(), by_entry).items(),
        ("kl_div", kl_div),
        ("gaussian_nll_loss", gaussian_nll_loss),
    )
}
XFAIL = {
    ("nn.functional.gaussian_nll_loss", "compiled"): "torch's own check of var branches on data: no full graph",
}
