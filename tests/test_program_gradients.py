"""Random programs under autograd: the same values, validity and gradients as torch's own on plain data."""

import os
import random
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from masked_tensor import MaskedTensor

from .helpers.backward import run_backward
from .helpers.twins import basic_key, fresh

PROGRAMS = int(os.environ.get("MASKED_TENSOR_PROGRAMS", "600"))
STEPS = 8


@dataclass(eq=False)
class Tracked:
    """A masked tensor, and the same program on plain data by torch's own autograd, with its validity beside it."""

    x: MaskedTensor
    data: torch.Tensor
    mask: torch.Tensor


def tracked_view(rng: random.Random, t: Tracked) -> Tracked:
    kind = rng.random()
    if kind < 0.5:
        key = basic_key(rng, tuple(t.data.shape))
        return Tracked(t.x[key], t.data[key], t.mask[key])
    if kind < 0.7:
        order = list(range(t.data.dim()))
        rng.shuffle(order)
        return Tracked(t.x.permute(order), t.data.permute(order), t.mask.permute(order))
    if kind < 0.85 and t.data.is_contiguous() and t.mask.is_contiguous() and t.x.is_contiguous():
        return Tracked(t.x.view(-1), t.data.view(-1), t.mask.view(-1))
    return Tracked(t.x.unsqueeze(0), t.data.unsqueeze(0), t.mask.unsqueeze(0))


def tracked_value(rng: random.Random, t: Tracked) -> Tracked:
    kind = rng.random()
    if kind < 0.4:
        return Tracked(t.x * 2, t.data * 2, t.mask.clone())
    if kind < 0.7:
        return Tracked(t.x * t.x, t.data * t.data, t.mask.clone())
    return Tracked(torch.stack([t.x, t.x]), torch.stack([t.data, t.data]), torch.stack([t.mask, t.mask]))


def tracked_write(
    rng: random.Random, t: Tracked, leaves: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
) -> None:
    kind, key = rng.random(), basic_key(rng, tuple(t.data.shape))
    if kind < 0.5 and t.data.dim() and t.data.shape[0] and rng.random() < 0.4:
        key = torch.tensor(rng.sample(range(t.data.shape[0]), rng.randint(1, t.data.shape[0])))
    elif kind > 0.75:
        key = (...,)
    source = fresh(rng, tuple(t.data[key].shape))
    mask = torch.from_numpy(source.mask)
    ours, theirs = source.x.requires_grad_(), torch.from_numpy(source.data).requires_grad_()
    where = torch.from_numpy(np.asarray(fresh(rng, tuple(t.data.shape)).data > 0))
    leaves.append((ours, theirs, mask))
    if kind < 0.3:
        t.x[key] = ours * 3
        t.data[key], t.mask[key] = theirs * 3, mask
    elif kind < 0.5:
        t.x[key] += ours
        t.data[key] += theirs
        t.mask[key] &= mask
    elif kind < 0.65:
        t.x[key].mul_(ours)
        t.data[key] *= theirs
        t.mask[key] &= mask
    elif kind < 0.75:
        t.x[key] = 4.0
        t.data[key], t.mask[key] = 4.0, True
    elif kind < 0.82:
        t.x.masked_fill_(where, 5.0)
        t.data.masked_fill_(where, 5.0)
    elif kind < 0.92:
        t.x.masked_scatter_(where, ours * 2)
        t.data.masked_scatter_(where, theirs * 2)
        t.mask.masked_scatter_(where, mask)
    else:
        t.x.mul_(2)
        t.data.mul_(2)


@settings(max_examples=PROGRAMS, deadline=None)
@given(st.integers(0, 2**62))
def test_random_programs_with_gradients(seed: int) -> None:
    rng = random.Random(seed)
    start = fresh(rng, tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))
    mask = torch.from_numpy(start.mask)
    leaves = [(start.x.requires_grad_(), torch.from_numpy(start.data).requires_grad_(), mask)]
    pool = [Tracked(leaves[0][0] * 1, leaves[0][1] * 1, mask.clone())]
    program = []
    for _ in range(STEPS):
        target = rng.choice(pool)
        kind = rng.choice(["view", "view", "write", "write", "value"])
        program.append(f"{kind}({pool.index(target)})")
        if kind == "write":
            tracked_write(rng, target, leaves)
        else:
            pool.append((tracked_view if kind == "view" else tracked_value)(rng, target))
    what = f"{program} (seed {seed})"
    ours, theirs = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for k, t in enumerate(pool):
        assert torch.equal(t.x.get_mask(), t.mask), what
        ours = ours + (k + 1) * t.x.filled(0.0).sum()
        theirs = theirs + (k + 1) * torch.where(t.mask, t.data, 0).sum()
    torch.testing.assert_close(ours, theirs, msg=lambda m: f"{what}: {m}")
    if not run_backward(ours, theirs):
        return
    for x, plain, mask in leaves:
        a = torch.zeros(mask.shape, dtype=torch.float64) if x.grad is None else x.grad.filled(0.0)
        b = torch.zeros(mask.shape, dtype=torch.float64) if plain.grad is None else plain.grad
        torch.testing.assert_close(a, torch.where(mask, b, 0), msg=lambda m: f"{what}: {m}")
