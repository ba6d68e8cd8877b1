"""The laws of ``torch.func``: what its transforms give of a masked program is what eager autograd gives.

Each check runs one case with NaN and inf under the mask, in the tensors and in the directions, and returns whether
there was something to compare: plain torch must be able to do the same with the plain sample.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, hessian, jvp, vjp, vmap
from torch.utils._pytree import tree_flatten, tree_unflatten

from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of

from .database import Sample
from .harness import Masked, assert_same, build, differentiable, is_record, random_mask
from .trees import tree_leaves

NAN, INF = float("nan"), float("inf")
SMALL = 30  #: entries of an input whose second derivatives are compared


class Program:
    """A case as a function of its differentiable tensors: it returns the differentiable tensors among its results."""

    def __init__(self, case: Sample) -> None:
        self.op, records = case.op, tree_flatten((case.args, case.kwargs), is_leaf=is_record)
        self.leaves, self.spec = records
        self.moving = [k for k, v in enumerate(self.leaves) if _moves(v)]

    def __call__(self, *moving: Tensor, rest: Sequence[Any]) -> tuple[Tensor, ...]:
        leaves = list(rest)
        for k, x in zip(self.moving, moving, strict=True):
            leaves[k] = x
        args, kwargs = tree_unflatten(leaves, self.spec)
        torch.manual_seed(1)
        results = tree_leaves(self.op(*args, **kwargs))
        return tuple(x * 1 for x in results if isinstance(x, Tensor) and differentiable(x))

    def build(self, payload: float | None = None, requires_grad: bool = False) -> tuple[list[Tensor], list[Any]]:
        """The differentiable tensors, and all leaves."""
        rest = [build(v, payload, requires_grad and k in self.moving) for k, v in enumerate(self.leaves)]
        return [rest[k] for k in self.moving], rest

    def plain(self) -> "Program":
        """The same with plain tensors in place of the masked ones."""
        other = object.__new__(Program)
        other.op, other.spec, other.moving = self.op, self.spec, self.moving
        other.leaves = [v.data if isinstance(v, Masked) else v for v in self.leaves]
        return other


def _moves(value: Any) -> bool:
    data = value.data if isinstance(value, Masked) else value
    return isinstance(data, Tensor) and differentiable(data) and data.layout is torch.strided


def _like(x: Tensor, seed: int, payload: float = NAN) -> Tensor:
    """A random direction: masked as ``x`` is, with ``payload`` where that is masked; and its plain form, 0 there."""
    values = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(x.dtype)
    return build(Masked(values, pair_of(x).mask), payload) if type(x) is MaskedTensor else values


def _zero(x: Tensor) -> Tensor:
    return x.filled(0) if type(x) is MaskedTensor else x


def _torch_can(run: Callable[[], Any]) -> bool:
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = tree_leaves(run())
    except (RuntimeError, NotImplementedError, ValueError, IndexError, TypeError):
        return False
    finally:
        torch.set_rng_state(state)
    return len(results) > 0


def _eager(program: Program) -> tuple[list[Tensor], tuple[Tensor, ...], list[Tensor]] | None:
    """Inputs, outputs and the gradients of the outputs along random directions."""
    inputs, rest = program.build(requires_grad=True)
    outputs = program(*inputs, rest=rest)
    tracked = [(k, x) for k, x in enumerate(outputs) if x.requires_grad]
    if not tracked:
        return None
    seeds = [_like(x, k) for k, x in tracked]
    found = torch.autograd.grad([x for _, x in tracked], inputs, seeds, allow_unused=True)
    return inputs, outputs, [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def _expected(case: Sample, run: Callable[..., Any]) -> Any:
    """What ``_eager`` gives, if torch can ``run`` the plain program."""
    plain = Program(case).plain()
    inputs, rest = plain.build()
    return _eager(Program(case)) if inputs and _torch_can(lambda: run(plain, inputs, rest)) else None


def _check_gradient(found: Tensor, expected: Tensor, x: Tensor, what: str) -> None:
    assert type(found) is type(x), f"{what} of a {type(x).__name__} is a {type(found).__name__}"
    assert_same(found, expected, what)
    if type(found) is MaskedTensor:
        pair = pair_of(found)
        assert not (pair.data[~pair.mask] != 0).any(), f"{what} is not 0 where it is masked"


def check_vjp(case: Sample) -> bool:
    """``vjp`` gives the results and the gradients of eager autograd."""
    program, expected = Program(case), _expected(case, _pull)
    if expected is None:
        return False
    for payload in (NAN, INF):
        inputs, rest = program.build(payload)
        outputs, gradients = _pull(program, inputs, rest)
        for k, (a, e) in enumerate(zip(outputs, expected[1], strict=True)):
            assert_same(a, e, f"output {k}")
        for k, (a, e, x) in enumerate(zip(gradients, expected[2], inputs, strict=True)):
            _check_gradient(a, e, x, f"gradient {k}")
    return True


def _pull(program: Program, inputs: list[Tensor], rest: list[Any]) -> tuple[Any, Any]:
    outputs, pull = vjp(lambda *xs: program(*xs, rest=rest), *inputs)
    return outputs, pull(tuple(_like(x, k) for k, x in enumerate(outputs)))


def check_jvp(case: Sample) -> bool:
    """``jvp`` gives the adjoint of eager autograd's gradients, and a tangent of 0 where the result is masked."""
    program, expected = Program(case), _expected(case, _push)
    if expected is None:
        return False
    for payload in (NAN, INF):
        inputs, rest = program.build(payload)
        outputs, moved = _push(program, inputs, rest, payload)
        left = torch.zeros((), dtype=torch.complex128)
        for k, (a, e, t) in enumerate(zip(outputs, expected[1], moved, strict=True)):
            assert_same(a, e, f"output {k}")
            assert type(t) is type(a), f"the tangent of a {type(a).__name__} is a {type(t).__name__}"
            if type(t) is MaskedTensor:
                pair = pair_of(t)
                assert torch.equal(pair.mask, pair_of(a).mask), "the tangent's mask is not the result's"
                assert not (pair.data[~pair.mask] != 0).any(), "the tangent is not 0 where it is masked"
            left = left + (_zero(t).conj() * _zero(_like(a, k))).sum()
        steps = [_zero(_like(x, 50 + k)) for k, x in enumerate(inputs)]
        right = sum((s.conj() * _zero(g)).sum() for s, g in zip(steps, expected[2], strict=True))
        torch.testing.assert_close(
            left.real, (right + 0 * left).real, rtol=_tolerance((*inputs, *outputs)), atol=1e-6, equal_nan=True
        )
    return True


def _tolerance(tensors: Sequence[Tensor]) -> float:
    return max(30 * torch.finfo(x.dtype).eps for x in tensors) + 1e-7


def _push(program: Program, inputs: list[Tensor], rest: list[Any], payload: float = NAN) -> tuple[Any, Any]:
    steps = tuple(_like(x, 50 + k, payload) for k, x in enumerate(inputs))
    return jvp(lambda *xs: program(*xs, rest=rest), tuple(inputs), steps)


def check_gradients_for_every_sample(case: Sample, size: int = 3) -> bool:
    """``vmap(grad)`` over a batch gives each sample's own gradients by eager autograd."""
    program = Program(case)
    generator = torch.Generator().manual_seed(0)
    batches = {}
    for k, value in enumerate(program.leaves):
        if isinstance(value, Masked) and k in program.moving:
            shape = (size, *value.data.shape)
            steps = torch.linspace(1, 0.5, size, dtype=torch.float64).reshape(size, *(1,) * value.data.dim())
            data = (value.data.expand(shape) * steps).to(value.data.dtype)
            batches[k] = Masked(data, random_mask(shape, "random", generator))

    def loss(program: Program, inputs: Sequence[Tensor], rest: list[Any]) -> Tensor:
        return sum((_weighted(x) for x in program(*inputs, rest=rest)), torch.zeros((), dtype=torch.float64))

    if not batches:
        return False
    plain, plain_rest = program.plain().build()
    stacked = [batches[k].data if k in batches else x for k, x in zip(program.moving, plain, strict=True)]
    dims = tuple(0 if k in batches else None for k in program.moving)
    places = tuple(range(len(dims)))

    def gradients(program: Program, inputs: list[Tensor], rest: list[Any]) -> Any:
        one = grad(lambda *xs: loss(program, xs, rest), places)
        return vmap(one, dims, randomness="same")(*inputs)

    if not _torch_can(lambda: gradients(program.plain(), stacked, plain_rest)):
        return False
    expected = []
    for i in range(size):
        inputs, rest = program.build(requires_grad=True)
        for n, k in enumerate(program.moving):
            if k in batches:
                inputs[n] = build(Masked(batches[k].data[i], batches[k].mask[i]), requires_grad=True)
        total = loss(program, inputs, rest)
        if not total.requires_grad:
            return False
        found = torch.autograd.grad(total, inputs, allow_unused=True)
        expected.append([torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)])
    inputs, rest = program.build(NAN)
    for n, k in enumerate(program.moving):
        if k in batches:
            inputs[n] = build(batches[k], NAN)
    for n, batch in enumerate(gradients(program, inputs, rest)):
        for i in range(size):
            assert_same(batch[i], expected[i][n], f"gradient {n} of sample {i}")
    return True


def _weighted(x: Tensor) -> Tensor:
    weights = torch.linspace(0.5, 1.5, x.numel(), dtype=torch.float64).view(x.shape)
    values = _zero(x)
    return (values.real.double() * weights).sum() if values.is_complex() else (values.double() * weights).sum()


def _loss(program: Program, x: Tensor, inputs: list[Tensor], rest: list[Any]) -> Tensor:
    """Sums of squares of all results, of the first input as ``x``: each has a second derivative."""
    outputs = program(x, *inputs[1:], rest=rest)
    return sum((_weighted(o.square()) for o in outputs), torch.zeros((), dtype=torch.float64))


def _slope(program: Program) -> tuple[Tensor, Tensor | None]:
    """The first input, and by eager autograd the gradient of the loss there, which can be differentiated again."""
    inputs, rest = program.build(requires_grad=True)
    total = _loss(program, inputs[0], inputs, rest)
    if not total.requires_grad:
        return inputs[0], None
    return inputs[0], torch.autograd.grad(total, inputs[0], create_graph=True, allow_unused=True)[0]


def check_hessian(case: Sample) -> bool:
    """``hessian`` gives eager autograd's second derivatives, valid where the input is on both sides."""
    program = Program(case)
    inputs, rest = program.plain().build()
    if not inputs or inputs[0].numel() > SMALL or inputs[0].is_complex():
        return False

    plain = program.plain()
    if not _torch_can(lambda: hessian(lambda x: _loss(plain, x, inputs, rest))(inputs[0])):
        return False
    clean, first = _slope(program)
    if first is None:
        return False
    flat = _zero(first).reshape(-1)
    rows = [
        torch.autograd.grad(flat[i], clean, retain_graph=True, allow_unused=True)[0] if flat.requires_grad else None
        for i in range(flat.numel())
    ]
    zero = torch.zeros(inputs[0].shape, dtype=inputs[0].dtype)
    expected = [zero if row is None else _zero(row) for row in rows]
    inputs, rest = program.build(NAN)
    found = hessian(lambda x: _loss(program, x, inputs, rest))(inputs[0])
    values = torch.stack(expected).reshape(2 * tuple(inputs[0].shape)) if expected else found
    if type(inputs[0]) is MaskedTensor:
        mask = pair_of(inputs[0]).mask
        both = mask.reshape(-1)[:, None] & mask.reshape(-1)
        assert_same(found, Masked(values, both.reshape(values.shape)), "the Hessian")
    else:
        assert_same(found, values, "the Hessian")
    return True


def check_forward_over_reverse(case: Sample) -> bool:
    """``jvp(grad)`` gives eager autograd's second derivatives along one direction, of inputs of any size."""
    program = Program(case)
    inputs, rest = program.plain().build()
    if not inputs or inputs[0].is_complex():
        return False

    def along(program: Program, inputs: list[Tensor], rest: list[Any]) -> Tensor:
        slope = grad(lambda x: _loss(program, x, inputs, rest))
        moved: Tensor = jvp(slope, (inputs[0],), (_like(inputs[0], 50),))[1]
        return moved

    if not _torch_can(lambda: along(program.plain(), inputs, rest)):
        return False
    clean, first = _slope(program)
    if first is None or not first.requires_grad:
        return False
    slope = (_zero(first) * _zero(_like(clean, 50))).sum()
    (expected,) = torch.autograd.grad(slope, clean, allow_unused=True, materialize_grads=True)
    _check_gradient(along(program, *program.build(NAN)), expected, clean, "the second derivative")
    return True


CHECKS: dict[str, Callable[[Sample], bool]] = {
    "vjp": check_vjp,
    "jvp": check_jvp,
    "vmap(grad)": check_gradients_for_every_sample,
    "hessian": check_hessian,
    "jvp(grad)": check_forward_over_reverse,
}
