"""Packed batches: stored entries are valid; all others are masked.

A padded batch ``(B, T, ...)`` is stored as the tokens of its grid ``(B, T)`` that hold anything valid.  ``Grid`` says
which those are, ``Packed`` holds their values, and an *order* says how the logical dimensions of the tensor are made of
the grid and of the features.  An op of the table names its *packed rule* (``Op(..., packed=rule)``), which runs the
plain op on the stored values, or the family's own rule where some of them are masked.  Where no packed rule takes the
arguments, the tensor is unpacked, once, and the ordinary rule runs.  The result of a packed rule lies within the tokens
of a packed operand.
"""

from .grid import Grid
from .packed import Frame, Packed, from_parts, logical_mask, pack, pack_onto, unpack

__all__ = ["Frame", "Grid", "Packed", "from_parts", "logical_mask", "pack", "pack_onto", "unpack"]
