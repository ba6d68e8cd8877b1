"""Ops on pairs with sparse data: values are stored where something is specified, and only those can be valid.

The mask of such a pair has the data's layout and indices.  Elementwise ops run the family's own rule on the stored
values (so ``cos`` needs no dense result: what is unspecified is masked out), binary ones on the common pattern;
reductions, softmax and scans use the verbs that the functional forms use; views are the plain op on data and mask.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import errors, shapes
from ..layouts import validity
from ..layouts.elements import at, built, is_sparse, keys, of, same_pattern, values, with_values
from ..pair import Pair
from . import views
from .forms import OPS, SCANS

ELEMENTWISE = ("pointwise", "activation", "special", "cast", "like", "choose", "random", "loss")
VIEWS = ("shape", "layout")


def run(entry: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the entry's op gives for arguments of which at least one is a pair with sparse data."""
    name = entry.overload._schema.name.rpartition("::")[2]
    family = entry.op.rule.__module__.rpartition(".")[2]
    if entry.kind == "functional" and name in OPS:
        return OPS[name](*args, **kwargs)
    if entry.kind == "functional" and name in SCANS:
        return SCANS[name](entry.rule, *args, **kwargs)
    if entry.kind != "out" and family in ELEMENTWISE:
        return elementwise(entry.rule, args, kwargs)
    if entry.kind == "functional" and family in VIEWS:
        return _view(entry, name, args, kwargs)
    raise _without_form(entry, args)


def _view(entry: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The op on data and mask, where torch has it for the layout, else the entries moved; nothing becomes dense."""
    if name in views.FORMS:
        return views.FORMS[name](*args, **kwargs)
    try:
        return entry.rule(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as reason:
        raise _without_form(entry, args) from reason


def _without_form(entry: Any, args: Sequence[Any]) -> errors.UnsupportedOpError:
    leaves = [b for a in args for b in (a if isinstance(a, list | tuple) else (a,))]
    layout = next(a.data.layout for a in leaves if type(a) is Pair and is_sparse(a.data))
    return errors.UnsupportedOpError(
        f"{entry.overload.name()} has no form for masked tensors of layout {layout}; convert first: x.to_dense() keeps "
        "validity"
    )


def elementwise(rule: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The rule on the stored values of the common pattern of its sparse arguments; strided ones are read there."""
    sparse = [a for a in args if type(a) is Pair and is_sparse(a.data)]
    pattern = sparse[0].mask
    for other in sparse[1:]:
        pattern = common(pattern, other.mask)
    result = rule(*[_seen_at(a, pattern) for a in args], **kwargs)
    return tuple(_back(r, pattern) for r in result) if isinstance(result, tuple) else _back(result, pattern)


def common(a: Tensor, b: Tensor) -> Tensor:
    """A pattern that holds what both store."""
    if same_pattern(a, b):
        return a
    if a.shape != b.shape:
        raise ValueError(f"sparse masked tensors must have one shape, got {tuple(a.shape)} and {tuple(b.shape)}")
    key = keys(a)[validity.at(validity.specified_mask(b), a)].sort().values
    return built(key, torch.ones_like(key, dtype=torch.bool), a.shape, a)


def _seen_at(arg: Any, pattern: Tensor) -> Any:
    if type(arg) is Pair:
        if not is_sparse(arg.data):
            return Pair(_gathered(arg.data, pattern), _gathered(arg.mask, pattern))
        if same_pattern(arg.mask, pattern):
            return Pair(values(arg.data), values(arg.mask))
        key = keys(pattern)
        return Pair(at(arg.data, key), at(arg.mask, key))
    if isinstance(arg, Tensor) and arg.dim() > 0:
        return at(arg, keys(pattern)) if is_sparse(arg) else _gathered(arg, pattern)
    return arg


def _gathered(x: Tensor, pattern: Tensor) -> Tensor:
    """A strided operand at the positions of the pattern, broadcast without expanding it."""
    if x.numel() == 1:
        return x.reshape(1).expand(values(pattern).shape[0])
    if not shapes.broadcasts(x.shape, pattern.shape):
        raise ValueError(f"operand of shape {tuple(x.shape)} does not broadcast to {tuple(pattern.shape)}")
    lead, verbs = pattern.dim() - x.dim(), of(pattern)
    return x[tuple(0 if n == 1 else verbs.coordinate(pattern, d + lead) for d, n in enumerate(x.shape))]


def _back(result: Any, pattern: Tensor) -> Any:
    if type(result) is not Pair or result.data.dim() == 0:  # the sum or mean of a loss
        return result
    return Pair(with_values(pattern, result.data), with_values(pattern, result.mask))
