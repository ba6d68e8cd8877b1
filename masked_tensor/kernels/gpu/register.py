"""Puts the kernels into the table, where Triton and the compiler that it needs are there."""

from dataclasses import replace

from triton.runtime import driver

from ..table import ANY, KERNELS
from .entries import ENTRIES

driver.active.get_current_target()  # raises where Triton cannot build what launches a kernel: then there are formulas
for _name, _kernel in ENTRIES.items():
    KERNELS[_name, "cuda"] = replace(_kernel, otherwise=KERNELS.get((_name, ANY)))
