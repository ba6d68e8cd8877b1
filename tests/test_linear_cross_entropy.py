"""The family linear cross entropy under the laws."""

from .laws import laws

test_law = laws("linear_cross_entropy")
