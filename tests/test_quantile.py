"""The family quantile under the laws."""

from .laws import laws

test_law = laws("quantile")
