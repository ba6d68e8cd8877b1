"""What this package replaces in torch because there is no hook: each function says what, and when it is called."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch._functorch import utils as functorch_utils
from torch.testing._comparison import TensorLikePair
from torch.utils import checkpoint


def compare_with(change: Callable[[Tensor, Tensor, Callable[[str], None]], tuple[Tensor, Tensor]]) -> None:
    """From now on ``assert_close`` compares the values of ``change(actual, expected, fail)``."""
    compare = TensorLikePair._compare_values

    def changed(self: Any, actual: Tensor, expected: Tensor) -> None:
        compare(self, *change(actual, expected, lambda message: self._fail(AssertionError, message)))

    TensorLikePair._compare_values = changed  # type: ignore[method-assign]  # there is no hook


def bind_checkpoints(now: Callable[[], Any], bound: Callable[..., Any], before: Any) -> None:
    """What a checkpoint runs again in backward is ``bound`` to what ``now()`` gave when it ran first, in both forms.

    What ran before this was called is bound to ``before``.
    """
    reentrant, frame, hook = checkpoint.CheckpointFunction, checkpoint._CheckpointFrame, checkpoint._recomputation_hook
    forward, backward, keep, again = reentrant.forward, reentrant.backward, frame.__init__, hook.__init__

    @wraps(forward)
    def bound_forward(ctx: Any, run_function: Callable[..., Any], *args: Any) -> Any:
        return forward(ctx, bound(run_function, now()), *args)

    @wraps(backward)
    def bound_backward(ctx: Any, *args: Any) -> Any:
        ctx.run_function = bound(ctx.run_function, before)
        return backward(ctx, *args)

    @wraps(keep)
    def bound_frame(self: Any, recompute_fn: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        keep(self, bound(recompute_fn, now()), *args, **kwargs)

    @wraps(again)
    def bound_hook(self: Any, target_frame_ref: Any, *args: Any, **kwargs: Any) -> None:
        target = target_frame_ref()
        if target is not None:
            target.recompute_fn = bound(target.recompute_fn, before)
        again(self, target_frame_ref, *args, **kwargs)

    for owner, name, method in (
        (reentrant, "forward", staticmethod(bound_forward)),
        (reentrant, "backward", staticmethod(bound_backward)),
        (frame, "__init__", bound_frame),
        (hook, "__init__", bound_hook),
    ):
        setattr(owner, name, method)  # there is no hook


def around_backward(begin: Callable[[Any, Any, bool], Callable[[], None] | None]) -> None:
    """From now on each backward pass calls ``begin(outputs, inputs, create_graph)`` first, and last what that gives."""
    run: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined]  # not in the stub

    @wraps(run)
    def run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
        _, _, create_graph, inputs = args[:4] if len(args) > 3 else (None, None, False, ())  # gradients, retain_graph
        end = begin(outputs, inputs, create_graph)
        result = run(outputs, *args, **kwargs)
        if end is not None:
            end()
        return result

    torch.autograd._engine_run_backward = run_backward  # type: ignore[attr-defined, assignment]  # no hook


def make_first_gradients(kind: type, make: Callable[[Any, Any], Any]) -> None:
    """From now on ``make(output, gradient)`` makes what a backward pass starts with, if one of the two is of ``kind``.

    Where it gives None for one of them, torch makes them all.  It imports modules for that which take longer than torch
    itself: of symbolic shapes for a gradient that is handed in, and of DTensors for the ones of a subclass.
    """
    first: Any = torch.autograd._make_grads

    @wraps(first)
    def make_grads(outputs: Any, grads: Any, is_grads_batched: bool) -> Any:
        if is_grads_batched or not (kind in map(type, outputs) or kind in map(type, grads)):
            return first(outputs, grads, is_grads_batched)
        made = tuple(map(make, outputs, grads))
        return made if all(m is not None for m in made) else first(outputs, grads, is_grads_batched)

    torch.autograd._make_grads = make_grads  # there is no hook


def before_functions(connect: Callable[[Any], None]) -> None:
    """From now on ``connect`` is given the arguments of an ``autograd.Function`` before autograd takes their histories.

    Its ``apply`` may have been stored by its users: what it calls is replaced.  From torch 2.14 on it calls nothing in
    Python, and is replaced itself.
    """
    apply = torch.autograd.Function.__dict__["apply"]
    if not isinstance(apply, classmethod):

        @wraps(apply)
        def connected(function: Any, *args: Any, **kwargs: Any) -> Any:
            connect(args)
            return apply.__get__(None, function)(*args, **kwargs)

        torch.autograd.Function.apply = classmethod(connected)  # type: ignore[method-assign, assignment]  # no hook
        return
    unwrap = functorch_utils.unwrap_dead_wrappers

    @wraps(unwrap)
    def unwrap_dead_wrappers(args: tuple[Any, ...]) -> tuple[Any, ...]:
        connect(args)
        return unwrap(args)

    functorch_utils.unwrap_dead_wrappers = unwrap_dead_wrappers
