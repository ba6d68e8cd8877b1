"""Randomness: a random op draws the same numbers as the plain op, and changes values, never validity.

Masked-out data has no influence: where a distribution's parameter or the number of draws depends on an entry,
a masked-out entry counts as a harmless constant.
"""

from typing import Any

import torch
from torch import Generator, Tensor

from .. import masks, pair
from ..compat import OpOverload, is_tracked
from ..op import Op, ops
from ..packing.kinds import elementwise, keep_by_rule, keep_nonempty, keep_storage
from ..pair import Pair, Payload
from ..select import select, zero_masked
from ..sparse.rules import on_values


def dropout(x: Pair, p: float, train: bool, *, op: Any, keeps_zero: bool = True) -> Pair:
    """dropout, alpha_dropout and their channel-wise forms; returns the tensor itself if nothing is dropped."""
    if p == 0 or not train or x.data.numel() == 0:
        return x
    return Pair(op(x.data, p, train), x.mask, x.payload if keeps_zero else Payload.ANY)


def native_dropout(x: Pair, p: float, train: bool | None) -> tuple[Pair, Pair]:
    """The result, and which entries were kept."""
    data, kept = torch.native_dropout(x.data, p, train)
    return Pair(data, x.mask, x.payload), Pair(kept, x.mask)


def rrelu(x: Pair, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator: Any = None) -> Pair:
    """Slopes are drawn for the valid entries below 0 only."""
    if not training:
        return Pair(torch.rrelu(x.data, lower, upper), x.mask, x.payload)
    return Pair(torch.ops.aten.rrelu(select(x.data, x.mask, 1), lower, upper, True, generator), x.mask)


def refill(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """``uniform_`` and the like: new numbers at the same entries."""
    return Pair(op(x.data, *args, **kwargs), x.mask)


def normal(op: OpOverload, x: Pair, *args: Any, **kwargs: Any) -> Pair:
    """``normal_``, whose result does not depend on the old numbers: their gradient is 0."""
    return Pair(_without_derivative(op, "normal_", x.data, *args, **kwargs), x.mask)


def _without_derivative(op: OpOverload, inplace: str, data: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``op``, for which torch has no derivative, only for its ``inplace`` form: 0."""
    result: Tensor = getattr(data.clone(), inplace)(*args, **kwargs) if is_tracked(data) else op(data, *args, **kwargs)
    return result


def draw(op: OpOverload, *parameters: Any, fill: float = 0, **kwargs: Any) -> Any:
    """One draw per entry from a distribution whose parameters are tensors; valid where all parameters are."""
    masked = [x for x in parameters if type(x) is Pair]
    data = [select(x.data, x.mask, fill) if type(x) is Pair else x for x in parameters]
    result = op(*data, **kwargs)
    mask = masked[0].mask
    for x in masked[1:]:
        mask = masks.logical_and(mask, x.mask)
    return Pair(result, masks.expand_to(mask, result.shape))


def bernoulli_with(op: OpOverload, x: Pair | Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Pair:
    """``bernoulli(x, p)``: only the shape of ``x`` is used; a masked probability masks its draw."""
    x, chance = pair.as_pair(x), p
    mask = x.mask
    if type(p) is Pair:
        chance, mask = zero_masked(p), masks.logical_and(x.mask, masks.expand_to(p.mask, x.mask.shape))
    return Pair(_without_derivative(op, "bernoulli_", x.data, chance, generator=generator), mask)


def multinomial(x: Pair, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Pair:
    """A masked category has weight 0; the draws of a row without a valid category are masked."""
    some = masks.any(x.mask, -1, True)
    weights = torch.where(some, zero_masked(x), 1)
    result = torch.multinomial(weights, num_samples, replacement, generator=generator)
    return Pair(result, x.mask.gather(-1, result))


OPS = [
    Op("dropout", dropout, {"op": torch.dropout}, sparse=on_values, packed=keep_storage),
    Op("feature_dropout", dropout, {"op": torch.feature_dropout}),
    Op(
        "alpha_dropout",
        dropout,
        {"op": torch.alpha_dropout, "keeps_zero": False},
        sparse=on_values,
        packed=keep_storage,
    ),
    Op("feature_alpha_dropout", dropout, {"op": torch.feature_alpha_dropout, "keeps_zero": False}),
    Op("native_dropout", native_dropout, sparse=on_values, packed=keep_nonempty),
    Op("rrelu", rrelu, sparse=on_values, packed=keep_storage),
    *ops(
        "uniform exponential cauchy log_normal geometric", refill, generic=True, sparse=on_values, packed=keep_storage
    ),
    Op("random", refill, generic=True, sparse=on_values, packed=keep_storage),
    Op("normal_functional", normal, generic=True, sparse=on_values, packed=keep_by_rule),
    *ops("bernoulli poisson", draw, generic=True, sparse=on_values, packed=keep_storage),
    Op("binomial", draw, generic=True, sparse=on_values, packed=elementwise),
    *ops("bernoulli.p bernoulli.Tensor", bernoulli_with, generic=True, sparse=on_values),
    Op("normal.Tensor_float", draw, generic=True, sparse=on_values, packed=elementwise),
    Op("normal.float_Tensor", draw, {"fill": 1}, generic=True, sparse=on_values, packed=elementwise),
    Op("normal.Tensor_Tensor", draw, {"fill": 1}, generic=True, sparse=on_values, packed=elementwise),
    Op("_standard_gamma", draw, {"fill": 1}, generic=True, sparse=on_values, packed=elementwise),
    Op("multinomial", multinomial),
]
