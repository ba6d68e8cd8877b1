"""The private names of torch, in one file: what each is for, and what breaks without it.

No other file names them, save ``engine/torch_keys.py`` (keys and kernels); private *ops* stand where ops are named.  A
torch that lacks a name says so on import, where there is no other way.  Only static facts are asked: no value is read.
"""

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, distributed
from torch.autograd import forward_ad
from torch.utils import checkpoint

try:
    # The node of the graph that autograd evaluates.  Without it which derivative runs is not known.
    from torch._C import _current_autograd_node as current_node

    # Whether two tensors share memory, also while they are traced and have no address.  Without it masks that are the
    # same are AND-ed, and views do not join the family of their base.
    from torch._C import _is_alias_of as shares_memory  # type: ignore[attr-defined]  # not in the stub

    # Whether tangents are carried: not in the forward of an ``autograd.Function``, which is how one is told.
    from torch._C import _is_fwd_grad_enabled as has_forward_mode

    # Whether saved tensors may be hooked, which torch.func's reverse mode forbids: what makes ``bypassed`` cheap.
    from torch._C._autograd import _saved_tensors_hooks_is_enabled  # type: ignore[attr-defined]  # not in the stub

    # Who keeps saved tensors.  Without it a loss inside a checkpoint would be averaged over ranks a second time.
    from torch._C._autograd import _top_saved_tensors_default_hooks as _saved_tensors_hooks

    # How Dynamo treats one function's frames.  Without it, after a graph break, it compiles the engine at work.
    from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

    # The torch.func transforms that run, and their wrappers.  Without it rules would use there what is no plain op.
    from torch._C._functorch import TransformType, get_interpreter_stack, maybe_get_level, peek_interpreter_stack
    from torch._C._functorch import get_unwrapped as get_unwrapped
    from torch._C._functorch import is_functorch_wrapped_tensor as is_wrapped

    # The functions that push a level of differentiation.  Without them ``bypassed`` cannot be told.
    from torch._functorch.eager_transforms import _jvp_with_argnums, _vjp_with_argnums, grad_and_value_impl

    # No transform, for a moment.  Without it what is kept of a tensor would end with the transform that asked first.
    from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

    # What is being compiled: what a graph entered ends with it, and it is compiled anew under other settings.
    from torch._guards import Guard, TracingContext

    # The type of an operator.  Rules are annotated with it; the table is keyed by it.
    from torch._ops import OpOverload, OpOverloadPacket

    # Whether a tensor is a tracer's.  Without it torch 2.11's cache of graphs would serve where they mean other things.
    from torch._subclasses.fake_tensor import is_fake

    # AOTAutograd's tensors.  Without it a compiled function would change the validity of its input, unseen by others.
    from torch._subclasses.functional_tensor import FunctionalTensor

    # What ``torch.set_printoptions`` set, and torch's number format: a masked tensor prints like a plain one.
    from torch._tensor_str import PRINT_OPTS
    from torch._tensor_str import _Formatter as Formatter

    # The torch function modes in force.  Without it attention would not know that flat tokens are sequences.
    from torch.overrides import _get_current_function_mode_stack as function_modes

    # No tracer, for a moment.  Without it the bytes of a real mask become a tracer's own tensor.
    from torch.utils._python_dispatch import _disable_current_modes as without_modes

    # The tensors in nested arguments.  Without it: walk lists, tuples and dicts here.
    from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

    # How a DataLoader makes a batch.  Without it worker processes stack into raw memory, past the mask.
    from torch.utils.data._utils.collate import default_collate_fn_map as COLLATE
except ImportError as missing:
    raise ImportError(
        f"torch {torch.__version__} lacks a private name that masked_tensor builds on ({missing}); this version of "
        "masked_tensor is made for torch 2.11 to 2.15"
    ) from missing

if not (2, 11) <= tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 16):
    warnings.warn(
        f"masked_tensor is made for torch 2.11 to 2.15 and is untested with torch {torch.__version__}: "
        "pip install 'torch>=2.11,<2.16'",
        RuntimeWarning,
        stacklevel=2,
    )

#: Whether torch is older than 2.12, which lacks some kernels.
IS_OLD = torch.__version__ < "2.12"
#: What ``torch.where`` has no kernel for.
WITHOUT_WHERE = (torch.uint16, torch.uint32, torch.uint64) if IS_OLD else ()

#: What ``torch.set_default_tensor_type`` set: a device that a printed tensor need not name.
default_device: Callable[[], str] = getattr(torch._C, "_get_default_device", lambda: "cpu")

#: What ``torch.autograd.grad(is_grads_batched=True)`` makes; a torch without the old vmap makes none.
batched_gradient: Callable[[Tensor], bool] = getattr(torch._C._functorch, "is_legacy_batchedtensor", lambda x: False)

_EAGER = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)  # the frame itself, and what is called from there
_LEVELS = frozenset(inspect.unwrap(f).__code__ for f in (grad_and_value_impl, _vjp_with_argnums, _jvp_with_argnums))
_DIFFERENTIATES = (TransformType.Grad, TransformType.Jvp)


class _Running(threading.local):
    levels: tuple[tuple[int, bool], ...] = ()  # of torch.func: each with whether the engine was skipped before
    below = 0  # how often the engine has left levels of torch.func, to work below them


RUNNING = _Running()
_GUARDS: WeakKeyDictionary[Any, Guard] = WeakKeyDictionary()  # of what is being compiled


# ------------------------------------------------------------------------------------------ how a tensor is computed


def validate_sample(distribution: Any, value: Tensor) -> None:
    """Raises what the ``log_prob`` of torch's own distribution does for a value outside of its support."""
    if distribution._validate_args and value.shape.numel():  # of nothing torch's own check raises
        distribution._validate_sample(value)


def is_tracked(data: Tensor) -> bool:
    """Whether autograd records what is done with ``data``."""
    return data.requires_grad and torch.is_grad_enabled()


def in_transform() -> bool:
    """Whether a torch.func transform or forward-mode AD is active: then only plain differentiable ops may be used."""
    return peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def computed_below(x: Tensor) -> AbstractContextManager[Any]:
    """Around what is computed to be kept with ``x``: where ``x`` is no transform's, nor is the result."""
    inside = peek_interpreter_stack() is not None and not is_wrapped(x)
    return temporarily_clear_interpreter_stack() if inside else nullcontext()


def unwrap_transforms(x: Tensor) -> Tensor:
    """``x`` without the wrappers of torch.func."""
    while is_wrapped(x):
        x = get_unwrapped(x)
    return x


def in_dual_level() -> bool:
    """Whether forward-mode AD is active."""
    return forward_ad._current_level >= 0


def has_tangent(data: Tensor) -> bool:
    """Whether forward-mode AD differentiates along ``data``, also from outside of the transforms that run inside."""
    if not in_dual_level():
        return False
    if forward_ad.unpack_dual(data).tangent is not None:
        return True
    outer = {i.level() for i in (get_interpreter_stack() or ())[:-1] if i.key() == TransformType.Jvp}
    while is_wrapped(data):
        if maybe_get_level(data) in outer:  # the tangent cannot be asked for: whatever jvp has wrapped may have one
            return True
        data = get_unwrapped(data)
    with temporarily_clear_interpreter_stack():
        return forward_ad.unpack_dual(data).tangent is not None


def in_functorch() -> bool:
    """Whether a torch.func transform is active: then what differentiates a masked tensor works inside of it."""
    return peek_interpreter_stack() is not None


def no_transform_active() -> bool:
    """Whether no transform can be at work: then nothing has a tangent, and nothing is bypassed."""
    return _saved_tensors_hooks_is_enabled() and forward_ad._current_level < 0


def wrapped_by_transform() -> bool:
    """Whether ``torch.func.grad``, ``vjp`` or ``jvp`` runs an op of its own on a masked tensor that it has wrapped.

    While torch calls what lies below a transform, it takes the transform off the stack of interpreters, so that such a
    call looks like any other.  What stays is the Python function that pushed it: more of them run in this thread than
    there are levels on the stack.  A call from the user's own function finds every level in place.
    """
    if no_transform_active() or RUNNING.levels:
        return False
    found = sum(t.key() in _DIFFERENTIATES for t in get_interpreter_stack() or ())
    frame = inspect.currentframe()
    while frame is not None:
        found -= code_of(frame) in _LEVELS
        frame = frame.f_back
    return found < 0


def code_of(frame: FrameType) -> CodeType:
    """The code that a frame runs; where Dynamo runs another function's code step by step, that code."""
    code = frame.f_code
    if code.co_name == "run" and frame.f_globals.get("__name__") == "torch._dynamo.symbolic_convert":
        return getattr(frame.f_locals.get("self"), "f_code", code)
    return code


def is_readable_memory(x: Tensor) -> bool:
    """Whether ``x`` is memory on the CPU that may be read as another dtype: not traced, not what ``sgn`` leaves."""
    plain = type(x) is Tensor or type(x) is torch.nn.Parameter
    return plain and x.is_cpu and not in_transform() and not batched_gradient(x) and not x._is_zerotensor()


def has_real_memory(x: Tensor) -> bool:
    """Whether ``x`` is a tensor of real memory, not one that is traced."""
    return type(x) is Tensor and not torch.compiler.is_compiling()


def checkpoint_will_recompute() -> bool:
    """Whether a checkpoint runs: what runs now will run again in backward.

    One that does not reenter hooks the saved tensors; one that reenters is an ``autograd.Function``, in whose forward
    nothing is recorded.
    """
    hooks = _saved_tensors_hooks(False)
    kept = hooks is not None and hooks[0].__module__ == checkpoint.__name__
    return kept or not (torch.is_grad_enabled() or has_forward_mode() or torch.is_inference_mode_enabled())


def is_batched(x: Tensor) -> bool:
    """Whether ``x`` is one of many in a ``vmap``, at any level."""
    while is_wrapped(x) and not torch._C._functorch.is_batchedtensor(x):
        x = get_unwrapped(x)
    return is_wrapped(x)


#: How many modes see every op: tracers, which cannot tell what a tensor holds, and those who count.
mode_is_active: Callable[[], int] = torch._C._len_torch_dispatch_stack
#: Whether one of many tensors is tracked, at the speed of C.
any_requires_grad: Callable[..., bool] = torch._C._any_requires_grad


def is_functional_tensor(x: Tensor) -> bool:
    """Whether ``x`` is written to by a function that AOTAutograd makes a graph of."""
    return type(x) is FunctionalTensor


# ----------------------------------------------------------------------------------------------- operators and hooks


def schema(op: OpOverload) -> torch.FunctionSchema:
    """The signature of an operator.  Without it no variant and no keyword could be derived."""
    return op._schema


def operator_names() -> list[str]:
    """The names of all operators, as ``aten::add.Tensor``.  Without it: list those that loop over lists."""
    return torch._C._dispatch_get_all_op_names()


def count_groups() -> int:
    """How many process groups there are, after which one is named that only its members make; else they might hang."""
    return len(distributed.distributed_c10d._world.pg_names)


def group_timeout(group: Any) -> Any:
    """How long the collectives of a group wait (a timedelta).  Without it: None, which is torch's own 30 minutes."""
    backends = [group._get_backend(device) for device in group._device_types]
    times = [getattr(getattr(backend, "options", None), "_timeout", None) for backend in backends]
    return max((time for time in times if time is not None), default=None)


def group_device(group: Any) -> torch.device:
    """Where the numbers of a group lie that belong to no tensor.  Without it: the CPU, which NCCL does not know."""
    return torch.device(distributed.distributed_c10d._get_object_coll_device(group))


def ignore_in_ddp(module: torch.nn.Module, names: list[str]) -> None:
    """Adds buffers to those that DistributedDataParallel leaves alone.  Without it each forward overwrites them."""
    known = list(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
    module._ddp_params_and_buffers_to_ignore = [*known, *names]  # type: ignore[assignment]  # as torch's own setter


def lent_parameters(sharded: Any) -> list[Any]:
    """What FSDP2 puts into a model in place of a sharded parameter.  Without it ``parameters()`` may name no leaf."""
    return [getattr(sharded, name, None) for name in ("_unsharded_param", "_sharded_post_forward_param")]


def set_buffers(module: torch.nn.Module, values: Mapping[str, torch.Tensor | None]) -> None:
    """Replaces buffers all at once.  Without it an interrupt could leave some of them old and some new."""
    module._buffers.update(values)


def run_eagerly(code: CodeType) -> None:
    """Dynamo may inline this code into a graph, but does not compile its frames by themselves."""
    set_code_exec_strategy(code, _EAGER)


def guarded_by(now: Callable[[], Any]) -> None:
    """What Dynamo compiles in this thread is compiled anew where ``now()`` is not what it is here."""
    context, source = TracingContext.try_get(), sys.modules.get("torch._dynamo.source")
    if context is None or source is None:
        return
    guards = context.guards_context
    if guards not in _GUARDS:
        _GUARDS[guards] = Guard(source.GlobalStateSource(), _check(now, now()))
    guards.dynamo_guards.add(_GUARDS[guards])  # once; a part of a trace may have been taken back


def _check(now: Callable[[], Any], seen: Any) -> Callable[[Any, Any], None]:
    def settings(builder: Any, guard: Any) -> None:
        add, lines = builder.guard_manager.root.add_lambda_guard, [f"masked_tensor: {seen}"]
        try:
            add(lambda _: now() == seen, lines, guard.user_stack)
        except TypeError:  # torch 2.11
            add(lambda _: now() == seen, lines)

    return settings


def remove_mode(mode: Any) -> None:
    """Takes a torch function mode away from among this thread's, wherever it lies; others may have come on top."""
    above = []
    while function_modes() and (top := torch._C._pop_torch_function_stack()) is not mode:
        above.append(top)
    for other in reversed(above):
        torch._C._push_on_torch_function_stack(other)


def current_trace() -> Any:
    """What is being compiled in this thread, if anything is."""
    return TracingContext.try_get()


__all__ = [
    "COLLATE", "PRINT_OPTS", "RUNNING", "Formatter", "OpOverload", "OpOverloadPacket", "any_requires_grad",
    "batched_gradient", "checkpoint_will_recompute", "code_of", "computed_below", "count_groups", "current_node",
    "current_trace", "default_device", "function_modes", "group_device", "group_timeout", "guarded_by",
    "has_forward_mode", "has_real_memory", "has_tangent", "ignore_in_ddp", "in_dual_level", "in_functorch",
    "in_transform", "is_batched", "is_fake", "is_functional_tensor", "is_readable_memory", "is_tracked",
    "is_wrapped", "lent_parameters", "mode_is_active", "operator_names", "remove_mode", "run_eagerly", "schema",
    "set_buffers", "shares_memory", "tree_flatten", "tree_leaves", "tree_map", "tree_unflatten",
    "unwrap_transforms", "without_modes", "wrapped_by_transform",
]  # fmt: skip
