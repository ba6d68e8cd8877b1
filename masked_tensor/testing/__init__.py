"""Checks a user can run on his own functions and models: invisible payload, padding invariance, equality."""

from .padding import check_padding_invariance
from .payload import PAYLOADS, assert_close, check_invisible_payload, poison
from .rules import check_rule

__all__ = ["PAYLOADS", "assert_close", "check_invisible_payload", "check_padding_invariance", "check_rule", "poison"]
