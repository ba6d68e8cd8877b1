"""The family scan under the laws."""

from .laws import laws

test_law = laws("scan")
