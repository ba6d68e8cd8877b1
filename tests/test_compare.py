"""The family compare under the laws."""

from .laws import laws

test_law = laws("compare")
