"""Random programs give the same compiled: values, masks, lengths, gradients, what they wrote, and what shares memory.

Each program is compiled once and called with other masks and other sizes.  ``MASKED_TENSOR_COMPILED=400`` of them, from
the seed ``MASKED_TENSOR_COMPILED_FROM``.
"""

import os
import random
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.backward import differentiate
from .helpers.compiled_steps import MASKED, breaking, into_input
from .helpers.harness import PAYLOADS, assert_keeps_promise, assert_same
from .helpers.packed_steps import STEPS, Step, drawn
from .test_packed_programs import MASKS, mask_of, stored

NUMBER = int(os.environ.get("MASKED_TENSOR_COMPILED", "2"))
FIRST = int(os.environ.get("MASKED_TENSOR_COMPILED_FROM", "0"))
LENGTH = 4
REFUSED = (torch._dynamo.exc.Unsupported, mt.UnsupportedOpError)


@dataclass
class Program:
    """A drawn program: its steps, and how it is stored, tracked and compiled."""

    seed: int
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(self.seed)
        self.storage = rng.choice(["strided", "strided", "packed", "packed", "capacity", "inside"])
        self.track = rng.choice(["leaf", "source", "nothing"])
        self.dynamic = rng.choice([None] * 6 + [True, "marked"])
        self.backend = "inductor" if INDUCTOR and rng.random() < INDUCTOR else "aot_eager"
        self.payload = rng.choice(PAYLOADS[:3])
        self.beside = rng.choice([None, None, *BESIDE]) if self.storage != "inside" else None
        features = [rng.choice([1, 2, 4]) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
        batch = rng.randint(1, 4)
        self.shapes = [(batch, n, *features) for n in rng.sample(range(2, 7), 2)]
        self.steps = self.drawn_steps()

    def drawn_steps(self) -> list[Step]:
        """Steps that fit one after the other on plain data of both sizes."""
        rng, values = self.rng, [drawn(self.rng, shape, positive=True) for shape in self.shapes]
        steps: list[Step] = []
        if self.track == "nothing" and rng.random() < 0.5 and self.storage == "strided":
            steps.append(into_input(rng, values[0]))
        for _ in range(40):
            maker = breaking if rng.random() < 0.03 else rng.choice(MASKED if rng.random() < 0.35 else STEPS)
            if len(steps) >= LENGTH or not values[0].dim() or values[0].numel() > 2000:
                break
            step = maker(rng, values[0])
            found = [] if step is None else [attempt(step, x) for x in values]
            if step is not None and found and all(isinstance(x, Tensor) and x.numel() for x in found):
                values, steps = found, [*steps, step]
        return steps

    def __call__(self, x: Any, other: Any) -> tuple[Any, ...]:
        results = []
        x = mt.as_masked_tensor(x, other) if self.storage == "inside" else x
        if self.beside is not None:
            x = BESIDE[self.beside](x, other)
            results.append(x)
        for step in self.steps:
            x = step(x)
            results.append(x)
        return tuple(results)

    @property
    def names(self) -> str:
        steps = [getattr(s, "__qualname__", "?").split(".")[0] for s in self.steps]
        return f"seed {self.seed}: {self.storage}, {self.track}, {self.dynamic}, {self.backend}, {self.beside}, {steps}"

    def batch(self, shape: tuple[int, ...], kind: str, seed: int) -> tuple[Any, ...]:
        """The arguments, and what is differentiated by: made anew, so that each run may write into its own."""
        rng = random.Random(seed)
        data, mask = drawn(rng, shape, positive=True), mask_of(kind, shape, rng)
        source = data.where(mask, self.payload).requires_grad_(self.track == "source")
        if self.storage == "inside":
            source.requires_grad_(self.track != "nothing")
            return (source, mask), source
        how = rng.choice(WAYS)
        x = made(how, source, mask, kind)
        if self.storage != "strided":
            x = stored(x, kind)
        if self.storage == "capacity":
            x = x.unpacked().packed(capacity=shape[0] * shape[1] + 2)
        if self.track == "leaf":
            x = source = x.detach().requires_grad_()
        return (x, self.other(rng, x, mask, kind, how)), source

    def other(self, rng: random.Random, x: Any, mask: Tensor, kind: str, how: str) -> Any:
        """Another input: itself, a view, of the same mask, of one that is equal, or of another."""
        data = drawn(rng, tuple(x.shape), positive=True)
        which = rng.randrange(6)
        if which == 0:
            return x
        if which == 1:
            return x.view_as(x)
        if which == 2:
            return x.detach() * 2
        if which == 3 and not x.is_packed:
            return mt.as_masked_tensor(data, x.mask)
        there = mask if which == 4 else mask_of(kind, tuple(x.shape), rng)
        y = made(how, data.where(there, self.payload), there, kind)
        return stored(y, kind) if x.is_packed and rng.random() < 0.6 else y


#: How a batch is made: another thing is known of its mask and of what lies under it.
WAYS = ("any", "zero", "lengths", "result", "read", "view", "turned", "hard", "full")


def made(how: str, source: Tensor, mask: Tensor, kind: str) -> MaskedTensor:
    if how == "lengths" and kind == "prefix":
        return mt.from_lengths(source, mask.flatten(2).any(-1).sum(1) if mask.dim() > 2 else mask.sum(1))
    if how == "zero":
        return mt.masked_tensor(source.where(mask, 0) if source.requires_grad else source.clone(), mask)
    if how == "full" and kind == "rows":
        return mt.as_masked_tensor(source.where(mask, 1.0), torch.ones_like(mask))
    if how == "turned":
        apart = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in (source, mask)]
        return mt.as_masked_tensor(*apart)
    if how == "view" and not source.requires_grad:
        wide = mt.as_masked_tensor(torch.cat([source, source], 0), torch.cat([mask, ~mask], 0))
        return wide[: len(source)]
    x = mt.as_masked_tensor(source, mask)
    if how == "result":
        return x * 1
    if how == "read":
        x.lengths(), x.count(), x.sum()
    elif how == "hard" and not source.requires_grad:
        x.harden_mask()
    return x


BESIDE: dict[str, Callable[[Any, Any], Any]] = {
    "plus": lambda x, y: x + y,
    "times": lambda x, y: x * y + y,
    "where": lambda x, y: torch.where(x > y, x, y * 2),
    "cat": lambda x, y: torch.cat([x, y], 1),
    "stack": lambda x, y: torch.stack([x, y], -1),
    "loss": lambda x, y: torch.nn.functional.mse_loss(x, y, reduction="none"),
    "written": lambda x, y: (x * 1).mul_(y),
    "copied": lambda x, y: (x * 1).copy_(y) * y,
    "filled": lambda x, y: x.masked_fill(y > 1, 0.5),
    "of masks": lambda x, y: mt.as_masked_tensor(x.filled(0.5), x.get_mask() | y.get_mask()) * y,
    "mean": lambda x, y: x - y.mean(1, True),
    "other": lambda x, y: y,
}


INDUCTOR = float(os.environ.get("MASKED_TENSOR_COMPILED_INDUCTOR", "0"))


def attempt(step: Step, x: Tensor) -> Any:
    """What a step gives of plain data, or nothing."""
    try:
        found = step(x.detach().clone())
    except Exception:
        return None
    return found.detach() if isinstance(found, Tensor) else None


def outcome(program: Program, run: Callable[..., Any], given: tuple[Any, ...], source: Tensor) -> list[Any]:
    """All that can be seen of a run, in order."""
    results = run(*given)
    seen: list[Any] = [*results, *given]
    seen += [after(x) for x in results[-2:]]
    wanted = [p for step in program.steps for p in getattr(step, "parameters", ())]
    wanted += [source] if source.requires_grad else []
    tracked = [x for x in results if x.requires_grad]
    seen.append([x.requires_grad for x in results])
    if tracked and wanted:
        total = sum((k + 1) * mt.filled(x).double().sin().sum() for k, x in enumerate(tracked))
        seen += differentiate(total, wanted, allow_unused=True)
    elif not wanted:
        seen.append(lambda: written(results, given))
    return seen


def after(x: Any) -> list[Any]:
    """What eager code reads of a result: each relies on another thing that is known of its mask."""
    if type(x) is not MaskedTensor:
        return []
    assert_keeps_promise(x)
    x = x.detach().double()
    found = [x.sum(), x.count(), x.amax(), x * 2, mt.filled(x, 7.0)]
    if x.dim():
        found += [x.mean(-1), x.softmax(0), x.cumsum(-1), x.count(0)]
    if x.dim() > 1:
        found += [lengths(x), x.mean(1), x.transpose(0, 1).sum(-1), x[:, :1].mean(), x.flatten(0, 1).amax(0)]
        found += [mt.ffill(x, 1), x @ torch.ones(x.shape[-1], dtype=x.dtype)]
    return found


UNKNOWN = "unknown"


def lengths(x: MaskedTensor) -> Any:
    """What eager code may know of packed sequences, and a graph's result does not: then it raises, and says so."""
    try:
        return x.lengths()
    except ValueError:
        return UNKNOWN


def written(results: tuple[Any, ...], given: tuple[Any, ...]) -> list[Any]:
    """What all hold after a write into the last result: who shares its memory, and who does not."""
    results[-1].mul_(3)
    return [*results, *given]


def compare(actual: list[Any], expected: list[Any], what: str) -> None:
    assert len(actual) == len(expected), what
    for k, (a, e) in enumerate(zip(actual, expected, strict=True)):
        if callable(e) and not isinstance(e, Tensor):
            try:
                theirs, ours = e(), a()
            except (RuntimeError, mt.UnsupportedOpError):  # refused: integers, or memory that is shared
                continue
            compare(ours, theirs, f"{what}, written")
        elif isinstance(a, str) and a == UNKNOWN:
            continue
        elif isinstance(e, list):
            compare(a, e, f"{what}, of result {k}")
        elif isinstance(e, Tensor):
            assert type(a) is type(e), f"{what}, {k}: {type(a)} instead of {type(e)}"
            assert_same(a.detach(), e.detach(), f"{what}, {k}")
        else:
            assert a == e, f"{what}, {k}: {a} instead of {e}"


def check(program: Program) -> str:
    """Raises where a compiled run differs; says how it went."""
    torch.compiler.reset()
    said = "same"
    options: dict[str, Any] = {"backend": program.backend, "dynamic": program.dynamic is True or None}
    compiled = torch.compile(program.__call__, fullgraph=True, **options)
    broken = torch.compile(program.__call__, **options)
    first, second = program.shapes
    for number, shape in enumerate((first, second, first)):
        kind = program.rng.choice(MASKS)
        seed = program.rng.randrange(2**31)

        def run(function: Callable[..., Any]) -> Any:
            given, source = program.batch(shape, kind, seed)  # noqa: B023
            if function is not program and program.dynamic == "marked":
                for x in given:
                    torch._dynamo.maybe_mark_dynamic(x, 1)
            return outcome(program, function, given, source)

        try:
            expected = run(program)
        except Exception as error:
            expected = error
        try:
            actual = run(compiled)
        except REFUSED:
            said = "breaks"
            compiled = broken
            if isinstance(expected, Exception):
                continue
            try:
                actual = run(broken)
            except Exception as again:
                return f"refused: {type(again).__name__}: {str(again).strip().splitlines()[0][:150]}"
        except Exception as error:
            if isinstance(expected, Exception):
                continue
            return f"raises: {type(error).__name__}: {str(error).strip().splitlines()[0][:150]}"
        if isinstance(expected, Exception):
            return f"raises only in eager code: {type(expected).__name__}: {str(expected).splitlines()[0][:100]}"
        compare(actual, expected, f"call {number} of {program.names}, {kind}")
    return said


@pytest.mark.filterwarnings("ignore")
def test_random_programs_compiled() -> None:
    said: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + NUMBER):
        program = Program(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said[check(program).split(":")[0]] += 1
    assert set(said) <= {"same", "breaks", "refused"}, said
