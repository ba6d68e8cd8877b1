"""The family extremes under the laws."""

from .laws import laws

test_law = laws("extremes")
