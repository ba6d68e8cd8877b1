"""Windows by loops: every output of a convolution, pooling or padding from the entries it may look at."""

import itertools
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..helpers.harness import Masked
from .pointwise import masked


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


def conv(dims: int) -> Any:
    def oracle(op: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
               groups: int = 1) -> Masked:  # fmt: skip
        given = (stride, padding, dilation, groups)
        x, weight = masked(x), masked(weight)
        value = op(zero(x), zero(weight), None if bias is None else masked(bias).data, *given)
        kernel, stride, dilation = weight.data.shape[2:], each(stride, dims), each(dilation, dims)
        windows = []
        for i in range(dims):
            total = dilation[i] * (kernel[i] - 1) if padding == "same" else 0
            left = total // 2 if isinstance(padding, str) else each(padding, dims)[i]
            right = total - left if isinstance(padding, str) else left
            windows.append((kernel[i], stride[i], left, right, dilation[i]))
        outputs = value.shape[-dims:]

        def place(mask: Tensor) -> Tensor:
            return core(mask, windows, outputs)

        return channels(x, weight, bias, value, groups, False, place)

    return oracle


def conv_transpose(dims: int) -> Any:
    def oracle(op: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
               output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Masked:  # fmt: skip
        given = (stride, padding, output_padding, groups, dilation)
        x, weight = masked(x), masked(weight)
        value = op(zero(x), zero(weight), None if bias is None else masked(bias).data, *given)
        settings = [each(v, dims) for v in (weight.data.shape[2:], stride, padding, output_padding, dilation)]

        def place(mask: Tensor) -> Tensor:
            result = torch.zeros(value.shape[-dims:], dtype=torch.bool)
            for output in itertools.product(*map(range, result.shape)):
                source = tuple(
                    max(0, math.ceil((o + 2 * p - d * (k - 1) - more) / s))
                    for o, k, s, p, more, d in zip(output, *settings, strict=True)
                )
                result[output] = mask[source]
            return result

        return channels(x, weight, bias, value, groups, True, place)

    return oracle


def channels(x: Masked, weight: Masked, bias: Any, value: Tensor, groups: int, transposed: bool, place: Any) -> Masked:
    """One group of channels after the other; an output channel needs a valid weight and a valid bias."""
    dims = weight.data.dim() - 2
    given = x.mask if x.data.dim() == dims + 2 else x.mask.unsqueeze(0)
    result = torch.zeros(value.shape, dtype=torch.bool).view(-1, *value.shape[-dims - 1 :])
    inner, outer = given.shape[1] // groups, result.shape[1] // groups
    for n, g in itertools.product(range(len(given)), range(groups)):
        valid = place(given[n, g * inner : (g + 1) * inner].any(0))
        for c in range(outer):
            out = g * outer + c
            taps = weight.mask[g * inner : (g + 1) * inner, c] if transposed else weight.mask[out]
            known = bool(taps.any()) and (bias is None or bool(masked(bias).mask[out]))
            result[n, out] = valid & known
    return Masked(value, result.view(value.shape))


def max_pool(dims: int) -> Any:
    def oracle(op: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
        shape = op(x.data, kernel_size, stride, padding, dilation, ceil_mode, False).shape
        kernel, pad, dilation = each(kernel_size, dims), each(padding, dims), each(dilation, dims)
        step = each(stride, dims) if stride else kernel
        value, index = torch.zeros(shape, dtype=x.data.dtype), torch.zeros(shape, dtype=torch.int64)
        valid = torch.zeros(shape, dtype=torch.bool)
        sizes = x.data.shape[-dims:]
        windows = list(zip(kernel, step, pad, pad, dilation, strict=True))
        for lead in itertools.product(*map(range, shape[:-dims])):
            valid[lead] = core(x.mask[lead], windows, shape[-dims:], ceil_mode)
            for output in itertools.product(*map(range, shape[-dims:])):
                places = itertools.product(
                    *(
                        [t for j in range(k) if 0 <= (t := o * s - p + j * d) < n]
                        for o, k, s, p, d, n in zip(output, kernel, step, pad, dilation, sizes, strict=True)
                    )
                )
                taps = [t for t in places if x.mask[lead][t]]
                if taps:
                    best = max(taps, key=lambda t: x.data[lead][t])
                    value[(*lead, *output)] = x.data[lead][best]
                    flat = 0
                    for t, n in zip(best, sizes, strict=True):
                        flat = flat * n + t
                    index[(*lead, *output)] = flat
                else:
                    value[(*lead, *output)] = -torch.inf
        return (Masked(value, valid), Masked(index, valid)) if return_indices else Masked(value, valid)

    return oracle


def avg_pool(dims: int) -> Any:
    def oracle(op: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: Any = None) -> Masked:  # fmt: skip
        rest = (kernel_size, stride, padding, ceil_mode, count_include_pad, *([divisor_override] if dims > 1 else []))
        value = op(zero(x), *rest)
        kernel, pad = each(kernel_size, dims), each(padding, dims)
        step = each(stride, dims) if stride else kernel
        windows = list(zip(kernel, step, pad, pad, [1] * dims, strict=True))
        valid = torch.zeros(value.shape, dtype=torch.bool)
        for lead in itertools.product(*map(range, value.shape[:-dims])):
            valid[lead] = core(x.mask[lead], windows, value.shape[-dims:], ceil_mode)
            if divisor_override is None and (ceil_mode or not count_include_pad):
                inside = hull(x.mask[lead])
                for output in itertools.product(*map(range, value.shape[-dims:])):
                    plain, row = (
                        taps(area, output, windows, pad if count_include_pad else [0] * dims)
                        for area in (torch.ones_like(inside), inside)
                    )
                    value[(*lead, *output)] *= plain / max(row, 1)
        return Masked(value, valid)

    return oracle


def hull(mask: Tensor) -> Tensor:
    """The mask with the holes between the first and last valid entry of each line filled, last dims last."""
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


def pad(op: Any, x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Masked:
    """Line by line: plain padding of what lies between the first and the last valid entry."""
    data, mask = zero(x), x.mask
    for i in range(len(pad) // 2):
        left, right = pad[2 * i : 2 * i + 2]
        if left == right == 0:
            continue
        dim = data.dim() - 1 - i
        lines, marks = data.movedim(dim, -1), mask.movedim(dim, -1)
        size = lines.shape[-1] + left + right
        new = lines.new_zeros(*lines.shape[:-1], size)
        seen = torch.zeros(new.shape, dtype=torch.bool)
        for place in itertools.product(*map(range, lines.shape[:-1])):
            found = marks[place].nonzero().flatten().tolist()
            if not found and lines.shape[-1]:
                continue
            found = found or [0, -1]  # an empty row is padded, too
            row = slice(found[0], found[-1] + 1)
            try:
                ours = line(lines[place][row], left, right, mode, value)
                known = line(marks[place][row].to(data.dtype), left, right, mode, 1.0) > 0.5
            except RuntimeError:  # nothing is left of the row
                continue
            new[place][found[0] : found[0] + len(ours)] = ours[: size - found[0]]
            seen[place][found[0] : found[0] + len(ours)] = known[: size - found[0]]
        data, mask = new.movedim(-1, dim), seen.movedim(-1, dim)
    return Masked(data, mask)


def line(row: Tensor, left: int, right: int, mode: str, value: Any) -> Tensor:
    if mode == "constant":
        return F.pad(row, (left, right), value=value or 0)
    return F.pad(row[None, None], (left, right), mode=mode)[0, 0]


def constant_pad(op: Any, x: Any, sides: Any, value: Any = None) -> Masked:
    return pad(op, x, sides, "constant", value)


ORACLES = {
    **{f"nn.functional.conv{d}d": conv(d) for d in (1, 2, 3)},
    **{f"nn.functional.conv_transpose{d}d": conv_transpose(d) for d in (1, 2, 3)},
    **{f"nn.functional.max_pool{d}d": max_pool(d) for d in (1, 2, 3)},
    **{f"nn.functional.avg_pool{d}d": avg_pool(d) for d in (1, 2, 3)},
    **{f"nn.functional.adaptive_avg_pool{d}d": adaptive(d, False) for d in (1, 2, 3)},
    **{f"nn.functional.adaptive_max_pool{d}d": adaptive(d, True) for d in (1, 2, 3)},
    "nn.functional.pad.constant": pad,
    "nn.functional.pad.replicate": pad,
    "nn.functional.pad.replicate_negative": pad,
    "constant_pad_nd": constant_pad,
}
