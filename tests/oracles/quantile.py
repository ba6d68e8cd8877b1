"""Quantiles and modes, slice by slice."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .index import masked
from .order import picked, slices


def mode(op: Any, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return picked(masked(x), dim, keepdim, lambda v: torch.mode(v) if len(v) else None)


def quantile_with(plain: Callable[..., Any]) -> Callable[..., Any]:
    def oracle(op: Any, x: Any, q: Any, dim: int | None = None, keepdim: bool = False, **kwargs: Any) -> Masked:
        x, share = masked(x), masked(q if isinstance(q, Masked | Tensor) else x.data.new_tensor(q))
        found, outer = slices(x, dim)
        if dim is None or x.data.dim() == 0:
            outer = (1,) * x.data.dim() if keepdim else ()
        elif keepdim:
            outer = (*outer[: dim % x.data.dim()], 1, *outer[dim % x.data.dim() :])
        levels = torch.flatten(share.data)
        rows = [
            plain(v, torch.where(torch.flatten(share.mask), levels, 0), **kwargs) if len(v) else levels * 0
            for _, _, v in found
        ]
        data = torch.stack(rows, -1).reshape((*share.data.shape, *outer))
        valid = torch.tensor([len(v) > 0 for _, _, v in found]).expand(len(levels), -1) & share.mask.reshape(-1, 1)
        return Masked(data, valid.reshape((*share.data.shape, *outer)))

    return oracle


ORACLES = {
    "mode": mode,
    "quantile": quantile_with(torch.quantile),
    "nanquantile": quantile_with(torch.nanquantile),
}
if torch.__version__ < "2.13":
    XFAIL = {(name, "compiled"): "torch's own quantile compares values" for name in ("quantile", "nanquantile")}
