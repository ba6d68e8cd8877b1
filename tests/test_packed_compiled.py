"""A packed tensor stays packed in a compiled graph, new lengths compile nothing anew, and no write is lost."""

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.harness import assert_same
from .helpers.packed_steps import STEPS, Step, drawn
from .test_packed_programs import mask_of, program

GROUPS = 6


def batch(*lengths: int, width: int = 2, dtype: torch.dtype = torch.float32) -> Any:
    return mt.from_sequences([torch.randn(n, width, dtype=dtype) for n in lengths], packed=True)


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


class Attention(nn.Module):
    """Heads, and keys and values that several of them share."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.qkv, self.causal = nn.Linear(6, 16), causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).split([8, 4, 4], -1)
        q, k, v = (y.unflatten(-1, (-1, 2)).transpose(1, 2) for y in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=0.3, enable_gqa=True)
        return out.transpose(1, 2).flatten(2)


def tagger() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Linear(6, 8), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False))


MODELS = {"tagger": tagger, "encoder": encoder, "causal": lambda: Attention(True), "shared": lambda: Attention(False)}


@pytest.mark.parametrize("name", MODELS)
def test_new_lengths_in_every_step(name: str) -> None:
    torch.manual_seed(0)
    net = MODELS[name]()
    twin = copy.deepcopy(net)
    more = [] if name == "encoder" else [[2, 2, 7, 3], [1, 8]]  # another number of sequences: one graph more
    counter = CompileCounterWithBackend("aot_eager")
    step = torch.compile(lambda x: net(x).square().mean(), fullgraph=True, backend=counter)
    with mt.extend.packing_report() as spread:
        for lengths in ([3, 1, 2], [5, 2, 4], [6, 1, 1], [4, 4, 4], *more):
            x = batch(*lengths, width=6)
            loss, expected = step(x), twin(x.unpacked()).square().mean()
            torch.testing.assert_close(loss, expected)
            got = torch.autograd.grad(loss, list(net.parameters()))
            torch.testing.assert_close(got, torch.autograd.grad(expected, list(twin.parameters())))
    assert counter.frame_count == (3 if more else 2)
    assert not spread


def test_what_enters_packed_leaves_packed() -> None:
    x = batch(3, 1, width=4)
    run = torch.compile(lambda x: x.exp() * 2, fullgraph=True, backend="aot_eager")
    assert run(x).is_packed
    torch.testing.assert_close(run(x), x.exp() * 2)
    leaf = x.detach().requires_grad_()
    run(leaf).sum().backward()
    assert leaf.grad.is_packed
    torch.testing.assert_close(leaf.grad, (x.exp() * 2).detach())


@pytest.mark.parametrize("dims", [(1, 0, 2), (0, 2, 1)])
def test_in_another_order_it_stays_packed(dims: tuple[int, ...]) -> None:
    x = batch(3, 1, width=4).permute(dims)
    run = torch.compile(lambda x: x.exp() * 2, fullgraph=True, backend="aot_eager")
    assert run(x).is_packed
    torch.testing.assert_close(run(x), x.exp() * 2)


JOINS = {
    "stack": lambda x: torch.stack([x, x * x], -1),
    "cat of features": lambda x: torch.cat([x, x * x], -1),
    "cat over time": lambda x: torch.cat([x, x * x], 1),
    "cat of batches": lambda x: torch.cat([x, x * x]),
}


@pytest.mark.parametrize("name", JOINS)
def test_joins_where_no_size_is_a_number(name: str) -> None:
    run = torch.compile(JOINS[name], fullgraph=True, backend="eager", dynamic=True)
    for lengths in ([3, 1], [2, 4, 4]):
        x = batch(*lengths, width=4)
        assert_same(run(x), JOINS[name](x.unpacked()), name)


def test_what_a_shape_does_not_tell_leaves_spread() -> None:
    x = batch(3, 1, width=4)
    run = torch.compile(lambda x: (x.flatten(0, 1), x.masked_fill(x > 0, 0)), fullgraph=True, backend="aot_eager")
    for actual, expected in zip(run(x), (x.flatten(0, 1), x.masked_fill(x > 0, 0)), strict=True):
        torch.testing.assert_close(actual, expected)


def test_rows_of_two_inputs_are_never_taken_for_the_same() -> None:
    run = torch.compile(lambda a, b: a * b + b, fullgraph=True, backend="aot_eager")
    same = batch(3, 1)
    for a, b in ((same, same * 2), (batch(3, 1), batch(1, 3)), (batch(3, 2), batch(1, 3)), (batch(4), batch(4))):
        torch.testing.assert_close(run(a, b), a * b + b)


def outcome(run: Callable[[Tensor], tuple[Any, ...]], x: Tensor) -> tuple[tuple[Any, ...], Any]:
    leaf = x.detach().requires_grad_()
    results = run(leaf)
    total = [(r.filled(0) if type(r) is MaskedTensor else r).sin().sum() for r in results if r.requires_grad]
    return results, torch.autograd.grad(sum(total), leaf, allow_unused=True)[0] if total else None


def compare(steps: list[Step], run: Any, compiled: Any, data: Tensor, mask: Tensor) -> None:
    x = mt.as_masked_tensor(torch.where(mask, data, torch.nan), mask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, gradient = outcome(run, x)
        results, packed_gradient = outcome(compiled, x.packed())
    for step, a, e in zip(steps, results, expected, strict=True):
        assert_same(a, e, getattr(step, "__qualname__", ""))
    if gradient is not None:
        assert_same(packed_gradient, gradient, "gradient")


def fits(step: Callable[[Tensor], Any], data: Tensor) -> bool:
    """Whether plain data can take the step."""
    try:
        step(data)
    except (RuntimeError, IndexError, ValueError):
        return False
    return True


@pytest.mark.parametrize("group", range(GROUPS))
def test_steps_of_packed_programs(group: int) -> None:
    """Each step of the random programs, several in one graph."""
    rng = random.Random(group)
    data = drawn(rng, (3, 4, 2), positive=True)
    steps = []
    for make in STEPS[group::GROUPS]:
        step = next((s for s in (make(rng, data) for _ in range(20)) if s is not None and fits(s, data)), None)
        if step is not None and not getattr(step, "rounds", False):
            steps.append(step)

    def function(x: Tensor) -> tuple[Any, ...]:
        results = [step(x) for step in steps]
        return tuple(r[0] if isinstance(r, tuple) else r for r in results)

    mask = mask_of(("prefix", "rows", "scattered")[group % 3], (3, 4, 2), rng)
    compare(steps, function, torch.compile(function, backend="aot_eager"), data, mask)


@pytest.mark.filterwarnings("ignore:.* joins valid features to masked steps")  # drawn joins
@pytest.mark.parametrize("seed", [0, 3, 5, 8])
def test_chains_of_steps_on_other_rows(seed: int) -> None:
    """Steps one after the other in one graph, which is then given other rows."""
    rng = random.Random(seed)
    data = drawn(rng, (rng.randint(2, 4), rng.randint(3, 5), 4), positive=True)
    steps = [s for s in program(rng, data) if not getattr(s, "rounds", False)]

    def function(x: Any) -> tuple[Any, ...]:
        results = []
        for step in steps:
            x = step(x)
            x = x[0] if isinstance(x, tuple) else x
            results.append(x)
        return tuple(results)

    compiled = torch.compile(function, backend="aot_eager")
    for kind in ("prefix", "rows", "prefix", "nothing"):
        compare(steps, function, compiled, data, mask_of(kind, tuple(data.shape), rng))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch 2.15's own check looks at it
def test_attention_in_a_graph_is_one_op() -> None:
    q, k, v = (torch.randn(9, 2, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))
    lengths = torch.tensor([3, 0, 3, 3])
    op = torch.ops.masked_tensor.attend.default
    seed = torch.tensor(7)
    torch.library.opcheck(op, (q, k, v, lengths, None, 0.0, True, 0.3))
    quick = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(op, (q, k, v, lengths, seed, 0.4, True, 0.3), test_utils=quick)
    for options in ((None, 0.0, False, None), (seed, 0.4, False, None), (seed, 1.0, True, None)):
        run = lambda q, k, v, options=options: op(q, k, v, lengths, *options)[0]  # noqa: E731
        assert torch.autograd.gradcheck(run, (q, k, v), fast_mode=True)
    assert torch.autograd.gradgradcheck(
        lambda *given: op(*given, lengths, seed, 0.4, True, None)[0], (q, k, v), fast_mode=True
    )
    assert not op(q, k, v, lengths, seed, 1.0, True, None)[0].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_of_attention_in_a_graph_pads_nothing(dtype: torch.dtype) -> None:
    """Values that name their step show each weight: of a step of another sequence 0, else 0 or twice as much."""
    T, lengths = 8, [5, 8, 2]
    step = torch.compile(
        lambda v: F.scaled_dot_product_attention(v * 0, v * 0, v, dropout_p=0.5), fullgraph=True, backend="aot_eager"
    )
    v = mt.from_sequences([torch.eye(T, dtype=dtype)[:n] for n in lengths], packed=True)
    leaf = v[:, None].expand(-1, 2, -1, -1).clone().requires_grad_()
    with mt.extend.packing_report() as spread:
        out = step(leaf)
    assert not spread
    assert out.is_packed
    seen = out.filled(0).detach()
    for row, n in zip(seen, lengths, strict=True):
        assert set(row[:, :n, :n].unique().tolist()) == {0.0, torch.tensor(2 / n, dtype=dtype).item()}
        assert not row[:, n:].any()
        assert not row[:, :, n:].any()
    assert not seen[0, 0].equal(seen[0, 1])
    assert not step(leaf).filled(0).equal(seen)  # another seed
    grad = torch.randn(seen.shape, dtype=dtype)
    out.backward(grad)
    torch.testing.assert_close(leaf.grad.filled(0), seen.mT @ grad)


def test_attention_in_half_precision() -> None:
    net = Attention(True).bfloat16()
    x = batch(5, 2, 3, width=6, dtype=torch.bfloat16)
    result = torch.compile(net, fullgraph=True, backend="aot_eager")(x)
    assert result.dtype is torch.bfloat16
    torch.testing.assert_close(result, net(x.unpacked()))


@pytest.mark.parametrize("order", ["natural", "turned", "scattered"])
def test_guards_tell_the_parts_of_packed_inputs_apart(order: str) -> None:
    for _ in range(6):  # by addresses it would go wrong now and then
        torch.compiler.reset()
        x, other = batch(3, 2), batch(3, 2)
        if order == "turned":
            x, other = x.transpose(1, 2), other.transpose(1, 2)
        elif order == "scattered":
            x, other = x.masked_fill(x > 1, 0), other.where(other > 0, other.unpacked())
        function = torch.compile(lambda a, b, c: a * b + c, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(function(x, x, other), x * x + other)
        torch.testing.assert_close(function(x, x, other), x * x + other)


def test_a_write_into_a_packed_input_is_refused_or_done() -> None:
    def double(x):
        x.mul_(2)
        return x + 1

    x = batch(3, 2)
    before = x.clone()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="cannot write into a packed input"):
        torch.compile(double, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(x, before)
    torch.compiler.reset()
    result = torch.compile(double, backend="aot_eager")(x)  # Dynamo leaves that op to eager code
    torch.testing.assert_close(x, before * 2)
    torch.testing.assert_close(result, before * 2 + 1)


@pytest.mark.parametrize("view", [lambda x: x[0], lambda x: x.transpose(1, 2), lambda x: x[..., 0], lambda x: x[:, 1:]])
def test_the_refusal_names_the_way_out_for_a_view_too(view: Callable[[Any], Any]) -> None:
    def written(x):
        view(x).zero_()
        return x

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"call it with x\.unpacked"):
        torch.compile(written, backend="aot_eager", fullgraph=True)(batch(2, 1))


def test_packing_belongs_before_the_graph() -> None:
    x = batch(3, 2).unpacked()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Call it outside the compiled function"):
        torch.compile(lambda x: x.packed() * 2, backend="aot_eager", fullgraph=True)(x)
    torch.compiler.reset()
    result = torch.compile(lambda x: x.packed() * 2, backend="aot_eager")(x)  # in eager code, between two graphs
    assert result.is_packed
    torch.testing.assert_close(result, x * 2)
    torch.compiler.reset()
    back = torch.compile(lambda x: (x * 2).unpacked().flip(1), backend="aot_eager", fullgraph=True)(x.packed())
    torch.testing.assert_close(back, (x * 2).flip(1))


@pytest.mark.parametrize("packed", [False, True])
def test_a_view_outlives_its_base_in_a_graph(packed: bool) -> None:
    def function(x):
        y = x * 1
        view = y.view(-1)
        y[..., 0] *= 3
        return view + y.reshape(-1)  # the last node that needs y

    x = batch(3, 2)
    x = (x if packed else x.unpacked()).requires_grad_()
    (expected,) = torch.autograd.grad(function(x).sin().sum(), x)
    (result,) = torch.autograd.grad(torch.compile(function, backend="aot_eager", fullgraph=True)(x).sin().sum(), x)
    torch.testing.assert_close(result, expected)


def test_a_write_into_a_result_reaches_who_shares_it_or_is_refused() -> None:
    x = batch(3, 2)
    turn = torch.compile(lambda x: x.transpose(0, 1), backend="aot_eager", fullgraph=True)
    turned = turn(x)
    for one in (turned, x):
        with pytest.raises(mt.UnsupportedOpError, match="shares its values"):
            one.mul_(5)
    before = x.clone()
    turned = turned.clone().mul_(5)
    torch.testing.assert_close(turned, before.transpose(0, 1) * 5)
    x.mul_(2)  # nobody else is left
    torch.testing.assert_close(turn(x), before.transpose(0, 1) * 2)
    torch.compiler.reset()
    first, second = torch.compile(lambda x: ((y := x * 2), y.transpose(0, 1)), backend="aot_eager")(x)
    with pytest.raises(mt.UnsupportedOpError, match="shares its values"):
        first[:, 0].zero_()
    del second
    first[:, 0].zero_()
    assert first[:, 0].sum() == 0


def test_what_lies_in_masked_entries_within_rows_stays_out_of_graphs() -> None:
    data = torch.tensor([[[1.0, torch.nan], [2.0, 3.0]], [[torch.inf, 5.0], [torch.nan, torch.nan]]])
    x = mt.as_masked_tensor(data, data.isfinite()).packed()
    weight = torch.randn(2, 3)
    for function in (lambda x: x @ weight, lambda x: (x * 2).mean(), lambda x: torch.layer_norm(x, (2,))):
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x).filled(0), function(x).filled(0))
