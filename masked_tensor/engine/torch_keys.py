"""What the engine needs of torch's dispatcher that has no public name: keys, kernels, and vmap's own wrappers.

Without any one of these names no op reaches its rule.  All other private names
of torch stand in ``compat.py``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial, reduce
from operator import or_
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
from torch._C._functorch import (
    CGradInterpreterPtr,
    TransformType,
    _add_batch_dim,
    _unwrap_batched,
    get_interpreter_stack,
    maybe_current_level,
    peek_interpreter_stack,
    unwrap_if_dead,
)
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack, temporarily_pop_interpreter_stack
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.autograd import graph
from torch.autograd.function import BackwardCFunction

from ..callers import OUR_FILES, first_caller
from ..compat import RUNNING, OpOverload, batched_gradient, current_node, is_tracked, schema
from ..rules.foreach import own_loop

#: The key of the kernels: it outranks the backends' autograd keys, so that rules run above autograd.
DISPATCH_KEY = "AutogradPrivateUse3"
#: vmap's key, at which a composite op can be met before it is taken apart.
VMAP = "FuncTorchBatched"
#: The one key of a tensor that comes before torch.func.  A thread in which no transform runs excludes it.
ABOVE_TRANSFORMS = "TESTING_ONLY_GenericWrapper"
_ABOVE: Any = torch._C._parse_dispatch_key(ABOVE_TRANSFORMS)
_ABOVE_SET = DispatchKeySet(_ABOVE)
#: The keys of a masked tensor beside its backend's.  Autocast comes before the kernels, as for plain tensors.
KEYS = reduce(
    or_,
    map(
        DispatchKeySet,
        (
            *(DispatchKey.PrivateUse3, DispatchKey.AutogradPrivateUse3, DispatchKey.AutocastCPU),
            *(DispatchKey.AutocastCUDA, _ABOVE),
        ),
    ),
)
#: For what autograd records of a tensor; no memory is read.
AUTOGRAD = DispatchKeySet(DispatchKey.AutogradCPU)
#: For metadata only: no kernel that reads memory is called through it.
BACKEND = DispatchKeySet(DispatchKey.CPU)

#: The node at which a gradient arrives at its leaf.
ACCUMULATE: Any = type(graph.get_gradient_edge(torch.empty(0, requires_grad=True)).node)

_AS_IT_IS = nullcontext()
_GRAD = TransformType.Grad
_COMPILED = "torch._functorch._aot_autograd"  # a compiled graph: its derivative was made from our rules

make = Tensor._make_wrapper_subclass  #: a tensor without memory of its own
has_no_pointer = torch._C._set_throw_on_mutable_data_ptr  #: torch's own code that asks for memory gets an error
no_torch_function = torch._C._disabled_torch_function_impl  #: the subclass is seen at the dispatcher alone


_LIBRARIES: dict[str, torch.library.Library] = {}  #: by their namespace, or whose kernels they hold


def library(name: str, owner: str = "") -> torch.library.Library:
    """Where kernels of the operator ``name`` are registered, as long as the process lives; an ``owner`` has its own."""
    namespace = name.partition("::")[0]
    if (owner or namespace) not in _LIBRARIES:
        _LIBRARIES[owner or namespace] = torch.library.Library(namespace, "IMPL")
    return _LIBRARIES[owner or namespace]


def register(name: str, kernel: Callable[..., Any], key: str, owner: str = "") -> None:
    """Has ``kernel`` serve calls of the operator ``name`` at ``key``."""
    library(name, owner).impl(name.partition("::")[2], kernel, key)


def unregister(owner: str) -> None:
    """Takes back the kernels of an owner, such as an operator that was defined anew in a notebook."""
    _LIBRARIES.pop(owner, None)


@cache
def find_op(name: str) -> OpOverload:
    """The overload ``"namespace::op.overload"``."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    return found


def has_kernel(op: OpOverload) -> bool:
    """Whether anything at all is registered for ``op``; a schema alone cannot be called."""
    return torch._C._dispatch_has_kernel(op.name())


def call_at(op: OpOverload, key: Any) -> Any:
    """The kernel of ``op`` at a dispatch key."""
    return partial(op._op_dk, key)


def is_composite(op: OpOverload) -> bool:
    """Whether torch itself writes ``op`` in terms of other ops, and also differentiates it through them."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), DispatchKey.CompositeImplicitAutograd)


@cache
def composed(op: OpOverload) -> Any:
    """What a composite op is composed of, as written in C++, which takes less time than torch's forms in Python."""
    return call_at(op, DispatchKey.CompositeImplicitAutograd)


def foreach_loop(op: OpOverload) -> Any:
    """The loop of a ``_foreach_`` op over its lists, torch's own for most: the ops on the elements have rules."""
    return own_loop(op) or call_at(op, DispatchKey.CompositeExplicitAutograd)


def in_autocast_block() -> bool:
    """Whether a ``torch.autocast`` block is open, enabled or not."""
    depth = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    return depth > 1


def as_autocast(op: OpOverload, x: Tensor) -> AbstractContextManager[Any]:
    """Autocast as it is where ``op`` was called with ``x``, if torch has left it only because a subclass is asked.

    That is so in inference mode.  An op that autocast has a kernel for was handed over by it; any other relies on the
    ops that it is composed of, which autocast casts the operands of.
    """
    device = x.device.type
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]  # not in the stub
        if not torch.is_autocast_enabled(device):
            return _AS_IT_IS
    key = getattr(DispatchKey, f"Autocast{device.upper()}", None)
    if key is None or torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key):
        return _AS_IT_IS
    return torch.autocast(device, torch.get_autocast_dtype(device))


def autocast_key(op: OpOverload, args: Iterable[Any]) -> Any:
    """The key of autocast's kernel for ``op``, if it is on for the first tensor of the arguments."""
    device = next((a.device.type for a in args if isinstance(a, Tensor)), None)
    if device is None or not torch.is_autocast_enabled(device):
        return None
    key = getattr(DispatchKey, f"Autocast{device.upper()}", None)
    return key if key is not None and torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key) else None


def below_autograd() -> bool:
    """Whether a call comes from below somebody's autograd, which will not record it."""
    return torch._C._dispatch_tls_is_dispatch_key_excluded(DispatchKey.AutogradFunctionality)


def is_factory(op: OpOverload) -> bool:
    """Whether ``op`` makes a new tensor (``ones_like``): it has no gradient, and Python calls it below autograd."""
    return any(a.name == "pin_memory" for a in schema(op).arguments)


def is_foreign_node(node: Any) -> bool:
    """Whether a node of the graph is an ``autograd.Function`` that is not of this package, nor a compiled graph."""
    if not isinstance(node, BackwardCFunction):
        return False
    home = node._forward_cls.__module__  # type: ignore[attr-defined]  # not in the stub
    return home.partition(".")[0] != __package__.partition(".")[0] and not home.startswith(_COMPILED)


def node_classes(*functions: type) -> frozenset[type]:
    """The classes of the graph nodes that these ``autograd.Function``s make."""
    return frozenset(getattr(f, "_backward_cls") for f in functions)  # noqa: B009 (torch's stub does not know it)


def name_masked(nodes: Iterable[type]) -> None:
    """The classes of nodes whose tensors are masked print as ``MaskedBackward``, as ``grad_fn`` in a repr."""
    for node in nodes:
        node.__name__ = "MaskedBackward"


def direct_apply(function: type[torch.autograd.Function]) -> Any:
    """``function.apply`` without the Python around it, on both ways; for where no transform runs.

    What is left out looks for wrappers of transforms that are over, and for other ways to write a Function.
    """
    getattr(function, "_backward_cls").apply = function.backward  # noqa: B009 (torch's stub does not know it)
    return getattr(super(torch.autograd.Function, function), "apply")  # noqa: B009


def sequence_number(node: Any) -> int:
    """Which place a node of the graph has among all that this thread has recorded."""
    return int(node._sequence_nr())


def is_torchscript_node(node: Any) -> bool:
    """Whether TorchScript differentiates here, by formulas of its own: all other nodes have a class in Python."""
    return type(node).__name__ == "CppFunction"


#: TorchScript's own call of a function.
call_script: Callable[..., Any] = torch.jit.ScriptFunction.__call__


def script_copy(function: Any) -> Any:
    """A function or method of TorchScript as a function that was never called, and so not optimized."""
    return torch._C._create_function_from_graph(function.name, function.inlined_graph)


def gradient_is_shared(x: Tensor) -> bool:
    """Whether something else than the caller holds a gradient that autograd has just handed over, or its memory."""
    if type(x) is not Tensor or x.layout is not torch.strided or batched_gradient(x):
        return False
    base, holders = x._base, 2
    if base is not None and _uses(base) == 2:  # what a view was taken of, held by the view and, to ask it, here
        holders += 1
    return _uses(x) > 1 or torch._C._storage_Use_Count(x.untyped_storage()._cdata) > holders


def _uses(x: Tensor) -> int:
    count: int = x._use_count()  # type: ignore[attr-defined]  # not in the stub
    return count


def owns_gradient(x: Tensor) -> bool:
    """Whether a gradient that autograd has just handed over may be written to: all of it memory that nobody holds."""
    return not is_tracked(x) and x.is_contiguous() and not gradient_is_shared(x)


def asked_for_leaf_gradient(x: Tensor) -> bool:
    """Whether autograd asks for ``x`` without its history to make it the gradient of a leaf: nobody else holds it then.

    Where somebody does it makes a copy.  A hook of the user's that runs there has a frame of its own.
    """
    node: Any = current_node()
    if type(node) is not ACCUMULATE or node.variable.grad is not None or x.requires_grad or torch.is_grad_enabled():
        return False
    frame, _ = first_caller((OUR_FILES,))
    return frame is None or frame.f_globals is vars(graph)  # from where the engine is run


# -------------------------------------------------------------------------------------------------------- torch.func


@contextmanager
def below_transforms() -> Iterator[None]:
    """Below all transforms that run, where plain autograd is: as it was when the first of them began."""
    modes = [CGradInterpreterPtr(t).prevGradMode() for t in get_interpreter_stack() or () if t.key() == _GRAD]
    grad = torch.set_grad_enabled(torch.is_grad_enabled() and all(modes))
    with grad, _below(temporarily_clear_interpreter_stack()), not_caught():
        yield


@contextmanager
def _below(levels: AbstractContextManager[Any]) -> Iterator[None]:
    RUNNING.below += 1
    try:
        with levels:
            yield
    finally:
        RUNNING.below -= 1


#: Has this thread's ops with masked tensors go torch's way (True), or to the engine before ``torch.func`` has them.
skip_engine = partial(torch._C._dispatch_tls_set_dispatch_key_excluded, _ABOVE)
#: Which of the two they do.
engine_is_skipped = partial(torch._C._dispatch_tls_is_dispatch_key_excluded, _ABOVE)


def not_caught() -> AbstractContextManager[Any]:
    """Ops called inside reach their kernels by torch's way."""
    guard: AbstractContextManager[Any] = _ExcludeDispatchKeyGuard(_ABOVE_SET)
    return guard


def unwrap_dead(x: Tensor) -> Tensor:
    """``x`` without the wrappers of transforms that are over."""
    return unwrap_if_dead(x)


def transform_count() -> int:
    """How many transforms of torch.func run."""
    return len(get_interpreter_stack() or ())


def only_vmap_runs() -> bool:
    """Whether no transform that runs differentiates."""
    return all(t.key() == TransformType.Vmap for t in get_interpreter_stack() or ())


def current_vmap() -> int | None:
    """The level of the innermost transform if that is ``vmap``."""
    running = peek_interpreter_stack()
    return None if running is None or running.key() != TransformType.Vmap else running.level()


def below_top() -> AbstractContextManager[Any]:
    """Ops called inside do not go through the innermost transform."""
    return _below(temporarily_pop_interpreter_stack())


# -------------------------------------------------------------------------------------------------------------- vmap


def transform_level() -> int:
    """The level of the transform that runs."""
    current = maybe_current_level()
    assert current is not None, "no transform runs"
    return current


def has_batching_rule(op: OpOverload) -> bool:
    """Whether ``vmap`` has a kernel for ``op``."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), VMAP)


def below_vmap() -> AbstractContextManager[Any]:
    """Ops called inside do not go through vmap again."""
    guard: AbstractContextManager[Any] = _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.FuncTorchBatched))
    return guard


def unwrap_batched(x: Tensor, level: int) -> tuple[Tensor, int | None]:
    """What vmap holds of ``x``: the tensor of all entries and the dimension they lie along, None if it has but one."""
    return _unwrap_batched(x, level)


def wrap_batched(x: Tensor, level: int) -> Tensor:
    """The tensor that vmap sees as one entry of ``x``, along its first dimension."""
    return _add_batch_dim(x, 0, level)


def traced_where_made(x: Tensor) -> AbstractContextManager[Any]:
    """The mode that AOTAutograd's tensors need, which asks for the parts of a result outside of it."""
    return FunctionalTensorMode() if type(x) is FunctionalTensor else nullcontext()
