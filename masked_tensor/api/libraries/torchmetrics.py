"""torchmetrics: predictions and targets are given as the entries, or the rows, that are valid in both."""

from collections.abc import Callable
from inspect import BoundArguments
from typing import Any

from torch import Tensor

from ...patches.libraries import CLASSES, ENTRIES, ROWS, SIGNALS
from ..create import as_masked_tensor
from ..select_valid import select_valid
from .wrapping import Function, call, mask_of, replace, valid_rows, with_masked

Pick = Callable[[str, BoundArguments, Tensor, Tensor], tuple[Tensor, ...]]


def _on_picked(pick: Pick) -> Callable[[Function], Function]:
    """The function of what ``pick`` picks of its first two arguments, which follow ``self`` if it is a method."""

    def handle(function: Function, given: BoundArguments) -> Any:
        names = [name for name in given.arguments if name != "self"][:2]
        pair = (given.arguments[name] for name in names)
        given.arguments.update(zip(names, pick(function.__qualname__, given, *pair), strict=True))
        return call(function, given)

    return with_masked(handle)


def _entries(name: str, given: BoundArguments, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    owner, own = given.arguments.get("self"), given.arguments.get("num_outputs", 1)
    if preds.shape != target.shape:  # the function's own error
        return preds, target
    of_one = getattr(owner, "num_outputs", own) == 1
    return select_valid(preds, target) if of_one else valid_rows(name, preds, target)


def _rows(name: str, given: BoundArguments, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    return (preds, target) if preds.shape != target.shape else valid_rows(name, preds, target)


def _classes(name: str, given: BoundArguments, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    lower = name.lower()
    if "multilabel" in lower or "exact" in lower:
        return valid_rows(name, preds, target)
    return select_valid(preds, target, dim=1 if preds.dim() > target.dim() else None)


def _shared(name: str, given: BoundArguments, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """With one mask for both."""
    if preds.shape != target.shape:
        return preds, target
    both = mask_of(preds) & mask_of(target)
    return as_masked_tensor(preds, both), as_masked_tensor(target, both)


replace(ENTRIES, _on_picked(_entries))
replace(ROWS, _on_picked(_rows))
replace(CLASSES, _on_picked(_classes))
replace(SIGNALS, _on_picked(_shared))
