"""The family choose under the laws."""

from .laws import laws

test_law = laws("choose")
