"""Resampling from the weights of each output, read off the plain op on one-hot images."""

import inspect
import itertools
import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..helpers.harness import Masked
from .pointwise import masked
from .windows import zero


def weights(op: Any, sizes: Any, *args: Any, **kwargs: Any) -> Tensor:
    """``(entries, *outputs)``: what each input entry contributes to each output."""
    entries = math.prod(sizes)
    return op(torch.eye(entries, dtype=torch.float64).view(entries, 1, *sizes), *args, **kwargs).squeeze(1)


def interpolate(mode: str) -> Any:
    def oracle(op: Any, x: Any, *args: Any, **kwargs: Any) -> Masked:
        plain = op(x.data, *args, **kwargs)
        dims = x.data.dim() - 2
        sizes, outputs = x.data.shape[2:], plain.shape[2:]
        given = inspect.signature(F.interpolate).bind(x, *args, **kwargs).arguments
        align, factors = given.get("align_corners"), given.get("scale_factor")
        factors = None if factors is None or given.get("size") is not None else torch.tensor(factors).expand(dims)
        recompute = given.get("recompute_scale_factor")
        nearest = []
        for d, (n, m) in enumerate(zip(sizes, outputs, strict=True)):
            step = n / m if factors is None or recompute else 1 / float(factors[d])
            place = torch.arange(m, dtype=torch.float64)
            if align:
                place = place * ((n - 1) / (m - 1) if m > 1 else 0.0)
            else:
                place = ((place + 0.5) * step - 0.5).clamp(min=0)
            nearest.append((place + 0.5).floor().long().clamp(max=n - 1).tolist())
        table = weights(op, sizes, *args, **kwargs)
        value, valid = torch.zeros_like(plain), torch.zeros(plain.shape, dtype=torch.bool)
        for lead in itertools.product(*map(range, plain.shape[:2])):
            image, mask = zero(x)[lead], x.mask[lead]
            if mode == "bicubic":
                image, mask = continued(image, mask)
            for output in itertools.product(*map(range, outputs)):
                share = table[(slice(None), *output)].view(sizes)
                where = tuple(line[o] for line, o in zip(nearest, output, strict=True))
                valid[(*lead, *output)] = x.mask[lead][where]
                total = (share * mask).sum()
                if mode == "bicubic" and total <= 0.1:
                    value[(*lead, *output)] = zero(x)[lead][where]
                elif total > 0:
                    value[(*lead, *output)] = (share * image * mask).sum() / total
        return Masked(value, valid)

    return oracle


def continued(image: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The first and last valid entry of each line repeated beyond it, one dimension after the other."""
    for dim in range(image.dim()):
        lines, marks = image.movedim(dim, -1).clone(), mask.movedim(dim, -1).clone()
        for place in itertools.product(*map(range, lines.shape[:-1])):
            found = marks[place].nonzero().flatten().tolist()
            if found:
                a, b = found[0], found[-1]
                lines[place][:a], lines[place][b + 1 :] = lines[place][a].clone(), lines[place][b].clone()
                marks[place][:a], marks[place][b + 1 :] = True, True
        image, mask = lines.movedim(-1, dim), marks.movedim(-1, dim)
    return image, mask


def grid_sample(op: Any, x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: Any = None) -> Masked:  # fmt: skip
    """One image and one place after the other: weights from one-hot images."""
    x, grid = masked(x), masked(grid)
    given = (mode, padding_mode, align_corners)
    places = zero(grid)
    value = F.grid_sample(zero(x), places, *given)
    valid = torch.zeros(value.shape, dtype=torch.bool)
    sizes = x.data.shape[2:]
    for n in range(len(value)):
        entries = math.prod(sizes)
        images = torch.eye(entries, dtype=value.dtype).view(1, entries, *sizes)
        table = F.grid_sample(images, places[n : n + 1], *given)[0].flatten(1)
        closest = F.grid_sample(images, places[n : n + 1], "nearest", *given[1:])[0].flatten(1)
        known = grid.mask[n].all(-1).flatten()
        for c in range(value.shape[1]):
            mask = x.mask[n, c].flatten().to(value.dtype)
            seen, whole = mask @ table, table.sum(0)
            hidden = (1 - mask) @ closest > 0.5
            missing = (1 - mask) @ table
            ratio = torch.where((missing != 0) & (seen.abs() > (0.1 if mode == "bicubic" else 0)), whole / seen, 1.0)
            value[n, c] = ((zero(x)[n, c].flatten() @ table) * ratio).view(value.shape[2:])
            valid[n, c] = (known & ~hidden & x.mask[n, c].any()).view(value.shape[2:])
    return Masked(value, valid)


ORACLES = {
    **{
        f"nn.functional.interpolate.{mode}": interpolate(mode)
        for mode in ("bilinear", "linear", "trilinear", "bicubic")
    },
    "nn.functional.grid_sample": grid_sample,
}
