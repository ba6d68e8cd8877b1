"""Random aliasing programs: views of views, writes, bases that die, copies, against plain tensors that really alias.

A masked tensor is held against two plain ones, data and validity, that go through the same steps; every tensor that is
still held is compared after every step, and at the end the gradients of all that was put in.  Strided and packed.
"""

import os
import random

import pytest
import torch

from .helpers.alias_steps import VALUES, VIEWS, Trio, copied, differs, drawn, written
from .helpers.backward import run_backward

PROGRAMS = int(os.environ.get("MASKED_TENSOR_ALIASING", "400"))
STEPS = 9
KINDS = ("view", "view", "view", "write", "write", "value", "die", "die", "copy")


class Program:
    """One random program."""

    def __init__(self, seed: int, packed: bool) -> None:
        self.rng = rng = random.Random(seed)
        self.said: list[str] = []
        self.comparable = True  #: whether gradients are those of plain data, too
        self.steps = 0
        tracked = rng.random() < 0.6
        shape = (rng.randint(1, 3), rng.randint(1, 4), *(rng.choice([1, 2, 4]) for _ in range(rng.randint(0, 2))))
        start = drawn(
            rng, shape, kind=rng.choice(["prefix", "prefix", "rows", "scattered", "all"]), requires_grad=tracked
        )
        self.leaves = [start] if tracked else []
        x = start.x
        if packed:  # also with every step stored, so that whole steps are missing inside
            x = x.packed(lengths=[shape[1]] * shape[0]) if rng.random() < 0.3 else x.packed()
        self.pool = [Trio(x * 2, start.data * 2, start.mask.clone())]
        self.tracked = tracked

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step(self.rng.choice(KINDS))
            for k, t in enumerate(self.pool):
                assert not differs(t), f"tensor {k} after {self.said}"
        self.compare_gradients()

    def step(self, kind: str) -> None:
        rng, pool = self.rng, self.pool
        k = rng.randrange(len(pool))
        said = None
        if kind == "die":
            if len(pool) > 1:
                pool.pop(k)
                said = "dies"
        elif kind == "copy":
            copies, said = copied(rng, pool)
            pool += copies
        elif kind == "write":
            said = self.write(pool[k])
        else:
            step = rng.choice(VIEWS if kind == "view" else VALUES)
            new = step(rng, pool[k])
            if new is not None:
                pool.append(new)
                said = step.__name__
        if said is not None:
            self.said.append(f"{said}({k})")
            self.steps += 1

    def write(self, t: Trio) -> str | None:
        before = [(u, u.mask.clone(), str(u.data.grad_fn)[:16]) for u in self.pool if u.data.requires_grad]
        said = written(self.rng, t, self.leaves, self.tracked)
        for u, mask, history in before:
            if str(u.data.grad_fn)[:16] == history and (u.mask & ~mask).any():
                self.comparable = False  # past autograd, data became valid that it took to be masked
        return said

    def compare_gradients(self) -> None:
        ours = theirs = torch.zeros((), dtype=torch.float64)
        for k, t in enumerate(self.pool):
            ours = ours + (k + 1) * t.x.filled(0.0).pow(2).sum()
            theirs = theirs + (k + 1) * torch.where(t.mask, t.data, 0).pow(2).sum()
        if not theirs.requires_grad or not self.comparable:
            return
        if not run_backward(ours, theirs):
            return
        for k, t in enumerate(self.leaves):
            zero = torch.zeros(t.shape, dtype=torch.float64)
            a = zero if t.x.grad is None else t.x.grad.filled(0.0)
            b = zero if t.data.grad is None else t.data.grad
            same = torch.allclose(a, torch.where(t.mask, b, 0))
            assert same, f"the gradient of leaf {k} after {self.said}: {a} instead of {torch.where(t.mask, b, 0)}"


@pytest.mark.parametrize("packed", [False, True], ids=["strided", "packed"])
def test_random_aliasing_programs(packed: bool) -> None:
    steps = 0
    for seed in range(PROGRAMS):
        program = Program(seed, packed)
        try:
            program.run(STEPS)
        except Exception as error:
            error.add_note(f"program {seed}: {program.said}")
            raise
        steps += program.steps
    assert steps > 5 * PROGRAMS
