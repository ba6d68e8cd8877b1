"""Variance and its kin, slice by slice."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .slices import reduced


def moments(*kinds: str) -> Callable[..., Any]:
    def oracle(
        op: Any, x: Masked, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, **kw: Any
    ) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = kw.get("correction")
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)

        def variance(v: Tensor) -> Tensor:
            if v.numel() == 0:  # torch's own result where there is nothing at all
                return v.abs().sum() * torch.nan
            if v.numel() <= correction:
                return v.abs().sum()
            return (v - v.mean()).abs().square().sum() / (v.numel() - correction)

        results = {"var": lambda v: variance(v), "std": lambda v: variance(v).sqrt(), "mean": torch.mean}
        out = [reduced(x, dim, keepdim, results[k], None if k == "mean" else correction) for k in kinds]
        return out[0] if len(out) == 1 else tuple(out)

    return oracle


ORACLES = {
    **{f"{name}{variant}": moments(name) for name in ("var", "std") for variant in ("", ".unbiased")},
    **{f"{name}_mean{variant}": moments(name, "mean") for name in ("var", "std") for variant in ("", ".unbiased")},
}
SAMPLED = torch.__version__ >= "2.13"  # whose database has such samples
EMPTY = "too few valid entries are masked, where the plain op gives NaN (the exception in L6)"
XFAIL = {(f"{name}.unbiased", "identity"): EMPTY for name in ("var", "std", "var_mean", "std_mean") if SAMPLED}
