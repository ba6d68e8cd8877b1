"""The family ctc under the laws."""

from .laws import laws

test_law = laws("ctc")
