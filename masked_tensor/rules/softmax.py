"""Softmax: every slice normalises over its valid entries; masked-out entries have weight exactly 0.

A slice without valid entries is masked, with zero gradient, because of its mask.  Special values of valid entries
propagate: a slice whose valid entries are all -inf is NaN, as in the plain op.  ``mode="inf_as_zero"`` makes
such a slice zeros, and ``mode="none"`` is the plain formula over -inf: NaN for a slice without valid entries.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from .. import errors, kernels, masks, pair
from ..kernels.softmax import INFINITY, formula, normalize
from ..op import Op
from ..packing import per_sequence as packed
from ..pair import Pair, Payload
from ..select import guard, select
from ..shared.memory_format import make_dense
from ..sparse import operators
from ..sparse.rules import sparse_rule

Mode = Literal["safe", "inf_as_zero", "none"]


def softmax(x: Pair, dim: int, dtype: torch.dtype | None = None, *, log: bool = False, mode: Mode = "safe") -> Pair:
    """``exp(x) / exp(x).sum(dim)`` over the valid entries, or its logarithm."""
    if mode not in ("safe", "inf_as_zero", "none"):
        raise ValueError(f"mode must be 'safe', 'inf_as_zero' or 'none', got {mode!r}")
    if dtype is not None and dtype is not x.data.dtype:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise NotImplementedError(f"softmax gives fractions, got dtype={errors.dtype_name(dtype)}")
        x = Pair(x.data.to(dtype), x.mask, x.payload)
    if mode == "none":
        return Pair(normalize(select(x.data, x.mask, -INFINITY), dim, log), x.mask)
    whole = x.data.dim() == 0 or masks.is_constant(x.mask, dim)  # every slice is valid or masked as a whole
    if mode == "inf_as_zero":
        x = make_dense(x)
        data = guard(x.data, x.mask, inside=True) if whole else select(x.data, x.mask, -INFINITY)
        return Pair(_inf_as_zero(data, dim, log), x.mask)
    if whole:
        return Pair(normalize(guard(x.data, x.mask, owned=True, inside=True), dim, log), x.mask)
    result = kernels.run("softmax", formula, (x.data, x.mask), dim, log)
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


def _inf_as_zero(data: Tensor, dim: int, log: bool) -> Tensor:
    """Decided at the division: where all terms are 0 the sum is 0, and is replaced by 1."""
    if data.numel() == 0 or data.dim() == 0:
        data, shape = data.reshape(-1), data.shape
        return _inf_as_zero(data, 0, log).reshape(shape) if data.numel() else normalize(data, 0, log).reshape(shape)
    top = data.detach().amax(dim, keepdim=True)
    shifted = data - torch.where(top == -INFINITY, 0, top)
    terms = shifted.exp()
    total = terms.sum(dim, keepdim=True)
    some = total != 0
    total = torch.where(some, total, 1)
    return guard(shifted, some.expand(shifted.shape)) - total.log() if log else terms / total


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
