"""Casts: the plain op on harmless data, under the same mask."""

from .pointwise import CASTS
from .random import under

ORACLES = dict.fromkeys(("to", *CASTS), under(0))
XFAIL = {
    (name, "gradient"): "gradcheck compares in double precision only"
    for name in ("bfloat16", "cfloat", "chalf", "float", "half")
}
