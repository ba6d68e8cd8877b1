"""The numbers of settings.py: around each, what its two ways cost; and steps of half and of twice the size.

CPU seconds of one thread: ``python -m benchmarks.thresholds``.
"""

import itertools
from collections.abc import Callable
from functools import partial
from time import thread_time

import torch
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import masks, settings
from masked_tensor.fill import fill_outside

from .timing import many, medians

NEVER = 1 << 62
Maker = Callable[[int], Callable[[], object]]


def drawn(size: int, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Data and mask of about ``size`` elements, in rows of ``columns``."""
    shape = (size // columns, columns)
    return torch.randn(shape), torch.rand(shape) < 0.7


def on(call: Callable[..., object], columns: int, size: int) -> Callable[[], object]:
    """``call(data, mask)`` of 64 in turn where they are small: the processor must not learn the branches of one."""
    turns = itertools.cycle([drawn(size, columns) for _ in range(64 if size < 1 << 15 else 1)])
    return lambda: call(*next(turns))


def fill(constant: float) -> Maker:
    return partial(on, lambda data, mask: fill_outside(data, mask, constant), 64)


def of(op: Callable[..., object], columns: int = 64) -> Maker:
    """``op`` of a masked tensor in rows of ``columns``."""
    return partial(on, lambda data, mask: op(mt.as_masked_tensor(data, mask)), columns)


def recorded(size: int) -> Callable[[], object]:
    """``(x * y).sum()`` and its gradient."""

    def step(data: torch.Tensor, mask: torch.Tensor) -> None:
        x = mt.as_masked_tensor(data, mask).requires_grad_()
        torch.autograd.grad((x * data).sum(), x, ONE)

    return on(step, 64, size)


ONE = torch.ones(())
THRESHOLDS: dict[str, Maker] = {
    "SMALL_ZERO": fill(0.0),
    "SMALL_OTHER": fill(1.5),
    "SMALL_ROWS": partial(on, lambda data, mask: fill_outside(data, mask[:, :1].expand(data.shape), 0), 128),
    "COUNTED": partial(on, lambda data, mask: masks.count(mask), 64),
    "FEW": partial(on, lambda data, mask: masks.any(mask, 1), 64),
    "FUSED": of(partial(torch.softmax, dim=1)),
    "FORMULA": of(lambda x: F.layer_norm(x, (64,))),
    "LARGE": of(partial(torch.sum, dim=1)),
    "BLOCKS": of(partial(torch.topk, k=8), 4096),
}
STEPS: dict[str, Maker] = {
    "CHUNK": fill(1.5),
    "PIECE": of(partial(torch.softmax, dim=1)),
    "STRETCH": of(lambda x: F.layer_norm(x, (64,))),
}


def compare(name: str, values: dict[str, int], call: Callable[[], object], calls: int) -> None:
    """Prints the medians of ``call`` under each value of the setting, in turn."""

    def under(value: int) -> None:
        setattr(settings, name, value)
        many(call, calls)()

    kept = getattr(settings, name)
    times = medians({title: partial(under, value) for title, value in values.items()}, clock=thread_time)
    setattr(settings, name, kept)
    print("".join(f"   {title} {seconds / calls * 1e6:9.1f} us" for title, seconds in times.items()), flush=True)


#: Those whose ways differ only where a gradient is recorded, or which are asked for other rows than of 64.
EDGES = THRESHOLDS | {"RECORDED": recorded}
COLUMNS = {"BLOCKS": 4096, "SMALL_ROWS": 128}


def edges(small: bool = False) -> dict[str, tuple[int, float]]:
    """At each number: the size, and what it costs as a multiple of the size just below, each by the way it takes."""
    found = {}
    for name, make in EDGES.items():
        size = getattr(settings, name)
        calls = 1 if small else max(1, (1 << 21) // size)
        sizes = {"below": size - COLUMNS.get(name, 64), "above": size}
        times = medians({k: many(make(n), calls) for k, n in sizes.items()}, 1 if small else 21, clock=thread_time)
        found[name] = size, times["above"] / times["below"]
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, make in THRESHOLDS.items():
        for size in (getattr(settings, name) * factor // 4 for factor in (1, 4, 16)):
            print(f"{name:12}{size:9} elements", end="")
            compare(name, {"below": NEVER, "from": 0}, make(size), max(1, (1 << 20) // size))
    for name, make in STEPS.items():
        value = getattr(settings, name)
        print(f"{name:12}", end="")
        compare(name, {str(n): n for n in (value // 4, value, 4 * value)}, make(1 << 22), 1)
    for factor in (1, 4, 16, 64):
        number = 1 << 14
        keys, size = torch.randint(0, factor * number, (number,)), factor * number
        print(f"{'TABLE_OF':12}{size // number:9} to one", end="")
        times = medians(
            {
                "table": lambda: torch.zeros(size).index_add_(0, keys, torch.ones(number)),  # noqa: B023
                "sort": lambda: torch.unique(keys, return_inverse=True),  # noqa: B023
            },
            clock=thread_time,
        )
        print("".join(f"   {title} {seconds * 1e6:9.1f} us" for title, seconds in times.items()))
