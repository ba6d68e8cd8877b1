"""The law of contexts: a choice of meaning holds where it was made, whoever runs the code.

Every choice x compiled code (entered outside of it, and inside) x both forms of checkpoint x threads.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor.engine.compiled import cache_key
from masked_tensor.settings import DEFAULT, current

DATA = torch.linspace(-2, 2, 32).view(2, 2, 8)
LENGTHS = (torch.arange(8) < torch.tensor([[5], [8]])).unsqueeze(1)
WEIGHT = torch.linspace(-1, 1, 12).view(2, 2, 3)


def convolved(x: Tensor) -> Tensor:
    return F.conv1d(x, WEIGHT.to(x.device), padding=1) * 2


def pooled(x: Tensor) -> Tensor:
    return F.avg_pool1d(x, 3, 2) * 2


def multiplied(x: Tensor) -> Tensor:
    return F.linear(x, torch.ones(2, 8)).exp()


def lengthened(x: Tensor) -> Tensor:
    return F.pad(x, (1, 2), value=0.5) * 3


def reflected(x: Tensor) -> Tensor:
    return F.pad(x, (1, 2), mode="reflect") * 3


def added(x: Tensor) -> Tensor:
    return x + x.flip(-1)


CASES: dict[str, tuple[Callable[[], AbstractContextManager[None]], Callable[[Tensor], Tensor]]] = {
    "convolution any": (lambda: mt.meaning(convolution="any"), convolved),
    "convolution all": (lambda: mt.meaning(convolution="all"), convolved),
    "renormalize": (lambda: mt.meaning(convolution="any", renormalize=True), convolved),
    "pooling": (lambda: mt.meaning(convolution="any"), pooled),
    "product": (lambda: mt.meaning(product="all"), multiplied),
    "padding": (lambda: mt.meaning(padding="tensor"), lengthened),
    "border": (lambda: mt.meaning(padding="tensor"), reflected),
}
REFUSING = {"mismatch": lambda: mt.meaning(mismatch="raise"), "strict": mt.strict}


def batch(requires_grad: bool = False) -> mt.MaskedTensor:
    return mt.masked_tensor(DATA, LENGTHS, requires_grad=requires_grad)


def text(*results: Tensor) -> str:
    return "\n".join(str(r.detach()) for r in results)


@pytest.fixture(autouse=True)
def _ends_as_it_began() -> Any:
    torch._dynamo.reset()
    yield
    assert current() is DEFAULT


@pytest.mark.parametrize("name", CASES)
def test_every_choice_makes_a_difference_and_ends(name: str) -> None:
    context, function = CASES[name]
    before = text(function(batch()))
    with context():
        assert text(function(batch())) != before
    assert text(function(batch())) == before


@pytest.mark.parametrize("name", CASES)
def test_compiled_outside_of_the_context(name: str) -> None:
    context, function = CASES[name]
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        assert text(compiled(batch())) == text(function(batch()))
        with context():
            assert text(compiled(batch())) == text(function(batch()))


@pytest.mark.parametrize(("name", "backend"), [("padding", "eager"), *((name, "aot_eager") for name in CASES)])
def test_compiled_inside_of_the_function(name: str, backend: str) -> None:
    context, function = CASES[name]

    def whole(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first = function(x)
        with context():
            second = function(x)
        return first, second, function(x)

    compiled = torch.compile(whole, fullgraph=True, backend=backend)
    expected = text(*whole(batch()))
    assert text(*compiled(batch())) == expected
    with mt.meaning(padding="row"):
        assert text(*compiled(batch())) == expected


@pytest.mark.filterwarnings("ignore:.*Dynamo")
@pytest.mark.parametrize("name", ["convolution any", "padding"])
def test_a_graph_break_inside_the_context(name: str) -> None:
    context, function = CASES[name]

    def whole(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        first = function(x)
        with context():
            torch._dynamo.graph_break()
            second = function(x)
        return first, second, function(x)

    assert text(*torch.compile(whole, backend="aot_eager")(batch())) == text(*whole(batch()))


@pytest.mark.parametrize("name", REFUSING)
def test_compiled_code_does_not_run_past_a_context_that_compares(name: str) -> None:
    compiled = torch.compile(added, fullgraph=True, backend="aot_eager")
    expected = text(compiled(batch()))
    with REFUSING[name](), pytest.raises(Exception, match=r"mask|data-dependent|Data.dependent"):
        compiled(batch())
    assert text(compiled(batch())) == expected


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("name", [*CASES, *REFUSING])
def test_the_second_run_of_a_checkpoint(name: str, use_reentrant: bool, inside: bool) -> None:
    """``backward`` is called outside of the context, or under another one."""
    context, function = CASES[name] if name in CASES else (REFUSING[name], convolved)
    seen = []

    def recorded(x: Tensor) -> Tensor:
        if inside:
            with context():
                seen.append(current())
                return function(x)
        seen.append(current())
        return function(x)

    gradients = []
    for run in (recorded, lambda x: checkpoint(recorded, x, use_reentrant=use_reentrant)):
        x = batch(requires_grad=True)
        if inside:
            y = run(x)
        else:
            with context():
                y = run(x)
        with mt.meaning(convolution="all", padding="tensor"):
            y.square().sum().backward()
        gradients.append(text(x.grad))
    assert gradients[0] == gradients[1]
    assert len(seen) == 3
    assert len(set(seen)) == 1


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_outside_of_any_context(use_reentrant: bool) -> None:
    x = batch(requires_grad=True)
    y = checkpoint(convolved, x, use_reentrant=use_reentrant).square().sum()
    with mt.meaning(convolution="any"):
        y.backward()
    twin = batch(requires_grad=True)
    convolved(twin).square().sum().backward()
    assert text(x.grad) == text(twin.grad)


def test_every_thread_has_its_own() -> None:
    seen, entered, looked = [], threading.Event(), threading.Event()

    def other() -> None:
        with mt.meaning(padding="tensor"):
            entered.set()
            looked.wait(10)
            seen.append(current().padding)
        seen.append(current() is DEFAULT)

    thread = threading.Thread(target=other)
    with mt.meaning(convolution="any"):
        thread.start()
        entered.wait(10)
        assert (current().convolution, current().padding) == ("any", "row")
        looked.set()
        thread.join()
        assert current().convolution == "any"
    assert seen == ["tensor", True]


def test_choices_nest_and_leave_the_others_as_they_are() -> None:
    with mt.meaning(convolution="any", product="all"):
        with mt.meaning(product="any", padding="tensor"), mt.meaning(mismatch="raise"):
            inner = current()
            assert (inner.convolution, inner.product, inner.padding, inner.mismatch) == (
                "any",
                "any",
                "tensor",
                "raise",
            )
        assert (current().product, current().padding, current().mismatch) == ("all", "row", "and")
    again = mt.meaning(convolution="any")
    with again, again:
        assert current().convolution == "any"


def test_plain_tensors_and_torch_function_modes_are_not_concerned() -> None:
    with torch.device("meta"), mt.meaning(convolution="any"):
        assert torch.ones(2).is_meta
    with mt.meaning(convolution="any"), torch.device("meta"):
        assert (torch.ones(2) + 1).is_meta


# ------------------------------------------------------------------------------------------------- caches of compilers


def test_the_meanings_in_force_are_part_of_what_caches_are_keyed_by() -> None:
    x, keys = batch(), set()
    for context in (nullcontext, *(context for context, _ in CASES.values()), *REFUSING.values()):
        with context():
            keys.add(x._stable_hash_for_caching())
    assert len(keys) == 8  # pooling is convolution any, border is padding
    assert x._stable_hash_for_caching() in keys


def test_the_code_of_registered_rules_is_part_of_what_caches_are_keyed_by() -> None:
    lib = torch.library.Library("cache_keys", "DEF")
    rules = {
        "one": lambda x: mt.extend.Pair(x.data * 2, x.mask),
        "two": lambda x: mt.extend.Pair(x.data * 3, x.mask),
    }
    digests = []
    for name, rule in rules.items():
        before = batch()._stable_hash_for_caching()
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.clone(), "CompositeExplicitAutograd")
        mt.extend.register_rule(f"cache_keys::{name}")(rule)
        assert batch()._stable_hash_for_caching() != before
        digests.append(list(cache_key._parts(rule)))
    assert digests[0] != digests[1]
    assert digests[0] == list(cache_key._parts(rules["one"]))
