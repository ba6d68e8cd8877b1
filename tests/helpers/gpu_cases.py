"""Calls of the kernels for GPUs, each with its formula in plain torch: small shapes beside the borders of blocks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from masked_tensor.kernels.gpu.layout import wide_dtype

INFINITY = float("inf")
#: Sizes of blocks, so that small tensors have several and parts are joined.
SMALL = {
    "GPU_TILE": 64,
    "GPU_COLUMNS": 8,
    "GPU_PROGRAMS": 8,
    "GPU_STEPS": 2,
    "GPU_SPLITS": 4,
    "GPU_WHOLE": 32,
    "GPU_BESIDE": 4,
}
WIDE = "the dtype to add up in"  #: stands in the options for that of the data
Dims = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Case:
    """A call of ``ENTRIES[entry]``: float64 operands, None or masks in their places, and the options."""

    name: str
    entry: str
    tensors: tuple[Any, ...]
    options: tuple[Any, ...]
    formula: Callable[..., Any]  #: of the tensors, with what is masked still as it was drawn
    poison: dict[int, Tensor]  #: by place: where an operand is valid, and garbage may lie elsewhere
    wanted: tuple[int, ...] = (0,)  #: the operands whose gradients are asked for
    constant: tuple[int, ...] = ()  #: the results that have no gradient

    def options_for(self, dtype: torch.dtype) -> tuple[Any, ...]:
        return tuple(wide_dtype(dtype) if o is WIDE else o for o in self.options)


def masked(shape: tuple[int, ...], empty: bool = True) -> Tensor:
    mask = torch.rand(shape) > 0.4
    if empty:  # slices without a valid entry, along either dimension
        mask.select(0, 1).fill_(False)
        mask.select(-1, 2).fill_(False)
    return mask


def cases() -> Iterator[Case]:
    torch.manual_seed(0)
    yield from reductions()
    yield from logicals()
    yield from softmaxes()
    yield from variances()
    yield from norms()
    yield from losses()
    yield from class_losses()


# ----------------------------------------------------------------------------------------------------------- reductions

WAYS = {  # the identity, and the reduction of what is filled with it
    "sum": (0, lambda x, dims, keep: x.sum(dims, keep)),
    "mean": (0, lambda x, dims, keep: x.sum(dims, keep)),  # by the number of valid entries, which the formula adds
    "nansum": (0, lambda x, dims, keep: x.nansum(dims, keep)),
    "norm1": (0, lambda x, dims, keep: torch.linalg.vector_norm(x, 1, dims, keep)),
    "norm2": (0, lambda x, dims, keep: torch.linalg.vector_norm(x, 2, dims, keep)),
    "norminf": (0, lambda x, dims, keep: torch.linalg.vector_norm(x, INFINITY, dims, keep)),
    "amax": (-INFINITY, lambda x, dims, keep: x.amax(dims, keep)),
    "amin": (INFINITY, lambda x, dims, keep: x.amin(dims, keep)),
    "logsumexp": (-INFINITY, lambda x, dims, keep: x.logsumexp(dims, keep)),
    "prod": (1, lambda x, dims, keep: product(x, dims, keep)),
}
LAYOUTS = {  # rows, columns, what lies about a kept dimension, a batch of columns, everything
    "rows": ((5, 70), (1,)),
    "columns": ((70, 5), (0,)),
    "around": ((3, 4, 20), (0, 2)),
    "inside": ((2, 30, 4), (1,)),
    "all": ((9, 30), (0, 1)),
}


def product(x: Tensor, dims: Dims, keep: bool) -> Tensor:
    for d in sorted(dims, reverse=True):
        x = x.prod(d, keep)
    return x


def reductions() -> Iterator[Case]:
    layouts = list(LAYOUTS)
    for i, op in enumerate(WAYS):
        for layout in (layouts[i % 5], layouts[(i + 3) % 5]):
            shape, dims = LAYOUTS[layout]
            x = torch.randn(shape, dtype=torch.float64).round(decimals=1)
            mask, keep = masked(shape), i % 2 == 0
            if op == "nansum":
                x.view(-1)[::5] = torch.nan

            def formula(x: Tensor, mask: Tensor, _: Any, dims: Dims, keep: bool, __: Any, op: str = op) -> Tensor:
                fill, way = WAYS[op]
                if op in ("amax", "amin", "norminf"):  # ties are shared by the valid entries alone
                    fill = {"amax": -1e9, "amin": 1e9, "norminf": 0}[op]
                    result = way(torch.where(mask, x, fill), dims, keep)
                    return torch.where(result.abs() < 1e8, result, WAYS[op][0])
                result = way(torch.where(mask, x, fill), dims, keep)
                number = mask.sum(dims, keep)
                return (result / number.clamp(min=1), number > 0) if op == "mean" else result

            options = (None, dims, keep, None)
            constant = (1,) if op == "mean" else ()
            yield Case(f"{op}-{layout}", op, (x, mask), options, formula, {0: mask}, constant=constant)
    shape, dims = LAYOUTS["rows"]  # the mask of padding: one byte a row
    mask = (torch.arange(5) % 2 == 0)[:, None].expand(shape)
    x = torch.randn(shape, dtype=torch.float64)
    for op in ("sum", "amax"):
        fill, way = WAYS[op]
        yield Case(
            f"{op}-padding", op, (x, mask), (None, (0,), False, None),
            lambda x, mask, *_, fill=fill, way=way: way(torch.where(mask, x, fill), (0,), False), {0: mask},
        )  # fmt: skip


LOGICAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {  # of True where an entry is nonzero, and the mask
    "any": lambda x, mask: x & mask,
    "all": lambda x, mask: x | ~mask,
    "count_nonzero": lambda x, mask: x & mask,
}


def logicals() -> Iterator[Case]:
    for i, op in enumerate(LOGICAL):
        for layout, dim in (("rows", 1), ("inside", (1,)), ("all", None)):
            shape, dims = LAYOUTS[layout]
            x, mask = torch.randn(shape, dtype=torch.float64).round(), masked(shape)
            x = torch.where(x.sum(dims[0], True) > 0, x, float(i == 1))  # some slices are alike

            def formula(x: Tensor, mask: Tensor, dim: Any, keep: bool, op: str = op, dims: Any = dims) -> Tensor:
                found = LOGICAL[op](x != 0, mask).sum(dims, keep)
                return (
                    found == mask.new_ones(x.shape).sum(dims, keep)
                    if op == "all"
                    else found > 0
                    if op == "any"
                    else found
                )

            yield Case(f"{op}-{layout}", op, (x, mask), (dim, op == "any"), formula, {0: mask}, ())


def softmaxes() -> Iterator[Case]:
    for layout, (shape, dim) in {
        "whole": ((5, 13), 1), "long": ((3, 70), 1), "columns": ((13, 5), 0), "long columns": ((2, 70, 3), 1)
    }.items():  # fmt: skip
        for log in (False, True):
            x, mask = torch.randn(shape, dtype=torch.float64), masked(shape)
            x.view(-1)[::7] = -INFINITY

            def formula(x: Tensor, mask: Tensor, dim: int = dim, log: bool = log) -> Tensor:
                some = mask.any(dim, True)
                filled = torch.where(mask, x, -INFINITY).where(some, 0)
                result = torch.log_softmax(filled, dim) if log else torch.softmax(filled, dim)
                return torch.where(mask, result, -INFINITY if log else 0)

            yield Case(f"softmax-{layout}-{log}", "softmax", (x, mask), (dim, log), formula, {0: mask})


def variances() -> Iterator[Case]:
    for i, (layout, (shape, dims)) in enumerate(LAYOUTS.items()):
        x, mask, keep = torch.randn(shape, dtype=torch.float64) + 50, masked(shape), layout in ("rows", "all")
        for root, both, correction in ((False, i > 1, i % 3), (True, i < 2, 1.5)):
            yield Case(
                f"variance-{layout}-{root}", "variance", (x, mask), (None, dims, keep, correction, root, both),
                variance, {0: mask}, constant=(1, 3),
            )  # fmt: skip


def variance(
    x: Tensor, mask: Tensor, _: Any, dims: Dims, keep: bool, correction: float, root: bool, both: bool
) -> tuple[Tensor, ...]:
    number, kept = mask.sum(dims, True), mask.sum(dims, keep)
    mean = torch.where(mask, x, 0).sum(dims, True) / number.clamp(min=1)
    squares = torch.where(mask, x - mean, 0).square().sum(dims, keep)
    result = squares / torch.where(kept > correction, kept - correction, 1)
    result = torch.where(squares > 0, torch.where(squares > 0, result, 1).sqrt(), 0) if root else result
    return (result, kept > correction, mean.reshape(kept.shape), kept > 0)[: 4 if both else 2]


# ---------------------------------------------------------------------------------------------------------------- norms

NORMS = {  # the shape, the reduced dimensions and the shape of the parameters
    "layer": ((9, 13), (1,), (1, 13)),
    "layer of two": ((2, 3, 4, 5), (2, 3), (1, 1, 4, 5)),
    "long layer": ((2, 70), (1,), (1, 70)),
    "batch": ((3, 3, 4, 6), (0, 2, 3), (1, 3, 1, 1)),
    "group": ((2, 2, 3, 12), (2, 3), (1, 2, 3, 1)),
    "instance": ((3, 4, 20), (2,), (1, 4, 1)),
}


def norms() -> Iterator[Case]:
    for i, (name, (shape, dims, parameters)) in enumerate(NORMS.items()):
        for centred, given in ((True, True), (False, True), (True, False))[: 3 if i == 0 else 2]:
            x, mask = torch.randn(shape, dtype=torch.float64) + 3, masked(shape)
            weight, bias = (torch.randn(parameters, dtype=torch.float64) if given else None for _ in range(2))
            yield Case(
                f"{name}-{centred}-{given}", "standardize", (x, weight, bias, mask, mask.sum(dims, True).double()),
                (None, dims, 1e-3, centred),
                standardized,
                {0: mask}, (0, 1, 2) if given else (0,), (2,),
            )  # fmt: skip


def standardized(
    x: Tensor, w: Any, b: Any, mask: Tensor, number: Tensor, _: Any, dims: Dims, eps: float, centred: bool
) -> tuple[Tensor, ...]:
    some = number.clamp(min=1)
    mean = torch.where(mask, x, 0).sum(dims, True) / some * (1 if centred else 0)
    away = torch.where(mask, x - mean, 0)
    variance = away.square().sum(dims, True) / some
    rstd = torch.where(number == 0, 1, variance + eps).rsqrt()
    result = away * rstd
    result = result if w is None else result * w
    result = result if b is None else result + b
    return torch.where(mask, result, 0), mean, variance, rstd


# --------------------------------------------------------------------------------------------------------------- losses

NONE, MEAN, SUM = 0, 1, 2
aten = torch.ops.aten
KINDS: dict[str, tuple[Callable[..., Tensor], dict[str, Any]]] = {
    "mse": (aten.mse_loss.default, {}),
    "l1": (aten.l1_loss.default, {}),
    "smooth_l1": (aten.smooth_l1_loss.default, {"beta": 0.7}),
    "huber": (aten.huber_loss.default, {"delta": 0.7}),
    "bce": (aten.binary_cross_entropy.default, {}),
    "bce_with_logits": (aten.binary_cross_entropy_with_logits.default, {}),
    "kl_div": (aten.kl_div.default, {}),
    "kl_div of logarithms": (aten.kl_div.default, {"log_target": True}),
    "gaussian_nll": (F.gaussian_nll_loss, {"eps": 1e-2, "full": True}),
}


def losses() -> Iterator[Case]:
    shape = (4, 5, 7)
    for i, (kind, (op, parameters)) in enumerate(KINDS.items()):
        for reduction in (NONE, (MEAN, SUM)[i % 2]):
            x, y = torch.randn(shape, dtype=torch.float64), torch.rand(shape, dtype=torch.float64)
            x = torch.rand_like(x) if kind == "bce" else x
            given = {"input" if kind == "gaussian_nll" else "self": x, "target": y}
            if kind == "gaussian_nll":
                given["var"] = torch.rand_like(x)
            if kind == "bce_with_logits":
                given["pos_weight"] = torch.rand(7, dtype=torch.float64)
            if kind.startswith("bce"):
                given["weight"] = torch.rand(5, 1, dtype=torch.float64)
            mask = masked((4, 1, 7)).expand(shape) if i % 2 else masked(shape)
            floats = (0, 1, 2) if kind == "gaussian_nll" else (0, 1)
            yield Case(
                f"{kind}-{reduction}", "loss", (*given.values(), mask),
                (op, tuple(given), None, parameters, reduction), of_entries,
                dict.fromkeys(floats, mask), (0,) if kind in ("bce", "kl_div") else floats,
            )  # fmt: skip


def of_entries(*given: Any) -> Any:
    """What is masked is still as it was drawn: torch's own op can take it."""
    *operands, mask, op, names, _, parameters, reduction = given
    named = dict(zip(names, operands, strict=True)) | parameters
    each = torch.where(mask, op(**named, reduction="none" if op is F.gaussian_nll_loss else NONE), 0)
    return each if reduction == NONE else (each.sum(), mask.sum(), mask.any(), each.dtype)


def class_losses() -> Iterator[Case]:
    for i, (shape, kind, reduction, smoothing, weighted, some) in enumerate((
        ((9, 20), "cross_entropy", MEAN, 0.0, False, False),
        ((9, 20), "cross_entropy", NONE, 0.0, True, True),
        ((3, 5, 4), "cross_entropy", SUM, 0.2, True, True),
        ((9, 20), "cross_entropy", MEAN, 0.2, True, False),
        ((9, 20), "nll_loss", MEAN, 0.0, True, True),
        ((3, 5, 4), "nll_loss", NONE, 0.0, False, False),
    )):  # fmt: skip
        x, samples = torch.randn(shape, dtype=torch.float64), (shape[0], *shape[2:])
        target, known = torch.randint(0, shape[1], samples), masked(samples, empty=False)
        mask = torch.rand(shape) > 0.3 if some else torch.ones((), dtype=torch.bool).expand(shape)
        if some:
            mask.scatter_(1, target.unsqueeze(1), True)[1] = False  # no label names a masked class
        target[0] = -100
        weight = torch.rand(shape[1], dtype=torch.float64) if weighted else None
        yield Case(
            f"{kind}-{i}", "class_loss", (x, mask if some else None, target, known, weight, None),
            (1, kind, reduction, -100, smoothing), of_classes, {0: mask, 2: known},
        )  # fmt: skip


def of_classes(
    x: Tensor, mask: Tensor | None, target: Tensor, known: Tensor, weight: Any, _: Any, dim: int, kind: str,
    reduction: int, ignored: int, smoothing: float,
) -> tuple[Any, ...]:  # fmt: skip
    mask = torch.ones_like(x, dtype=torch.bool) if mask is None else mask
    counts = known & (target != ignored) & mask.any(1)
    scores = torch.where(mask, x, -INFINITY)
    if kind == "cross_entropy":
        scores = torch.log_softmax(scores.where(counts.unsqueeze(1), 0), 1)
    named = torch.where(counts, target, 0)
    weight = torch.ones(x.shape[1], dtype=x.dtype) if weight is None else weight
    each = -scores.gather(1, named.unsqueeze(1)).squeeze(1) * weight[named]
    if smoothing:
        wide = weight.view(1, -1, *(1 for _ in x.shape[2:]))
        spread = -(torch.where(mask, scores, 0) * wide).sum(1)
        each = each * (1 - smoothing) + spread * (smoothing / mask.sum(1).clamp(min=1).double())
    each = torch.where(counts, each, 0)
    if reduction == NONE:
        return each, counts
    return each.sum(), counts.sum(), counts.any(), each.dtype
