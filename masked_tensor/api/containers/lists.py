"""Lists, nested to any depth: None and the like are masked, and lists that are too short are padded.

A list may hold numbers, or arrays and tensors of any kind that :func:`given.pair` takes.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from ...engine.tensor import MaskedTensor, pair_of
from ...pair import Pair
from . import kinds, ragged
from .arrow import reading

_LISTS = frozenset((list, tuple))
_NUMBERS = frozenset((bool, int, float, complex, type(None)))
Taker = Callable[[Any], Pair]


def pair_of_list(data: Any, take: Taker, tensor: Callable[[Any], Tensor]) -> Pair:
    """``take`` makes a pair of an array in the list, ``tensor`` makes a tensor of nested lists of numbers."""
    numbers = _flat_numbers(data)
    if numbers is not None:
        leaves, sizes = numbers
        some = next((v for v in leaves if v is not None), 0.0)  # where masked: of a type the values have anyway
        values = tensor([some if v is None else v for v in leaves]).reshape(sizes)
        return Pair(values, torch.tensor([v is not None for v in leaves], device=values.device).reshape(sizes))
    if _holds_arrays(data):
        parts = [pair_of_list(v, take, tensor) if isinstance(v, list | tuple) else take(v) for v in data]
        return ragged.pad_and_stack(parts)
    shape = _shape(data)
    if not _regular(data, shape):
        data = _pad_lists(data, shape)
    if not any(is_missing(v) for v in _leaves(data)):
        values = tensor(data)
        return Pair(values, torch.ones((), dtype=torch.bool, device=values.device).expand(values.shape))
    some = next((v for v in _leaves(data) if not is_missing(v)), 0.0)  # where masked: of a type the values have anyway
    values = tensor(_replace_missing(data, lambda v: some if is_missing(v) else v))
    return Pair(values, torch.tensor(_replace_missing(data, lambda v: not is_missing(v)), device=values.device))


def _flat_numbers(data: Any) -> tuple[list[Any], list[int]] | None:
    """The numbers and None of regular lists, and the shape of these; None for anything else.

    It asks for the types of all at once: each by itself takes ten times as long.
    """
    level, shape = list(data), [len(data)]
    kinds = set(map(type, level))
    while kinds and kinds <= _LISTS:
        lengths = set(map(len, level))
        if len(lengths) > 1:
            return None
        shape += lengths
        level = list(chain.from_iterable(level))
        kinds = set(map(type, level))
    return (level, shape) if type(None) in kinds and kinds <= _NUMBERS else None


def is_missing(value: Any) -> bool:
    """None, and what numpy.ma, pandas and a masked tensor have in its place."""
    if value is None:
        return True
    if type(value) is MaskedTensor:
        return value.dim() == 0 and not pair_of(value).mask
    return type(value).__name__ in ("MaskedConstant", "NAType")


def of_numbers(data: Any) -> bool:
    """Whether a list holds numbers, None, and lists of these alone: no texts, arrays or dicts."""
    if isinstance(data, list | tuple):
        return all(of_numbers(v) for v in data)
    return isinstance(data, bool | int | float | complex) or is_missing(data)


def first_text(data: Any) -> str | None:
    """The first text that nested lists, or an array, hold."""
    leaves = _leaves(data.tolist() if is_array(data) and hasattr(data, "tolist") else data)
    return next((v for v in leaves if isinstance(v, str)), None)


def _holds_arrays(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return any(_holds_arrays(v) for v in data)
    return is_array(data)


def is_array(value: Any) -> bool:
    """Whether ``value`` has dimensions."""
    if hasattr(value, "ndim"):
        return bool(value.ndim > 0)
    return kinds.reader_of(value) is not None or reading.speaks_arrow(value)


def _shape(data: Any) -> tuple[int, ...]:
    """As long as the longest list at each depth."""
    if not isinstance(data, list | tuple):
        return ()
    inner = [_shape(v) for v in data if isinstance(v, list | tuple)]
    depth = max(map(len, inner), default=0)
    return len(data), *(max((s[d] for s in inner if len(s) > d), default=0) for d in range(depth))


def _regular(data: Any, shape: tuple[int, ...]) -> bool:
    if not shape or not isinstance(data, list | tuple):
        return not shape and not isinstance(data, list | tuple)
    return len(data) == shape[0] and all(_regular(v, shape[1:]) for v in data)


def _pad_lists(data: Any, shape: tuple[int, ...]) -> Any:
    """With None up to ``shape``; None in place of a list is a list of them."""
    if not shape:
        return data
    if is_missing(data):
        data = []
    if not isinstance(data, list | tuple):
        raise TypeError(f"data mixes numbers and lists at one depth: {data!r} stands where others have a list")
    missing = [None] * (shape[0] - len(data))
    return [_pad_lists(v, shape[1:]) for v in [*data, *missing]]


def _leaves(data: Any) -> Iterator[Any]:
    if isinstance(data, list | tuple):
        for v in data:
            yield from _leaves(v)
    else:
        yield data


def _replace_missing(data: Any, by: Callable[[Any], Any]) -> Any:
    return [_replace_missing(v, by) for v in data] if isinstance(data, list | tuple) else by(data)
