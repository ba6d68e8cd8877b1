"""The family norm under the laws."""

from .laws import laws

test_law = laws("norm")
