"""The family cross entropy under the laws."""

from .laws import laws

test_law = laws("cross_entropy")
