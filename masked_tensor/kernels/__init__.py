"""Ops in closed form, each beside its formula; no other package decides by device how an op is computed."""

from . import chunks, max_pool, softmax, standardize, variance
from .attention import fused, rows  # noqa: F401 (they list their kernels)
from .reductions import reduce
from .table import KERNELS, Kernel, run

__all__ = ["KERNELS", "Kernel", "chunks", "max_pool", "reduce", "run", "softmax", "standardize", "variance"]
