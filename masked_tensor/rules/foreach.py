"""``_foreach_`` ops: torch's own loop over their lists runs, and the ops on the elements have entries of their own."""

from ..compat import operator_names

LOOPS = frozenset(name for name in operator_names() if name.startswith("aten::_foreach_"))
