"""What surrounds a program: ``torch.func``, autocast, ``torch.export``, the meta device; right, or a clear error."""

import gc
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

import masked_tensor as mt
from masked_tensor.compat import RUNNING, is_wrapped
from masked_tensor.engine.boundary.vmap import view_batched
from masked_tensor.engine.torch_keys import transform_count
from masked_tensor.engine.transforms import functions
from masked_tensor.extend import Pair, register_rule
from masked_tensor.masks import known
from masked_tensor.testing import assert_close

NAN = float("nan")
DATA = torch.linspace(-1, 2, 12, dtype=torch.float64).view(3, 4)
MASK = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])


def masked() -> mt.MaskedTensor:
    return mt.as_masked_tensor(torch.where(MASK, DATA, NAN), MASK)


# ----------------------------------------------------------------------------------- torch.func over masked tensors

WEIGHT = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
COUNT = MASK.sum()
TWICE = torch.outer(MASK.flatten(), MASK.flatten()).view(3, 4, 3, 4)  # valid on both sides of a Hessian


def same(found: Any, data: Tensor, mask: Tensor | None = None) -> None:
    """``found`` is masked by ``mask``, exactly 0 where that is False, and ``data`` elsewhere; plain without one."""
    if mask is None:
        assert not mt.is_masked_tensor(found)
        torch.testing.assert_close(found, data)
        return
    assert mt.is_masked_tensor(found)
    assert torch.equal(found.get_mask(), mask.expand(found.shape))
    assert (found.get_data()[~found.get_mask()] == 0).all()
    torch.testing.assert_close(found.filled(0), torch.where(mask, data, 0).expand(found.shape))


def both_sides(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The Jacobian of the means of the rows, and its mask."""
    jacobian = torch.stack([torch.where(MASK, 1.0, 0.0) * (torch.arange(3) == i)[:, None] for i in range(3)])
    jacobian = jacobian.double() / MASK.sum(1).clamp_min(1)[:, None, None]
    return jacobian, rows[:, None, None] & MASK


MEAN_GRADIENT = torch.ones(3, 4, dtype=torch.float64) / COUNT
CLEAN = torch.where(MASK, DATA, 0)
SUPPORTED: dict[str, tuple[Callable[[], Any], Tensor, Tensor | None]] = {
    "grad": (lambda: grad(lambda x: x.mean())(masked()), MEAN_GRADIENT, MASK),
    "grad of a plain argument": (
        lambda: grad(lambda w, x: (w * x).mean())(WEIGHT, masked()),
        CLEAN.sum(0) / COUNT,
        None,
    ),
    "grad, closed over": (lambda: grad(lambda w: (masked() * w).mean())(WEIGHT), CLEAN.sum(0) / COUNT, None),
    "grad_and_value": (lambda: grad_and_value(lambda x: x.mean())(masked())[0], MEAN_GRADIENT, MASK),
    "vjp": (lambda: vjp(lambda x: x * 2, masked())[1](DATA)[0], 2 * DATA, MASK),
    "vjp of a masked direction": (lambda: vjp(lambda x: x * 2, masked())[1](masked())[0], 2 * DATA, MASK),
    "jvp": (lambda: jvp(lambda x: x.square(), (masked(),), (masked(),))[1], 2 * DATA**2, MASK),
    "jvp, closed over": (
        lambda: jvp(lambda w: (masked() * w).mean().filled(0), (WEIGHT,), (WEIGHT,))[1],
        (CLEAN * WEIGHT).sum() / COUNT,
        None,
    ),
    "jacrev": (lambda: jacrev(lambda x: x.mean(1))(masked()), *both_sides(MASK.any(1))),
    "jacrev in chunks": (lambda: jacrev(lambda x: x.mean(1), chunk_size=2)(masked()), *both_sides(MASK.any(1))),
    "jacrev row by row": (lambda: jacrev(lambda x: x.mean(1), chunk_size=1)(masked()), *both_sides(MASK.any(1))),
    "jacfwd": (lambda: jacfwd(lambda x: x.mean(1))(masked()), *both_sides(MASK.any(1))),
    "jacrev to plain": (lambda: jacrev(lambda x: x.mean(1).filled(0))(masked()), *both_sides(torch.ones(3) > 0)),
    "hessian": (
        lambda: hessian(lambda x: x.square().sum())(masked()),
        2 * torch.eye(12).double().view(3, 4, 3, 4),
        TWICE,
    ),
    "vmap of grad": (
        lambda: vmap(grad(lambda x: x.mean()))(masked()),
        torch.ones(3, 4).double() / MASK.sum(1, True).clamp_min(1),
        MASK,
    ),
    "grad of vmap": (
        lambda: grad(lambda x: vmap(torch.mean)(x).sum())(masked()),
        torch.ones(3, 4).double() / MASK.sum(1, True).clamp_min(1),
        MASK,
    ),
    "grad of grad": (lambda: grad(lambda x: grad(lambda y: (y**3).sum())(x).sum())(masked()), 6 * DATA, MASK),
    "grad inside of grad": (
        lambda: grad(lambda w: grad(lambda x: x.mean())(masked()).filled(0).sum() * w)(WEIGHT[0]),
        torch.ones(()).double(),
        None,
    ),
    "made inside grad": (
        lambda: grad(lambda v: mt.as_masked_tensor(v, MASK).filled(0).sum())(DATA),
        MASK.double(),
        None,
    ),
    "made inside jvp": (
        lambda: jvp(lambda v: mt.as_masked_tensor(v, MASK).filled(0).sum(), (DATA,), (DATA,))[1],
        CLEAN.sum(),
        None,
    ),
    "made inside linearize": (
        lambda: linearize(lambda v: mt.as_masked_tensor(v, MASK).square().filled(0).sum(), DATA)[1](DATA),
        2 * (CLEAN**2).sum(),
        None,
    ),
    "returned from vmap": (lambda: vmap(lambda v, m: mt.masked_tensor(v, m))(DATA, MASK), DATA, MASK),
    "a packed argument": (lambda: grad(lambda x: x.square().sum())(masked().packed()), 2 * DATA, MASK),
    "a write into what is made inside": (
        lambda: grad(lambda x: (x * 1).mul_(3).sum())(masked()),
        torch.full((3, 4), 3.0, dtype=torch.float64),
        MASK,
    ),
    "a write into a part": (
        lambda: vmap(grad(lambda x: _scaled_in_part(x * 1).sum()))(masked()),
        torch.tensor([5.0, 1, 1, 1]).double().expand(3, 4),
        MASK,
    ),
    "is_grads_batched": (
        lambda: _batched_gradients(),
        2 * torch.eye(12).double().view(12, 3, 4),
        MASK.expand(12, 3, 4),
    ),
    "jacobian, vectorized": (
        lambda: torch.autograd.functional.jacobian(lambda x: x * 2, masked(), vectorize=True),
        2 * torch.eye(12).double().view(3, 4, 3, 4),
        MASK.expand(3, 4, 3, 4),
    ),
}


def _scaled_in_part(x: Any) -> Any:
    x[:1].mul_(5)
    return x


def _batched_gradients() -> Any:
    x = masked().requires_grad_()
    return torch.autograd.grad(x * 2, x, torch.eye(12).double().view(12, 3, 4), is_grads_batched=True)[0]


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node")  # torch's own, of linearize
@pytest.mark.parametrize("name", SUPPORTED)
def test_transforms_take_and_give_masked_tensors(name: str) -> None:
    program, data, mask = SUPPORTED[name]
    same(program(), data, mask)
    assert masked().mean().isfinite().item()  # nothing is left behind


def test_gradients_flow_through_a_transform_into_leaves_outside() -> None:
    x = masked().requires_grad_()
    grad(lambda w: (x * w).square().sum())(WEIGHT).sum().backward()
    same(x.grad, 4 * DATA * WEIGHT, MASK)
    with torch.no_grad():
        assert not grad(lambda w: (x * w).sum())(WEIGHT).requires_grad


def test_a_program_whose_first_masked_tensor_is_made_inside_a_transform() -> None:
    code = """
import torch, masked_tensor as mt
mask = torch.tensor([True, False])
def loss(v):
    return (mt.as_masked_tensor(v, mask) * v).mean().filled(0)
v = torch.tensor([3.0, float("nan")])
{first}
print(torch.func.grad(loss)(v).tolist(), torch.vmap(torch.func.grad(loss))(v.expand(2, 2)).tolist())
assert torch.func.grad(lambda x: (x * x).sum())(torch.ones(2)).tolist() == [2.0, 2.0]
"""
    for first in ("", "print(torch.func.vmap(loss)(v.expand(2, 2)).tolist())", "torch.func.jvp(loss, (v,), (v,))"):
        run = subprocess.run([sys.executable, "-c", code.format(first=first)], capture_output=True, text=True)
        assert run.stdout.splitlines()[-1:] == ["[6.0, 0.0] [[6.0, 0.0], [6.0, 0.0]]"], run.stderr


def test_a_transform_that_fails_leaves_nothing_behind() -> None:
    for transform in (grad, vmap, jacfwd, hessian):
        with pytest.raises(ValueError, match="stop"):
            transform(_stop)(masked())
        assert torch.func.grad(lambda x: (x * x).sum())(torch.ones(2)).tolist() == [2.0, 2.0]
        assert RUNNING.levels == ()


def _stop(x: Any) -> Any:
    raise ValueError("stop")


OTHER_ERROR = pytest.mark.xfail(torch.__version__ >= "2.14", reason="refused, but by an error of torch", strict=True)


@pytest.mark.parametrize(
    "how", [lambda f: grad(f), lambda f: lambda x: vjp(f, x)[0], pytest.param(lambda f: jacrev(f), marks=OTHER_ERROR)]
)
def test_while_dynamo_traces_what_differentiates_is_refused(how: Any) -> None:
    """Dynamo pushes the transform's level itself, without calling torch.func."""
    transformed = torch.compile(lambda x: how(lambda y: y.mean())(x), backend="eager")
    with pytest.raises(Exception, match=r"use the functional forms, such as masked_tensor.sum"):
        transformed(masked())


def test_forward_mode_is_left_to_eager_code() -> None:
    assert_close(
        torch.compile(lambda x: jacfwd(torch.mean)(x), backend="eager")(masked()), jacfwd(torch.mean)(masked())
    )


def test_vmap_works_while_dynamo_traces() -> None:
    program = lambda x: vmap(lambda row: F.cosine_similarity(row, WEIGHT, 0))(x)  # noqa: E731
    assert_close(torch.compile(program, backend="eager", fullgraph=True)(masked()), program(masked()))


def test_ops_on_plain_tensors_inside_of_a_transform_run_no_code_of_ours() -> None:
    """Only a masked tensor has the key that comes before torch.func."""
    x, calls = masked(), []

    def watch(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and "masked_tensor" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            calls.append(frame.f_code.co_name)

    def program(w: Tensor) -> Tensor:
        calls.clear()
        sys.setprofile(watch)
        result = (F.linear(w * 2, w.view(1, 4)).relu() + 1).sum()
        plain = len(calls)
        seen.append((plain, (x * w).sum().filled(0) is None, len(calls)))
        sys.setprofile(None)
        return result

    seen: list[Any] = []
    grad(program)(WEIGHT)
    vmap(grad(program))(WEIGHT.expand(2, 4))
    for plain, _, with_masked in seen:
        assert plain == 0
        assert with_masked > 0


def test_threads_without_a_transform_take_the_usual_way() -> None:
    """Also one that starts while a transform runs elsewhere, and one that runs its own."""
    x = masked()

    def work() -> Any:
        first = x.mean().item(), mt.is_masked_tensor(x * 2)
        return *first, grad(lambda v: v.mean())(x), (x * 2).mean().item()

    def program(w: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as elsewhere:
            results.append(elsewhere.submit(work).result())
        return (x * w).mean().filled(0)

    results: list[Any] = []
    same(grad(program)(WEIGHT), CLEAN.sum(0) / COUNT)
    mean, is_masked, gradient, twice = results[0]
    assert is_masked
    assert (mean, twice) == (masked().mean().item(), (masked() * 2).mean().item())
    same(gradient, MEAN_GRADIENT, MASK)


def test_operators_that_are_defined_after_the_first_transform() -> None:
    """One with a rule goes to it; one without would be differentiated by its own formula, and is refused."""
    grad(lambda v: v.sum())(masked())
    library = torch.library.Library("late_transforms", "FRAGMENT")
    library.define("mean_of(Tensor x) -> Tensor")
    library.impl("mean_of", lambda x: x.sum() / 3, "CompositeImplicitAutograd")
    library.define("half(Tensor x) -> Tensor")
    library.impl("half", lambda x: x / 2, "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="the derivative of another library's operator"):
        grad(lambda v: torch.ops.late_transforms.mean_of(v))(masked())
    register_rule("late_transforms::half")(lambda x: Pair(x.data * torch.where(x.mask, 0.5, 0), x.mask))
    same(grad(lambda v: torch.ops.late_transforms.half(v).sum())(masked()), torch.full((3, 4), 0.5).double(), MASK)


def test_what_only_looks_like_a_transform_is_none() -> None:
    """Hooks that somebody else forbids, in whatever words; a transform that runs in another thread."""
    with torch.autograd.graph.disable_saved_tensors_hooks("torch.func.{grad, vjp} don't yet support saved hooks"):
        assert masked().mean().isfinite().item()
        assert torch.compile(lambda x: x.mean(), backend="eager")(masked()).isfinite().item()
    with ThreadPoolExecutor(1) as elsewhere:
        for transform in (grad, jacfwd):
            x = transform(lambda w: elsewhere.submit(lambda: masked().mean().item()).result() * w)(WEIGHT[0])
            assert x == masked().mean().item()


EXITS: dict[str, tuple[Callable[[Any], Any], Tensor]] = {
    "filled": (lambda x: mt.filled(x, 0).square().sum(), 2 * CLEAN),
    "get_data": (lambda x: mt.get_data(x).nan_to_num().square().sum(), 2 * CLEAN),
    "count": (lambda x: x.sum().filled(0) * mt.count(x), torch.full((3, 4), float(COUNT)).double()),
    "get_mask": (lambda x: torch.where(mt.get_mask(x), mt.filled(x, 0), 1).sum(), torch.ones(3, 4).double()),
}


@pytest.mark.parametrize("name", EXITS)
def test_exits_work_inside_of_transforms(name: str) -> None:
    function, expected = EXITS[name]
    same(grad(function)(masked()), expected, MASK)


# --------------------------------------------------------------------------------------- torch.func: what is supported

FORMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": lambda x, m: mt.sum(x, 1, mask=m).sum(),
    "mean": lambda x, m: mt.mean(x, mask=m),
    "var": lambda x, m: mt.var(x, mask=m),
    "amax": lambda x, m: mt.amax(x, mask=m),
    "softmax": lambda x, m: mt.softmax(x, 1, mask=m).square().sum(),
    "log_softmax": lambda x, m: torch.where(m, mt.log_softmax(x, 1, mask=m), 0).sum(),
    "cumsum": lambda x, m: torch.where(m, mt.cumsum(x, 1, mask=m), 0).square().sum(),
    "normalize": lambda x, m: mt.normalize(x, 2, 1, mask=m).sum(),
    "masked_fill": lambda x, m: mt.masked_fill(x, m, 2.0).square().sum(),
    "mse_loss": lambda x, m: mt.mse_loss(x, DATA.cos(), mask=m),
    "cross_entropy": lambda x, m: mt.cross_entropy(x, torch.tensor([0, 1, 2]), mask=m),
}


@pytest.mark.filterwarnings("ignore:There is a performance drop.*count_nonzero")  # torch 2.11
@pytest.mark.parametrize("name", FORMS)
def test_functional_forms_under_every_transform(name: str) -> None:
    form = FORMS[name]
    x = DATA.clone().requires_grad_()
    (expected,) = torch.autograd.grad(form(x, MASK), x)
    step = torch.linspace(1, 2, 12, dtype=torch.float64).view(3, 4)
    assert_close(grad(form)(DATA, MASK), expected)
    assert_close(vjp(lambda v: form(v, MASK), DATA)[1](torch.ones((), dtype=DATA.dtype))[0], expected)
    assert_close(jvp(lambda v: form(v, MASK), (DATA,), (step,))[1], (expected * step).sum())
    rows = torch.stack([DATA, DATA.flip(0)])
    both = torch.stack([MASK, MASK.flip(0)])
    one_by_one = torch.stack([form(r, m) for r, m in zip(rows, both, strict=True)])
    assert_close(vmap(form)(rows, both), one_by_one)
    assert_close(vmap(grad(form), (0, None))(DATA.expand(2, 3, 4), MASK), expected.expand(2, 3, 4))


@pytest.mark.filterwarnings("ignore:There is a performance drop.*count_nonzero")  # torch 2.11
def test_gradients_for_every_sample() -> None:
    """Per-sample gradients of a model: vmap of grad of a functional form, with a plain model inside."""
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 1).double()
    parameters = dict(layer.named_parameters())

    def loss(parameters: Any, x: Tensor, mask: Tensor) -> Tensor:
        return mt.mse_loss(functional_call(layer, parameters, (x,)), torch.ones(3, 1).double(), mask=mask)

    xs, masks = torch.stack([DATA, DATA + 1]), torch.tensor([[[True], [False], [True]], [[False], [False], [True]]])
    gradients = vmap(grad(loss), (None, 0, 0))(parameters, xs, masks)
    for i in range(2):
        one = torch.autograd.grad(loss(parameters, xs[i], masks[i]), list(parameters.values()))
        assert_close([g[i] for g in gradients.values()], list(one))


COMPOSITE: dict[str, Callable[[Any], Any]] = {
    "cosine_similarity": lambda x: F.cosine_similarity(x, WEIGHT, -1),
    "trapezoid": lambda x: torch.trapezoid(x, dim=-1),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2])),
    "cov": torch.cov,
}


@pytest.mark.filterwarnings("ignore:There is a performance drop.*count_nonzero")  # torch 2.11
@pytest.mark.parametrize("name", COMPOSITE)
def test_vmap_of_composites_is_differentiable_and_plain_tensors_take_torchs_way(name: str) -> None:
    op = COMPOSITE[name]
    xs, masks = torch.stack([DATA, DATA.cos()]), torch.stack([MASK, MASK.flip(0)])
    for size in (mt.as_masked_tensor(xs, masks), xs):
        x, y = size.clone().requires_grad_(), size.clone().requires_grad_()
        together, alone = vmap(op)(x), torch.stack([op(row) for row in y])
        assert_close(together, alone)
        together.sum().backward()
        alone.sum().backward()
        assert_close(x.grad, y.grad)
    nested = vmap(vmap(op))(mt.as_masked_tensor(xs, masks).expand(3, 2, 3, 4))
    assert_close(nested[1], torch.stack([op(mt.as_masked_tensor(d, m)) for d, m in zip(xs, masks, strict=True)]))


# ------------------------------------------------------------------------------------------- autocast, export, meta


@pytest.mark.parametrize("seen", [torch.int64, torch.int32, torch.int16, torch.int8])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_batching_of_views_as_integers(dtype: torch.dtype, seen: torch.dtype) -> None:
    """The rule that torch 2.11 lacks gives each entry's own view, or the error of that."""
    masked()  # there it is registered with the first one
    view = lambda entry: view_batched(entry, seen)  # noqa: E731
    for shape in ((4,), (3, 4), (2, 8, 4)):
        x = torch.linspace(-100, 100, torch.Size(shape).numel()).to(dtype).view(shape)
        for dim in range(x.dim()):
            try:
                expected = torch.stack([entry.view(seen) for entry in x.unbind(dim)])
            except RuntimeError as of_one:
                with pytest.raises(RuntimeError, match=re.escape(str(of_one))):
                    vmap(view, dim)(x)
            else:
                assert torch.equal(vmap(view, dim)(x), expected)
    assert torch.equal(vmap(vmap(view))(x), x.view(seen))


def test_counts_stay_exact_under_autocast() -> None:
    """A mean over 1001 entries: bfloat16 would count 1000."""
    valid = torch.arange(1500) < 1001
    x = mt.as_masked_tensor(torch.full((1500, 2), 3.0), valid.view(-1, 1))
    counted = mt.as_masked_tensor(torch.ones(1500, 2), valid.view(-1, 1))
    with torch.autocast("cpu", torch.bfloat16):
        assert x.count().item() == 2002
        assert x.mean().item() == 3.0
        assert counted.sum(0).tolist() == [1001.0, 1001.0]
        assert (x == 3).float().sum().item() == 2002
        assert F.mse_loss(x, torch.zeros(1500, 2)).item() == 9.0
        assert (x.mT @ torch.ones(1500, 1)).dtype is torch.bfloat16
        normed = F.batch_norm(x, torch.zeros(2), torch.ones(2), training=True)
    assert normed[:1001].filled(1).abs().max() < 1e-3


class Program(torch.nn.Module):
    """A layer, and what is done with its input and its result."""

    def __init__(self, program: Callable[..., Any]) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2).double()
        self.program = program

    def forward(self, *inputs: Tensor) -> Any:
        return self.program(self.linear, *inputs)


ROWS, OTHER_ROWS = MASK[:, 1:2], torch.tensor([[False], [True], [True]])


@pytest.mark.parametrize(
    "program",
    [
        lambda layer, x: layer(x).softmax(-1) - x.mean(),
        lambda layer, x: (layer(x) * 2).relu().sum(0),
    ],
)
def test_export_of_a_program_from_masked_to_masked(program: Callable[..., Any]) -> None:
    model = Program(program)
    exported = torch.export.export(model, (mt.as_masked_tensor(DATA, ROWS),)).module()
    other = mt.as_masked_tensor(torch.where(OTHER_ROWS, DATA.cos(), NAN), OTHER_ROWS)
    assert_close(exported(other), model(other))


def test_export_of_functional_forms() -> None:
    model = Program(lambda layer, x, m: mt.softmax(layer(x), 0, mask=m) - mt.mean(layer(x), 1, keepdim=True, mask=m))
    exported = torch.export.export(model, (DATA, ROWS)).module()
    assert_close(exported(DATA.cos(), OTHER_ROWS), model(DATA.cos(), OTHER_ROWS))


@pytest.mark.parametrize(
    "program", [lambda layer, x: layer(x).filled(0), lambda layer, x: layer(mt.as_masked_tensor(x.get_data(), ROWS))]
)
def test_export_of_a_program_that_makes_or_leaves_is_refused(program: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match=r"torch.export cannot trace a masked tensor.*functional forms"):
        torch.export.export(Program(program), (mt.as_masked_tensor(DATA, ROWS),))


def test_make_fx_of_a_program_that_masks_inside() -> None:
    model = Program(lambda layer, x, m: layer(mt.as_masked_tensor(x, m)).softmax(-1).filled(0))
    traced = make_fx(model)(DATA, ROWS)
    assert_close(traced(DATA.cos(), OTHER_ROWS), model(DATA.cos(), OTHER_ROWS))


def test_meta_tensors_have_shapes_and_masks() -> None:
    x = mt.as_masked_tensor(DATA.to("meta"), MASK.to("meta"))
    programs = (lambda x: x.softmax(-1), lambda x: x.sum(0), lambda x: x @ x.mT, lambda x: F.layer_norm(x, (4,)))
    for program in programs:
        out, real = program(x), program(masked())
        assert (out.shape, out.dtype, out.device.type) == (real.shape, real.dtype, "meta")
        assert out.get_mask().device.type == "meta"


NORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "layer": lambda x: F.layer_norm(x, (4,)),
    "group": lambda x: F.group_norm(x, 5),
    "batch": lambda x: F.batch_norm(x, None, None, training=True),
}


@pytest.mark.parametrize("norm", NORMS)
def test_norms_of_meta_tensors_raise_in_the_backward_pass(norm: str) -> None:
    x = mt.as_masked_tensor(torch.empty(3, 5, 4, device="meta"), torch.ones(3, 5, 4, dtype=torch.bool, device="meta"))
    weight = torch.ones(4, device="meta", requires_grad=True)
    with pytest.raises(mt.UnsupportedOpError, match="norm_backward is not supported"):
        NORMS[norm](x * weight).sum().backward()


def test_forms_of_norms_have_gradients_on_meta_tensors() -> None:
    mask, weight = torch.ones(3, 5, 4, dtype=torch.bool, device="meta"), torch.ones(4, device="meta")
    for form in (mt.layer_norm, mt.rms_norm):
        weight.grad = None
        form(mask * weight.requires_grad_(), (4,), mask=mask).sum().backward()
        assert type(weight.grad) is Tensor
        assert weight.grad.shape == (4,)


# ------------------------------------------------------------------------------------- what is kept outlives transforms

PROGRAMS: dict[str, Callable[[Any, Tensor], Any]] = {
    "linear": lambda x, w: (x @ w).mean(),
    "mean of the steps": lambda x, w: (x * w[0]).mean(1).sum(),
    "mean without the weight": lambda x, w: x.mean(1).sum() * w.sum(),
    "variance": lambda x, w: (x @ w).var(1).sum(),
    "layer norm": lambda x, w: F.layer_norm(x, (4,), w[0]).sum(),
    "softmax": lambda x, w: (x * w[0]).softmax(1).square().sum(),
    "cumulative sum": lambda x, w: (x * w[0]).cumsum(1).sum(),
    "attention": lambda x, w: F.scaled_dot_product_attention(x @ w, x, x).sum(),
    "convolution": lambda x, w: F.conv1d(x.transpose(1, 2), w[:, :, None]).sum(),
    "median": lambda x, w: (x @ w).median(1).values.sum(),
    "a loss": lambda x, w: F.mse_loss(x @ w, x),
    "a part": lambda x, w: (x[1] * w[0]).sum(),
    "unpacked": lambda x, w: x.unpacked().sum() * w.sum(),
    "lengths": lambda x, w: (x.flatten(0, 1) * w[0]).mean(0).sum(),
}
RUNS: dict[str, Callable[[Any, Tensor], Any]] = {
    "grad": lambda f, w: grad(f)(w),
    "vmap": lambda f, w: vmap(f)(torch.stack([w, w])),
    "jvp": lambda f, w: jvp(f, (w,), (w,)),
    "vmap of grad": lambda f, w: vmap(grad(f))(torch.stack([w, w])),
}


def kept_for(layout: str) -> Any:
    """A padded batch whose mask was taken in, so that facts of it are kept; packed, its places keep them."""
    steps = torch.arange(5) < torch.tensor([3, 1, 5])[:, None]
    data = torch.linspace(-1, 1, 60, dtype=torch.float64).view(3, 5, 4).sin()
    scattered = torch.arange(60).view(3, 5, 4) % 7 != 0
    mask = steps[..., None] & scattered if layout == "scattered" else steps[..., None].expand(3, 5, 4)
    x = mt.masked_tensor(torch.where(mask, data, NAN), mask)
    return x.packed() if layout == "packed" else x


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("layout", ["scattered", "steps", "packed"])
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_that_is_kept_ends_with_the_transform_that_asked_first(name: str, run: str, layout: str) -> None:
    """A tensor that is made inside of a transform ends with it; what is kept of a mask or of places is not its."""
    known._BY_SHAPE.clear()
    x, fresh = kept_for(layout), kept_for(layout)
    w = torch.linspace(0.5, 1.5, 16, dtype=torch.float64).view(4, 4)
    call = lambda w: plain_of(PROGRAMS[name](x, w))  # noqa: E731
    gc.freeze()  # what is there already is not looked through, here and later
    RUNS[run](call, w)
    gc.collect()
    alive = [v.shape for v in gc.get_objects() if issubclass(type(v), Tensor) and is_wrapped(v)]
    assert alive == []
    torch.testing.assert_close(call(w), plain_of(PROGRAMS[name](fresh, w)))


@pytest.mark.parametrize("where", ["register_kernels", "begin_level"])
@pytest.mark.parametrize("run", [grad, hessian, lambda f: vmap(f, randomness="error")], ids=["grad", "hessian", "vmap"])
def test_an_interrupt_leaves_the_thread_as_it_was(where: str, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: Any) -> None:
        raise KeyboardInterrupt

    x = mt.masked_tensor([1.0, 2.0, None], requires_grad=True)
    before = (x * x).sum().item()
    with monkeypatch.context() as patched:
        patched.setattr(functions, where, stop)
        with pytest.raises(KeyboardInterrupt):
            run(lambda x: (x * x).sum())(x)
    assert transform_count() == 0
    assert (x * x).sum().item() == before
    assert grad(lambda x: (x * x).sum())(x).tolist() == [2.0, 4.0, None]


def plain_of(x: Any) -> Tensor:
    """A loss as a plain number, as transforms ask for it."""
    found: Tensor = x.filled(0) if mt.is_masked_tensor(x) else x
    return found
