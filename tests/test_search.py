"""The family search under the laws."""

from .laws import laws

test_law = laws("search")
