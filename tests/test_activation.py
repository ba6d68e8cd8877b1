"""The family activation under the laws."""

from .laws import laws

test_law = laws("activation")
