"""Losses by the element, with the number of the entries that count, in one pass over the operands.

Programs add up in turn, and one more adds up the programs in order.  The gradient of every operand that wants one is
written in one pass.  ``"bce"`` does not check the range of its input, which torch's kernel does on a GPU by a crash.
"""

from collections.abc import Sequence
from math import log, pi
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import layout
from .loss_formulas import entry, slopes
from .reduce import TL
from .tiles import indices, load_mask, load_valid, places

NONE, MEAN, SUM = 0, 1, 2  # the reductions as operators number them
KINDS = ("mse", "l1", "smooth_l1", "huber", "bce", "bce_with_logits", "kl_div", "gaussian_nll")


@triton.jit
def _read(x, y, s, p, w, r, v, near, xs, ys, ss, ps, ws, GIVEN: tl.constexpr, R2: tl.constexpr, ACC: tl.constexpr):
    """The operands of valid entries; 1 for each that is not given."""
    a = load_valid(x, places(r, near[1], xs[2], xs[3], R2), v, ACC)
    b = load_valid(y, places(r, near[1], ys[2], ys[3], R2), v, ACC)
    c = a * 0.0 + 1.0
    d = c
    e = c
    if GIVEN[0]:
        c = load_valid(s, places(r, near[1], ss[2], ss[3], R2), v, ACC)
    if GIVEN[1]:
        d = load_valid(p, places(r, near[1], ps[2], ps[3], R2), v, ACC)
    if GIVEN[2]:
        e = load_valid(w, places(r, near[1], ws[2], ws[3], R2), v, ACC)
    return a, b, c, d, e


@triton.jit
def _loss(
    x, y, s, p, w, m, out, totals, numbers, R, steps, near, xs, ys, ss, ps, ws, ms, os, KIND: tl.constexpr,
    GIVEN: tl.constexpr, A: tl.constexpr, B: tl.constexpr, EACH: tl.constexpr, BR: tl.constexpr, R2: tl.constexpr,
    WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    total = tl.zeros([BR], ACC)
    n = tl.zeros([BR], tl.int32)
    for i in range(steps):
        r = indices(tl.program_id(0) * steps + i, BR, WIDE)
        inside = r < R
        v = load_mask(m, places(r, near[1], ms[2], ms[3], R2), inside)
        a, b, c, d, e = _read(x, y, s, p, w, r, v, near, xs, ys, ss, ps, ws, GIVEN, R2, ACC)
        each = tl.where(v, entry(a, b, c, d, e, KIND, A, B), 0.0)
        if EACH:
            tl.store(out + places(r, near[1], os[2], os[3], R2), each, mask=inside)
        else:
            total += each
            n += v.to(tl.int32)
    if not EACH:
        tl.store(totals + tl.program_id(0), tl.sum(total, 0))
        tl.store(numbers + tl.program_id(0), tl.sum(n.to(tl.int64), 0))


@triton.jit
def _add_up(totals, numbers, out, valid, number, P, MEAN_OF: tl.constexpr, BP: tl.constexpr):
    p = tl.arange(0, BP)
    total = tl.sum(tl.load(totals + p, mask=p < P, other=0), 0)
    n = tl.sum(tl.load(numbers + p, mask=p < P, other=0), 0)
    if MEAN_OF:
        total = total / tl.maximum(n, 1).to(total.dtype)
    tl.store(out, total)
    tl.store(number, n)
    tl.store(valid, (n > 0).to(tl.uint8))


@triton.jit
def _slopes(
    g, x, y, s, p, w, m, number, dx, dy, dz, R, steps, near, gs, xs, ys, ss, ps, ws, ms, os, KIND: tl.constexpr,
    GIVEN: tl.constexpr, A: tl.constexpr, EACH: tl.constexpr, MEAN_OF: tl.constexpr, WANTED: tl.constexpr,
    BR: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    if not EACH:
        grad = tl.load(g).to(ACC)
        if MEAN_OF:
            grad = grad / tl.maximum(tl.load(number), 1).to(ACC)
    for i in range(steps):
        r = indices(tl.program_id(0) * steps + i, BR, WIDE)
        inside = r < R
        v = load_mask(m, places(r, near[1], ms[2], ms[3], R2), inside)
        a, b, c, d, e = _read(x, y, s, p, w, r, v, near, xs, ys, ss, ps, ws, GIVEN, R2, ACC)
        if EACH:
            e = e * load_valid(g, places(r, near[1], gs[2], gs[3], R2), v, ACC)
        else:
            e = e * grad
        first, second, third = slopes(a, b, c, d, e, KIND, A)
        at = places(r, near[1], os[2], os[3], R2)
        if WANTED[0]:
            tl.store(dx + at, tl.where(v, first, 0.0), mask=inside)
        if WANTED[1]:
            tl.store(dy + at, tl.where(v, second, 0.0), mask=inside)
        if WANTED[2]:
            tl.store(dz + at, tl.where(v, third, 0.0), mask=inside)


def serves(
    input: Tensor, target: Tensor, variance: Tensor | None, positive: Tensor | None, weight: Tensor | None,
    mask: Tensor, kind: str, reduction: int, a: float = 0.0, b: float = 0.0,
) -> str | None:  # fmt: skip
    """Why no kernel serves; None where one does."""
    if kind not in KINDS:
        return f"{kind} has no kernel"
    found = layout.refuses(input, target, variance, positive, weight, mask)
    if found:
        return found
    if any(t is not None and t.dtype not in layout.FLOATS for t in (target, variance, positive, weight)):
        return "operands that are not floating point"
    if any(t is not None and t.requires_grad for t in (positive, weight)):
        return "a weight with a gradient"
    if target.requires_grad and (kind == "bce" or (kind == "kl_div" and not a)):
        return "a target with a gradient"
    return None


def forward(
    input: Tensor, target: Tensor, variance: Tensor | None, positive: Tensor | None, weight: Tensor | None,
    mask: Tensor, kind: str, reduction: int, a: float = 0.0, b: float = 0.0,
) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
    """The loss, whether it is valid, and the number of entries that count (``"none"``: the loss of each entry alone).

    ``a`` is beta, delta, ``log_target`` or the least variance; ``b`` is 1 where the Gaussian loss is in full.
    """
    operands = input, target, variance, positive, weight
    dtype, acc = _dtypes(operands)
    each = reduction == NONE
    out = (
        torch.empty_like(input.expand(mask.shape), dtype=dtype, memory_format=torch.contiguous_format)
        if each
        else input.new_empty((), dtype=dtype)
    )
    tensors, table = _fit([*operands, mask], out.expand(mask.shape))
    sizes = layout.blocks(table)
    programs = sizes.splits
    totals = input.new_empty(0 if each else programs, dtype=acc)
    numbers = input.new_empty(0 if each else programs, dtype=torch.int64)
    _loss[(programs,)](
        *tensors, out, totals, numbers, table.reduced, sizes.steps, table.near, *table.strides, KIND=kind,
        GIVEN=_given(operands), A=a, B=0.5 * log(2 * pi) if b else 0.0, EACH=each, BR=sizes.reduced, R2=table.two[1],
        WIDE=sizes.wide, ACC=TL[acc], num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip
    saved = *operands, mask
    if each:
        return out, (*saved, None)
    valid, number = input.new_empty((), dtype=torch.bool), input.new_empty((), dtype=torch.int64)
    _add_up[(1,)](
        totals, numbers, out, valid.view(torch.uint8), number, programs, MEAN_OF=reduction == MEAN,
        BP=layout.power_of_two(programs),
    )  # fmt: skip
    return (out, valid, number), (*saved, number)


def backward(
    saved: Sequence[Any], grads: Any, kind: str, reduction: int, a: float = 0.0, b: float = 0.0
) -> tuple[Tensor | None, ...]:
    """The gradients of input, target and variance; None for weights and mask."""
    *operands, mask, number = saved
    each, shape = reduction == NONE, mask.shape
    grad = grads if each else grads[0]
    if grad is None:
        return (None,) * 6
    wanted = tuple(t is not None and t.requires_grad for t in operands[:3])
    _, acc = _dtypes(operands)
    made = [
        torch.empty(shape if w else 0, dtype=t.dtype if w else acc, device=mask.device)
        for w, t in zip(wanted, operands, strict=False)
    ]
    out = torch.empty(shape, device="meta")
    tensors, table = _fit([grad.expand(shape), *operands, mask], out)
    sizes = layout.blocks(table)
    _slopes[(sizes.splits,)](
        *tensors, mask if number is None else number, *made, table.reduced, sizes.steps, table.near, *table.strides,
        KIND=kind, GIVEN=_given(operands), A=a, EACH=each, MEAN_OF=reduction == MEAN, WANTED=wanted, BR=sizes.reduced,
        R2=table.two[1], WIDE=sizes.wide, ACC=TL[acc], num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip
    found = [t.sum_to_size(o.shape) if w else None for w, t, o in zip(wanted, made, operands, strict=False)]
    return *found, None, None, None


def _given(operands: Sequence[Tensor | None]) -> tuple[bool, bool, bool]:
    variance, positive, weight = (t is not None for t in operands[2:])
    return variance, positive, weight


def _dtypes(operands: Sequence[Tensor | None]) -> tuple[torch.dtype, torch.dtype]:
    """The dtype of the result, and the one to add up in."""
    data, target = operands[:2]
    assert data is not None
    dtype = data.dtype if target is None else torch.result_type(data, target)
    return dtype, layout.wide_dtype(dtype)


def _fit(operands: Sequence[Tensor | None], out: Tensor) -> tuple[list[Tensor], layout.Walk]:
    """The operands as they can be walked along, the last of them a mask: as they lie, or as copies."""
    shape, dims = out.shape, tuple(range(out.dim()))
    first = next(t for t in operands if t is not None)
    mask = operands[-1]
    assert mask is not None
    tensors = [*((first if t is None else t).expand(shape) for t in operands[:-1]), layout.as_bytes(mask, shape)]
    table = layout.walk(shape, dims, *(t.stride() for t in tensors), out.stride())
    if table is None:
        tensors = [t.contiguous() for t in tensors]
        table = layout.walk(shape, dims, *(t.stride() for t in tensors), out.stride())
    assert table is not None
    return tensors, table
