"""Softmax: every slice normalises over its valid entries; what is masked out has weight exactly 0.

A slice with nothing valid is masked, with zero gradient, because of its mask.  Special values of valid entries
propagate: a slice whose valid entries are all -inf gives NaN, as the plain op does.  ``mode="inf_as_zero"`` gives such
a slice zeros, and ``mode="none"`` is the plain formula over -inf: NaN for a slice with nothing valid.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from .. import errors, masks, pair, settings
from ..compat import in_transform, is_tracked
from ..fill import fill_bits
from ..op import Op
from ..packing import per_sequence as packed
from ..pair import Pair, Payload
from ..select import guard, select, zero_masked_inplace
from ..shared.memory_format import make_dense
from ..sparse import operators
from ..sparse.rules import sparse_rule

Mode = Literal["safe", "inf_as_zero", "none"]
INFINITY = float("inf")
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
CONSTANTS = {
    dtype: (torch.tensor(0.0, dtype=dtype, device="cpu"), torch.tensor(-INFINITY, dtype=dtype, device="cpu"))
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}


def softmax(x: Pair, dim: int, dtype: torch.dtype | None = None, *, log: bool = False, mode: Mode = "safe") -> Pair:
    """``exp(x) / exp(x).sum(dim)`` over the valid entries, or its logarithm."""
    if mode not in ("safe", "inf_as_zero", "none"):
        raise ValueError(f"mode must be 'safe', 'inf_as_zero' or 'none', got {mode!r}")
    if dtype is not None and dtype is not x.data.dtype:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise NotImplementedError(f"softmax gives fractions, got dtype={errors.dtype_name(dtype)}")
        x = Pair(x.data.to(dtype), x.mask, x.payload)
    if mode == "none":
        return Pair(_plain(select(x.data, x.mask, -INFINITY), dim, log), x.mask)
    whole = x.data.dim() == 0 or masks.is_constant(x.mask, dim)  # every slice is valid or masked as a whole
    if mode == "inf_as_zero":
        x = make_dense(x)
        data = guard(x.data, x.mask, inside=True) if whole else select(x.data, x.mask, -INFINITY)
        return Pair(_inf_as_zero(data, dim, log), x.mask)
    if whole:
        return Pair(_plain(guard(x.data, x.mask, owned=True, inside=True), dim, log), x.mask)
    if type(x.data) is not Tensor or in_transform() or not x.data.is_cpu:
        result = _plain(select(x.data, x.mask, -INFINITY), dim, log)
        return Pair(result, x.mask) if log else Pair(select(result, x.mask, 0), x.mask, Payload.ZERO)
    run: Any = _Softmax.apply if is_tracked(x.data) else _fill_and_normalize
    result = run(x.data, x.mask, dim, log)
    return Pair(result, x.mask, Payload.ANY if log else Payload.ZERO)


def native(x: Pair, dim: int, half_to_float: bool, *, log: bool = False) -> Pair:
    """The op that ``softmax`` decomposes into."""
    return softmax(x, dim, torch.float32 if half_to_float else None, log=log)


def backward_data(
    grad: Pair | Tensor, output: Pair | Tensor, dim: int, dtype: torch.dtype, *, log: bool = False
) -> Pair:
    """The derivative, for callers below autograd: a masked output has weight 0."""
    g, out = pair.as_pair(grad), pair.as_pair(output)
    mask = masks.logical_and(g.mask, out.mask)
    op: Any = torch._log_softmax_backward_data if log else torch._softmax_backward_data
    weights = select(out.data, mask, -INFINITY if log else 0)
    return Pair(select(op(select(g.data, mask, 0), weights, dim, dtype), mask, 0), mask, Payload.ZERO)


def _plain(data: Tensor, dim: int, log: bool) -> Tensor:
    return torch.log_softmax(data, dim) if log else torch.softmax(data, dim)


def _inf_as_zero(data: Tensor, dim: int, log: bool) -> Tensor:
    """Decided at the division: where all terms are 0 the sum is, too, and is replaced by 1."""
    if data.numel() == 0 or data.dim() == 0:
        data, shape = data.reshape(-1), data.shape
        return _inf_as_zero(data, 0, log).reshape(shape) if data.numel() else _plain(data, 0, log).reshape(shape)
    top = data.detach().amax(dim, keepdim=True)
    shifted = data - torch.where(top == -INFINITY, 0, top)
    terms = shifted.exp()
    total = terms.sum(dim, keepdim=True)
    some = total != 0
    total = torch.where(some, total, 1)
    return guard(shifted, some.expand(shifted.shape)) - total.log() if log else terms / total


def _fill_and_normalize(data: Tensor, mask: Tensor, dim: int, log: bool) -> Tensor:
    """Filled with -inf, normalized and cleared, step by step.  The fills work on bits: ``(bits - f) * flag + f``."""
    if data.numel() < settings.FUSED or data.dtype not in CONSTANTS or data.is_neg():
        zero, infinity = CONSTANTS.get(data.dtype, (0, -INFINITY))
        result = _plain(torch.where(mask, data, infinity), dim, log)
        return result if log else torch.where(mask, result, zero)
    result = out = torch.empty(data.shape, dtype=data.dtype)
    dim = dim % data.dim()
    if dim > 1 and data.is_contiguous() and mask.is_contiguous():
        data, mask, out = (t.flatten(0, dim - 1) for t in (data, mask, out))
        dim = 1
    rows = data.shape[0] if dim == 0 else max(1, settings.per_step(settings.PIECE) * data.shape[0] // data.numel())
    mask = masks.compact(mask).view(torch.uint8).expand(data.shape[0], *(-1 for _ in data.shape[1:]))
    integer = INTEGERS[data.dtype.itemsize]
    infinity = torch.tensor(fill_bits(-INFINITY, data.dtype), dtype=integer)
    buffer = torch.empty((min(rows, data.shape[0]), *mask.shape[1:]), dtype=integer)
    for some, valid, target in zip(data.split(rows), mask.split(rows), out.split(rows), strict=True):
        flags, bits = buffer[: valid.shape[0]].copy_(valid), target.view(integer)
        torch.sub(some.view(integer), infinity, out=bits)
        torch.addcmul(infinity, bits, flags, out=bits)
        (torch.log_softmax if log else torch.softmax)(target, dim, out=target)
        if not log:
            bits.mul_(flags)
    return result


class _Softmax(torch.autograd.Function):
    """The fused loop under autograd; it saves only its result."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor, dim: int, log: bool) -> Tensor:
        result = _fill_and_normalize(data, mask, dim, log)
        ctx.save_for_backward(result, mask)
        ctx.dim, ctx.log = dim, log
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        result, mask = ctx.saved_tensors
        op: Any = torch._log_softmax_backward_data if ctx.log else torch._softmax_backward_data
        back = op(grad, result, ctx.dim, result.dtype)
        # A NaN of a valid entry must not reach its masked neighbours.
        return select(back, mask, 0) if is_tracked(back) else zero_masked_inplace(back, mask), None, None, None


OPS = [
    Op("softmax", softmax, sparse=sparse_rule(operators.softmax), packed=packed.along_any()),
    Op("log_softmax", softmax, {"log": True}, sparse=sparse_rule(operators.log_softmax), packed=packed.along_any()),
    Op("_softmax", native, sparse=sparse_rule(operators.softmax), packed=packed.along_any()),
    Op("_log_softmax", native, {"log": True}, sparse=sparse_rule(operators.log_softmax), packed=packed.along_any()),
    Op(
        "_safe_softmax",
        softmax,
        {"mode": "inf_as_zero"},
        sparse=sparse_rule(operators.safe_softmax),
        packed=packed.along_any(),
    ),
    Op("_softmax_backward_data", backward_data),
    Op("_log_softmax_backward_data", backward_data, {"log": True}),
]
