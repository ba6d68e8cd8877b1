"""What is replaced in torch for ``torch.func``, which has no hooks: short functions that take tensors in or out.

Nothing of it before the first masked tensor of the process is made.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from torch._C import DispatchKey, _DisablePythonDispatcher, _EnablePythonDispatcher
from torch._functorch import autograd_function, eager_transforms, vmap
from torch._ops import OpOverload, get_cached_ops

PythonDispatcherOn, PythonDispatcherOff = _EnablePythonDispatcher, _DisablePythonDispatcher  #: context managers
#: Where each of the functions stands.
PLACES: dict[str, tuple[Any, str]] = {
    "wrap_for_grad": (eager_transforms, "_wrap_for_grad"),
    "unwrap_for_grad": (eager_transforms, "_unwrap_for_grad"),
    "set_tensor_requires_grad": (eager_transforms, "_set_tensor_requires_grad"),
    "autograd_grad": (eager_transforms, "_autograd_grad"),
    "chunked_standard_basis_for_": (eager_transforms, "_chunked_standard_basis_for_"),
    "jvp_with_argnums": (eager_transforms, "_jvp_with_argnums"),
    "grad_increment_nesting": (eager_transforms, "_grad_increment_nesting"),
    "grad_decrement_nesting": (eager_transforms, "_grad_decrement_nesting"),
    "jvp_increment_nesting": (eager_transforms, "_jvp_increment_nesting"),
    "jvp_decrement_nesting": (eager_transforms, "_jvp_decrement_nesting"),
    "add_batch_dim": (vmap, "_add_batch_dim"),
    "remove_batch_dim": (vmap, "_remove_batch_dim"),
    "vmap_increment_nesting": (vmap, "_vmap_increment_nesting"),
    "vmap_decrement_nesting": (vmap, "_vmap_decrement_nesting"),
    "custom_function_call": (autograd_function.CustomFunctionHigherOrderOperator, "__call__"),
}
#: The key at which torch.func catches every op; torch's Python dispatcher comes before it, while that is on.
CAUGHT = DispatchKey.FuncTorchDynamicLayerFrontMode


def replace(name: str, make: Callable[[Any], Any]) -> None:
    """From now on the function of that name is what ``make`` makes of torch's own."""
    owner, attribute = PLACES[name]
    function = getattr(owner, attribute)
    setattr(owner, attribute, wraps(function)(make(function)))  # there is no hook


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
