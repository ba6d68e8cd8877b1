"""The family fold under the laws."""

from .laws import laws

test_law = laws("fold")
