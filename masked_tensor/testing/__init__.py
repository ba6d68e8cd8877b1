"""Checks for your functions, models and rules: masked-out data, padding, flat tokens, equality, properties of rules."""

from .flat import check_flat
from .invisible import GARBAGE, assert_close, check_invisible_data, poison
from .padding import check_padding_invariance
from .rules import check_rule

__all__ = [
    "GARBAGE", "assert_close", "check_flat", "check_invisible_data", "check_padding_invariance", "check_rule", "poison",
]  # fmt: skip
