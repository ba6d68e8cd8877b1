"""The family cast under the laws."""

from .laws import laws

test_law = laws("cast")
