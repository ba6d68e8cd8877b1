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

from ..layouts import validity
from ..layouts.elements import at, built, is_sparse, keys, of, same_pattern, values, with_values
from ..layouts.keys import ravel
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


def _chosen(rule: Rule) -> Rule:
    def chosen(condition: Any, x: Any, other: Any) -> Pair:
        shape = torch.broadcast_shapes(*(a.data.shape for a in (condition, x, other) if isinstance(a, Pair | Tensor)))
        whole = [type(a) is Pair and is_sparse(a.data) and a.data.shape == shape for a in (condition, x, other)]
        if whole[0]:
            pattern = condition.mask
        elif whole[1] and whole[2]:
            pattern = union(x.mask, other.mask)
        else:
            raise NoForm("a strided branch is valid wherever it is chosen")
        result: Pair = on_pattern(rule, pattern, (condition, x, other), {})
        return result

    return chosen


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


def _moved(rule: Rule) -> Rule:
    def moved(x: Any, *args: Any, **kwargs: Any) -> Any:
        if type(x) is not Pair:
            raise NoForm
        mask = values(x.mask)
        number = with_values(x.mask, torch.arange(1, mask.shape[0] + 1, device=mask.device))
        try:
            result = rule(Pair(number, number), *args, **kwargs)
        except (RuntimeError, NotImplementedError) as reason:  # torch has no kernel for the layout
            raise NoForm from reason
        each = result if isinstance(result, (list, tuple)) else (result,)
        pairs = [_numbered(r.data, values(x.data), mask) for r in each]
        return pairs if isinstance(result, (list, tuple)) else pairs[0]

    return moved


def _numbered(number: Tensor, data: Tensor, mask: Tensor) -> Pair:
    """The entries at their new places, where their numbers (from 1) now are; 0 is a place that was made up."""
    if not is_sparse(number):
        raise NoForm
    place = values(number)
    some, place = place > 0, (place - 1).clamp_min(0)
    if mask.numel() == 0:
        return Pair(with_values(number, data.new_zeros(place.shape)), with_values(number, some))
    zero = torch.zeros((), dtype=data.dtype, device=data.device)
    return Pair(with_values(number, torch.where(some, data[place], zero)), with_values(number, some & mask[place]))


on_values = Lift("on values", _on_values)  #: elementwise: the rule itself, on the stored values
as_it_is = Lift("as it is", _as_it_is)  #: the rule itself asks for the layout
chosen = Lift("on values", _chosen)  #: the same for a condition and two branches: an entry needs one of them only
strided = Lift("strided", _strided)  #: of the tensor only its kind matters: the result is strided
moved = Lift("moved", _moved)  #: torch's own op moves the numbers of the entries, and the entries follow
scan = Lift("scan", _scan)  #: the rule itself, on the stored values of each slice
scan_extreme = Lift("scan", _scan_extreme)  #: the same for two results, the second of which are positions


def elementwise(rule: Rule, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The rule on the stored values of the common pattern of its sparse arguments; others are read there.

    One sparse argument at least must have the shape of the result: entries of the others are read as often as they are
    repeated, but none is stored more than once.
    """
    sparse = [a for a in args if type(a) is Pair and is_sparse(a.data)]
    shape = torch.broadcast_shapes(*(a.data.shape for a in args if isinstance(a, Pair | Tensor)))
    whole = [a.mask for a in sparse if a.mask.shape == shape]
    if not whole:
        raise NoForm(f"the result of shape {tuple(shape)} would store entries more than once")
    pattern = whole[0]
    for other in whole[1:]:
        pattern = common(pattern, other)
    return on_pattern(rule, pattern, args, kwargs)


def on_pattern(rule: Rule, pattern: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The rule on the arguments as they are at the stored entries of ``pattern``, whose shape the result has."""
    result = rule(*[_seen_at(a, pattern) for a in args], **{k: _seen_at(v, pattern) for k, v in kwargs.items()})
    return tuple(_back(r, pattern) for r in result) if isinstance(result, tuple) else _back(result, pattern)


def common(a: Tensor, b: Tensor) -> Tensor:
    """A pattern that holds what both store."""
    if same_pattern(a, b):
        return a
    key = keys(a)[validity.at(validity.specified_mask(b), a)].sort().values
    return built(key, torch.ones_like(key, dtype=torch.bool), a.shape, a)


def union(a: Tensor, b: Tensor) -> Tensor:
    """A pattern that holds what either stores."""
    if same_pattern(a, b):
        return a
    key = torch.cat((keys(a), keys(b))).unique()
    return built(key, torch.ones_like(key, dtype=torch.bool), a.shape, a)


def _seen_at(arg: Any, pattern: Tensor) -> Any:
    if type(arg) is Pair:
        if not is_sparse(arg.data):
            return Pair(_gathered(arg.data, pattern), _gathered(arg.mask, pattern))
        if same_pattern(arg.mask, pattern):
            return Pair(values(arg.data), values(arg.mask))
        key = _places(arg.mask, pattern)
        return Pair(at(arg.data, key), at(arg.mask, key))
    if isinstance(arg, Tensor) and arg.dim() > 0:
        return at(arg, _places(arg, pattern)) if is_sparse(arg) else _gathered(arg, pattern)
    return arg


def _places(x: Tensor, pattern: Tensor) -> Tensor:
    """Which position of ``x``, which broadcasts, each entry of the pattern reads."""
    if x.shape == pattern.shape:
        return keys(pattern)
    lead, verbs = pattern.dim() - x.dim(), of(pattern)
    key = ravel(lambda d: verbs.coordinate(pattern, d + lead), x.shape, [d for d, n in enumerate(x.shape) if n != 1])
    return torch.zeros_like(keys(pattern)) if key is None else key


def _gathered(x: Tensor, pattern: Tensor) -> Tensor:
    """A strided operand at the positions of the pattern, broadcast without expanding it."""
    if x.numel() == 1:
        return x.reshape(1).expand(values(pattern).shape[0])
    lead, verbs = pattern.dim() - x.dim(), of(pattern)
    return x[tuple(0 if n == 1 else verbs.coordinate(pattern, d + lead) for d, n in enumerate(x.shape))]


def _back(result: Any, pattern: Tensor) -> Any:
    if type(result) is not Pair or result.data.dim() == 0:  # the sum or mean of a loss
        return result
    return Pair(with_values(pattern, result.data), with_values(pattern, result.mask))
