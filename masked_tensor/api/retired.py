"""Names that the package no longer has at its top level, each of which still works for one minor version."""

import warnings
from importlib import import_module
from typing import Any, NamedTuple


class Retired(NamedTuple):
    """What stands for a name that was public."""

    replacement: str  #: its full name, as ``"masked_tensor.extend.Pair"``
    until: str  #: the first version without the old name, as ``"0.3"``


#: The names that were public.  "Stability" in the documentation says when one is entered here, and when it is removed.
NAMES: dict[str, Retired] = {}


def find(name: str) -> Any:
    """What the retired ``name`` stands for, with a DeprecationWarning that says what to write instead."""
    replacement, until = NAMES[name]
    message = f"masked_tensor.{name} is {replacement} now; the old name will be removed in version {until}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    module, _, attribute = replacement.rpartition(".")
    return getattr(import_module(module), attribute)
