"""The family scatter under the laws."""

from .laws import laws

test_law = laws("scatter")
