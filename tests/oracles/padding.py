"""Padding, line by line."""

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..helpers.harness import Masked
from .windows import zero


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
    "nn.functional.pad.constant": pad,
    "nn.functional.pad.replicate": pad,
    "nn.functional.pad.replicate_negative": pad,
    "constant_pad_nd": constant_pad,
}
