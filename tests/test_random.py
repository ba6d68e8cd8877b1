"""The family random under the laws."""

from .laws import laws

test_law = laws("random")
