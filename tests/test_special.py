"""The family special under the laws."""

from .laws import laws

test_law = laws("special")
