"""The families on stored values: cost grows with the stored entries, and nothing becomes dense; no op is known by name.

The six constructions of ``input_mask``
---------------------------------------
A masked reduction is the plain
reduction of an ``input_mask`` whose hidden elements hold the reduction's identity ``I``. Take ``input = [*, *, *, x,
y, z]`` and ``mask = [*, F, T, *, F, T]``, with ``*`` unspecified.  Six patterns are possible:

== ==========================  ==================================================================================
1  ``[*, *, 0, *, *, z]``      what the mask shows, and nothing else
2  ``[*, I, 0, *, I, z]``      the mask's pattern
3  ``[*, I, 0, I, I, z]``      the union of both patterns
4  ``[I, I, 0, I, I, z]``      dense: the definition, never practical
5  ``[*, *, 0, *, *, *]``      only the zeros that the mask shows
6  ``[*, *, *, *, *, z]``      only the stored values that the mask shows
== ==========================  ==================================================================================

Here every reduction stores construction 6 and *counts* construction 5: the stored-and-valid values are scattered into
their outputs, and the number of valid-but-unspecified zeros of an output follows from two counts.

* sum, nansum, count_nonzero, any, norm: zeros do not matter, 6 alone.
* prod, all: an output is 0 (False) as soon as its count is not 0: 5 decides, otherwise 6.
* amax, amin, aminmax: 6, then the greater (lesser) of that and 0 if the count is not 0.
* mean, var, std, logsumexp: 6, and the count enters the formula (``n``, ``count * mean ** 2``, ``count * exp(-max)``).
* median, quantile and their nan-forms: 6 sorted, the zeros of an output being one more entry that stands for its count.
* mode: the same, and the last position of 5.
* argmax, argmin, max, min: 6, and the first position of 5 (construction 1 without its values) where 0 is the extreme.
* unique, unique_consecutive: 6, and a run of zeros wherever the ranks of two stored values are not neighbours.
* dist and elementwise losses: 6 of the union of the patterns, and the count times the value at zeros.
* cross_entropy, nll_loss: logsumexp, and the entries of 6 that the targets name, else 0.

Positions and ranks in 5 are found by counting what is in between, so that no repeated mask is ever spelled out.

Constructions 2 to 4 only add identities, which change no result.  The cost is that of the stored entries of input and
mask; a strided mask costs its own number of elements before broadcasting.

Which outputs are stored
------------------------
A result has the input's layout if that can hold it (CSR, CSC, BSR
and BSC: two dimensions, so ``keepdim=True``), is COO otherwise, and strided when no dimension is left.  It stores the
outputs that have a stored-and-valid element; the others are 0 or have nothing valid.  logsumexp, argmax, argmin, mode,
var and std also store outputs of zeros alone where those do not give 0.  Everywhere a valid element exists,
``result.to_dense()`` equals the strided result.
"""

from .along import normalize, scan, scan_extreme, softmax
from .classes import cross_entropy, plain_classes
from .distinct import mode, unique, unique_consecutive
from .norms import local_response_norm, normalize_by, standardize
from .order import extreme, position
from .ranks import median, quantile
from .reduction import check_nonempty, reduce
from .two_operands import count_valid_rows, dist, loss, mask_and

__all__ = [
    "check_nonempty",
    "count_valid_rows",
    "cross_entropy",
    "dist",
    "extreme",
    "local_response_norm",
    "loss",
    "mask_and",
    "median",
    "mode",
    "normalize",
    "normalize_by",
    "plain_classes",
    "position",
    "quantile",
    "reduce",
    "scan",
    "scan_extreme",
    "softmax",
    "standardize",
    "unique",
    "unique_consecutive",
]
