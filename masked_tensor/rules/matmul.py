"""Matrix products: masked entries count as 0, and an output is masked iff it has pairs and none of them is valid.

(With ``meaning(product="all")``, an output is also masked if the partner of a valid entry is.)

A mask that cannot vary along the contracted dimension (known from its strides) passes through without a product of
masks: padding ``(B, T, 1)`` stays ``(B, T, 1)`` through Linear.  A bias, or the ``input`` of ``addmm``,
is an ordinary summand: the sum is valid where the product and the summand are.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import masks, pair, settings
from ..compat import OpOverload, in_transform, is_tracked
from ..kernels.devices import gelu_in_products
from ..op import NoRule, Op, ops
from ..packing import per_token as packed
from ..packing import products
from ..pair import Pair, data_of
from ..select import guard, select, zero_masked, zeroed_result
from ..shared import product_validity
from ..sparse import product as sparse_product
from ..sparse.rules import sparse_rule

Operand = Pair | Tensor


def factor(x: Operand, other: Operand, dim: int) -> Tensor:
    """The data of ``x`` as a factor of a product with ``other`` that contracts the dimension ``dim`` of ``x``.

    A masked entry must be 0 where it meets valid ones: if the mask varies along ``dim``, or if the gradient of
    ``other`` adds up over what ``x`` holds.  Otherwise its masked-out data reach masked outputs only.
    """
    if type(x) is not Pair:
        return x
    mixes = not (x.mask.dim() == 0 or masks.is_constant(x.mask, dim))
    if mixes or is_tracked(data_of(other)) or in_transform():
        return zero_masked(x, owned=True)
    return guard(x.data, x.mask, owned=True)


def product_mask(a: Operand, b: Operand, shape: torch.Size, transposed: bool = False) -> Tensor:
    """The mask of ``a @ b`` (``a @ b.T`` if ``transposed``), for operands as in ``torch.matmul``.

    It broadcasts to the result's ``shape``.
    """
    flat = data_of(a).dim() == 1, data_of(b).dim() == 1
    if type(a) is not Pair and type(b) is not Pair:
        return masks.full(shape, data_of(a).device)
    if type(b) is not Pair:
        return product_validity.is_present(pair.as_pair(a).mask, -1, keepdim=not any(flat))
    right = b.mask.mT if transposed and not flat[1] else b.mask
    if type(a) is not Pair:
        return product_validity.is_present(right, -1 if flat[1] else -2, keepdim=not any(flat))
    left = a.mask.unsqueeze(0) if flat[0] else a.mask
    result = product_validity.product_mask(left, right.unsqueeze(1) if flat[1] else right)
    if flat[1]:
        result = result.squeeze(-1)
    return (result.squeeze(-1) if flat[1] else result.squeeze(-2)) if flat[0] else result


def product(op: OpOverload, a: Operand, b: Operand, *dtype: torch.dtype) -> Pair:
    """mm, bmm, mv, dot, vdot, matmul."""
    data = op(factor(a, b, -1), factor(b, a, -1 if data_of(b).dim() == 1 else -2), *dtype)
    return zeroed_result(data, product_mask(a, b, data.shape))


def linear(x: Operand, weight: Operand, bias: Operand | None = None) -> Pair:
    """``x @ weight.T + bias``."""
    if type(x) is Pair and type(weight) is not Pair and type(bias) is not Pair:
        if masks.is_all_valid(x.mask):
            return pair.plain_pair(torch.nn.functional.linear(x.data, weight, bias))
        data = torch.nn.functional.linear(factor(x, weight, -1), weight, bias)
        if weight.dim() > 1 and masks.is_constant(x.mask, -1):
            return zeroed_result(data, masks.with_rows_of(x.mask, data.shape[-1]))
        return zeroed_result(data, product_validity.is_present(x.mask, -1, keepdim=weight.dim() > 1))
    data = torch.nn.functional.linear(
        factor(x, weight, -1), factor(weight, x, -1), None if bias is None else data_of(bias)
    )
    return zeroed_result(data, _with_summand(product_mask(x, weight, data.shape, transposed=True), bias))


def _with_summand(mask: Tensor, summand: Operand | None, beta: float = 1) -> Tensor:
    return masks.logical_and(mask, summand.mask) if type(summand) is Pair and beta != 0 else mask


def affine(
    op: OpOverload,
    summand: Operand,
    a: Operand,
    b: Operand,
    *dtype: torch.dtype,
    beta: float = 1,
    scores: bool = False,
    over_batch: bool = False,
    **keywords: Any,
) -> Pair:
    """addmm, addbmm, baddbmm, addmv: ``beta * summand + alpha * (a @ b)``; with beta = 0 the summand is ignored.

    ``over_batch``: the products of a batch are added up, so that what is masked in one must not reach another's rows.
    ``scores``: where the summand hides, by -inf, all that is valid in a row, the row sees nothing, as in attention.
    """
    if over_batch:
        left, right = (zero_masked(x, owned=True) if type(x) is Pair else x for x in (a, b))
    else:
        left, right = factor(a, b, -1), factor(b, a, -1 if data_of(b).dim() == 1 else -2)
    data = op(data_of(summand), left, right, *dtype, beta=beta, **keywords)
    shape = data_of(a).shape[:1] + data.shape if over_batch else data.shape
    mask = masks.expand_to(product_mask(a, b, shape), shape)
    if over_batch:
        mask = product_validity.is_present(mask, 0)
    mask = masks.expand_to(_with_summand(mask, summand, beta), data.shape)
    if scores and beta != 0 and data.is_floating_point():
        sight = masks.any(masks.logical_and(mask, data_of(summand).detach() != -math.inf), -1, True)
        mask = masks.logical_and(mask, masks.expand_to(sight, data.shape))
    return zeroed_result(data, mask)


def addmm_activation(
    summand: Operand, a: Operand, b: Operand, *, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> Pair:
    """``gelu`` or ``relu`` of ``addmm``; torch's CUDA kernels approximate gelu by tanh."""
    out = affine(torch.ops.aten.addmm.default, summand, a, b, beta=beta, alpha=alpha)
    data = guard(out.data, out.mask)
    approximate = gelu_in_products(data)
    return Pair(torch.nn.functional.gelu(data, approximate=approximate) if use_gelu else torch.relu(data), out.mask)


def addr(summand: Operand, a: Operand, b: Operand, *, beta: float = 1, alpha: float = 1) -> Pair:
    """``beta * summand + alpha * outer(a, b)``: every output is a single pair."""
    left, right = (zero_masked(pair.as_pair(x)) for x in (a, b))
    data = torch.ops.aten.addr.default(data_of(summand), left, right, beta=beta, alpha=alpha)
    mask = masks.logical_and(pair.as_pair(a).mask.unsqueeze(1), pair.as_pair(b).mask.unsqueeze(0))
    return zeroed_result(data, masks.expand_to(_with_summand(mask, summand, beta), data.shape))


def grouped_product(
    a: Operand, b: Operand, offs: Operand | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Pair:
    """One product for each group of rows (a mixture of experts), columns or summands, which end at ``offs``.

    Everything past the last group is masked: the kernels leave it unchanged.
    """
    ends = zero_masked(offs) if type(offs) is Pair else offs
    left, right = pair.as_pair(a), pair.as_pair(b)
    if ends is not None:
        left, right = _mask_outside(left, right, ends[-1])
    op = torch.ops.aten._grouped_mm.default
    data = op(select(left.data, left.mask), select(right.data, right.mask), ends, bias, out_dtype)
    if is_tracked(data):
        data.register_hook(Tensor.contiguous)  # the kernels of its backward take no expanded gradient
    if type(b) is not Pair and left.data.dim() == 2 and right.data.dim() == 3:
        return Pair(data, masks.expand_to(masks.any(left.mask, -1, keepdim=True), data.shape))
    with torch.no_grad():
        seen = op(left.mask.to(left.data.dtype), right.mask.to(right.data.dtype), ends) > 0
    if ends is not None and left.data.dim() != right.data.dim():  # not written behind the last group
        seen = seen & (masks.any(left.mask, -1, True) if left.data.dim() == 2 else masks.any(right.mask, -2, True))
    return Pair(data, seen)


def _mask_outside(a: Pair, b: Pair, end: Tensor) -> tuple[Pair, Pair]:
    """The operands, masked where they belong to no group."""

    def before(x: Pair, dim: int) -> Pair:
        inside = torch.arange(x.data.shape[dim], device=end.device) < end
        return Pair(x.data, masks.logical_and(x.mask, inside if dim == -1 else inside.unsqueeze(-1)))

    if a.data.dim() == b.data.dim():
        return before(a, -1), before(b, -2)
    return (before(a, -2), b) if a.data.dim() == 2 else (a, before(b, -1))


def multilinear(op: OpOverload, *arguments: Any) -> Pair:
    """_trilinear, and any sum of products: an output is valid iff at least one product has only valid factors."""
    data = op(*(zero_masked(x) if type(x) is Pair else x for x in arguments))
    with masks.no_autocast(data.device), torch.no_grad():
        factors = [pair.as_pair(x).mask.float() if isinstance(x, Pair | Tensor) else x for x in arguments]
        present = op(*factors)
        needed = (
            op(*(torch.ones_like(f) if isinstance(f, Tensor) else f for f in factors))
            if product_validity.needs_all_terms()
            else 1
        )
    return zeroed_result(data, present >= needed)


_SPARSE_PRODUCT = sparse_rule(sparse_product.matmul, free=(0, 1))
_SPARSE_SUM = sparse_rule(sparse_product.affine, masked=(0,), free=(1, 2))
_PRODUCT = packed.product, products.product  #: with a matrix, or of queries and keys


def einsum(op: OpOverload, equation: str, operands: Sequence[Operand], *, path: Any = None) -> Pair:
    """``torch.einsum`` at once, where it is a plain sum of products; NoRule where its parts say more."""
    meaning, letters = settings.current(), equation.partition("->")[0].replace(" ", "").split(",")
    if meaning.product == "all" or meaning.strict or any(len(set(part)) < len(part) for part in letters):
        raise NoRule
    if len(operands) == 1:
        raise NoRule  # a view, perhaps of a sum
    pairs = [pair.as_pair(x) for x in operands]
    if any(x.data.numel() == 0 or x.data.layout is not torch.strided for x in pairs):
        raise NoRule
    data = op(equation, [zero_masked(x) if type(x) is Pair else x for x in operands], path=path)
    with masks.no_autocast(data.device):  # a dimension along which a mask is constant is broadcast
        number = op(equation, [masks.compact(x.mask).to(torch.float32) for x in pairs], path=path)
    return zeroed_result(data, masks.expand_to(number > 0, data.shape))


#: Ops that torch composes of others, which have rules of their own: what serves most calls at once.
AT_ONCE = {"aten::einsum": einsum}

OPS = [
    *ops("mm matmul", product, generic=True, sparse=_SPARSE_PRODUCT, packed=_PRODUCT),
    Op("mv", product, generic=True, sparse=_SPARSE_PRODUCT),
    Op("bmm", product, generic=True, packed=products.product),
    *ops("dot vdot", product, generic=True),
    Op("addmm", affine, generic=True, sparse=_SPARSE_SUM, packed=packed.affine),
    Op("addmv", affine, generic=True, sparse=_SPARSE_SUM),
    Op("addbmm", affine, {"over_batch": True}, generic=True),
    Op("baddbmm", affine, {"scores": True}, generic=True, packed=products.affine),
    Op(
        "linear",
        linear,
        sparse=sparse_rule(sparse_product.linear, free=(0, 1), masked=(2,)),
        packed=packed.linear,
    ),
    Op("_addmm_activation", addmm_activation),
    Op("addr", addr),
    Op("_grouped_mm", grouped_product),
    Op("_trilinear", multilinear, generic=True),
]
