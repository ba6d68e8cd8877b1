"""Tools for your own rules and libraries: pairs, fills, masks, rules for sparse and packed storage, tables.

A *rule* says what an operator does with masked tensors.  It is a function on :class:`Pair` records of plain tensors,
registered by :func:`register_rule`.  "Writing rules" in the documentation teaches it in three examples.
"""

from ..api.containers.kinds import register_container
from ..engine.dispatch import register_rule
from ..layouts import specified_mask as _specified_mask
from ..op import NoRule
from ..packing import Packed
from ..pair import Pair, Payload
from ..shared.names import names_arguments as _names_arguments
from . import data, libraries, masks, means, ranks
from .fills import guard, select, zero_masked
from .kernels import register_kernel, run_kernel
from .report import packing_report
from .segments import Segments
from .storage import pack_like, packed_features, packed_reduction, packed_rule, sparse_reduction, sparse_rule

__all__ = [
    "NoRule",
    "Packed",
    "Pair",
    "Payload",
    "Segments",
    "data",
    "guard",
    "libraries",
    "masks",
    "means",
    "pack_like",
    "packed_features",
    "packed_reduction",
    "packed_rule",
    "packing_report",
    "ranks",
    "register_container",
    "register_kernel",
    "register_rule",
    "run_kernel",
    "select",
    "sparse_reduction",
    "sparse_rule",
    "specified_mask",
    "zero_masked",
]

specified_mask = _names_arguments(_specified_mask)
