"""A packed tensor gives what its strided form gives: values, validity, dtype, every gradient, and errors.

Random programs, each on five kinds of mask, with NaN under it; of the gaps every step is stored that exists.  Every
step of the table of steps runs, those whose ops have a form for packed tensors and those that have none.
"""

import os
import random
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.backward import differentiate
from .helpers.harness import assert_same, seen
from .helpers.packed_steps import STEPS, Step, drawn

PROGRAMS = int(os.environ.get("MASKED_TENSOR_PACKED_PROGRAMS", "320"))
LENGTH = 5
MASKS = ("prefix", "rows", "scattered", "nothing", "gaps")


def mask_of(kind: str, shape: tuple[int, ...], rng: random.Random) -> Tensor:
    batch, time, *features = shape
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    if kind in ("prefix", "gaps"):
        lengths = torch.randint(0, time + 1, (batch,), generator=generator)
        grid = torch.arange(time) < lengths[:, None]
        if kind == "gaps":  # whole steps, too
            grid = grid & (torch.rand(batch, time, generator=generator) < 0.7)
    else:
        grid = (torch.rand(batch, time, generator=generator) < 0.6) & (kind != "nothing")
    wide = grid.reshape(batch, time, *(1,) * len(features)).expand(shape)
    apart = kind in ("scattered", "gaps")
    return wide & (torch.rand(shape, generator=generator) < 0.7) if apart else wide


def stored(x: MaskedTensor, kind: str) -> MaskedTensor:
    """Packed; of gaps with all steps up to the last one of each sequence that is valid in part."""
    if kind != "gaps":
        return x.packed()
    mask = x.get_mask().flatten(2).any(-1) if x.dim() > 2 else x.get_mask()
    return x.packed(lengths=(mask * torch.arange(1, mask.shape[1] + 1)).amax(1))


def program(rng: random.Random, start: Tensor) -> list[Step]:
    """Steps that fit one after the other, found out on plain data."""
    steps: list[Step] = []
    x = start
    while len(steps) < LENGTH and x.dim() > 0 and x.numel() > 0:
        step = rng.choice(STEPS)(rng, x)
        if step is None:
            continue
        with torch.no_grad():
            try:
                x = step(x)
            except (RuntimeError, IndexError, ValueError):
                continue
        x = x[0] if isinstance(x, tuple) else x
        steps.append(step)
        if not x.dim() or x.numel() > 4000:
            break
    return steps


def outcome(
    steps: list[Step], data: Tensor, mask: Tensor, packed: bool, leaf: bool, kind: str = ""
) -> tuple[list[Any], list[Any]]:
    """Every intermediate result, and the gradients of a weighted sum of the last one."""
    source = data.clone().requires_grad_(not leaf)
    x: Any = mt.as_masked_tensor(source, mask)
    x = stored(x, kind) if packed else x
    if leaf:
        source = x.requires_grad_()
    assert x.is_packed == packed
    results = []
    try:
        for step in steps:
            x = step(x)
            x = x[0] if isinstance(x, tuple) else x
            results.append(x)
    except Exception as error:  # an error is an outcome, too
        return [*results, type(error)], []
    wanted = [source, *(p for step in steps for p in getattr(step, "parameters", ()))]
    if not x.requires_grad:
        return results, []
    out = x.filled(0) if type(x) is MaskedTensor else x
    weights = drawn(random.Random(len(steps)), out.shape).to(out.dtype)
    return results, list(differentiate((out * weights).sum(), wanted, allow_unused=True))


@pytest.mark.filterwarnings("ignore:.* joins valid features to masked steps")  # drawn joins
@pytest.mark.parametrize("part", range(8))
def test_random_programs(part: int) -> None:
    for seed in range(part, PROGRAMS, 8):
        rng = random.Random(seed)
        shape = (rng.randint(1, 4), rng.randint(1, 5), *(rng.choice([1, 2, 4]) for _ in range(rng.randint(0, 2))))
        data = drawn(rng, shape, positive=True)
        steps = program(rng, data)
        for kind in MASKS:
            mask = mask_of(kind, shape, rng)
            dirty = torch.where(mask, data, torch.nan)
            leaf = rng.random() < 0.5
            compare(steps, dirty, mask, leaf, f"program {seed}, {kind}", kind)


def compare(steps: list[Step], data: Tensor, mask: Tensor, leaf: bool, what: str, kind: str = "") -> None:
    expected, gradients = outcome(steps, data, mask, False, leaf)
    actual, packed_gradients = outcome(steps, data, mask, True, leaf, kind)
    if isinstance(expected[-1], type) and not isinstance(actual[-1], type):
        assert "view" in what or issubclass(expected[-1], RuntimeError), what  # a view that strided memory refuses
        expected, actual = expected[:-1], actual[: len(expected) - 1]
    assert len(actual) == len(expected), f"{what}: {actual[-1]} instead of {expected[-1]}"
    for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
        names = [getattr(s, "__qualname__", "") for s in steps[: k + 1]]
        if isinstance(e, type) or isinstance(a, type):
            assert a is e, f"{what}: {a} instead of {e} in {names}"
            continue
        assert a.requires_grad == e.requires_grad, f"{what}: {names}"
        assert_same(a, e, f"{what}: {names}")
    for a, e in zip(packed_gradients, gradients, strict=False):
        assert type(a) is type(e), what
        if e is None:
            continue
        if type(a) is MaskedTensor:
            assert a.is_packed, what
            assert not (seen(a).data[~seen(a).mask] != 0).any(), what
        if any(getattr(s, "rounds", False) for s in steps):
            torch.testing.assert_close(seen(a).data, seen(e).data, rtol=0.05, atol=0.05, equal_nan=True)
            continue
        assert_same(a, e, f"{what}: gradient of {[getattr(s, '__qualname__', '') for s in steps]}")
