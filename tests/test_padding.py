"""The family padding under the laws."""

from .laws import laws

test_law = laws("padding")
