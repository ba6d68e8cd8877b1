"""The family average under the laws."""

from .laws import laws

test_law = laws("average")
