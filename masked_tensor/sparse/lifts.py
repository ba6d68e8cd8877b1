"""Lifts: how a row's rule serves pairs with sparse data.

Elementwise ops run the family's own rule on the stored values (so ``cos`` needs no dense result: what is unspecified is
masked out), binary ones on the common pattern; scans run it on each slice; reductions, products and views have forms of
their own.  A row names its lift.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import shapes
from ..layouts import validity
from ..layouts.elements import at, built, is_sparse, keys, of, same_pattern, values, with_values
from ..op import Lift, NoForm, Rule
from ..pair import Pair
from . import forms


def instead(form: Rule) -> Lift:
    """Another rule altogether: ``form``, a family on stored values."""
    return Lift("form", lambda rule: form)


def _scan(rule: Rule) -> Rule:
    return partial(forms.scan, rule)


def _scan_extreme(rule: Rule) -> Rule:
    return partial(forms.scan_extreme, rule)


def _on_values(rule: Rule) -> Rule:
    def on_values(*args: Any, **kwargs: Any) -> Any:
        return elementwise(rule, args, kwargs)

    return on_values


def _as_it_is(rule: Rule) -> Rule:
    def as_it_is(*args: Any, **kwargs: Any) -> Any:
        try:
            return rule(*args, **kwargs)
        except (RuntimeError, NotImplementedError) as reason:  # torch has no kernel for the layout
            raise NoForm from reason

    return as_it_is


def _strided(rule: Rule) -> Rule:
    def strided(x: Pair, *args: Any, **kwargs: Any) -> Any:
        return rule(Pair(values(x.data), values(x.mask)), *args, **kwargs)

    return strided


on_values = Lift("on values", _on_values)  #: elementwise: the rule itself, on the stored values
as_it_is = Lift("as it is", _as_it_is)  #: torch's own op moves the entries of data and mask
strided = Lift("strided", _strided)  #: of the tensor only its kind matters: the result is strided
scan = Lift("scan", _scan)  #: the rule itself, on the stored values of each slice
scan_extreme = Lift("scan", _scan_extreme)  #: the same for two results, the second of which are positions


def elementwise(rule: Rule, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
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
