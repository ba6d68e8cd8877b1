"""torchmetrics: predictions and targets are given as the entries, or the rows, that are valid in both.

Where entries cannot be taken out, since their place counts (several labels, one number for each sample), the targets
get torchmetrics' own mark for entries that do not count.
"""

from collections.abc import Callable
from functools import reduce
from inspect import BoundArguments
from typing import Any

import torch
from torch import Tensor

from .. import MaskedSizeError, as_masked_tensor, select_valid
from ..extend.libraries import replace
from .places import CLASS_MAPS, CLASSES, ENTRIES, LABEL_CURVES, POINTS, ROWS, SHAPES, SIGNALS, TOGETHER
from .wrapping import Function, call, data_of, mask_of, valid_rows, with_masked

IGNORED = -1  #: what torchmetrics' targets hold where nothing counts, if the user names nothing else
#: Exact match of the entries that are valid, for labels of classes and for several labels.
_EXACT = ("(labels == target).flatten(1).all(1).float().mean()", "(labels == target).all(1).float().mean()")
#: What is said of one number for each column, where a row of several is valid in part.
_COLUMNS = "compute it for each column: masked_tensor.select_valid(a[:, j], b[:, j])"
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
    if getattr(owner, "num_outputs", own) == 1:
        return select_valid(preds, target)
    return valid_rows(name, preds, target, way_out=_COLUMNS)


def _rows(name: str, given: BoundArguments, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    if preds.shape != target.shape:
        return preds, target
    of_columns = preds.dim() > 1 and "kl" not in name.lower()  # whose rows are distributions
    return valid_rows(name, preds, target, way_out=_COLUMNS if of_columns else "")


def _points(name: str, given: BoundArguments, data: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    return (data, labels) if len(data) != len(labels) else valid_rows(name, data, labels)


def _classes(function: Function, given: BoundArguments) -> Any:
    """The metric of classes that exist: taken out, or marked with ``ignore_index``."""
    owner, name = given.arguments.get("self"), function.__qualname__
    own = given.arguments if owner is None else vars(owner)
    at = [key for key in given.arguments if key != "self"][:2]
    preds, target = (given.arguments[key] for key in at)
    if preds.shape != target.shape and preds.dim() != target.dim() + 1:  # the function's own error
        return call(function, given)
    lower = name.lower()
    many = "multilabel" in lower
    if "exact" in lower or "ranking" in lower or "coverage" in lower:
        way_out = f"that of the entries that are valid in both is {_EXACT[many]}" if "exact" in lower else ""
        given.arguments.update(zip(at, valid_rows(name, preds, target, way_out=way_out), strict=True))
        return call(function, given)
    if not many and own.get("multidim_average", "global") == "global":
        of_classes = 1 if preds.dim() > target.dim() else None
        given.arguments.update(zip(at, select_valid(preds, target, dim=of_classes), strict=True))
        return call(function, given)
    before = own.get("ignore_index")
    mark = IGNORED if before is None else before
    valid = mask_of(preds).all(1) if preds.dim() > target.dim() else mask_of(preds)
    marked = data_of(target).masked_fill(~(valid & mask_of(target)), mark)
    given.arguments.update(zip(at, (data_of(preds), marked), strict=True))
    if owner is None:
        own["ignore_index"] = mark
        return call(function, given)
    owner.ignore_index = mark
    try:
        return call(function, given)
    finally:
        owner.ignore_index = before


def _marks_known(compute: Function) -> Function:
    """What was marked in ``update``, on this rank or another, does not count."""

    def computed(metric: Any) -> Any:
        before = metric.ignore_index
        metric.ignore_index = IGNORED if before is None else before
        try:
            return compute(metric)
        finally:
            metric.ignore_index = before

    return computed


def _together(function: Function, given: BoundArguments) -> Any:
    names = [name for name in ("preds", "target", "indexes", "groups") if name in given.arguments]
    parts = [given.arguments[name] for name in names]
    if any(not isinstance(x, Tensor) or x.shape != parts[0].shape for x in parts):  # the function's own error
        return call(function, given)
    owner = given.arguments.get("self")
    along = getattr(owner, "dim", None) if owner is not None else given.arguments.get("dim")
    pick = select_valid if along is None else _with_one_mask
    given.arguments.update(zip(names, pick(*parts), strict=True))
    return call(function, given)


def _shapes(function: Function, given: BoundArguments) -> Any:
    for x in given.arguments.values():
        if isinstance(x, Tensor) and not bool(mask_of(x).all()):
            raise MaskedSizeError(
                f"{function.__qualname__} measures distances between shapes, which masked places would belong to or "
                "not; fill them with a class: x.filled(0)"
            )
    given.arguments.update({k: data_of(x) for k, x in given.arguments.items() if isinstance(x, Tensor)})
    return call(function, given)


def _class_maps(function: Function, given: BoundArguments) -> Any:
    """Maps of 0 and 1, with 0 in all classes where a place is masked on either side."""
    pair = preds, target = given.arguments["preds"], given.arguments["target"]
    kind, most = given.arguments["input_format"], max(preds.dim(), target.dim())
    of_classes = [kind == "one-hot" or (kind == "mixed" and x.dim() == most) for x in pair]
    masks = [mask_of(x).all(1) if classes else mask_of(x) for x, classes in zip(pair, of_classes, strict=True)]
    given.arguments.update(preds=data_of(preds), target=data_of(target))
    maps = call(function, given)
    valid = (masks[0] & masks[1]).unsqueeze(1)
    return tuple(x * valid for x in maps)


def _shared(name: str, given: BoundArguments, preds: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    return (preds, target) if preds.shape != target.shape else _with_one_mask(preds, target)


def _with_one_mask(*parts: Tensor) -> tuple[Tensor, ...]:
    both = reduce(torch.logical_and, map(mask_of, parts))
    return tuple(as_masked_tensor(x, both) for x in parts)


replace(ENTRIES, _on_picked(_entries))
replace(ROWS, _on_picked(_rows))
replace(CLASSES, with_masked(_classes))
replace(LABEL_CURVES, _marks_known)
replace(TOGETHER, with_masked(_together))
replace(POINTS, _on_picked(_points))
replace(CLASS_MAPS, with_masked(_class_maps))
replace(SHAPES, with_masked(_shapes))
replace(SIGNALS, _on_picked(_shared))
