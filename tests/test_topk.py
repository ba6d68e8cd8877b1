"""The family topk under the laws."""

from .laws import laws

test_law = laws("topk")
