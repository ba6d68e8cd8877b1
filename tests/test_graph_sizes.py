"""A graph that serves the plain program at some sizes serves the masked one: nothing more is asked of traced sizes.

``MASKED_TENSOR_GUARDS=1`` traces each operator of torch's database, ten minutes; ``-k`` takes a part of them.
"""

import logging
import os
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from functorch.compile import make_boxed_func
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import masked_tensor as mt
from tests.helpers.database import ENTRIES, samples
from tests.test_families_compiled import PROGRAMS, batch

from .helpers.trees import tree_leaves, tree_map

WHOLE = os.environ.get("MASKED_TENSOR_GUARDS") == "1"
DRAWS = 12
# In turn what fills, counts, adds up, standardizes, chooses and picks; the others are traced with WHOLE.
QUICK = ("choose", "reduction", "moment", "normalize", "order", "loss")
DECLARED = {
    **dict.fromkeys(("argwhere", "nonzero", "unique", "unique_consecutive"), "values decide the size of its result"),
    "histc": "it counts the valid entries, whose number is read on the host",
    "histogram": "as histc",
    "item": "a masked entry is asked for",
    "as_strided.partial_views": "its sample looks before the tensor's own memory",
    "unfold": "the order of its strides is that of its sizes, which torch compares where it computes with them",
    "cdist": "docs/limits.md",
    "nn.functional.unfold": "docs/limits.md",
}

KERNELS = "nn.functional.conv"  # whose windows are as wide as a parameter; a free width: docs/limits.md

Program = Callable[..., Any]


@contextmanager
def quiet() -> Iterator[None]:
    """What torch cannot trace it tells its log, and warns of; here the plain program is asked first."""
    log = logging.getLogger("torch")
    before = log.level
    log.setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    log.setLevel(before)


def sizes_asked(program: Program, *args: Tensor, track: bool = True, fixed: bool = False) -> ShapeEnv:
    """What ``program(*args)`` asked of the sizes, all of which are free, of its gradients, too.

    ``fixed``: only those of the first argument are, as where the others are parameters.
    """
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    tracked = [track and (x.is_floating_point() or x.is_complex()) for x in args]
    tensors = [
        mode.from_tensor(x.detach(), static_shapes=fixed and i > 0).requires_grad_(t)
        for i, (x, t) in enumerate(zip(args, tracked, strict=True))
    ]
    with mode, enable_python_dispatcher():
        found = [x.filled(0) if mt.is_masked_tensor(x) else x for x in tensors_in(program(*tensors))]
        sums = [x.sum().real for x in found if x.requires_grad]
        if sums:
            torch.autograd.grad(sums, [x for x in tensors if x.requires_grad], allow_unused=True)
    return env


def tensors_in(value: Any) -> list[Tensor]:
    return [x for x in tree_leaves(value) if isinstance(x, Tensor)]


def other_sizes(env: ShapeEnv) -> Iterator[dict[Any, int]]:
    """Sizes no smaller than those that were traced, at which their graph serves."""
    symbols = sorted(env.var_to_val, key=str)
    for seed in range(DRAWS):
        choose = random.Random(seed)
        most = choose.choice((10, 1000, 10**9))
        drawn = {s: int(env.var_to_val[s]) + choose.randrange(most) for s in symbols}
        if seed % 3 == 0:  # some are equal that were not
            largest = max(drawn.values(), default=0)
            drawn = {s: largest if choose.random() < 0.5 else n for s, n in drawn.items()}
        if all(holds(guard, drawn) for guard in env.guards):
            yield drawn


def holds(guard: Any, at: dict[Any, int]) -> bool:
    return bool(guard.expr.xreplace(at) == True)  # noqa: E712 (sympy's)


def asked_more(plain: ShapeEnv, masked: ShapeEnv) -> set[str]:
    """Guards of the masked program that fail at sizes at which the plain program's graph serves."""
    known = {str(guard.expr) for guard in plain.guards}
    more = [guard for guard in masked.guards if str(guard.expr) not in known]
    at = list(other_sizes(plain)) if more else []
    return {f"{guard.expr} {guard.sloc}" for guard in more if not all(holds(guard, sizes) for sizes in at)}


def compare(plain: Program, masked: Program, *args: Tensor, fixed: bool = False) -> set[str] | None:
    """None where torch itself cannot trace the plain program."""
    with quiet():
        for track in (True, False):
            try:
                expected = sizes_asked(plain, *args, track=track, fixed=fixed)
            except Exception:
                continue
            try:
                return asked_more(expected, sizes_asked(masked, *args, track=track, fixed=fixed))
            except mt.UnsupportedOpError:
                return set()
    return None


@pytest.mark.parametrize("family", PROGRAMS if WHOLE else QUICK)
def test_no_family_asks_more_of_sizes_than_the_plain_program(family: str) -> None:
    x = batch(6)
    found = compare(
        lambda data, mask: PROGRAMS[family](data),
        lambda data, mask: PROGRAMS[family](mt.as_masked_tensor(data, mask)),
        x.get_data(),
        x.mask,
    )
    assert found == set()


def test_what_asks_more_would_be_found() -> None:
    x = torch.randn(5, 7)
    assert compare(lambda x: x + 1, lambda x: x + 1 if x.numel() < 2048 else x, x)
    assert compare(lambda x: x + 1, lambda x: x + int(x.shape[0]), x)
    assert compare(lambda x: x + 1, lambda x: x + 1 if x.shape[0] != x.shape[1] else x, x)
    assert compare(lambda x: x + 1, lambda x: x + 1, x) == set()
    assert compare(lambda x: float(x.sum()), lambda x: x, x) is None


@pytest.mark.parametrize(
    "program",
    [
        F.pdist,
        lambda x: mt.interpolate(x, dim=1, lengths="full") if mt.is_masked_tensor(x) else x * 1,
    ],
    ids=["pairs", "gaps"],
)
def test_no_size_is_fixed(program: Program) -> None:
    x = torch.randn(5, 7, dtype=torch.float64)
    found = compare(program, lambda x: program(mt.as_masked_tensor(x, x == x)), x)
    assert found == set()


@pytest.mark.skipif(not WHOLE, reason="MASKED_TENSOR_GUARDS=1 traces all operators")
@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - DECLARED.keys()) if WHOLE else [])
def test_no_operator_asks_more_of_sizes_than_the_plain_one(name: str) -> None:
    for sample in samples(name, limit=2):
        given = (sample.args, sample.kwargs)
        if any(t.layout is not torch.strided for t in tensors_in(given)):  # no graph takes them
            continue

        def run(*tensors: Tensor, mask: bool, given: Any = given, op: Any = sample.op) -> Any:
            rest, first = iter(tensors), mask

            def place(x: Any) -> Any:
                nonlocal first
                if not isinstance(x, Tensor):
                    return x
                data, masked, first = next(rest), first, False
                return mt.as_masked_tensor(data, data == data) if masked else data

            args, kwargs = tree_map(place, given)
            return op(*args, **kwargs)

        found = compare(
            lambda *t, run=run: run(*t, mask=False),
            lambda *t, run=run: run(*t, mask=True),
            *tensors_in(given),
            fixed=name.startswith(KERNELS),
        )
        assert not found, found


def test_parts_of_an_input_have_the_sizes_of_each_other() -> None:
    """From the second length on each part has sizes of its own, and inductor compiles no ``s0 + max(0, s1 - s0)``."""
    named: list[str] = []

    def see(graph: Any, inputs: Any) -> Any:
        values = [node.meta.get("val") for node in graph.graph.nodes]
        named.extend(str(n) for v in values if isinstance(v, Tensor) for n in v.shape if isinstance(n, torch.SymInt))
        return make_boxed_func(graph.forward)

    conv = torch.nn.Conv1d(4, 4, 5, padding=2)
    step = torch.compile(lambda x: conv(x.transpose(1, 2)).mean(2), backend=aot_autograd(fw_compiler=see))
    for lengths in ([9, 20], [11, 30], [40, 7]):
        data = torch.randn(2, max(lengths), 4)
        found = step(mt.from_lengths(data, lengths))
        alone = [conv(row[None, :n].transpose(1, 2)).mean(2)[0] for row, n in zip(data, lengths, strict=True)]
        torch.testing.assert_close(found.filled(), torch.stack(alone))
    assert len(named) > 20
    assert [size for size in named if "Max" in size] == []
