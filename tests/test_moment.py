"""The family moment under the laws."""

from .laws import laws

test_law = laws("moment")
