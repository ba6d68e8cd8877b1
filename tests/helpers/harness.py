"""From a plain sample to masked cases, and the laws every case must keep.

A *case* is a sample whose tensor arguments were replaced by ``Masked`` records (data + mask).  ``build`` makes the
MaskedTensors from them with any payload, so that the same case can be run with NaN, inf or 1e30 under the mask.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of
from masked_tensor.pair import Payload

from .backward import differentiate
from .database import Sample
from .trees import tree_leaves, tree_map

PAYLOADS = (float("nan"), float("inf"), 1e30, -7.0)


@dataclass(frozen=True)
class Masked:
    """A masked value as the oracles see it: plain data, plain mask."""

    data: Tensor
    mask: Tensor


Oracle = Callable[..., Any]  # (op, *args, **kwargs) with Masked arguments -> Masked (or plain) results, same structure


def random_mask(shape: Any, pattern: str, generator: torch.Generator) -> Tensor:
    """``random``: 65 % valid; ``rows``: constant along the last dim (stride 0); ``none``; ``full``."""
    shape = tuple(shape)
    if pattern == "full":
        return torch.ones(shape, dtype=torch.bool)
    if pattern == "none":
        return torch.zeros((), dtype=torch.bool).expand(shape)
    if pattern == "rows" and len(shape) > 1:
        return (torch.rand((*shape[:-1], 1), generator=generator) < 0.65).expand(shape)
    return torch.rand(shape, generator=generator) < 0.65


def masked_case(sample: Sample, pattern: str, which: str = "all", seed: int = 0) -> Sample:
    """The sample with its first tensor (``which="first"``) or all tensors masked by a random mask."""
    generator = torch.Generator().manual_seed(seed)
    state = {"left": 1 if which == "first" else 10**6}

    def mask(value: Any) -> Any:
        if not isinstance(value, Tensor) or state["left"] == 0 or value.layout != torch.strided:
            return value
        state["left"] -= 1
        return Masked(value.detach(), random_mask(value.shape, pattern, generator))

    args, kwargs = tree_map(mask, (sample.args, sample.kwargs))
    return Sample(sample.op, args, kwargs)


def poisoned(data: Tensor, mask: Tensor, payload: float) -> Tensor:
    """``data`` with ``payload`` (as far as the dtype can hold it) under the mask."""
    if data.dtype is torch.bool:
        return torch.where(mask, data, ~data)
    if not (data.is_floating_point() or data.is_complex()):
        info = torch.iinfo(data.dtype)
        value = {1e30: info.max, -7.0: max(-7, info.min)}.get(payload, min(10**9, info.max))
        return torch.where(mask, data, torch.tensor(value, dtype=data.dtype))
    if data.dtype.itemsize == 1:
        return data
    return torch.where(mask, data, torch.tensor(payload, dtype=data.dtype))


def build(tree: Any, payload: float | None = None, requires_grad: bool = False) -> Any:
    """MaskedTensors for every ``Masked`` in ``tree``; with a payload, the data is wrapped as it is (Payload.ANY)."""

    def make(value: Any) -> Any:
        if isinstance(value, Masked):
            data = value.data.clone()
            x = (
                mt.masked_tensor(data, value.mask)
                if payload is None
                else mt.as_masked_tensor(poisoned(data, value.mask, payload), value.mask)
            )
            return x.requires_grad_() if requires_grad and differentiable(data) else x
        if isinstance(value, Tensor):
            value = value.detach().clone()
            return value.requires_grad_() if requires_grad and differentiable(value) else value
        return value

    return tree_map(make, tree, is_leaf=is_record)


def differentiable(x: Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def run(case: Sample, payload: float | None = None, requires_grad: bool = False) -> tuple[list[Any], list[Any]]:
    """Runs the op; returns the output leaves and the built tensor inputs (to read their gradients)."""
    args, kwargs = build((case.args, case.kwargs), payload, requires_grad)
    torch.manual_seed(1)
    out = tree_leaves(case.op(*args, **kwargs))
    inputs = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
    for x in (*out, *inputs):
        assert_keeps_promise(x)
    return out, inputs


def seen(x: Any) -> Any:
    """A result as a Masked record (plain tensors: valid everywhere; others as they are)."""
    if type(x) is MaskedTensor:
        pair = pair_of(x)
        return Masked(pair.data.detach(), pair.mask)
    if isinstance(x, Tensor):
        return Masked(x.detach(), torch.ones(x.shape, dtype=torch.bool))
    return x


def assert_same(actual: Any, expected: Any, what: str, exact: bool = False) -> None:
    """Same masks and same values where valid; NaN equals NaN."""
    actual, expected = seen(actual), seen(expected)
    if not isinstance(expected, Masked):
        assert actual == expected, what
        return
    assert isinstance(actual, Masked), f"{what}: no tensor came out"
    assert actual.data.shape == expected.data.shape, f"{what}: shape {actual.data.shape}, not {expected.data.shape}"
    same = torch.equal(actual.mask, expected.mask.expand(actual.mask.shape))
    assert same, f"{what}: mask {actual.mask} expected {expected.mask}"
    assert actual.data.dtype == expected.data.dtype, f"{what}: {actual.data.dtype}, not {expected.data.dtype}"
    tolerance = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(
        actual.data[actual.mask], expected.data[actual.mask], equal_nan=True, msg=lambda m: f"{what}: {m}", **tolerance
    )


def masked_leaves(tree: Any) -> Iterator[Masked]:
    yield from (v for v in tree_leaves(tree, is_leaf=is_record) if isinstance(v, Masked))


# ------------------------------------------------------------------------------------------------------------- laws


def check_value(case: Sample, oracle: Oracle) -> None:
    """L3, L5: the result equals the oracle's, value and mask."""
    outputs, _ = run(case)
    expected = tree_leaves(oracle(case.op, *case.args, **case.kwargs), is_leaf=is_record)
    assert len(outputs) == len(expected), f"{len(outputs)} outputs, expected {len(expected)}"
    for index, (a, e) in enumerate(zip(outputs, expected, strict=True)):
        assert_same(a, e, f"output {index}")


def check_garbage(case: Sample, payloads: Iterable[float] = PAYLOADS) -> None:
    """L1: no output, mask, exception or gradient depends on the payload."""
    backward = plain_has_gradient(case)
    clean, inputs = run(case, requires_grad=backward)
    gradients = _gradients(clean, inputs)
    for payload in payloads:
        dirty, inputs = run(case, payload, requires_grad=backward)
        for index, (a, e) in enumerate(zip(dirty, clean, strict=True)):
            assert_same(a, e, f"output {index} with payload {payload}")
        for index, (a, e) in enumerate(zip(_gradients(dirty, inputs), gradients, strict=True)):
            if e is not None or a is not None:
                assert_same(a, e, f"gradient {index} with payload {payload}")
    for a, e in zip(run(case, 1e30)[0], clean, strict=True):  # where nothing is differentiated less is zeroed
        assert_same(a, e, "output with nothing tracked")


def assert_keeps_promise(x: Any) -> None:
    """What a result promises of its payload is true: sums and products rely on it."""
    if type(x) is MaskedTensor and x.layout is torch.strided and pair_of(x).payload is Payload.ZERO:
        pair = pair_of(x)
        assert not (pair.data[~pair.mask] != 0).any(), "a payload that was promised to be 0 is not"


def plain_has_gradient(case: Sample) -> bool:
    """Whether torch itself can differentiate this call (floor_divide, igamma and refills in place, it cannot)."""
    unmasked = tree_map(lambda v: v.data if isinstance(v, Masked) else v, (case.args, case.kwargs), is_leaf=is_record)
    args, kwargs = build(unmasked, requires_grad=True)
    try:
        with warnings.catch_warnings():  # such as: degrees of freedom is <= 0
            warnings.simplefilter("ignore")
            result = case.op(*args, **kwargs)
        out = [o for o in tree_leaves(result) if isinstance(o, Tensor) and o.requires_grad]
        wanted = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor) and v.requires_grad]
        if out and wanted:
            differentiate(out, wanted, [torch.ones_like(o) for o in out], allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def is_record(value: Any) -> bool:
    return isinstance(value, Masked)


def _gradients(outputs: list[Any], inputs: list[Tensor]) -> list[Tensor | None]:
    """Gradients of the summed squares of all outputs; L2 is checked: zero where it is masked, plain for plain."""
    # An output that is the input itself (contiguous, atleast_1d) would have the seed as its gradient.
    tracked = [o for o in outputs if isinstance(o, Tensor) and o.requires_grad and not any(o is x for x in inputs)]
    wanted = [x for x in inputs if x.requires_grad]
    if not tracked or not wanted:
        return []
    generator = torch.Generator().manual_seed(3)
    seeds = [torch.rand(o.shape, generator=generator, dtype=torch.float64).to(o.dtype) for o in tracked]
    grads = differentiate(tracked, wanted, seeds, allow_unused=True)
    for x, grad in zip(wanted, grads, strict=True):
        if grad is None:
            continue
        assert type(grad) is type(x), f"the gradient of a {type(x).__name__} is a {type(grad).__name__}"
        if type(grad) is MaskedTensor:
            pair = pair_of(grad)
            assert torch.equal(pair.mask, pair_of(x).mask), "the gradient's mask is not the tensor's own"
            assert not (pair.data[~pair.mask] != 0).any(), "the gradient at a masked-out position is not 0"
    return list(grads)


def check_gradient(case: Sample) -> None:
    """L2: gradcheck in float64 with respect to every floating input, payload included (its derivative must be 0)."""
    leaves = tree_leaves((case.args, case.kwargs), is_leaf=is_record)
    datas = [
        (v.data if isinstance(v, Masked) else v).detach().clone().requires_grad_()
        for v in leaves
        if (isinstance(v, Masked) and differentiable(v.data)) or (isinstance(v, Tensor) and differentiable(v))
    ]

    def function(*tensors: Tensor) -> Any:
        rest = iter(tensors)

        def make(value: Any) -> Any:
            if isinstance(value, Masked):
                data = next(rest) if differentiable(value.data) else value.data
                return mt.as_masked_tensor(data, value.mask)
            return next(rest) if isinstance(value, Tensor) and differentiable(value) else value

        args, kwargs = tree_map(make, (case.args, case.kwargs), is_leaf=is_record)
        torch.manual_seed(1)
        out = tree_leaves(case.op(*args, **kwargs))
        tensors_out = [o.filled(0) if type(o) is MaskedTensor else o for o in out if isinstance(o, Tensor)]
        found = [o for o in tensors_out if differentiable(o) and o.requires_grad]
        return tuple(o.where(o.isfinite(), 0) for o in found)  # an infinite loss has no finite differences

    if not any(x.numel() for x in datas):  # of no entry there is no derivative, which gradcheck cannot say
        return
    if not plain_has_gradient(case) or not function(*datas):
        return
    if sum(x.numel() for x in datas) > LARGE and not any(x.is_complex() for x in datas):
        check_along_a_direction(function, datas)
    else:
        assert torch.autograd.gradcheck(function, datas, fast_mode=True, check_batched_grad=False, atol=1e-4)


LARGE = 4000  # entries; where gradcheck fails it differentiates by each of them for its message, which takes minutes


def check_along_a_direction(function: Callable[..., Any], datas: list[Tensor]) -> None:
    """What gradcheck's fast mode compares: the derivative of one sum of the outputs along one direction."""
    generator = torch.Generator().manual_seed(5)
    direction = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in datas]
    outputs = function(*datas)
    weights = [torch.randn(o.shape, generator=generator, dtype=o.dtype) for o in outputs]
    grads = differentiate(outputs, datas, weights, allow_unused=True)
    found = sum((g * d).sum() for g, d in zip(grads, direction, strict=True) if g is not None)
    step = 1e-6
    ahead, behind = (function(*(x + s * d for x, d in zip(datas, direction, strict=True))) for s in (step, -step))
    moved = sum((w * (a - b).detach()).sum() for w, a, b in zip(weights, ahead, behind, strict=True))
    torch.testing.assert_close(torch.as_tensor(found), torch.as_tensor(moved) / (2 * step), rtol=1e-3, atol=1e-4)


def ignores(sample: Sample) -> bool:
    """Whether a loss has only ignored targets: they are masked ones, so that it is masked, not 0 or NaN."""
    ignored = sample.kwargs.get("ignore_index")
    which = torch.any if sample.kwargs.get("reduction") == "none" else torch.all
    targets = [a for a in sample.args if isinstance(a, Tensor) and a.dtype is torch.int64]
    return ignored is not None and any(bool(which(target == ignored)) for target in targets)


def check_identity(sample: Sample) -> None:
    """L6: with an all-True mask the plain op's result."""
    outputs, _ = run(masked_case(sample, "full"))
    torch.manual_seed(1)
    args, kwargs = build((sample.args, sample.kwargs))
    torch.manual_seed(1)
    for index, (a, e) in enumerate(zip(outputs, tree_leaves(sample.op(*args, **kwargs)), strict=True)):
        assert_same(a, e, f"output {index}")


def check_inplace(case: Sample, inplace: Callable[..., Any]) -> None:
    """The in-place twin does what the op does, to the tensor itself, and a view of it sees the result."""
    expected, _ = run(case)
    for payload in (None, 1e30):  # zeros under the mask, and anything
        args, kwargs = build((case.args, case.kwargs), payload)
        target = args[0]
        if not isinstance(expected[0], Tensor) or expected[0].shape != target.shape or type(target) is not MaskedTensor:
            return
        if not torch.can_cast(expected[0].dtype, target.dtype):
            return
        view = target.view_as(target)
        torch.manual_seed(1)
        result = inplace(*args, **kwargs)
        assert result is target
        reference = Masked(seen(expected[0]).data.to(target.dtype), seen(expected[0]).mask)
        assert_same(target, reference, "in place")
        if target.stride() == view.stride():  # transpose_ and its like change the target's geometry, not its memory
            assert_same(view, reference, "a view of the target")
        assert_keeps_promise(target)
        assert_keeps_promise(view)


def check_inplace_of_views(case: Sample, inplace: Callable[..., Any]) -> None:
    """In place on a part of a view of a temporary: the view has the result, and the gradients of the op and the rest.

    Strided and packed.  Nobody holds the base; what its views know of it is all that there is.
    """
    target = case.args[0] if case.args else None
    if not isinstance(target, Masked) or not differentiable(target.data) or not plain_has_gradient(case):
        return
    expected, inputs = run(case, requires_grad=True)
    out = expected[0]
    if type(out) is not MaskedTensor or out.shape != target.data.shape or out.dtype != target.data.dtype:
        return
    if torch._C._is_alias_of(pair_of(out).data, pair_of(inputs[0]).data):
        return  # a change of shape
    gradients = _gradients([out * 1, inputs[0] * 2], inputs)
    for packed in (False, True):
        if packed and (out.dim() < 2 or 0 in out.shape):
            continue
        args, kwargs = build((case.args, case.kwargs), requires_grad=True)
        start = args[0].packed() if packed else args[0]
        view = torch.stack([start * 1, start * 2], -1).movedim(-1, 0)
        torch.manual_seed(1)
        try:
            inplace(view[0], *args[1:], **kwargs)
        except RuntimeError as error:
            if "use x = x.unsqueeze" not in str(error):  # dropout3d changes the shape of its input for a moment
                raise
            return
        what = f"in place on a view of a {'packed' if packed else 'strided'} temporary"
        assert_same(view[0], out, what)
        assert_same(view[1], inputs[0] * 2, f"{what}: the rest")
        assert_keeps_promise(view)
        wanted = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
        for k, (a, e) in enumerate(zip(_gradients([view[0] * 1, view[1] * 1], wanted), gradients, strict=True)):
            zero = torch.zeros(wanted[k].shape, dtype=wanted[k].dtype)
            a, e = (zero if g is None else g.filled(0) if type(g) is MaskedTensor else g for g in (a, e))
            assert_same(a, e, f"{what}: gradient {k}")


def check_alias(case: Sample) -> int:
    """A base shows what is written into its view, and a view what is written into its base; returns how many did."""
    base, rest = case.args[0], case.args[1:]
    numbers = torch.empty_like(base.data, dtype=torch.int64)
    numbers.copy_(torch.arange(base.data.numel()).view(base.data.shape))
    shown = tree_leaves(case.op(numbers, *rest, **case.kwargs))
    generator, checked = torch.Generator().manual_seed(5), 0
    for k, places in enumerate(shown):
        x = build(base)
        early, view = (tree_leaves(case.op(x, *rest, **case.kwargs))[k] for _ in range(2))
        alias = torch._C._is_alias_of(pair_of(view).data, pair_of(x).data)
        if view is x or not alias or len(places.unique()) < places.numel() or not places.numel():
            continue
        data, mask = base.data.reshape(-1).clone(), base.mask.reshape(-1).clone()
        source = Masked(torch.ones_like(view.get_data()), random_mask(view.shape, "random", generator))
        view.copy_(build(source))
        data[places], mask[places] = source.data, source.mask
        assert_same(x, Masked(data.view(x.shape), mask.view(x.shape)), f"the base of view {k}")
        assert_same(early, source, f"another view {k}")
        x.copy_(build(base))
        assert_same(view, Masked(base.data.reshape(-1)[places], base.mask.reshape(-1)[places]), f"view {k} of the base")
        for member in (x, early, view):
            assert_keeps_promise(member)
        checked += 1
    return checked


def check_compiled(case: Sample) -> None:
    """torch.compile(fullgraph=True) gives the eager result."""
    expected, _ = run(case)
    args, kwargs = build((case.args, case.kwargs))
    torch._dynamo.reset()
    torch.manual_seed(1)
    op = case.op
    out = torch.compile(lambda *a, **k: op(*a, **k), fullgraph=True, backend="aot_eager")(*args, **kwargs)
    for index, (a, e) in enumerate(zip(tree_leaves(out), expected, strict=True)):
        assert_same(a, e, f"compiled output {index}")
