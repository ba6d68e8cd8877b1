"""The family batch norm under the laws."""

from .laws import laws

test_law = laws("batch_norm")
