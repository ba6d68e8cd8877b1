"""The family similarity under the laws."""

from .laws import laws

test_law = laws("similarity")
