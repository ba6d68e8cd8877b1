"""How this package sees each op before ``torch.func`` does.  Its functions that are replaced stand in places.py.

Nothing is put in place before the first masked tensor of the process is made.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch._C import DispatchKey, _DisablePythonDispatcher, _EnablePythonDispatcher
from torch._ops import OpOverload, get_cached_ops

PythonDispatcherOn, PythonDispatcherOff = _EnablePythonDispatcher, _DisablePythonDispatcher  #: context managers
#: The key at which torch.func catches every op; torch's Python dispatcher comes before it, while that is on.
CAUGHT = DispatchKey.FuncTorchDynamicLayerFrontMode


def catch_ops(handler: Callable[[OpOverload, Any], Any]) -> None:
    """From now on the Python dispatcher hands what torch.func would catch to ``handler(op, what it had for it)``."""
    get_dispatch = OpOverload._get_dispatch

    @wraps(get_dispatch)
    def get(self: OpOverload, key: DispatchKey) -> Any:
        if key != CAUGHT:
            return get_dispatch(self, key)
        self._dispatch_cache[key] = found = handler(self, get_dispatch(self, key))
        return found

    for op in get_cached_ops():
        op._dispatch_cache.pop(CAUGHT, None)
    OpOverload._get_dispatch = get  # type: ignore[method-assign]  # there is no hook
