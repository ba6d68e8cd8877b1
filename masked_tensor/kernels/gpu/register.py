"""Registers the kernels and fills, if Triton and the compiler that it needs are there."""

from dataclasses import replace

from triton.runtime import driver

from ...fill import FILLS
from .. import watching
from ..table import ANY, KERNELS
from .entries import ENTRIES, compiled, where_they_lie
from .fill import fill_

driver.active.get_current_target()  # raises where Triton cannot build what launches a kernel: then there are formulas
for _name, _kernel in ENTRIES.items():
    KERNELS[_name, "cuda"] = replace(_kernel, otherwise=KERNELS.get((_name, ANY)))
FILLS["cuda"] = where_they_lie(fill_)
watching.TELLERS.append(compiled)
