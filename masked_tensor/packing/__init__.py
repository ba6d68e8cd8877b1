"""Packed rows: what is stored is valid; what is not is masked.

A padded batch ``(B, T, ...)`` is stored as the rows of its grid ``(B, T)`` that hold anything valid.  ``Rows`` says
which those are, ``Packed`` holds their values, and an *order* says how the dimensions of the tensor that the world sees
are made of the grid and of the features.  A row of the table names its *packed rule* (``Op(..., packed=rule)``), which runs the
plain op on the stored values, or the family's own rule where a stored row has holes of its own.  What has no form is
spread, once, and takes the ordinary rule: the result lies within the rows of a packed operand, or the op falls back.
"""

from .grid import Grid
from .packed import Frame, Packed, from_parts, logical_mask, pack, pack_onto, unpack

__all__ = ["Frame", "Grid", "Packed", "from_parts", "logical_mask", "pack", "pack_onto", "unpack"]
