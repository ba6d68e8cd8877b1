"""The family margin under the laws."""

from .laws import laws

test_law = laws("margin")
