"""The family join under the laws."""

from .laws import laws

test_law = laws("join")
