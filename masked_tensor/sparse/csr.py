"""Products of a sparse matrix with a strided one, by torch's CSR kernels, for every layout; differentiable.

A masked value is written as 0, which is one pass over the values.  Only where the other factor is not finite, so that 0
would become NaN, are masked values left out of the pattern.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .. import masks, settings
from ..compat import in_transform
from ..fill import fill_outside
from ..kernels.devices import is_host, sums_of_rows
from ..kernels.precision import rounds_noticeably
from ..layouts.elements import values, verbs_of

_DTYPES = (torch.float32, torch.float64)


@dataclass(frozen=True, eq=False)
class Stored:
    """Where a matrix stores its values: row ``i`` from ``offsets[i]`` on, each in the column that ``inner`` says.

    ``transposed``: the matrix is the transpose of that.
    """

    offsets: Tensor
    inner: Tensor
    shape: tuple[int, int]  #: of what is compressed by rows
    transposed: bool
    outer: Tensor | None = None  #: the row of each value, where that costs nothing
    order: Tensor | None = None  #: in which order the stored values are read; None: as they lie

    @property
    def size(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return (self.shape[1], self.shape[0]) if self.transposed else self.shape

    def t(self) -> "Stored":
        """The transpose, of the same memory."""
        return replace(self, transposed=not self.transposed)

    def rows(self) -> Tensor:
        """The row of each value, as it is compressed."""
        if self.outer is not None:
            return self.outer
        number = self.offsets.diff()
        small = self.shape[0] <= torch.iinfo(torch.int32).max
        return torch.repeat_interleave(number.to(torch.int32) if small else number, output_size=self.inner.shape[0])


def parts_of(x: Tensor) -> Stored:
    """Where a sparse matrix of any layout stores its values."""
    shape = (x.shape[0], x.shape[1])
    if x.layout is torch.sparse_csr:
        return Stored(x.crow_indices(), x.col_indices(), shape, False)
    if x.layout is torch.sparse_csc:
        return Stored(x.ccol_indices(), x.row_indices(), (shape[1], shape[0]), True)
    rows, columns = (verbs_of(x).coordinate(x, d) for d in (0, 1))
    order = None
    if x.layout is not torch.sparse_coo or x.sparse_dim() < 2 or not x.is_coalesced():
        rows, order = rows.sort(stable=True)
        columns = columns[order]
    offsets = torch.ops.aten._convert_indices_from_coo_to_csr(rows, shape[0])
    return Stored(offsets, columns, shape, False, rows, order)


def in_order(x: Tensor, s: Stored) -> Tensor:
    """The stored values of ``x`` in the order of ``s``."""
    return values(x) if s.order is None else values(x).index_select(0, s.order)


def product(s: Stored, v: Tensor, mask: Tensor | None, dense: Tensor, zeroed: bool = False) -> Tensor:
    """``matrix @ dense`` of the values that the mask shows (None: all), for a strided matrix ``dense``.

    ``zeroed``: the others are 0.
    """
    if v.dtype is not dense.dtype or not _has_kernel(v, dense) or in_transform():
        return _gather_products(s, v, mask, dense)
    result: Tensor = _Product.apply(v, mask, s, dense, zeroed)
    return result


def _has_kernel(v: Tensor, dense: Tensor) -> bool:
    fits = v.dtype in _DTYPES or rounds_noticeably(v.dtype)
    return fits and sums_of_rows(dense) and 0 not in (v.shape[0], *dense.shape)


def _gather_products(s: Stored, v: Tensor, mask: Tensor | None, dense: Tensor) -> Tensor:
    """The same for other dtypes and devices, and under transforms: every pair is written down."""
    rows, columns = (s.inner, s.rows()) if s.transposed else (s.rows(), s.inner)
    if mask is not None:
        valid = mask.nonzero().view(-1)
        rows, columns, v = rows[valid], columns[valid], v[valid]
    pairs = v.unsqueeze(1) * dense[columns]
    return pairs.new_zeros(s.size[0], dense.shape[1]).index_add(0, rows, pairs)


class _Product(torch.autograd.Function):
    """``matrix @ dense``."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, mask: Tensor | None, s: Stored, dense: Tensor, zeroed: bool) -> Tensor:
        ctx.save_for_backward(v, mask, dense)
        ctx.s, ctx.zeroed = s, zeroed
        return multiply(s, v.detach(), mask, dense.detach(), zeroed)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, Tensor | None, None]:
        v, mask, dense = ctx.saved_tensors
        of_values = _Inner.apply(grad, mask, ctx.s, dense) if ctx.needs_input_grad[0] else None
        of_dense = _Product.apply(v, mask, ctx.s.t(), grad, ctx.zeroed) if ctx.needs_input_grad[3] else None
        return of_values, None, None, of_dense, None


class _Inner(torch.autograd.Function):
    """The inner product of row ``i`` of ``left`` and row ``j`` of ``right`` for each value stored at ``(i, j)``."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, mask: Tensor | None, s: Stored, right: Tensor) -> Tensor:
        ctx.save_for_backward(left, mask, right)
        ctx.s = s
        result = inner_products(s, left.detach(), right.detach())
        return result if mask is None else torch.where(mask, result, 0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, None, None, Tensor | None]:
        left, mask, right = ctx.saved_tensors
        of_left = _Product.apply(grad, mask, ctx.s, right, False) if ctx.needs_input_grad[0] else None
        of_right = _Product.apply(grad, mask, ctx.s.t(), left, False) if ctx.needs_input_grad[3] else None
        return of_left, None, None, of_right


def multiply(s: Stored, v: Tensor, mask: Tensor | None, dense: Tensor, zeroed: bool = False) -> Tensor:
    """``product`` without autograd, where torch has a kernel."""
    dtype = v.dtype
    if rounds_noticeably(dtype):
        v, dense = v.float(), dense.float()
    if mask is not None and not bool(torch.stack(dense.aminmax()).isfinite().all()):
        s, v = _valid_only(s, v, mask)
    elif mask is not None and not zeroed:
        v = fill_outside(v, mask, 0)
    with masks.no_autocast(v.device):
        return _run(s, v, dense).to(dtype)


def _run(s: Stored, v: Tensor, dense: Tensor) -> Tensor:
    if not s.transposed:
        return torch.sparse_csr_tensor(s.offsets, s.inner, v, s.shape, check_invariants=False) @ dense
    if dense.shape[1] > settings.COLUMNS or not is_host(v.device):
        return torch.sparse_csc_tensor(s.offsets, s.inner, v, s.size, check_invariants=False) @ dense
    result, columns = v.new_zeros(dense.shape[1], s.size[0]), dense.t().contiguous()
    rows, place = s.rows(), s.inner.to(torch.int64)
    for total, column in zip(result, columns, strict=True):
        total.scatter_add_(0, place, column.index_select(0, rows).mul_(v))
    return result.t().contiguous()


def _valid_only(s: Stored, v: Tensor, mask: Tensor) -> tuple[Stored, Tensor]:
    """The pattern and the values without those that are masked."""
    small = mask.shape[0] <= torch.iinfo(torch.int32).max
    before = torch.nn.functional.pad(mask.cumsum(0, dtype=torch.int32 if small else torch.int64), (1, 0))
    offsets = before[s.offsets].to(s.offsets.dtype)
    return replace(s, offsets=offsets, inner=s.inner.masked_select(mask), outer=None), v.masked_select(mask)


def inner_products(s: Stored, left: Tensor, right: Tensor) -> Tensor:
    """What ``_Inner`` computes."""
    if s.transposed:
        left, right = right, left
    dtype = left.dtype
    if rounds_noticeably(dtype):
        left, right = left.float(), right.float()
    zero = left.new_zeros(s.inner.shape[0])  # beta = 0 reads it
    pattern = torch.sparse_csr_tensor(s.offsets, s.inner, zero, s.shape, check_invariants=False)
    with masks.no_autocast(left.device):
        found: Tensor = torch.sparse.sampled_addmm(pattern, left, right.t(), beta=0).values()
    return found.to(dtype)


def rows_with_valid(s: Stored, mask: Tensor | None) -> Tensor:
    """Which rows of the matrix have a valid entry: one bool per row."""
    place = s.inner if s.transposed else s.outer
    if place is None:
        return s.offsets.diff() > 0 if mask is None else _runs_with_valid(s.offsets, mask)
    found = torch.zeros(s.size[0], dtype=torch.uint8, device=place.device)
    if mask is None:
        return found.index_fill_(0, place.to(torch.int64), 1).view(torch.bool)
    return found.scatter_reduce_(0, place.to(torch.int64), mask.view(torch.uint8), "amax").view(torch.bool)


def _runs_with_valid(offsets: Tensor, mask: Tensor) -> Tensor:
    """Which runs of the mask have a True; in pieces, so that the mask as floats stays in the cache."""
    number = offsets.shape[0] - 1
    step = max(1, number * settings.CHUNK // max(1, mask.shape[0])) if is_host(mask.device) else max(1, number)
    starts = range(0, number, step)
    ends = offsets[[*starts, number]].tolist()
    found = [
        torch.segment_reduce(mask[a:b].float(), "sum", offsets=offsets[i : i + step + 1] - a, unsafe=True) > 0
        for i, a, b in zip(starts, ends[:-1], ends[1:], strict=True)
    ]
    return torch.cat(found) if found else mask.new_zeros(0)


def counts(s: Stored, mask: Tensor | None, other: Tensor) -> Tensor:
    """How many valid entries of each row meet a valid one of ``other``, a strided mask of few columns or many."""
    v = s.inner.new_ones(s.inner.shape[0], dtype=torch.float64) if mask is None else mask.double()
    if 0 in (v.shape[0], *other.shape):
        return torch.zeros(s.size[0], other.shape[1], dtype=torch.float64, device=v.device)
    return multiply(s, v, None, other.double())
