"""With several threads every call on a large tensor starts and joins them all: ops on masked tensors make few calls.

Torch divides a call among its threads from 32,768 elements on.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

import masked_tensor as mt
from masked_tensor import settings
from masked_tensor.compat import IS_OLD

DIVIDED = 32768
SHAPE = (4096, 512)
NO_WORK = {  # of what torch records, what touches no element
    *(
        "view",
        "as_strided",
        "detach",
        "expand",
        "select",
        "narrow",
        "slice",
        "split",
        "unsqueeze",
        "unflatten",
        "alias",
    ),
    *("empty", "empty_like", "empty_strided", "reshape", "to", "contiguous", "t", "transpose", "result_type"),
}


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def calls(run: Callable[[], object]) -> tuple[int, int]:
    """How many calls of aten ops ``run`` makes, nested ones and views too; how many of them torch divides."""
    run()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, acc_events=True) as profiler:
        run()
    events = [e for e in profiler.events() if e.name.startswith("aten::")]
    return len(events), sum(divides(e) for e in events)


def divides(event: Any) -> bool:
    if event.name.removeprefix("aten::") in NO_WORK or any(divides(child) for child in event.cpu_children):
        return False
    return any(prod(shape) >= DIVIDED for shape in event.input_shapes if shape)


def both_ways(op: Callable[[Any], Any], x: Any, gradient: Any) -> Callable[[], object]:
    return lambda: torch.autograd.grad(op(x), x, gradient)


WEIGHT = torch.ones(SHAPE[1], requires_grad=True)
CASES: dict[
    str, tuple[Callable[[Any], Any], int, int]
] = {  # with so many calls, and so many that are divided; 11 and 1 ask the roots of the backward pass
    "layer_norm": (lambda x: F.layer_norm(x, SHAPE[1:], WEIGHT, WEIGHT), 147, 29),
    "softmax": (lambda x: x.softmax(-1), 55, 9),
    "sum": (lambda x: x.sum(-1), 20, 4),
}


@pytest.mark.parametrize("name", CASES)
def test_few_calls_are_divided_among_threads(name: str) -> None:
    op, most, divided = CASES[name]
    mask = torch.rand(SHAPE) < 0.7
    x = mt.as_masked_tensor(torch.randn(SHAPE), mask)
    found = calls(lambda: op(x))
    if name != "sum":
        leaf = mt.masked_tensor(x, requires_grad=True)
        found = calls(both_ways(op, leaf, op(x).detach()))
    assert found[0] <= most + 5 * IS_OLD  # whose ops call more
    assert found[1] <= divided + IS_OLD


def test_steps_are_larger_with_several_threads() -> None:
    assert settings.per_step(settings.CHUNK) == settings.SHARED
    torch.set_num_threads(1)
    assert settings.per_step(settings.CHUNK) == settings.CHUNK
