"""An import hook that hides the private packages of ``masked_tensor`` from its satellites: ``-p tests.helpers.hidden``.

As for a package of somebody else there are the top level, ``extend``, and what the satellite consists of.
"""

import builtins
from importlib.util import resolve_name
from typing import Any

import masked_tensor

SATELLITES = ("integrations", "stats", "testing", "train")
_import = builtins.__import__


def _checked(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    scope, names = globals, fromlist
    found = _import(name, globals, locals, fromlist, level)
    importer = (scope or {}).get("__name__", "")
    own = next((s for s in SATELLITES if f"{importer}.".startswith(f"masked_tensor.{s}.")), None)
    if own is not None:
        whole = resolve_name("." * level + name, scope["__package__"])
        modules = [whole] if whole != "masked_tensor" else [f"{whole}.{n}" for n in names or ()]
        for module in modules:
            _, _, rest = module.partition("masked_tensor.")
            room = rest.partition(".")[0]
            if module.startswith("masked_tensor.") and room not in (own, "extend", *masked_tensor.__all__):
                raise ModuleNotFoundError(f"{importer} imports {module}, which nobody outside may")
    return found


def hide() -> None:
    """From now on, in this process."""
    builtins.__import__ = _checked


def pytest_configure() -> None:
    """As a plugin; a test that collects this file for its examples changes nothing."""
    hide()
