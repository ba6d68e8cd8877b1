"""The family like under the laws."""

from .laws import laws

test_law = laws("like")
