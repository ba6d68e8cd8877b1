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

from .elements import is_sparse, keys, same_pattern, to, values, values_at, verbs_of, with_values
from .pairs import any_sparse, both_valid, copy_mask, overwrite, pair_on_pattern, to_dense
from .validity import dense_mask, nonzero, restrict, specified_mask, valid_outputs, zero_masked_values

__all__ = [
    "any_sparse",
    "both_valid",
    "copy_mask",
    "dense_mask",
    "is_sparse",
    "keys",
    "nonzero",
    "overwrite",
    "pair_on_pattern",
    "restrict",
    "same_pattern",
    "specified_mask",
    "to",
    "to_dense",
    "valid_outputs",
    "values",
    "values_at",
    "verbs_of",
    "with_values",
    "zero_masked_values",
]
