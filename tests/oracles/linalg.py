"""Linear algebra, one matrix at a time: torch's own on the members of a set, or on a whole matrix, else masked."""

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .slices import masked

Place = tuple[int, ...]


def members(mask: Tensor) -> Tensor | None:
    """The rows of a set, from its square mask; None if rows and columns are not masked alike, or all of them are."""
    if mask.dim() != 2 or mask.shape[0] != mask.shape[1]:
        return None
    kept = mask.any(1)
    return kept if torch.equal(mask, kept[:, None] & kept[None, :]) and (kept.any() or not len(kept)) else None


def places(shape: Any) -> Iterator[Place]:
    return itertools.product(*(range(size) for size in shape))


def leaves(results: Any) -> tuple[Tensor, ...]:
    return (results,) if isinstance(results, Tensor) else tuple(results)


def blank(results: Any) -> list[Masked]:
    return [Masked(torch.zeros_like(r), torch.full(r.shape, r.numel() == 0)) for r in leaves(results)]


def given(out: list[Masked], results: Any) -> Any:
    return out[0] if isinstance(results, Tensor) else tuple(out)


def least_squares(op: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> tuple[Masked, ...]:
    """Solution and residuals where both sides are whole; rank and singular values where the matrix is."""
    oracle = of_whole(2, 2 if masked(b).data.dim() == masked(a).data.dim() else 1)
    side = Masked(masked(b).data, torch.ones_like(masked(b).mask))
    return oracle(op, a, b, *args, **kwargs)[:2] + oracle(op, a, side, *args, **kwargs)[2:]


def of_set(gives: str) -> Any:
    """``gives`` says of each result what it has values for: E(ach matrix), M(atrix), V(ector), P(ivots)."""

    def oracle(op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        x = masked(x)
        plain = op(x.data, *args, **kwargs)
        out = blank(plain)
        for place in places(x.data.shape[:-2]):
            kept = members(x.mask[place])
            if kept is None and x.mask[place].all():
                kept = torch.ones(x.data.shape[-2], dtype=torch.bool)
            if kept is None:
                continue
            part = x.data[place] if kept.all() else x.data[place][kept][:, kept]
            for target, value, kind in zip(out, leaves(op(part, *args, **kwargs)), gives, strict=False):
                put(target, place, value, kept, kind)
        return given(out, plain)

    return oracle


def put(target: Masked, place: Place, value: Tensor, kept: Tensor, kind: str) -> None:
    if kind == "E" or kept.all():
        target.data[place], target.mask[place] = value, True
        return
    index = kept.nonzero()[:, 0]
    where = (index[:, None], index[None, :]) if kind == "M" else (index,)
    target.data[place][where] = (index[value.long() - 1] + 1).to(value.dtype) if kind == "P" else value
    target.mask[place][where] = True


def eigh(op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The eigenvalues of the members come first."""
    x = masked(x)
    plain = op(x.data, *args, **kwargs)
    out = blank(plain)
    for place in places(x.data.shape[:-2]):
        kept = members(x.mask[place])
        if kept is not None:
            n = int(kept.sum())
            for target, value in zip(out, leaves(op(x.data[place][kept][:, kept], *args, **kwargs)), strict=True):
                where = (kept.nonzero()[:, :1], torch.arange(n)[None]) if value.dim() == 2 else (torch.arange(n),)
                target.data[place][where], target.mask[place][where] = value, True
    return given(out, plain)


def of_whole(*cores: int) -> Any:
    """Operands with so many dims to a slice: the plain op of each entry of the batch where all slices are whole."""

    def oracle(op: Any, *args: Any, **kwargs: Any) -> Any:
        sizes = [2] if not cores else list(cores)
        sizes += [0] * (len(args) - len(sizes))
        operands = {
            k: (masked(v), c)
            for (k, v), c in zip([*enumerate(args), *kwargs.items()], sizes + [0] * len(kwargs), strict=True)
            if isinstance(v, Masked | Tensor)
        }
        batch = torch.broadcast_shapes(*(x.data.shape[: x.data.dim() - c] for x, c in operands.values()))
        all_of = lambda k, v: operands[k][0].data if k in operands else v  # noqa: E731
        plain = op(*(all_of(k, v) for k, v in enumerate(args)), **{k: all_of(k, v) for k, v in kwargs.items()})
        out = blank(plain)
        for place in places(batch):
            part = {k: entry(x, c, batch, place) for k, (x, c) in operands.items()}
            if all(x.mask.all() for x in part.values()):
                here = lambda k, v, part=part: part[k].data if k in part else v  # noqa: E731
                value = op(*(here(k, v) for k, v in enumerate(args)), **{k: here(k, v) for k, v in kwargs.items()})
                for target, result in zip(out, leaves(value), strict=True):
                    if target.data.numel():
                        target.data[place], target.mask[place] = result, True
        return given(out, plain)

    return oracle


def entry(x: Masked, core: int, batch: Any, place: Place) -> Masked:
    shape = (*batch, *x.data.shape[x.data.dim() - core :])
    return Masked(x.data.expand(shape)[place], x.mask.expand(shape)[place])


WHOLE = of_whole()
ORACLES = {
    "cholesky": of_set("M"),
    "cholesky_inverse": of_set("M"),
    "linalg.cholesky": of_set("M"),
    "linalg.cholesky_ex": of_set("ME"),
    "linalg.inv": of_set("M"),
    "linalg.inv_ex": of_set("ME"),
    "linalg.matrix_exp": of_set("M"),
    "linalg.matrix_sqrth": of_set("M"),
    "linalg.polar": WHOLE,
    "matrix_exp": of_set("M"),
    **dict.fromkeys(("linalg.det", "logdet"), of_set("E")),
    "linalg.slogdet": of_set("EE"),
    "linalg.lu_factor": of_set("MP"),
    "linalg.lu_factor_ex": of_set("MPE"),
    "lu": of_set("MPE"),
    "linalg.lu": of_set("MMM"),
    "linalg.eigh": eigh,
    "linalg.eigvalsh": eigh,
    **dict.fromkeys(("linalg.eig", "linalg.eigvals", "linalg.svd", "linalg.svdvals", "svd", "geqrf"), WHOLE),
    **dict.fromkeys(("linalg.qr", "qr", "linalg.ldl_factor", "linalg.ldl_factor_ex", "pinverse"), WHOLE),
    **dict.fromkeys(("linalg.pinv", "linalg.pinv.hermitian", "linalg.matrix_rank"), WHOLE),
    **dict.fromkeys(("linalg.matrix_rank.hermitian",), WHOLE),
    "linalg.householder_product": of_whole(2, 1),
    "ormqr": of_whole(2, 1, 2),
    "linalg.ldl_solve": of_whole(2, 1, 2),
    "linalg.lstsq": lambda *args, **kw: least_squares(*args, **kw),
}

SYMMETRIC = "one half of a symmetric matrix is read: gradcheck, which moves one entry at a time, wants both"
_HALVES = "cholesky cholesky_inverse linalg.cholesky linalg.cholesky_ex linalg.eigh linalg.eigvalsh linalg.matrix_sqrth"
XFAIL = {
    **{(name, "gradient"): SYMMETRIC for name in (*_HALVES.split(), "linalg.pinv.hermitian")},
    ("linalg.lstsq", "compiled"): "torch cannot trace it: it asks for the rank",
}
