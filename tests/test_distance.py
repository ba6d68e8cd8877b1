"""The family distance under the laws."""

from .laws import laws

test_law = laws("distance")
