"""The parts of a ``mean_over``: what one is, and what is required of its losses, its gradients and the optimizer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakMethod

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..extend.means import where_taken


@dataclass(slots=True)
class Part:
    """One ``with mean:``, and what was added up before it."""

    sums: Tensor | None
    unit: Tensor | None
    means: int = 0  #: taken in it
    number: Tensor | None = None  #: what its mean was divided by, on all ranks
    counted: bool = False  #: whether it ended as one of the parts
    skipped: bool = False  #: while it ran
    reached: bool = False  #: by backward: its gradients were added, at least in part


class KeptGradients:
    """Gradients that were there before the first part; what ``finish`` divides out again is multiplied into them.

    Added to ``grad`` before backward, they go through what a wrapper does with the sum.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._copies = [(p, local(p.grad).clone()) for p in parameters if p.grad is not None]
        self._factor: Tensor | float = 1.0

    def multiply(self, factor: Tensor) -> None:
        """Has ``grad`` hold ``factor`` times what was kept."""
        pairs = [(local(p.grad), copy) for p, copy in self._copies if p.grad is not None]
        if pairs:
            more = torch._foreach_mul([copy for _, copy in pairs], factor - self._factor)
            torch._foreach_add_([grad for grad, _ in pairs], more)
        self._factor = factor


def local(grad: Any) -> Tensor:
    """Of a DTensor the part of this rank."""
    part: Tensor = grad.to_local() if hasattr(grad, "to_local") else grad
    return part


def check_eager(total: Tensor, shares: bool) -> None:
    """A mean that is added up has to be taken once, and to be a number.  ``shares``: it is divided by a known count."""
    where = where_taken(total)
    if where == "traced":
        raise RuntimeError(
            "mean_over cannot add up over ranks inside compiled code, or a loss of DTensors (whose mean is that of "
            "the whole mesh already); compute the loss from the compiled model's outputs, outside of it"
        )
    if where == "vmap" and not shares:
        raise RuntimeError(
            "mean_over saw a loss inside vmap, where each sample would have a mean of its own; take the loss of the "
            "whole batch, or give the counts: mean_over(count=n)"
        )
    if where == "checkpoint":
        raise RuntimeError(
            "mean_over saw a loss inside a checkpoint, whose second run would add it up again; take it outside"
        )


def note_backward(mean: Tensor, part: Part, before: Callable[[], None]) -> Tensor:
    """``mean``, which tells ``part`` when backward begins, and has ``before`` called."""
    if mean.requires_grad:

        def reach(_: Tensor) -> None:
            part.reached = True
            before()

        mean.register_hook(reach)
    return mean


def scale_gradients(parameters: Iterable[Tensor], factor: Tensor) -> None:
    """Multiplies the gradients that there are, of DTensors those of this rank."""
    grads = [local(p.grad) for p in parameters if p.grad is not None]
    if grads:
        torch._foreach_mul_(grads, factor)


#: Of each mean_over that scales gradients: which parameters, and its method that says whether it is finished.
_WATCHED: dict[int, tuple[dict[int, Tensor], WeakMethod[Callable[[], bool]]]] = {}


def check_alone(parameters: Sequence[Tensor]) -> None:
    """Raises if another unfinished mean_over scales a gradient of ``parameters``: two factors would be multiplied."""
    for watched, asked in list(_WATCHED.values()):
        finished = asked()  # None: nobody holds it any more, so that nobody finishes it
        if finished is not None and not finished() and any(id(p) in watched for p in parameters):
            raise RuntimeError(
                "another mean_over(parameters=...) of the same parameters is not finished, and each finish() would "
                "scale the gradients of both; finish() or reset() it first, or give the counts of all losses to one: "
                "mean_over(count=[n_first, n_second])"
            )


def unwatch(watch: Any) -> None:
    """Ends what :func:`watch_steps` began."""
    watch.remove()
    _WATCHED.pop(watch.id, None)


def watch_steps(parameters: Sequence[Tensor], finished: Callable[[], bool]) -> Any:
    """From now on an optimizer that steps on ``parameters`` needs ``finished()``, at the latest after its closure.

    The method is held weakly. Where its object is gone, the gradients stay those of an unfinished mean.
    """
    watched = {id(p): p for p in parameters}  # held: no other tensor gets their ids
    asked = WeakMethod(finished)

    def check() -> None:
        found = asked()
        if found is None or not found():
            raise RuntimeError("an optimizer steps on gradients of an unfinished mean_over: call finish() first")

    def before_step(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not any(id(p) in watched for group in optimizer.param_groups for p in group["params"]):
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")  # after the optimizer itself
        if closure is None:
            check()
            return None

        def checked() -> Any:
            result = closure()
            check()
            return result

        return ((args[0], checked, *args[2:]), kwargs) if len(args) > 1 else (args, kwargs | {"closure": checked})

    watch = register_optimizer_step_pre_hook(before_step)
    _WATCHED[watch.id] = watched, asked
    return watch


def checked_counts(count: float | Sequence[float]) -> list[float]:
    """What each loss is divided by; 0 of one that has no valid target."""
    if isinstance(count, Mapping):
        raise TypeError("mean_over(count=...) expects a list, in the order of the losses, got a dict")
    counts: list[float] = torch.as_tensor(count, dtype=torch.float64).flatten().tolist()
    if not counts or not all(n is not None and 0 <= n < float("inf") for n in counts):  # None: masked
        raise ValueError(f"mean_over(count=...) needs a count for each loss, 0 or more, got {count!r}")
    return counts
