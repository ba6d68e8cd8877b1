"""The law of settings: what a context manager puts in force holds from its entry to its exit, and nowhere else.

Every context manager of the package x every other one x the ways in which code enters and leaves: nested, again,
as a decorator of all kinds of functions, overlapping, by generators and coroutines that end in any order, in threads,
by errors, in backward passes, checkpoints and compiled code.
"""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from itertools import count, pairwise, product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor.settings import NOTHING, STACK, in_force

X = mt.masked_tensor([[[1.0, 2.0, 3.0, None]]])
Y = mt.masked_tensor([[[1.0, None, 3.0, 4.0]]])
SHORT = mt.from_lengths(torch.ones(2, 3), [3, 1]).packed()


class Mean(mt.mean_over):
    """As a mean_over, but a part without a mean is no error: what is looked at here is what is in force."""

    def __init__(self) -> None:
        super().__init__(count=8)

    def end(self, failed: bool) -> None:
        super().end(True)


SETTINGS: dict[str, Callable[[], Any]] = {
    "padding": lambda: mt.meaning(padding="tensor"),
    "product": lambda: mt.meaning(product="all", convolution="all"),
    "convolution": lambda: mt.meaning(convolution="any", renormalize=True),
    "mismatch": lambda: mt.meaning(mismatch="raise"),
    "back to and": lambda: mt.meaning(mismatch="and"),
    "strict": mt.strict,
    "masked_factories": mt.masked_factories,
    "mean_over": Mean,
    "packing_report": mt.extend.packing_report,
}
NOT_CARRIED = ("mean_over", "packing_report")  #: of a forward pass to its second run: it would count twice


_turns = count()
WHOLE = "MASKED_TENSOR_SETTINGS" in os.environ  #: all pairs


def pairs(test: Callable[..., None]) -> Callable[..., None]:
    """``a`` and ``b``: each setting with itself, and a third of the other pairs, of each test another third."""
    turn = next(_turns)
    both = product(enumerate(SETTINGS), repeat=2)
    chosen = [(a, b) for (i, a), (j, b) in both if WHOLE or i == j or (i + j + turn) % 3 == 0]
    return pytest.mark.parametrize(("a", "b"), chosen)(test)


@pytest.fixture(autouse=True)
def _ends_as_it_began() -> Iterator[None]:
    yield
    assert STACK.get() == ()
    assert in_force() is NOTHING
    assert _get_current_function_mode_stack() == []


def state() -> dict[str, Any]:
    """What is in force here; of the factories, what they make."""
    found = in_force()
    return {
        "meaning": found.meaning,
        "factories": type(torch.zeros(0)),
        "mean": found.over is not None,
        "reports": len(found.reports),
    }


@cache
def _expected(*names: str) -> dict[str, Any]:
    context = contextvars.Context()

    def nested(names: tuple[str, ...]) -> dict[str, Any]:
        if not names:
            return state()
        with SETTINGS[names[0]]():
            return nested(names[1:])

    return context.run(nested, names)


def check(*names: str) -> None:
    """What is in force is what ``names`` put in force, nested in each other."""
    assert state() == _expected(*names)


def refuses(act: Callable[[], object], error: type[Exception]) -> bool:
    try:
        act()
    except error:
        return True
    return False


BEHAVIOUR: dict[str, Callable[[], Any]] = {
    "padding": lambda: F.pad(X, (0, 1)).tolist(),
    "product": lambda: (X @ torch.ones(4, 1)).tolist(),
    "convolution": lambda: torch.conv1d(X, torch.ones(1, 1, 3), padding=1).tolist(),
    "mismatch": lambda: refuses(lambda: X + Y, mt.MaskMismatchError),
    "strict": lambda: refuses(lambda: torch.zeros(()).add_(X.sum()), mt.MaskedWriteError),
    "masked_factories": lambda: type(torch.zeros(2)),
    "mean_over": lambda: F.mse_loss(X, torch.ones(1, 1, 4)).item(),
}


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "back to and"])
def test_what_is_in_force_is_what_ops_do(name: str) -> None:
    act = BEHAVIOUR.get(name, state)
    before = act()
    with SETTINGS[name]():
        assert act() != before
        inside = act() if name != "mean_over" else None  # each part has one mean
    assert act() == before
    if name in BEHAVIOUR and name != "mean_over":
        assert SETTINGS[name]()(act)() == inside


def test_a_report_counts_what_runs_inside() -> None:
    with mt.extend.packing_report() as outer:
        SHORT.flip(1)
        with mt.extend.packing_report() as inner:
            SHORT.flip(1)
        SHORT.flip(1)
    SHORT.flip(1)
    assert [lines["aten::flip"].calls for lines in (outer, inner)] == [3, 1]


# ------------------------------------------------------------------------------------------------------------- nested


@pairs
def test_nested_and_overlapping(a: str, b: str) -> None:
    first, second = SETTINGS[a](), SETTINGS[b]()
    with first:
        check(a)
        with second:
            check(a, b)
        check(a)
    check()
    first.__enter__(), second.__enter__()
    first.__exit__(None, None, None)
    check(b)
    first.__enter__()
    check(b, a)
    second.__exit__(None, None, None)
    check(a)
    first.__exit__(None, None, None)
    check()


@pairs
def test_entered_again(a: str, b: str) -> None:
    again = SETTINGS[a]()
    for _ in range(2):
        with again:
            check(a)
    if a == "mean_over":
        return  # each part has one mean
    with again, SETTINGS[b](), again:
        check(b, a) if a != "packing_report" else check(*[a, b] if a != b else [a, a])
    check()
    other = SETTINGS[b]()
    again.__enter__(), other.__enter__(), again.__enter__()
    again.__exit__(None, None, None)  # the last of its own
    check(a, b)
    other.__exit__(None, None, None)
    check(a)
    again.__exit__(None, None, None)
    check()


@pairs
def test_errors_end_it(a: str, b: str) -> None:
    with pytest.raises(ZeroDivisionError), SETTINGS[a](), SETTINGS[b]():
        raise ZeroDivisionError

    @SETTINGS[a]()
    def fails() -> None:
        check(b, a)
        raise ZeroDivisionError

    with SETTINGS[b]():
        with pytest.raises(ZeroDivisionError):
            fails()
        check(b)


# --------------------------------------------------------------------------------------------------------- decorators


@pairs
def test_functions_and_methods(a: str, b: str) -> None:
    @SETTINGS[a]()
    def function(x: int, *, y: int = 0) -> int:
        "What it is."
        check(b, a)
        return x + y

    class Module(torch.nn.Module):
        @SETTINGS[a]()
        def forward(self, x: int) -> int:
            check(b, a)
            return x

        @classmethod
        @SETTINGS[a]()
        def made(cls) -> type:
            check(b, a)
            return cls

        @staticmethod
        @SETTINGS[a]()
        def static() -> None:
            check(b, a)

    with SETTINGS[b]():
        for _ in range(2):
            assert function(1, y=2) == 3
            assert Module()(4) == 4
            assert Module.made() is Module
            Module.static()
        check(b)
    assert (function.__name__, function.__doc__) == ("function", "What it is.")


@pairs
def test_generators(a: str, b: str) -> None:
    """The setting is in force while the generator runs, not while it waits."""

    @SETTINGS[a]()
    def generator(*around: str) -> Iterator[Any]:
        check(*around, a)
        given = yield 1
        check(b, a)
        assert given == "sent"
        try:
            yield 2
        except ZeroDivisionError:
            check(a)
        yield 3
        return 4

    running = generator()
    assert next(running) == 1
    check()
    with SETTINGS[b]():
        assert running.send("sent") == 2
        check(b)
    assert running.throw(ZeroDivisionError()) == 3
    check()
    with pytest.raises(StopIteration, match="4"):
        next(running)
    check()
    closed = []

    def waits() -> Iterator[int]:
        try:
            yield 1
        finally:
            check(b, a)
            closed.append(True)

    running = SETTINGS[a]()(waits)()
    next(running)
    with SETTINGS[b]():
        running.close()
        check(b)
    assert closed
    assert list(SETTINGS[a]()(lambda: iter((1, 2)))()) == [1, 2]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pairs
def test_generators_that_hold_a_setting_end_in_either_order(a: str, b: str, order: tuple[int, int]) -> None:
    """Written as ``with`` in a generator it holds until the generator ends, for everybody in this thread."""

    def generator(name: str) -> Iterator[None]:
        with SETTINGS[name]():
            yield

    running = [generator(a), generator(b)]
    for each in running:
        next(each)
    check(a, b)
    running[order[0]].close()
    check((a, b)[order[1]])
    running[order[1]].close()
    check()


@pairs
def test_decorated_coroutines_driven_by_hand(a: str, b: str) -> None:
    """As by an event loop that gives its tasks no context of their own."""

    class Pause:
        def __await__(self) -> Iterator[None]:
            yield

    def made(name: str) -> Any:
        @SETTINGS[name]()
        async def coroutine() -> str:
            check(name)
            await Pause()
            check(name)
            return name

        return coroutine()

    first, second = made(a), made(b)
    for _ in range(2):
        for name, each in ((a, first), (b, second)):
            try:
                each.send(None)
            except StopIteration as end:
                assert end.value == name  # noqa: PT017
            check()


# ---------------------------------------------------------------------------------------------------------- coroutines


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pairs
def test_overlapping_tasks(a: str, b: str, order: tuple[int, int]) -> None:
    """Each task has what it entered, whoever enters or leaves first."""

    async def main() -> None:
        entered, leave = [asyncio.Event() for _ in range(2)], [asyncio.Event() for _ in range(2)]

        async def with_block(i: int, name: str) -> None:
            with SETTINGS[name]():
                check(name)
                entered[i].set()
                await leave[i].wait()
                check(name)
            check()

        @SETTINGS[b]()
        async def decorated() -> None:
            await entered[0].wait()
            check(b)
            await leave[1].wait()
            check(b)

        @SETTINGS[a]()
        async def counts() -> AsyncIterator[int]:
            for i in range(2):
                check(a)
                yield i
                await asyncio.sleep(0)

        async def uses() -> None:
            with SETTINGS[b]():
                async for _ in counts():
                    check(b)

        tasks = [asyncio.ensure_future(t) for t in (with_block(0, a), with_block(1, b), decorated())]
        for event in entered:
            await event.wait()
        check()
        for i in order:
            leave[i].set()
            await tasks[i]
        await tasks[2]
        check()
        assert [i async for i in counts()] == [0, 1]

    asyncio.run(main())


@pytest.mark.parametrize("name", SETTINGS)
def test_async_generators(name: str) -> None:
    seen = []

    @SETTINGS[name]()
    async def generator() -> AsyncIterator[Any]:
        try:
            check(name)
            given = yield 1
            await asyncio.sleep(0)
            check(name)
            try:
                yield given
            except ZeroDivisionError:
                check(name)
                yield 3
        finally:
            await asyncio.sleep(0)
            check(name)
            seen.append("closed")

    async def held() -> AsyncIterator[int]:
        with SETTINGS[name]():
            yield 1

    async def main() -> None:
        running = generator()
        assert await running.asend(None) == 1
        check()
        assert await running.asend("sent") == "sent"
        check()
        assert await running.athrow(ZeroDivisionError()) == 3
        check()
        await running.aclose()
        check()
        async for _ in held():
            break
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0)  # the loop closes it in a task of its own
        check()
        running = generator()
        await running.asend(None)
        with pytest.raises(ZeroDivisionError):
            await running.athrow(ZeroDivisionError())
        check()

    asyncio.run(main())
    assert seen == ["closed", "closed"]


@pytest.mark.parametrize("name", SETTINGS)
def test_tasks_that_are_started_inside_have_it_until_it_is_left(name: str) -> None:
    async def main() -> None:
        ended = asyncio.Event()

        async def child() -> None:
            check(name)
            await ended.wait()
            check()

        with SETTINGS[name]():
            task = asyncio.ensure_future(child())
            await asyncio.sleep(0)
            check(name)
        ended.set()
        await task

        @SETTINGS[name]()
        async def decorated() -> Any:
            task = asyncio.ensure_future(child())
            ended.clear()
            for _ in range(3):
                await asyncio.sleep(0)
            return task

        task = await decorated()
        ended.set()
        await task

    asyncio.run(main())


# ------------------------------------------------------------------------------------------------------------- threads


def in_thread(act: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for error in errors:
        raise error


@pairs
def test_every_thread_has_its_own(a: str, b: str) -> None:
    shared = SETTINGS[b]()

    def other() -> None:
        check()
        with shared:
            check(b)
        check()

    with SETTINGS[a]():
        in_thread(other)
        check(a)
        if b != "mean_over":
            with shared:
                in_thread(other)
                check(a, b)


@pairs
def test_a_generator_is_closed_by_another_thread(a: str, b: str) -> None:
    def generator() -> Iterator[None]:
        with SETTINGS[a]():
            yield

    running = generator()
    next(running)

    def other() -> None:
        with SETTINGS[b]():
            running.close()
            check(b)

    in_thread(other)
    check()
    for mode in _get_current_function_mode_stack():  # it cannot be taken from another thread's stack: it does nothing
        mode.__exit__(None, None, None)


# ----------------------------------------------------------------------------------------- backward passes, checkpoints


@pytest.mark.parametrize("thread", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True])
@pairs
def test_the_second_run_of_a_checkpoint(a: str, b: str, use_reentrant: bool, thread: bool) -> None:
    """It has what the first run had, whatever is in force where ``backward`` is called, and changes nothing there."""
    seen = []

    def function(x: Tensor) -> Tensor:
        seen.append(state())
        return x.square()

    def backward() -> None:
        with SETTINGS[b]():
            y.sum().backward()
            check(b)

    x = torch.ones(2, requires_grad=True)
    with SETTINGS[a]():
        y = checkpoint(function, x, use_reentrant=use_reentrant)
        check(a)
    if thread:
        in_thread(backward)
    else:
        backward()
    carried = [name for name, here in ((a, a not in NOT_CARRIED), (b, b in NOT_CARRIED)) if here]
    assert seen == [_expected(a), _expected(*carried)]
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_checkpoint_that_enters_it_by_itself(name: str, use_reentrant: bool) -> None:
    seen = []

    def function(x: Tensor) -> Tensor:
        with SETTINGS[name]():
            seen.append(state())
        seen.append(state())
        return x.square()

    x = torch.ones(2, requires_grad=True)
    checkpoint(function, x, use_reentrant=use_reentrant).sum().backward()
    assert seen == [_expected(name), _expected()] * 2


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "masked_factories"])  # not inside of torch's own
def test_hooks_and_functions_of_a_backward_pass(name: str) -> None:
    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            check()
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            check(name)
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: check(name))
    y = Function.apply(x).sum()
    with SETTINGS[name]():
        y.backward()
        check(name)


def test_a_derivative_that_raises_leaves_nothing_in_force() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            with mt.meaning(padding="row"):
                raise ZeroDivisionError

    x = mt.masked_tensor([1.0, None], requires_grad=True)
    with pytest.raises(ZeroDivisionError):
        (Fails.apply(x) * 2).sum().backward()
    check()


# ------------------------------------------------------------------------------------------------------------ compiled

TRACED = ["padding", "product", "convolution", "masked_factories"]


def computed(x: Tensor) -> list[Tensor]:
    room = torch.zeros(2)
    return [F.pad(x, (0, 1)), x @ torch.ones(4, 1), torch.conv1d(x, torch.ones(1, 1, 3), padding=1), room * 1]


def shown(results: list[Tensor]) -> list[Any]:
    return [(type(r), r.tolist()) for r in results]


@pytest.fixture
def compiled() -> Iterator[Callable[[Tensor], list[Tensor]]]:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(recompile_limit=32):
        yield torch.compile(computed, backend="eager", fullgraph=True)


def test_compiled_code_is_that_of_the_settings_in_force(compiled: Callable[[Tensor], list[Tensor]]) -> None:
    for a, b in pairwise([*TRACED, TRACED[0]]):
        with SETTINGS[a]():
            assert shown(compiled(X)) == shown(computed(X))
            with SETTINGS[b]():
                assert shown(compiled(X)) == shown(computed(X))
        assert shown(compiled(X)) == shown(computed(X))


def test_compiled_code_in_overlapping_tasks(compiled: Callable[[Tensor], list[Tensor]]) -> None:
    async def task(name: str) -> None:
        with SETTINGS[name]():
            for _ in range(2):
                await asyncio.sleep(0)  # the others
                assert shown(compiled(X)) == shown(computed(X)), name
        for _ in range(2):
            await asyncio.sleep(0)
            assert shown(compiled(X)) == shown(computed(X)), name

    async def main() -> None:
        await asyncio.gather(*map(task, TRACED))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "backend"), [*((name, "eager") for name in TRACED), ("masked_factories", "aot_eager")]
)
def test_compiled_code_that_enters_it_by_itself(name: str, backend: str) -> None:
    def whole(x: Tensor) -> list[Tensor]:
        with SETTINGS[name]():
            inside = computed(x)
        return [*inside, *computed(x)]

    torch._dynamo.reset()
    function = torch.compile(whole, backend=backend, fullgraph=True)
    for _ in range(2):
        assert shown(function(X)) == shown(whole(X))
    check()
    decorated = torch.compile(SETTINGS[name]()(computed), backend=backend, fullgraph=True)
    assert shown(decorated(X)) == shown(SETTINGS[name]()(computed)(X))


def test_a_graph_that_raises_leaves_nothing_in_force() -> None:
    """A graph has no ``finally``."""

    def fails(x: Tensor, index: Tensor) -> Tensor:
        with mt.meaning(padding="tensor"):
            return F.pad(x, (0, 1)) + torch.ones(4)[index]

    torch._dynamo.reset()
    function = torch.compile(fails, backend="eager", fullgraph=True)
    function(X, torch.tensor([3]))
    with pytest.raises(IndexError):
        function(X, torch.tensor([9]))
    check()


FIRST = """
import torch
from torch.utils.checkpoint import checkpoint
import masked_tensor as mt
from masked_tensor.settings import DEFAULT, current
seen = []
def function(x):
    seen.append(current() is DEFAULT)
    return x.square()
x = torch.ones(2, requires_grad=True)
y = sum(checkpoint(function, x, use_reentrant=r).sum() for r in (False, True))
with mt.strict():
    y.backward()
print(seen)
"""


def test_what_was_checkpointed_before_any_setting_has_none() -> None:
    """Checkpoints are bound from when the first setting of the process is entered."""
    run = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True)
    assert run.stdout == "[True, True, True, True]\n", run.stderr
