"""Linear systems, one matrix and one column at a time: torch's own for the members of a set, or masked."""

from typing import Any

import torch
from torch import Tensor

from ..helpers.harness import Masked
from .linalg import SYMMETRIC, blank, given, leaves, members, of_set, places
from .slices import masked

Place = tuple[int, ...]


def _columns(b: Masked, place: Place, kept: Tensor) -> list[int]:
    return [k for k in range(b.data.shape[-1]) if b.mask[place][kept, k].all()]


def solver(order: str, more: str = "") -> Any:
    """``order`` names the operands: A(matrix), P(ivots), B (right-hand side); ``more``: the results after the first."""

    def oracle(op: Any, *args: Any, left: bool = True, **kwargs: Any) -> Any:
        names = dict(zip(order, (masked(a) for a in args[: len(order)]), strict=True))
        rest, a, b = args[len(order) :], names["A"], names["B"]
        if "left" in op_keywords(op):
            kwargs["left"] = left
        plain = op(*(names[n].data for n in order), *rest, **kwargs)
        vector = more != "M" and "P" not in names and (b.data.dim() == 1 or b.data.shape == a.data.shape[:-1])
        vector = vector and op in (torch.linalg.solve, torch.linalg.solve_ex)
        turn = lambda m: m.unsqueeze(-1) if vector else m if left else m.mT  # noqa: E731
        out = blank(plain)
        shape = turn(leaves(plain)[0]).shape
        b = Masked(turn(b.data).expand(shape), turn(b.mask).expand(shape))
        wide = {n: entrywise(x, 2 if n == "A" else 1, shape[:-2]) for n, x in names.items() if n != "B"}
        for place in places(shape[:-2]):
            kept = members(wide["A"].mask[place])
            if kept is None or ("P" in wide and not wide["P"].mask[place][kept].all()):
                continue
            columns = _columns(b, place, kept)
            index = kept.nonzero()[:, 0]
            part = {"A": wide["A"].data[place][kept][:, kept], "B": b.data[place][kept][:, columns]}
            part["B"] = part["B"] if left else part["B"].mT
            if "P" in wide:
                part["P"] = torch.searchsorted(index, wide["P"].data[place][kept].long() - 1).int() + 1
            value = leaves(op(*(part[n] for n in order), *rest, **kwargs))[0]
            data, mask = turn(out[0].data), turn(out[0].mask)
            data[place][index[:, None], torch.tensor(columns, dtype=torch.int64)] = value if left else value.mT
            mask[place][index[:, None], torch.tensor(columns, dtype=torch.int64)] = True
        if more:
            whole = of_set(more)(lambda m: leaves(op(m, torch.ones_like(m)))[1], a)
            out[1] = Masked(a.data if more == "M" else whole.data, whole.mask)
        return given(out, plain)

    return oracle


def entrywise(x: Masked, core: int, batch: Any) -> Masked:
    shape = (*batch, *x.data.shape[x.data.dim() - core :])
    return Masked(x.data.expand(shape), x.mask.expand(shape))


def op_keywords(op: Any) -> set[str]:
    named = {torch.linalg.solve, torch.linalg.solve_ex, torch.linalg.solve_triangular, torch.linalg.lu_solve}
    return {"left"} if op in named else set()


ORACLES = {
    "linalg.solve": solver("AB"),
    "linalg.solve_triangular": solver("AB"),
    "triangular_solve": solver("BA", "M"),
    "cholesky_solve": solver("BA"),
    "linalg.lu_solve": solver("APB"),
    "lu_solve": solver("BAP"),
    "linalg.solve_ex": solver("AB", "E"),
}
XFAIL = {("cholesky_solve", "gradient"): SYMMETRIC}
