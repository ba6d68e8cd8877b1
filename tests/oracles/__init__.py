"""Slow independent oracles, one file per family.

Each file has ``ORACLES: dict[str, Oracle]`` from the database's entry names (``"sum"``, ``"std_mean.unbiased"``) to an
oracle ``(op, *args, **kwargs)`` which gets the case's arguments with ``harness.Masked`` records for masked tensors and
returns ``Masked`` records (or plain things), in the structure of the op's own result.
``XFAIL: dict[(entry, law), reason]`` lists strict expected failures; laws: value garbage gradient identity inplace
compiled inference vmap autocast.
"""

import importlib
import pkgutil
from typing import Any

FAMILY: dict[str, str] = {}
ORACLES: dict[str, Any] = {}
XFAIL: dict[tuple[str, str], str] = {}
for _module in pkgutil.iter_modules(__path__):
    _file = importlib.import_module(f"{__name__}.{_module.name}")
    for _name, _oracle in getattr(_file, "ORACLES", {}).items():
        assert _name not in ORACLES, f"{_name} has two oracles"
        ORACLES[_name], FAMILY[_name] = _oracle, _module.name
    XFAIL.update(getattr(_file, "XFAIL", {}))
