"""Windows by loops: every output of a convolution, pooling or padding from the entries it may look at."""

import itertools
import math
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked


def each(value: Any, dims: int) -> list[int]:
    return [value] * dims if isinstance(value, int) else list(value) * (dims if len(value) == 1 else 1)


def holds(mask: Tensor, ranges: list[tuple[bool, range]]) -> bool:
    """For all (or any) of the positions in each range, the last dimension asked last."""
    if not ranges:
        return bool(mask)
    every, places = ranges[-1]
    inside = [t for t in places if 0 <= t < mask.shape[-1]]
    return (all if every else any)(holds(mask[..., t], ranges[:-1]) for t in inside)


def core(mask: Tensor, windows: list[tuple[int, int, int, int, int]], outputs: Any, ceil: bool = False) -> Tensor:
    """Validity of the windows ``(kernel, stride, left, right, dilation)`` over the dims of ``mask``."""
    result = torch.zeros(tuple(outputs), dtype=torch.bool)
    for place in itertools.product(*map(range, outputs)):
        ranges = []
        for o, (kernel, stride, left, right, dilation) in zip(place, windows, strict=True):
            span = dilation * (kernel - 1) - left - right
            if ceil:
                span = max(span - stride + 1, -left)
            first, last = sorted((o * stride, o * stride + span))
            ranges.append((span >= 0, range(first, last + 1)))
        result[place] = holds(mask, ranges)
    return result


def zero(x: Masked) -> Tensor:
    return torch.where(x.mask, x.data, torch.zeros((), dtype=x.data.dtype))


def hull(mask: Tensor) -> Tensor:
    """The mask with the masked entries between the first and last valid entry of each line filled, last dims last."""
    for dim in range(mask.dim()):
        lines = mask.movedim(dim, -1).clone()
        for place in itertools.product(*map(range, lines.shape[:-1])):
            found = lines[place].nonzero().flatten().tolist()
            if found:
                lines[place][found[0] : found[-1] + 1] = True
        mask = lines.movedim(-1, dim)
    return mask


def taps(area: Tensor, output: Any, windows: Any, reach: list[int]) -> int:
    """How many taps of a window lie in ``area`` or at most ``reach`` from it."""
    count = 0
    ranges = [range(o * s - left, o * s - left + k) for o, (k, s, left, _, _) in zip(output, windows, strict=True)]
    for place in itertools.product(*ranges):
        near = tuple(slice(max(t - r, 0), max(t + r + 1, 0)) for t, r in zip(place, reach, strict=True))
        count += bool(area[near].any())
    return count


def adaptive(dims: int, largest: bool) -> Any:
    def oracle(op: Any, x: Any, output_size: Any, return_indices: bool = False) -> Any:
        shape = op(x.data, output_size).shape
        sizes = x.data.shape[-dims:]
        value, valid = torch.zeros(shape, dtype=x.data.dtype), torch.zeros(shape, dtype=torch.bool)
        index = torch.zeros(shape, dtype=torch.int64)
        numbers = torch.arange(math.prod(sizes)).view(sizes)
        for lead in itertools.product(*map(range, shape[:-dims])):
            for output in itertools.product(*map(range, shape[-dims:])):
                cut = tuple(
                    slice(o * n // m, -(-(o + 1) * n // m))
                    for o, n, m in zip(output, sizes, shape[-dims:], strict=True)
                )
                held = x.data[lead][cut][x.mask[lead][cut]]
                valid[(*lead, *output)] = len(held) > 0
                if len(held):
                    value[(*lead, *output)] = held.max() if largest else held.mean()
                    if largest:
                        index[(*lead, *output)] = numbers[cut][x.mask[lead][cut]][held.argmax()]
        return (Masked(value, valid), Masked(index, valid)) if return_indices else Masked(value, valid)

    return oracle


ORACLES: dict[str, Any] = {}  # what the families of windows share
