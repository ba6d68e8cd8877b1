"""Identities: values that do not change a reduction, so they can replace masked-out data."""

import torch


def identity(reduction: str, dtype: torch.dtype) -> float:
    """For sum, mean, prod, max (amax) and min (amin); for the last two, the least (greatest) value of ``dtype``.

    Valid entries may also have that value.

    >>> identity("amax", torch.int8)
    -128
    """
    if reduction in ("sum", "mean", "prod"):
        return 1 if reduction == "prod" else 0
    largest = reduction in ("max", "amax")
    if dtype is torch.bool:
        return not largest
    if dtype.is_floating_point:
        return -float("inf") if largest else float("inf")
    if dtype.is_complex:
        return 0  # complex numbers have no order: the plain op says so
    info = torch.iinfo(dtype)
    return info.min if largest else info.max
