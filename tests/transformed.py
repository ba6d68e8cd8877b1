"""torch.func over the whole database: ``vmap`` is a loop, and ``jvp`` is the adjoint of ``vjp``.

``python -m tests.transformed`` takes every operator; with names (``python -m tests.transformed softmax norm``) only
those that contain one of them.  The status is 1 where one is wrong.
"""

import sys
import time
import warnings
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.func import jvp, vjp
from torch.utils._pytree import tree_flatten, tree_unflatten

import masked_tensor as mt

from .helpers import database, harness, transforms
from .helpers.trees import tree_leaves
from .oracles import FAMILY
from .sweep import SKIPPED

LIMIT = 2  # samples of each operator


def number(value: Tensor) -> Tensor:
    """The real part of a sum, as an inner product has it."""
    return value.real if value.is_complex() else value


def inner(a: list[Any], b: list[Any]) -> Tensor:
    """The inner product of two lists of tensors; masked entries count 0."""
    total = torch.zeros((), dtype=torch.float64)
    for x, y in zip(a, b, strict=True):
        x, y = (v.filled(0) if mt.is_masked_tensor(v) else v for v in (x, y))
        total = total + number((x.conj() * y).sum()).double()
    return total


def adjoint(case: database.Sample, masked: bool) -> float | None:
    """How far ``<J v, w>`` is from ``<v, J' w>``, relative to both; None where nothing can be differentiated."""
    leaves, spec = tree_flatten(harness.build((case.args, case.kwargs), 1e30 if masked else None))
    moves = [i for i, v in enumerate(leaves) if isinstance(v, Tensor) and harness.differentiable(v)]

    def function(*moved: Tensor) -> list[Tensor]:
        values = list(leaves)
        for i, v in zip(moves, moved, strict=True):
            values[i] = v
        args, kwargs = tree_unflatten(values, spec)
        torch.manual_seed(1)
        found = [v for v in tree_leaves(case.op(*args, **kwargs)) if isinstance(v, Tensor)]
        return [v for v in found if harness.differentiable(v)]

    points = tuple(leaves[i] for i in moves)
    if not points or not function(*points):
        return None
    random = torch.Generator().manual_seed(2)

    def direction(x: Tensor) -> Tensor:
        values = torch.randn(x.shape, generator=random, dtype=x.dtype)
        return mt.as_masked_tensor(values, x.get_mask()) if mt.is_masked_tensor(x) else values

    steps = tuple(map(direction, points))
    outputs, moved = jvp(function, points, steps)
    _, back = vjp(function, *points)
    weights = [direction(y.detach()) for y in outputs]
    forward, reverse = inner(moved, weights), inner(list(steps), list(back(weights)))
    if not forward.isfinite() and not reverse.isfinite():
        return 0.0
    size = max(forward.abs(), reverse.abs(), torch.ones((), dtype=torch.float64))
    return float((forward - reverse).abs() / size)


def judge(name: str) -> dict[str, str]:
    """What became of the two laws: "holds", "refused: why", "wrong: how", "not differentiable"."""
    outcome: dict[str, str] = {}
    for sample in database.samples(name, limit=LIMIT):
        case = harness.masked_case(sample, "random")
        if not list(harness.masked_leaves((case.args, case.kwargs))):
            continue
        for law in ("vmap", "adjoint"):
            if outcome.get(law, "holds") == "holds":
                outcome[law] = _vmap(name, case) if law == "vmap" else _adjoint(sample, case)
    return outcome


def _vmap(name: str, case: database.Sample) -> str:
    if (name, "vmap") in transforms.XFAIL:
        return f"refused: {transforms.XFAIL[name, 'vmap']}"
    try:
        draws = FAMILY.get(name) == "random" or name.endswith("_lowrank")  # in another order than a loop
        transforms.check_vmap(case, values=not draws)
    except AssertionError as error:
        return f"wrong: {str(error).splitlines()[0]}"
    except Exception as error:  # of many types
        return f"refused: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return "holds"


def _adjoint(sample: database.Sample, case: database.Sample) -> str:
    try:
        plain = adjoint(sample, False)
    except Exception:  # torch itself has no derivative in one of the modes
        return "not differentiable"
    if plain is None or plain > 1e-6:
        return "not differentiable"
    try:
        found = adjoint(case, True)
    except Exception as error:  # of many types
        return f"refused: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return "holds" if found is None or found <= 1e-6 else f"wrong: differ by {found:.1e}"


def main(names: list[str]) -> int:
    """Prints what does not hold, and the counts."""
    warnings.simplefilter("ignore")
    counts: Counter[tuple[str, str]] = Counter()
    start = time.monotonic()
    for name in sorted(set(database.ENTRIES) - set(SKIPPED)):
        if names and not any(part in name for part in names):
            continue
        for law, outcome in judge(name).items():
            kind, _, why = outcome.partition(": ")
            counts[law, kind] += 1
            if why:
                print(f"{name}: {law}: {outcome[:200]}", flush=True)
    print(", ".join(f"{law} {kind} {n}" for (law, kind), n in sorted(counts.items())), end="")
    print(f" ({time.monotonic() - start:.0f} s)")
    return int(any(kind == "wrong" for _, kind in counts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
