"""Packed rules by kind of op: how an op's rule serves packed tensors.

A packed rule gets each packed argument as a ``Packed``, other masked ones as a ``Pair``, and returns packed tensors on
tokens of its packed arguments (or pairs, or plain tensors).  What each argument may be it declares (``Takes``).  It
raises ``NoRule`` for what else it cannot do: then the ordinary rule runs on the padded tensors.
"""

from typing import Any

import torch
from torch import Tensor

from .. import pair
from ..op import NoRule, Rule, StorageRule, Takes
from ..pair import Pair
from .grid import same_places
from .operands import align_operands, pack_like
from .packed import Packed


def packed_rule(own: Rule, **takes: Any) -> StorageRule:
    """Another rule altogether: ``own``, of arguments as ``Takes`` says."""
    return StorageRule("a rule of its own", lambda rule, op: own, Takes(**takes))


def _elementwise(rule: Rule, op: Rule) -> Rule:
    """The plain op on the stored values; the family's own rule, if some entries within the tokens are masked."""

    def elementwise(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("memory_format", None)  # of what is stored by tokens there is one
        if len(args) == 1:
            lead, values = args[0], [args[0].operand()]
        else:
            lead, values = align_operands(args)
        run = rule if any(type(v) is Pair for v in values) else op
        result = run(*values, **kwargs)
        return args[0] if result is values[0] and lead is args[0] else pack_like(result, lead)

    return elementwise


def _choose(rule: Rule, op: Rule) -> Rule:
    """A choice stays within the tokens if the condition is packed, or if all it chooses from is, on the same tokens."""
    elementwise = _elementwise(rule, op)

    def chosen(condition: Any, *choices: Any) -> Any:
        inside = type(condition) is Packed
        if not inside and not all(type(c) is Packed and same_places(c.grid, choices[0].grid) for c in choices):
            raise NoRule
        return elementwise(condition, *choices)

    return chosen


def _keep_storage(rule: Rule, op: Rule) -> Rule:
    """As elementwise, of one tensor alone: copies, likes, draws.  What comes back keeps its validity."""

    def kept(x: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("memory_format", None)
        values = x.operand()
        result = op(values, *args, **kwargs) if x.inner is None else rule(values, *args, **kwargs)
        return x if result is values else pack_like(result, x)

    return kept


def _keep_nonempty(rule: Rule, op: Rule) -> Rule:
    """As kept; torch answers otherwise (in dtypes, say) where there is nothing to draw."""
    kept = _keep_storage(rule, op)

    def some(x: Any, *args: Any, **kwargs: Any) -> Any:
        if not x.values.numel():
            raise NoRule
        return kept(x, *args, **kwargs)

    return some


def _keep_by_rule(rule: Rule, op: Rule) -> Rule:
    """As kept, by a rule that does otherwise than the plain op."""

    def on_data(values: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        result: Tensor = rule(pair.as_pair(values), *args, **kwargs).data
        return result

    return _keep_storage(rule, on_data)


def _as_new(rule: Rule, op: Rule) -> Rule:
    def bare(x: Any, *args: Any, **kwargs: Any) -> Any:
        return rule(x.pair(), *args, **kwargs)

    return bare


def _empty_strided(rule: Rule, op: Rule) -> Rule:
    def room(x: Any, size: Any, stride: Any, **kwargs: Any) -> Any:
        if tuple(size) != x.shape:
            return rule(x.pair(), size, stride, **kwargs)
        data = torch.empty_like(x.values, **kwargs)
        return pack_like(data if x.inner is None else Pair(data, x.inner), x)

    return room


def _store_anew(rule: Rule, op: Rule) -> Rule:
    """The stored values of the second argument, in the dtype of the first: those of ``x.copy_(y)``."""

    def copied(x: Packed, src: Packed, non_blocking: bool = False) -> Packed:
        if src.shape != x.shape or src.values.device != x.values.device:
            raise NoRule
        values = src.values.to(x.values.dtype, copy=True)
        return Packed(values, src.grid, src.order, src.inner, src.payload)

    return copied


def _compare_shapes(rule: Rule, op: Rule) -> Rule:
    def as_shapes(x: Any, other: Any) -> bool:
        first, second = (v.shape if type(v) is not Pair else v.data.shape for v in (x, other))
        return tuple(first) == tuple(second)

    return as_shapes


elementwise = StorageRule("elementwise", _elementwise, None)  #: the values of all operands, brought to the same tokens
choose = StorageRule("elementwise, within the tokens", _choose, None)  #: ``where``
keep_storage = StorageRule("as it is stored", _keep_storage)  #: one tensor's values, whatever the other arguments are
keep_by_rule = StorageRule(
    "as it is stored, by its rule", _keep_by_rule
)  #: as ``kept``, where the plain op will not do
keep_nonempty = StorageRule("as it is stored, if anything is", _keep_nonempty)  #: as ``kept``, of at least one entry
store_anew = StorageRule("as the source is stored", _store_anew, Takes(stored=("self", "src")))  #: ``copy_``
as_new = StorageRule("new", _as_new)  #: a tensor of its own, to which the packed one only gives dtype and device
empty_strided = StorageRule(
    "plain, or room for itself", _empty_strided
)  #: ``new_empty_strided``: of the own size it is packed
compare_shapes = StorageRule("by shape", _compare_shapes, None)  #: a question about two shapes
