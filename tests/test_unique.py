"""The family unique under the laws."""

from .laws import laws

test_law = laws("unique")
