"""Checks for your own functions, models and rules: masked-out data, padding, equality, and the laws of rules."""

from .padding import check_padding_invariance
from .payload import PAYLOADS, assert_close, check_invisible_payload, poison
from .rules import check_rule

__all__ = ["PAYLOADS", "assert_close", "check_invisible_payload", "check_padding_invariance", "check_rule", "poison"]
