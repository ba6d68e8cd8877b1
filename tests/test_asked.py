"""What autograd itself is asked of a tensor that was written: the same as of a plain one.

Every program of the law makes a tensor, takes a view of it, writes, and asks autograd about one of both, without an op
in between.  It runs on plain tensors, whose views torch keeps connected, and on masked ones.  A gradient is compared
where the entry that is asked for is valid; where torch raises, we do.
"""

import itertools
import os
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt

LARGE = os.environ.get("MASKED_TENSOR_ASKED") == "all"
SCATTERED = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=torch.bool)
WHERE = torch.tensor([[0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]], dtype=torch.bool)
WEIGHTS = torch.arange(1.0, 13.0, dtype=torch.float64).view(3, 4)
Leaves = tuple[Tensor, Tensor, Tensor]  # a number, a row, and all entries


def leaves() -> Leaves:
    a = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    w = torch.tensor([0.5, -1.5, 2.0, 0.7], dtype=torch.float64, requires_grad=True)
    return a, w, (WEIGHTS / 7 - 0.9).requires_grad_()


class Kind(NamedTuple):
    """How a program makes its tensors: plain ones, or masked ones with a mask."""

    mask: Tensor | None

    def owned(self, data: Tensor) -> Tensor:
        if self.mask is None:
            return data.clone()
        return mt.as_masked_tensor(data, self.mask) * 1 if data.requires_grad else mt.masked_tensor(data, self.mask)

    def wrapped(self, data: Tensor) -> Tensor:
        return data.view_as(data) if self.mask is None else mt.as_masked_tensor(data, self.mask)

    def partly(self, data: Tensor) -> Tensor:
        """A source with a masked entry."""
        return (
            data
            if self.mask is None
            else mt.as_masked_tensor(data, self.mask.flatten()[: data.numel()].view(data.shape))
        )


MAKES: dict[str, Callable[[Kind, Leaves], Tensor]] = {
    "owned": lambda k, x: k.owned(torch.zeros(3, 4, dtype=torch.float64)),
    "owned tracked": lambda k, x: k.owned(x[2] * 1),
    "wrapped": lambda k, x: k.wrapped(torch.zeros(3, 4, dtype=torch.float64)),
    "wrapped tracked": lambda k, x: k.wrapped(x[2] * 1),
}
VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda t: t,
    "rows": lambda t: t[1:],
    "a row": lambda t: t[1],
    "a view of a view": lambda t: t[1:].t()[1:],
    "flat": lambda t: t.view(-1)[2:9],
    "an entry": lambda t: t[1, 2],
}


def put(t: Tensor, key: Any, value: Any) -> None:
    t[key] = value


def fits(t: Tensor, value: Tensor) -> Tensor:
    """``value``, as long as the last dimension of ``t``."""
    return value[: t.shape[-1]] if t.dim() and t.shape[-1] <= 4 else value[1]


WRITES: dict[str, Callable[[Kind, Tensor, Leaves], Any]] = {
    "a number": lambda k, t, x: put(t, ..., 3.0),
    "a scalar at a place": lambda k, t, x: put(t, (0,) * t.dim(), x[0]),
    "a scalar": lambda k, t, x: put(t, slice(0, 1) if t.dim() else (), x[0] * x[0]),
    "a row": lambda k, t, x: put(t, 0 if t.dim() > 1 else ..., fits(t, x[1])),
    "a row with masked entries": lambda k, t, x: put(t, 0 if t.dim() > 1 else ..., k.partly(fits(t, x[1]).clone())),
    "None of it": lambda k, t, x: put(t, slice(0, 0) if t.dim() else (), x[0]),
    "mul_": lambda k, t, x: t.mul_(x[0]),
    "mul_ by a number": lambda k, t, x: t.mul_(3.0),
    "add_": lambda k, t, x: t.add_(fits(t, x[1]), alpha=2),
    "+=": lambda k, t, x: put(t, slice(0, 2) if t.dim() else (), t[:2] + x[0] if t.dim() else t + x[0]),
    "sin_": lambda k, t, x: t.sin_(),
    "zero_": lambda k, t, x: t.zero_(),
    "fill_": lambda k, t, x: t.fill_(x[0]),
    "fill_ by a number": lambda k, t, x: t.fill_(4.0),
    "copy_": lambda k, t, x: t.copy_(fits(t, x[1])),
    "masked_fill_": lambda k, t, x: t.masked_fill_(WHERE.flatten()[: t.shape.numel()].view(t.shape), x[0]),
    "index_put_": lambda k, t, x: t.index_put_((torch.tensor([0]),), x[0] * 3) if t.dim() else t.copy_(x[0]),
    "a condition": lambda k, t, x: put(t, WHERE.flatten()[: t.shape.numel()].view(t.shape), x[0]),
    "index_fill_": lambda k, t, x: t.index_fill_(0, torch.tensor([0]), x[0]),
    "addcmul_": lambda k, t, x: t.addcmul_(fits(t, x[1]), x[0]),
    "where they are small": lambda k, t, x: t.clamp_(min=0.25),
}


class Same(torch.autograd.Function):
    """Returns what it was given."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


class Untouched(torch.autograd.Function):
    """Never looks at what its gradient is for."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, other: Tensor) -> Tensor:
        return other * 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * 2, None


class Saving(torch.autograd.Function):
    """Reads and saves it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * grad * x


def gradients(result: Tensor, x: Leaves, g: Tensor) -> list[Any]:
    return list(torch.autograd.grad(result, x, g, allow_unused=True))


def backward(t: Tensor, x: Leaves, run: Callable[[], Any]) -> list[Any]:
    run()
    return [leaf.grad for leaf in x]


def met(t: Tensor) -> None:
    """Of a plain view whose base was written, torch itself takes the history only when it is read.

    Until then torch 2.13 takes it for a leaf that may not be written, retains nothing, and crashes when it is hooked.
    """
    if type(t) is Tensor:
        _ = t.grad_fn


def hooked(t: Tensor, x: Leaves, g: Tensor) -> list[Any]:
    seen: list[Any] = []
    met(t)
    t.register_hook(lambda grad: seen.append(grad * 1))
    return [*gradients(t * 3, x, g), *seen]


def retained(t: Tensor, x: Leaves, g: Tensor) -> list[Any]:
    met(t)
    t.retain_grad()
    (t * 3).backward(g)
    return [t.grad, *(leaf.grad for leaf in x)]


def hooked_together(t: Tensor, x: Leaves, g: Tensor) -> list[Any]:
    seen: list[Any] = []
    met(t)
    register_multi_grad_hook((t, x[0]), lambda grads: seen.extend(grads))
    (t * x[0]).backward(g)
    return [*(leaf.grad for leaf in x), *seen]


ASKS: dict[str, Callable[[Tensor, Leaves, Tensor], list[Any]]] = {
    "grad": gradients,
    "grad of two": lambda t, x, g: list(torch.autograd.grad([t, t], x, [g, g], allow_unused=True)),
    "backward": lambda t, x, g: backward(t, x, lambda: t.backward(g)),
    "autograd.backward": lambda t, x, g: backward(t, x, lambda: torch.autograd.backward([t], [g])),
    "backward of inputs": lambda t, x, g: backward(t, x, lambda: t.backward(g, inputs=[x[0]])),
    "edge": lambda t, x, g: list(torch.autograd.grad(get_gradient_edge(t), x, g, allow_unused=True)),
    "state": lambda t, x, g: [t.requires_grad, t.is_leaf, t.grad_fn is None],
    "state without gradients": lambda t, x, g: [*torch.no_grad()(lambda: (t.requires_grad, t.is_leaf))()],
    "without gradients": lambda t, x, g: torch.no_grad()(gradients)(t, x, g),
    "requires_grad_": lambda t, x, g: [t.requires_grad_() is t, t.is_leaf, *gradients(t, x, g)],
    "hook": hooked,
    "retain_grad": retained,
    "several hooks": hooked_together,
    "same": lambda t, x, g: gradients(Same.apply(t), x, g),
    "untouched": lambda t, x, g: gradients(Untouched.apply(t, t.detach()), x, g),
    "saving": lambda t, x, g: gradients(Saving.apply(t), x, g),
    "input": lambda t, x, g: list(torch.autograd.grad(t * 3, [t, x[0]], g, allow_unused=True)),
    "op": lambda t, x, g: gradients(t * 3, x, g),
}


class Program(NamedTuple):
    """Makes a tensor, takes the view that will be asked, writes through others, asks."""

    make: str
    asked: str
    writes: tuple[tuple[str, str], ...]  # through which view, what
    ask: str

    def written(self, kind: Kind, x: Leaves) -> Tensor:
        t = MAKES[self.make](kind, x)
        asked = VIEWS[self.asked](t)
        for view, write in self.writes:
            target = VIEWS[view](t)
            met(target)
            WRITES[write](kind, target, x)
        return asked

    def outcome(self, kind: Kind, how: Callable[..., Any] = lambda function, *x: function(*x)) -> Any:
        x = leaves()
        try:
            t = how(lambda *x: self.written(kind, x), *x)
            g = WEIGHTS.flatten()[: t.shape.numel()].view(t.shape).clone()
            valid = None if kind.mask is None else t.get_mask()  # type: ignore[attr-defined]
            return valid, ASKS[self.ask](t, x, g)
        except (RuntimeError, AssertionError) as error:
            return str(error)

    def expected(self, valid: Tensor | None) -> Any:
        """Of plain tensors: the gradient of what is valid in the end."""
        x = leaves()
        try:
            t = self.written(Kind(None), x)
            g = WEIGHTS.flatten()[: t.shape.numel()].view(t.shape)
            return ASKS[self.ask](t, x, g.clone() if valid is None else g * valid)
        except (RuntimeError, AssertionError) as error:
            return str(error)


def unlike(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, mt.MaskedTensor):
        ours = ours.filled(0)
    if not isinstance(ours, Tensor) or not isinstance(theirs, Tensor):
        nothing = [(isinstance(v, Tensor) and not v.any()) or v is None for v in (ours, theirs)]
        return not all(nothing) and ours is not theirs
    return ours.shape != theirs.shape or not torch.allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def wrong(program: Program, mask: Tensor, *how: Callable[..., Any]) -> str | None:
    """What is wrong with a program on masked tensors, if anything is."""
    found = program.outcome(Kind(mask), *how)
    valid = None if isinstance(found, str) else found[0]
    theirs = program.expected(valid)
    if isinstance(found, str) and how:  # torch compiles no write at a condition that is a number, for one
        theirs = program.outcome(Kind(None), *how)
    if isinstance(found, str) or isinstance(theirs, str):
        same = isinstance(found, str) and isinstance(theirs, str)
        return None if same else f"{program}: {found} / {theirs}"
    bad = len(found[1]) != len(theirs) or any(map(unlike, found[1], theirs))
    return f"{program}: {found[1]} / {theirs}" if bad else None


def single() -> list[Program]:
    cases = itertools.product(MAKES, VIEWS, VIEWS, WRITES, ASKS)
    return [Program(make, asked, ((view, write),), ask) for make, asked, view, write, ask in cases]


def random_program(rng: random.Random, asks: Any = tuple(ASKS)) -> Program:
    def one(of: Any) -> str:
        chosen: str = rng.choice(list(of))
        return chosen

    writes = tuple((one(VIEWS), one(WRITES)) for _ in range(rng.randint(1, 4)))
    return Program(one(MAKES), one(VIEWS), writes, one(asks))


def check(programs: list[Program], *how: Callable[..., Any]) -> None:
    found = [wrong(p, mask, *how) for p in programs for mask in (torch.ones_like(SCATTERED), SCATTERED)]
    bad = [line for line in found if line is not None]
    assert not bad, f"{len(bad)} of {len(found)} wrong:\n" + "\n".join(bad[:10])


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_one_write(ask: str) -> None:
    programs = [p for p in single() if p.ask == ask]
    check(programs if LARGE else random.Random(ask).sample(programs, 25))


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_several_writes() -> None:
    rng = random.Random(0)
    check([random_program(rng) for _ in range(20000 if LARGE else 150)])


STORED = Same.apply  # before the first view of a masked tensor, as libraries do


def test_an_apply_that_was_stored_is_right_or_says_so() -> None:
    row = torch.tensor([0.5, -1.5], dtype=torch.float64, requires_grad=True)
    for stored in (True, False):
        x = mt.as_masked_tensor(torch.zeros(2, 2, dtype=torch.float64), torch.tensor([[True, False], [True, True]]))
        x[1][...] = row
        row.grad = None
        try:
            (STORED if stored else Same.apply)(x).sum().backward()
        except RuntimeError as error:  # unless the module of another test has made a view before
            if not stored or torch.__version__ < "2.14" or "view whose base was written since" not in str(error):
                raise
        else:
            assert row.grad is not None
            assert row.grad.tolist() == [2.0, 2.0]


def compiled(function: Callable[..., Any], *x: Tensor) -> Any:
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True)(*x)


def reentrant(function: Callable[..., Any], *x: Tensor) -> Any:
    return checkpoint(function, *x, use_reentrant=True)


def recomputed(function: Callable[..., Any], *x: Tensor) -> Any:
    return checkpoint(function, *x, use_reentrant=False)


RETURNED = {"backward", "autograd.backward", "retain_grad"}  # a checkpoint that reenters allows no others


@pytest.mark.parametrize(
    ("how", "count"), [(compiled, 2), (reentrant, 25), (recomputed, 25)], ids=["compiled", "reentrant", "recomputed"]
)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_written_tensor_is_returned(how: Callable[..., Any], count: int) -> None:
    rng = random.Random(0)
    check([random_program(rng, sorted(RETURNED)) for _ in range(count * (20 if LARGE else 1))], how)
