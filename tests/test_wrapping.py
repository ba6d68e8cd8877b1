"""A plain tensor and what was wrapped around it are one to autograd, as a tensor and its view are.

Every program of the law runs twice: once with the plain tensor wrapped, once with a view of it in the wrapper's place
and the mask applied by hand.  Where torch raises we raise; else the gradients are the same.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt

MASK = torch.tensor([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]], dtype=torch.bool)
COEFFICIENTS = torch.arange(1.0, 13.0, dtype=torch.float64).view(3, 4)

MAKES: dict[str, Callable[[Tensor], Tensor]] = {
    "a leaf": lambda h: h,
    "a result": lambda h: h * 1,
    "a view": lambda h: (h * 1).view(3, 4),
    "a part": lambda h: torch.cat([h, h])[2:5],
    "turned": lambda h: (h.t() * 1).t(),
    "untracked": lambda h: h.detach().clone(),
}


@dataclass(frozen=True)
class Viewed:
    """The oracle of a wrapper: a view, with its mask."""

    data: Tensor
    mask: Tensor

    def __getitem__(self, key: Any) -> "Viewed":
        return type(self)(self.data[key], self.mask[key])

    def t(self) -> "Viewed":
        return type(self)(self.data.t(), self.mask.t())

    def write(self, change: Callable[[Tensor], Any]) -> None:
        new = self.data.clone() if torch.is_grad_enabled() else self.data.detach().clone()
        change(new)
        self.data.copy_(torch.where(self.mask.clone(), new, self.data))

    def put(self, value: Tensor) -> None:
        self.data[0] = value
        self.mask[0] = True


class Copied(Viewed):
    """The same where what is read is copied first: right, too, where an op of ours saves a copy and torch's raises."""


VALID = ("a row",)  # this makes valid what it writes; of the others masked entries stay masked
CHANGES: dict[str, Callable[[Any, Tensor], Any]] = {
    "a number": lambda x, w: x.mul_(2),
    "a weight": lambda x, w: x.mul_(w.sum()),
    "added": lambda x, w: x.add_(w.mean(), alpha=3),
    "by value": lambda x, w: x.sin_(),
    "cleared": lambda x, w: x.zero_(),
    "a row": lambda x, w: x.put(w[: x.data.shape[-1]]) if isinstance(x, Viewed) else put(x, w),
}


def put(x: Tensor, w: Tensor) -> None:
    x[0] = w[: x.shape[-1]]


def apply(change: str, x: Any, w: Tensor) -> None:
    if isinstance(x, Viewed) and change not in VALID:
        x.write(lambda new: CHANGES[change](new, w))
    else:
        CHANGES[change](x, w)


SIDES: dict[str, Callable[[Tensor, Any], Any]] = {
    "plain": lambda z, x: z,
    "plain view": lambda z, x: z[1:],
    "masked": lambda z, x: x,
    "masked view": lambda z, x: x[1:],
    "masked turned": lambda z, x: x.t(),
}


def total(read: Any) -> Tensor:
    """A weighted sum of squares of the valid entries; what it saves for backward is what it reads."""
    data = read.data if isinstance(read, Viewed) else read
    data = data.clone() if type(read) is Copied else data
    size = read.shape.numel() if type(read) is mt.MaskedTensor else data.numel()
    product = data * data * COEFFICIENTS.flatten()[:size].view(data.shape)
    if isinstance(read, Viewed):
        product = torch.where(read.mask.clone(), product, 0)
    result = product.sum()
    return result.filled(0.0) if isinstance(result, mt.MaskedTensor) else result


Program = tuple[str, tuple[tuple[str, str, bool], ...], str, bool]


def outcome(program: Program, wrap: Callable[[Tensor, Tensor], Any]) -> list[Tensor] | str:
    make, writes, read, early = program
    h = (COEFFICIENTS / 7 - 0.9).requires_grad_()
    w = torch.tensor([0.5, -1.5, 2.0, 0.7], dtype=torch.float64, requires_grad=True)
    z = MAKES[make](h)
    x = wrap(z, MASK.clone())
    late = SIDES[read](z, x)  # taken before the writes
    try:
        before = total(SIDES["masked" if early else "plain"](z, x)) if early else None
        for side, change, tracked in writes:
            with torch.set_grad_enabled(tracked):
                apply(change, SIDES[side](z, x), w)
        loss = total(late) + total(SIDES[read](z, x))
        loss = loss if before is None else loss + before
        if not loss.requires_grad:
            return "nothing tracked"
        grads = torch.autograd.grad(loss, [h, w], allow_unused=True)
    except RuntimeError as error:
        return f"raises {error}"
    return [torch.zeros_like(v) if g is None else g for g, v in zip(grads, (h, w), strict=True)]


def programs(make: str) -> list[Program]:
    single = [((side, change, tracked),) for side in SIDES for change in CHANGES for tracked in (True, False)]
    # An entry that an untracked write made valid was masked in all that autograd recorded: its gradient is 0.
    single = [w for w in single if not (w[0][0].startswith("masked") and w[0][1] in VALID and not w[0][2])]
    twice = [
        ((a, "by value", True), (b, change, True))
        for a, b in itertools.product(SIDES, SIDES)
        for change in ("a weight", "a row")
    ]
    found: list[Program] = [(make, writes, read, False) for writes in single + twice for read in SIDES]
    return found + [(make, writes, "masked", True) for writes in single]


@pytest.mark.parametrize("make", MAKES)
def test_a_wrapped_tensor_and_its_wrapper_are_one_to_autograd(make: str) -> None:
    wrong, refused = [], 0
    for program in programs(make):
        ours, expected = outcome(program, mt.as_masked_tensor), outcome(program, Viewed)
        if isinstance(ours, list) and isinstance(expected, str) and "modified by an inplace" in expected:
            expected = outcome(program, Copied)
        if isinstance(expected, str) or isinstance(ours, str):
            refused += 1
            if not (isinstance(ours, str) and isinstance(expected, str) and ours[:6] == expected[:6]):
                wrong.append(f"{program}: {ours} / {expected}")
        elif not all(torch.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(ours, expected, strict=True)):
            wrong.append(f"{program}: {ours} / {expected}")
    assert not wrong, f"{len(wrong)} wrong: " + "\n".join(wrong[:8])


class Doubled(torch.autograd.Function):
    """Doubles in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 2


class Row(torch.autograd.Function):
    """Doubles a row in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        x[0] = x[0] * 2
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        grad = grad.clone()
        grad[0] = grad[0] * 2
        return grad


class Tripled(torch.autograd.Function):
    """Reads its argument."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 3


def masked(h: Tensor) -> Tensor:
    return mt.as_masked_tensor(h, MASK)


# (what is written or read by a user's Function, what the loss is of): right where the base is given, else an error.
BY_FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "written view": lambda h: (y := masked(h) * 1, Doubled.apply(y[:1]), y),
    "written row of a view": lambda h: (y := masked(h) * 1, Row.apply(y[:2]), y),
    "written wrapper": lambda h: (z := h * 1, Doubled.apply(masked(z)), z),
    "stale view": lambda h: (y := masked(h) * 1, v := y[:1], y.mul_(2), Tripled.apply(v)),
    "stale wrapper": lambda h: (z := h * 1, x := masked(z), z.mul_(2), Tripled.apply(x)),
    "stale wrapper seen": lambda h: (z := h * 1, x := masked(z), z.mul_(2), Tripled.apply(x[:1])),
    "written base": lambda h: (y := masked(h) * 1, v := y[:1], Doubled.apply(y), v),
    "written row of a base": lambda h: (y := masked(h) * 1, v := y[:1], Row.apply(y), v),
    "written plain": lambda h: (z := h * 1, x := masked(z), Doubled.apply(z), x),
}
RIGHT = set(BY_FUNCTIONS) - {"written view", "written row of a view", "written wrapper"}


@pytest.mark.parametrize("how", BY_FUNCTIONS)
def test_written_functions_keep_base_and_view_connected(how: str) -> None:
    h = (COEFFICIENTS / 7 - 0.9).requires_grad_()
    if how not in RIGHT:
        with pytest.raises(RuntimeError, match="Pass it the base, take the view again, or work on a clone"):
            BY_FUNCTIONS[how](h)
        return
    *_, result = kept = BY_FUNCTIONS[how](h)
    (mt.filled(result, 0.0) if type(result) is mt.MaskedTensor else result).sum().backward()
    assert kept[0] is not result, "its base lives"
    factor = 6.0 if how.startswith("stale") else 2.0
    expected = torch.zeros(3, 4, dtype=torch.float64)
    rows = slice(None) if how in ("written plain", "stale wrapper") else slice(0, 1)
    expected[rows] = MASK[rows] * factor
    assert torch.equal(h.grad, expected)  # type: ignore[arg-type]


class Wrapped(torch.autograd.Function):
    """Returns a wrapper of a plain tensor that it has made."""

    @staticmethod
    def forward(ctx: Any, h: Tensor) -> Tensor:
        return masked(h * 2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return (mt.filled(grad, 0.0) if type(grad) is mt.MaskedTensor else grad) * 2


WRAPPED: dict[str, Callable[[Tensor], Any]] = {
    "function": Wrapped.apply,
    "reentrant": lambda h: checkpoint(lambda h: masked(h * 2), h, use_reentrant=True),
    "recomputed": lambda h: checkpoint(lambda h: masked(h * 2), h, use_reentrant=False),
}
WRITTEN: dict[str, Callable[[Any, Tensor], Any]] = {
    "row number": lambda x, u: x.__setitem__(0, 5.0),
    "row tensor": lambda x, u: x.__setitem__(0, u),
    "view": lambda x, u: x[:2].mul_(3),
    "whole": lambda x, u: x.mul_(3),
    "whole tensor": lambda x, u: x.copy_(u.expand(3, 4)),
    "none": lambda x, u: None,
}


@pytest.mark.parametrize("write", WRITTEN)
@pytest.mark.parametrize("how", WRAPPED)
def test_what_a_function_wrapped_loses_no_gradient(how: str, write: str) -> None:
    """The plain tensor that it wrapped is outside of the graph: a write into a part raises, as torch does for views."""

    def gradients(make: Callable[[Tensor], Any]) -> list[Tensor | None]:
        h, u = (COEFFICIENTS / 7 - 0.9).requires_grad_(), (COEFFICIENTS[0] + 0.5).requires_grad_()
        x = make(h * 1)
        WRITTEN[write](x, u)
        mt.filled(x, 0.0).pow(3).sum().backward()
        return [h.grad, u.grad]

    expected = gradients(lambda h: masked(h) * 2)
    if how != "recomputed" and write in ("row number", "row tensor", "view"):
        with pytest.raises(RuntimeError, match=r"wrapped inside a torch\.autograd\.Function"):
            gradients(WRAPPED[how])
        return
    for a, e in zip(gradients(WRAPPED[how]), expected, strict=True):
        assert (a is None) == (e is None)
        assert a is None or e is None or torch.equal(mt.filled(a, 0.0) if type(a) is mt.MaskedTensor else a, e)


def doubled(*tensors: Tensor) -> Tensor:
    for x in tensors:
        x.mul_(2)
    return tensors[0]


class Unnamed(Doubled):
    """Its forward names none of its arguments, and has others write."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        ctx.mark_dirty(*tensors)
        return doubled(*tensors)


class Apart(Doubled):
    """Its forward is given no context."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:  # type: ignore[override]  # the other way to write one
        return doubled(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.mark_dirty(*inputs)


class Decorated(Doubled):
    """Its forward is wrapped by torch's own decorator."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return doubled(x)


class Renamed(Doubled):
    """Its forward forgets the tensor that it was given for a part of it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        whole, x = x, x[:1]
        return (doubled(x), whole)[1]


@pytest.mark.parametrize("function", [Doubled, Unnamed, Apart, Decorated, Renamed], ids=lambda f: f.__name__)
def test_however_a_function_is_written_it_is_met(function: type[torch.autograd.Function]) -> None:
    y = masked((COEFFICIENTS / 7 - 0.9).requires_grad_()) * 1
    with pytest.raises(RuntimeError, match=f"gradient of {function.__name__}, .* Pass it the base"):
        function.apply(y[:2])


def test_a_forward_that_is_called_by_hand_is_a_function_like_others() -> None:
    y = masked((COEFFICIENTS / 7 - 0.9).requires_grad_()) * 1
    with torch.no_grad():
        Apart.forward(y[:1])
    assert torch.equal(mt.filled(y.detach(), 0.0)[0], ((COEFFICIENTS / 7 - 0.9) * MASK)[0] * 2)


def test_without_gradients_a_function_may_write_what_it_likes() -> None:
    y = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
    Doubled.apply(y[0])
    with torch.no_grad():
        stale = (z := torch.ones(2, requires_grad=True) * 1, mt.as_masked_tensor(z, [True, False]))[1]
        z.mul_(2)
        assert (stale * 2).tolist() == [4.0, None]
    assert y.tolist() == [[2.0, None], [3.0, 4.0]]


def test_a_leaf_that_is_wrapped_is_not_written() -> None:
    leaf = torch.ones(3, requires_grad=True)
    x = mt.as_masked_tensor(leaf, [True, False, True])
    for write in (lambda: x.mul_(2), lambda: x[:2].zero_(), lambda: x.__setitem__(0, 5.0)):
        with pytest.raises(RuntimeError, match=r"a (view of a )?leaf Variable that requires grad"):
            write()
    with torch.no_grad():
        unrecorded = mt.as_masked_tensor(leaf, [True, False, True])
    with pytest.raises(RuntimeError, match=r"a (view of a )?leaf Variable that requires grad"):
        unrecorded[0] = 5.0
    assert leaf.tolist() == [1.0, 1.0, 1.0]
    with torch.no_grad():
        x.mul_(2)
    assert leaf.tolist() == [2.0, 1.0, 2.0], "what lies under the mask stays"
    with pytest.raises(RuntimeError, match="cannot be detached in place"):
        x.detach_()
    assert not mt.as_masked_tensor(torch.ones(2), [True, False]).detach_().requires_grad


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # Dynamo looks at it
@pytest.mark.parametrize("inside", [True, False])
def test_compiled_code_sees_what_was_written_on_the_other_side(inside: bool) -> None:
    torch._dynamo.reset()

    def written(h: Tensor) -> Any:
        z = h * 1
        x = masked(z)
        z.mul_(3)
        return x if not inside else (x * x).sum() + z.sum()

    square = torch.compile(written if inside else lambda x: (x * x).sum(), backend="aot_eager", fullgraph=True)
    h = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    (square(h) if inside else square(written(h))).backward()
    assert torch.equal(h.grad, MASK * 18.0 + 3.0 * inside)  # type: ignore[arg-type]
