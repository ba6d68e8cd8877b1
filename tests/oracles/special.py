"""Special functions, entry by entry."""

from typing import Any

from .pointwise import ENTRYWISE, UNDEFINED, elementwise, family

ORACLES: dict[str, Any] = {name: elementwise for name in ENTRYWISE if family(name) == "special"}
XFAIL = {("special.entr", "gradient"): UNDEFINED}
