"""The family cross under the laws."""

from .laws import laws

test_law = laws("cross")
