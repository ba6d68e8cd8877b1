"""Ops in closed form, each with its formula beside it; no other room decides by device how an op is computed."""

from . import attention, attention_rows, chunks, max_pool, softmax, standardize, variance
from .reductions import reduce
from .table import KERNELS, Kernel, run

__all__ = [
    "KERNELS", "Kernel", "attention", "attention_rows", "chunks", "max_pool", "reduce", "run", "softmax", "standardize",
    "variance",
]  # fmt: skip
