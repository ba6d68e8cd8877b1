"""``_foreach_`` ops: torch's own loop over their lists runs, and the ops on the elements have rows of their own."""

import torch

LOOPS = frozenset(name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::_foreach_"))
