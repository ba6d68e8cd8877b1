"""Sparse rules by kind of op: how an op's rule serves pairs with sparse data.

Elementwise ops run the family's own rule on the stored values (so ``cos`` needs no dense result: what is unspecified is
masked out), binary ones on the common pattern; scans run it on each slice; reductions, products and views have rules
of their own.  An op names its rule.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..layouts.elements import is_sparse, keys, values, with_values
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair
from . import operators
from .pattern import elementwise, on_pattern, union_pattern


def sparse_rule(own: Rule, **takes: Any) -> StorageRule:
    """Another rule altogether: ``own``, a family on stored values, of arguments as ``Takes`` says."""
    return StorageRule("a rule of its own", lambda rule: own, Takes(**takes), _OWN)


def _scan(rule: Rule) -> Rule:
    return partial(operators.scan, rule)


def _scan_extreme(rule: Rule) -> Rule:
    return partial(operators.scan_extreme, rule)


def _on_values(rule: Rule) -> Rule:
    def on_values(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("memory_format", None)  # of stored values there is one
        layout = kwargs.pop("layout", None)  # of a copy and a ``*_like``, whose first argument is the tensor
        if layout is not None and layout is not args[0].data.layout:
            raise NoRule(f"layout={layout} of a tensor whose layout is {args[0].data.layout}")
        return elementwise(rule, args, kwargs)

    return on_values


def _choose(rule: Rule) -> Rule:
    def chosen(condition: Any, x: Any, other: Any) -> Pair:
        shape = torch.broadcast_shapes(*(a.data.shape for a in (condition, x, other) if isinstance(a, Pair | Tensor)))
        whole = [type(a) is Pair and is_sparse(a.data) and a.data.shape == shape for a in (condition, x, other)]
        if whole[0]:
            pattern = condition.mask
        elif whole[1] and whole[2]:
            pattern = union_pattern(x.mask, other.mask)
        else:
            raise NoRule("a strided branch is valid wherever it is chosen")
        result: Pair = on_pattern(rule, pattern, (condition, x, other), {})
        return result

    return chosen


def _unchanged(rule: Rule) -> Rule:
    def as_it_is(*args: Any, **kwargs: Any) -> Any:
        try:
            return rule(*args, **kwargs)
        except (RuntimeError, NotImplementedError) as reason:  # torch has no kernel for the layout
            raise NoRule from reason

    return as_it_is


def _in_row_order(rule: Rule) -> Rule:
    def in_a_row(x: Pair, *args: Any, **kwargs: Any) -> Any:
        order = keys(x.mask).argsort()
        flat = Pair(values(x.data)[order], values(x.mask)[order])
        result = rule(flat, *args, **kwargs)
        if not isinstance(result, tuple):
            return result
        return tuple(_back_in_order(r, x.mask, order) if r.mask is flat.mask else r for r in result)

    return in_a_row


def _runs(rule: Rule) -> Rule:
    in_order = _in_row_order(rule)

    def runs(x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
        if dim is not None:
            raise NoRule("runs of whole slices")
        return in_order(x, return_inverse, return_counts)

    return runs


def _back_in_order(result: Pair, pattern: Tensor, order: Tensor) -> Pair:
    """A result with an entry for every stored entry, at the places where those are."""
    data, mask = (torch.empty_like(part).index_copy(0, order, part) for part in (result.data, result.mask))
    return Pair(with_values(pattern, data), with_values(pattern, mask))


def _strided(rule: Rule) -> Rule:
    def strided(x: Pair, *args: Any, **kwargs: Any) -> Any:
        return rule(Pair(values(x.data), values(x.mask)), *args, **kwargs)

    return strided


def _move(rule: Rule) -> Rule:
    def moved(x: Pair, *args: Any, **kwargs: Any) -> Any:
        mask = values(x.mask)
        number = with_values(x.mask, torch.arange(1, mask.shape[0] + 1, device=mask.device))
        try:
            result = rule(Pair(number, number), *args, **kwargs)
        except (RuntimeError, NotImplementedError) as reason:  # torch has no kernel for the layout
            raise NoRule from reason
        each = result if isinstance(result, (list, tuple)) else (result,)
        pairs = [_renumber(r.data, values(x.data), mask) for r in each]
        return pairs if isinstance(result, (list, tuple)) else pairs[0]

    return moved


def _renumber(number: Tensor, data: Tensor, mask: Tensor) -> Pair:
    """The entries at their new places, where their numbers (from 1) now are; 0 is a place that was made up."""
    if not is_sparse(number):
        raise NoRule
    place = values(number)
    some, place = place > 0, (place - 1).clamp_min(0)
    if mask.numel() == 0:
        return Pair(with_values(number, data.new_zeros(place.shape)), with_values(number, some))
    zero = torch.zeros((), dtype=data.dtype, device=data.device)
    return Pair(with_values(number, torch.where(some, data[place], zero)), with_values(number, some & mask[place]))


_OWN = "a rule of its own, at the cost of the stored entries"
_VALUES = "the rule itself, entry by entry, on the stored values of the operands' common pattern"
_IN_ORDER = "the rule itself, on the stored values in row-major order"
_SCAN = "the rule itself, on the stored values of each slice"

on_values = StorageRule("on values", _on_values, None, _VALUES)
choose = StorageRule(
    "on values", _choose, None, _VALUES
)  #: the same for a condition and two branches: an entry needs one
unchanged = StorageRule("as it is", _unchanged, None, "the rule itself, which handles the layout")
strided = StorageRule(
    "strided", _strided, says="the rule itself, which uses only dtype and device: the result is strided"
)
in_row_order = StorageRule("in order", _in_row_order, says=_IN_ORDER)
runs = StorageRule("in order", _runs, says=_IN_ORDER)  #: the same for runs of entries, but not of slices
move_stored = StorageRule("moved", _move, says="torch's own op moves the entries, in the layouts that it supports")
scan = StorageRule("scan", _scan, says=_SCAN)
scan_extreme = StorageRule(
    "scan", _scan_extreme, says=_SCAN
)  #: the same for two results, the second of which are positions
