"""The family segment under the laws."""

from .laws import laws

test_law = laws("segment")
