"""Elementwise losses, with the number of the entries that count, in one pass over the operands.

Programs add up in turn, and one more adds up the programs in order.  The gradient of every operand that wants one is
written in one pass.  ``"bce"`` does not check the range of its input, which torch's kernel does on a GPU by a crash.
"""

from collections.abc import Sequence
from functools import cache
from math import log, pi
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...compat import OpOverload, schema
from ..losses import NONE
from . import layout
from .loss_formulas import entry, slopes
from .reduce import TL
from .tiles import indices, load_mask, load_valid, places

_SLOTS = {"self": 0, "input": 0, "target": 1, "var": 2, "pos_weight": 3, "weight": 4}
_NAMES = ("input", "target", "var", "pos_weight", "weight")
_FIRST = {"smooth_l1_loss": "beta", "huber_loss": "delta", "kl_div": "log_target", "gaussian_nll_loss": "eps"}
_DEFAULTS = {"beta": 1.0, "delta": 1.0, "log_target": False, "eps": 1e-6}
KINDS = (
    "mse_loss", "l1_loss", *_FIRST, "binary_cross_entropy", "binary_cross_entropy_with_logits"
)  # fmt: skip


class Call(NamedTuple):
    """A loss as the kernels take it."""

    operands: tuple[Tensor | None, ...]  #: input, target, variance, weight of positives, weight; None if not given
    mask: Tensor
    kind: str
    a: float  #: beta, delta, ``log_target`` or the least variance
    b: float  #: what each entry of a Gaussian loss has besides
    each: bool


@cache
def _kind(op: Any) -> str:
    return schema(op).name.removeprefix("aten::") if isinstance(op, OpOverload) else op.__name__


def _call(
    given: Sequence[Any], op: Any, names: Sequence[str], _: Any, parameters: dict[str, Any], reduction: int
) -> Call:
    """The call of the kernel for ``(*operands, mask)``."""
    *operands, mask = given
    kind, placed = _kind(op), [None] * 5
    for name, x in zip(names, operands, strict=True):
        placed[_SLOTS[name]] = x
    name = _FIRST.get(kind, "")
    a = float(parameters.get(name, _DEFAULTS[name])) if name else 0.0
    b = 0.5 * log(2 * pi) if parameters.get("full") else 0.0
    return Call(tuple(placed), mask, kind, a, b, reduction == NONE)


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
def _add_up(totals, numbers, out, valid, number, P, BP: tl.constexpr):
    p = tl.arange(0, BP)
    total = tl.sum(tl.load(totals + p, mask=p < P, other=0), 0)
    n = tl.sum(tl.load(numbers + p, mask=p < P, other=0), 0)
    tl.store(out, total)
    tl.store(number, n)
    tl.store(valid, (n > 0).to(tl.uint8))


@triton.jit
def _slopes(
    g, x, y, s, p, w, m, dx, dy, dz, R, steps, near, gs, xs, ys, ss, ps, ws, ms, os, KIND: tl.constexpr,
    GIVEN: tl.constexpr, A: tl.constexpr, EACH: tl.constexpr, WANTED: tl.constexpr,
    BR: tl.constexpr, R2: tl.constexpr, WIDE: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    if not EACH:
        grad = tl.load(g).to(ACC)
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


def serves(*given: Any) -> str | None:
    """Why no kernel serves; None where one does."""
    *tensors, op, names, known, parameters, reduction = given
    kind = _kind(op)
    if kind not in KINDS:
        return f"{kind} has no kernel"
    call = _call(tensors, op, names, known, parameters, reduction)
    first, target, _, positive, weight = call.operands
    assert first is not None
    found = layout.refuses(first, *call.operands[1:], call.mask)
    if found:
        return found
    if any(t is not None and t.dtype not in layout.FLOATS for t in call.operands):
        return "operands that are not floating point"
    if any(t is not None and t.requires_grad for t in (positive, weight)):
        return "a weight with a gradient"
    if (
        target is not None
        and target.requires_grad
        and (kind == "binary_cross_entropy" or (kind == "kl_div" and not call.a))
    ):
        return "a target with a gradient"
    return None


def forward(*given: Any) -> tuple[Any, tuple[Any, ...]]:
    """The entries, or their sum, the number of those that count, whether there is one, and the dtype of an entry."""
    *tensors, op, names, known, parameters, reduction = given
    operands, mask, kind, a, b, each = _call(tensors, op, names, known, parameters, reduction)
    data = tensors[0]
    dtype, acc = _dtypes(operands)
    out = data.new_empty(mask.shape if each else (), dtype=dtype if each else acc)
    walked, table = _fit([*operands, mask], out.expand(mask.shape))
    sizes = layout.blocks(table)
    programs = sizes.splits
    totals = data.new_empty(0 if each else programs, dtype=acc)
    numbers = data.new_empty(0 if each else programs, dtype=torch.int64)
    _loss[(programs,)](
        *walked, out, totals, numbers, table.reduced, sizes.steps, table.near, *table.strides, KIND=kind,
        GIVEN=_given(operands), A=a, B=b, EACH=each, BR=sizes.reduced, R2=table.two[1],
        WIDE=sizes.wide, ACC=TL[acc], num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip
    if each:
        return out, tuple(tensors)
    valid, number = data.new_empty((), dtype=torch.bool), data.new_empty((), dtype=torch.int64)
    _add_up[(1,)](
        totals, numbers, out, valid.view(torch.uint8), number, programs, BP=layout.power_of_two(programs)
    )  # fmt: skip
    return (out, number, valid, dtype), tuple(tensors)


def backward(saved: Sequence[Any], grads: Any, *options: Any) -> tuple[Tensor | None, ...]:
    """The gradients of input, target and variance; None for weights and mask."""
    operands, mask, kind, a, _, each = _call(saved, *options)
    shape, grad = mask.shape, grads if each else grads[0]
    if grad is None:
        return (None,) * len(saved)
    wanted = tuple(t is not None and t.requires_grad for t in operands[:3])
    _, acc = _dtypes(operands)
    made = [
        torch.empty(shape if w else 0, dtype=acc if t is None or not w else t.dtype, device=mask.device)
        for w, t in zip(wanted, operands, strict=False)
    ]
    out = torch.empty(shape, device="meta")
    walked, table = _fit([grad.expand(shape), *operands, mask], out)
    sizes = layout.blocks(table)
    _slopes[(sizes.splits,)](
        *walked, *made, table.reduced, sizes.steps, table.near, *table.strides, KIND=kind, GIVEN=_given(operands), A=a,
        EACH=each, WANTED=wanted, BR=sizes.reduced, R2=table.two[1], WIDE=sizes.wide, ACC=TL[acc],
        num_warps=layout.warps(sizes.reduced),
    )  # fmt: skip
    found = {
        name: t.sum_to_size(o.shape)
        for name, t, o, w in zip(_NAMES, made, operands, wanted, strict=False)
        if w and o is not None
    }
    return *(found.get(_NAMES[_SLOTS[name]]) for name in options[1]), None


def _given(operands: Sequence[Tensor | None]) -> tuple[bool, bool, bool]:
    variance, positive, weight = (t is not None for t in operands[2:])
    return variance, positive, weight


def _dtypes(operands: Sequence[Tensor | None]) -> tuple[torch.dtype, torch.dtype]:
    """The dtype of the result, and the one to add up in."""
    data, target = operands[:2]
    assert data is not None
    assert target is not None
    dtype = torch.result_type(data, target)
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
