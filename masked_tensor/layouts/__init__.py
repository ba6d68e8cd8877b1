"""Layouts: strided, COO and compressed (CSR, CSC, BSR, BSC) are siblings with the same verbs.

What an element of a sparse input means under a mask
----------------------------------------------------
=================  ==================================  =============================
in the input       the mask shows it                   the mask hides it
=================  ==================================  =============================
specified          takes part with its value           does not take part
unspecified        takes part as 0                     does not take part
=================  ==================================  =============================

A strided mask shows its True elements, a sparse mask those it *specifies* as True: explicit False and unspecified are
hidden.  ``mask=None`` shows everything (reductions, losses) or the stored elements (softmax, normalize, norm layers,
scans), in whose pattern the result is.

The families on stored values are in ``sparse/``.
"""

from .elements import at, is_sparse, keys, of, to, values, with_values
from .pairs import dense, involved, overwrite, own, paired
from .validity import dense_mask, nonzero, restricted, specified_mask, valid_outputs, zeroed

__all__ = [
    "at",
    "dense",
    "dense_mask",
    "involved",
    "is_sparse",
    "keys",
    "nonzero",
    "of",
    "overwrite",
    "own",
    "paired",
    "restricted",
    "specified_mask",
    "to",
    "valid_outputs",
    "values",
    "with_values",
    "zeroed",
]
