"""Elementwise functions on a pattern: every operand is read at the stored entries of one of them.

Operands of other shapes broadcast: an entry is read as often as it is repeated, but none is stored more than once.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..layouts import validity
from ..layouts.elements import build_like, is_sparse, keys, same_pattern, values, values_at, verbs_of, with_values
from ..layouts.positions import ravel
from ..op import NoRule, Rule
from ..pair import Pair


def elementwise(rule: Rule, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The rule on the stored values of the common pattern of its sparse arguments; others are read there.

    One sparse argument at least must have the shape of the result: entries of the others are read as often as they are
    repeated, but none is stored more than once.
    """
    sparse = [a for a in args if type(a) is Pair and is_sparse(a.data)]
    shape = torch.broadcast_shapes(*(a.data.shape for a in args if isinstance(a, Pair | Tensor)))
    whole = [a.mask for a in sparse if a.mask.shape == shape]
    if not whole:
        raise NoRule(f"the result of shape {tuple(shape)} would store entries more than once")
    pattern = whole[0]
    for other in whole[1:]:
        pattern = common_pattern(pattern, other)
    return on_pattern(rule, pattern, args, kwargs)


def on_pattern(rule: Rule, pattern: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The rule on the arguments as they are at the stored entries of ``pattern``, whose shape the result has."""
    result = rule(*[_read_at(a, pattern) for a in args], **{k: _read_at(v, pattern) for k, v in kwargs.items()})
    return (
        tuple(_scatter_back(r, pattern) for r in result)
        if isinstance(result, tuple)
        else _scatter_back(result, pattern)
    )


def common_pattern(a: Tensor, b: Tensor) -> Tensor:
    """A pattern that holds what both store."""
    if same_pattern(a, b):
        return a
    key = keys(a)[validity.at(validity.specified_mask(b), a)].sort().values
    return build_like(key, torch.ones_like(key, dtype=torch.bool), a.shape, a)


def union_pattern(a: Tensor, b: Tensor) -> Tensor:
    """A pattern that holds what either stores."""
    if same_pattern(a, b):
        return a
    key = torch.cat((keys(a), keys(b))).unique()
    return build_like(key, torch.ones_like(key, dtype=torch.bool), a.shape, a)


def _read_at(arg: Any, pattern: Tensor) -> Any:
    if not isinstance(arg, Pair | Tensor):
        return arg
    data = arg.data if isinstance(arg, Pair) else arg
    if data.dim() == 0 and pattern.dim() > 0:  # stays a number: the result has the dtype of what has dimensions
        return Pair(_number(data), _number(arg.mask)) if isinstance(arg, Pair) else _number(data)
    if not isinstance(arg, Pair):
        return values_at(arg, _places(arg, pattern)) if is_sparse(arg) else _gather_strided(arg, pattern)
    if not is_sparse(data):
        return Pair(_gather_strided(data, pattern), _gather_strided(arg.mask, pattern))
    if same_pattern(arg.mask, pattern):
        return Pair(values(data), values(arg.mask))
    key = _places(arg.mask, pattern)
    return Pair(values_at(data, key), values_at(arg.mask, key))


def _number(x: Tensor) -> Tensor:
    """A tensor without dimensions, strided."""
    return values_at(x, torch.zeros(1, dtype=torch.int64, device=x.device)).reshape(()) if is_sparse(x) else x


def _places(x: Tensor, pattern: Tensor) -> Tensor:
    """Which position of ``x``, which broadcasts, each entry of the pattern reads."""
    if x.shape == pattern.shape:
        return keys(pattern)
    lead, verbs = pattern.dim() - x.dim(), verbs_of(pattern)
    key = ravel(lambda d: verbs.coordinate(pattern, d + lead), x.shape, [d for d, n in enumerate(x.shape) if n != 1])
    return torch.zeros_like(keys(pattern)) if key is None else key


def _gather_strided(x: Tensor, pattern: Tensor) -> Tensor:
    """A strided operand at the positions of the pattern, broadcast without expanding it."""
    if x.numel() == 1:
        return x.reshape(1).expand(values(pattern).shape[0])
    lead, verbs = pattern.dim() - x.dim(), verbs_of(pattern)
    return x[tuple(0 if n == 1 else verbs.coordinate(pattern, d + lead) for d, n in enumerate(x.shape))]


def _scatter_back(result: Any, pattern: Tensor) -> Any:
    if type(result) is not Pair:
        return result
    if result.data.dim() == 0:  # the sum or mean of a loss
        nothing = pattern.shape.numel() > 0 and values(pattern).numel() == 0  # no entry is valid; there are some
        return Pair(result.data, torch.zeros_like(result.mask)) if nothing else result
    return Pair(with_values(pattern, result.data), with_values(pattern, result.mask))
