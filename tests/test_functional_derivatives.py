"""Second derivatives and forward mode of every functional form: finite, right, and blind to what masks hide."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import masked_tensor.functional as masked

from .matrix import ROWS, Positions

CASES = 3  # calls of each form, evenly spread over its masks, dims and keywords
SIDES = {"mask": 0, "input_mask": 0, "target_mask": -1, "other_mask": 1}  # which argument a mask belongs to
NOT_DIFFERENTIABLE = ("masked_", "unique", "any", "all", "count_nonzero", "arg", "norm 0")  # or it writes
FORMS = [
    name
    for name, row in ROWS.items()
    if not isinstance(row, Positions) and not name.startswith(NOT_DIFFERENTIABLE) and "indices" not in name
]
FIXED_TARGET = ("soft_margin_loss", "hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss")


def generic(shape: tuple[int, ...] = (4, 6)) -> Tensor:
    """No ties, no zeros: every form is differentiable there, twice."""
    generator = torch.Generator().manual_seed(2)
    order = torch.randperm(torch.Size(shape).numel(), generator=generator).double().reshape(shape)
    return (order + torch.rand(shape, generator=generator).double() / 2 + 1) / 7 - 1.6


def calls(name: str) -> list[Any]:
    """The form with its arguments: a few of the matrix's own, and logaddexp masked on both sides."""
    found: list[Any] = [c.call for c in ROWS[name](generic())]
    found = [c for c in found if type(c) is partial and c.args and isinstance(c.args[0], Tensor)]
    found = [c for c in found if c.keywords.get("keepdim") is not True and list(hidden(c))]
    return found[:: max(1, len(found) // CASES)][:CASES]


def hidden(call: Any) -> Iterator[tuple[int, Tensor]]:
    """Which argument has a mask, and what it hides."""
    given = [(call.keywords.get(word), side % len(call.args)) for word, side in SIDES.items()]
    if len(call.args) > 1 and isinstance(call.args[1], Tensor) and call.args[1].dtype is torch.bool:
        given.append((call.args[1], 0))
    for mask, place in given:
        data = call.args[place]
        if not isinstance(mask, Tensor) or not isinstance(data, Tensor) or not data.is_floating_point():
            continue
        if mask.layout is torch.strided:  # torch.func does not read compressed masks
            yield place, ~mask.expand(data.shape)


def function(call: Any, name: str) -> tuple[Callable[..., Any], list[Tensor]]:
    """The call as a function of its floating tensors, NaN of nothing made 0."""
    places = [i for i, a in enumerate(call.args) if isinstance(a, Tensor) and a.is_floating_point()]
    if name in FIXED_TARGET:
        places.pop()

    def run(*tensors: Tensor) -> Tensor:
        args = list(call.args)
        for place, tensor in zip(places, tensors, strict=True):
            args[place] = tensor
        out = call.func(*args, **call.keywords)
        return torch.where(out.detach().isfinite(), out, 0)

    return run, [call.args[i].detach().clone() for i in places]


def poisoned(call: Any, value: float) -> Any:
    args = list(call.args)
    for place, places in hidden(call):
        args[place] = args[place].masked_fill(places, value)
    return partial(call.func, *args, **call.keywords)


def derivatives(call: Any, name: str) -> tuple[Tensor, ...]:
    """A tangent, gradients, and gradients of the gradients, in fixed directions."""
    run, tensors = function(call, name)
    generator = torch.Generator().manual_seed(4)
    directions = tuple(torch.rand(t.shape, generator=generator, dtype=t.dtype) for t in tensors)
    out, tangent = torch.func.jvp(run, tuple(tensors), directions)
    leaves = [t.requires_grad_() for t in tensors]
    seed = torch.rand(out.shape, generator=generator, dtype=out.dtype)
    first = torch.autograd.grad(run(*leaves), leaves, seed, create_graph=True, allow_unused=True)
    known = [(g, d) for g, d in zip(first, directions, strict=True) if g is not None]
    product = sum(((g * d).sum() for g, d in known), torch.zeros((), dtype=out.dtype))
    second: Any = [None for _ in leaves]
    if isinstance(product, Tensor) and product.requires_grad:
        second = torch.autograd.grad(product, leaves, allow_unused=True)
    # Forward against reverse mode: <seed, J d> = <J' seed, d>.
    torch.testing.assert_close((seed * tangent).sum(), torch.as_tensor(product).detach())
    zeros = [torch.zeros_like(t) for t in leaves]
    filled = [z if g is None else g.detach() for z, g in zip((*zeros, *zeros), (*first, *second), strict=True)]
    return (tangent, *filled)


@pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC|BSR|BSC) tensor support is in beta")
@pytest.mark.parametrize("name", FORMS)
def test_second_derivatives_and_tangents(name: str, record_property: Any) -> None:
    found = calls(name)
    for call in found:
        run, tensors = function(call, name)
        leaves = [t.requires_grad_() for t in tensors]
        assert gradcheck(run, leaves, fast_mode=True, check_forward_ad=True, check_batched_grad=False)
        assert gradgradcheck(run, leaves, fast_mode=True)
        clean = derivatives(call, name)
        for value in (float("nan"), float("inf")):
            for a, b in zip(derivatives(poisoned(call, value), name), clean, strict=True):
                torch.testing.assert_close(a, b, msg=lambda m, c=call, v=value: f"{c.keywords} with {v} under it: {m}")
    record_property("law", ("derivatives", name, len(found)))
    assert found


@pytest.mark.parametrize("sides", range(5))
def test_logaddexp_masked_on_one_side_or_both(sides: int) -> None:
    mask = torch.rand((4, 6), generator=torch.Generator().manual_seed(3)) < 0.6
    first, second = [(mask, None), (None, mask), (mask, mask), (mask, ~mask), (~mask, mask)][sides]
    x, y = generic(), generic().flip(0) / 2
    call = partial(masked.logaddexp, x, y, input_mask=first, other_mask=second)
    run, tensors = function(call, "logaddexp")
    leaves = [t.requires_grad_() for t in tensors]
    assert gradcheck(run, leaves, check_forward_ad=True, check_batched_grad=False)
    assert gradgradcheck(run, leaves)
    dirty = [t if m is None else t.masked_fill(~m, float("nan")) for t, m in ((x, first), (y, second))]
    again = partial(masked.logaddexp, *dirty, input_mask=first, other_mask=second)
    for a, b in zip(derivatives(again, "logaddexp"), derivatives(call, "logaddexp"), strict=True):
        torch.testing.assert_close(a, b)
