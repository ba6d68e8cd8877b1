"""The family covariance under the laws."""

from .laws import laws

test_law = laws("covariance")
