"""The table of kernels: which one serves a call, and what autograd makes of it."""

from contextlib import contextmanager

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import masked_tensor as mt
from masked_tensor import kernels
from masked_tensor.extend import register_kernel, run_kernel
from masked_tensor.kernels import Kernel, table, watching

NAN = float("nan")


def triple(x: Tensor, y: Tensor | None, factor: float) -> tuple[Tensor, Tensor]:
    """The formula: a product, and a count that has no gradient."""
    result = x * x * factor if y is None else x * y * factor
    return result, (x.detach() > 0).sum()


def forward(x, y, factor):
    return triple(x, y, factor), (x, y)


def backward(saved, grads, factor):
    CALLS.append("backward")
    (x, y), (grad, none) = saved, grads
    assert none is None
    return (2 * x * grad * factor, None) if y is None else (y * grad * factor, x * grad * factor)


CALLS: list[str] = []


def count_forward(x, y, factor):
    CALLS.append("forward")
    return forward(x, y, factor)


@pytest.fixture
def kernel(monkeypatch):
    """A kernel of the CPU for as long as the test runs."""
    CALLS.clear()
    made = Kernel(
        count_forward, backward, lambda x, *_: "no numbers" if x.numel() == 0 else None, constant=lambda factor: (1,)
    )
    monkeypatch.setitem(kernels.KERNELS, ("triple", "cpu"), made)
    return made


def run(x: Tensor, y: Tensor | None = None) -> tuple[Tensor, Tensor]:
    return kernels.run("triple", triple, (x, y), 3.0)


def test_the_kernel_serves_memory_and_the_formula_the_rest(kernel):
    x = torch.tensor([1.0, -2.0])
    assert run(x)[0].tolist() == [3.0, 12.0]
    assert CALLS == ["forward"]
    run(torch.ones(0))
    run(x.to("meta"))
    torch.func.vmap(run)(x[None])
    torch.func.grad(lambda x: run(x)[0].sum())(x)
    with torch.autograd.forward_ad.dual_level():
        run(torch.autograd.forward_ad.make_dual(x, x))
    with torch._subclasses.FakeTensorMode() as mode:
        run(mode.from_tensor(x))
    assert CALLS == ["forward"]


def test_the_gradient_is_the_kernels_and_that_of_the_gradient_the_formulas(kernel):
    x, y = torch.tensor([1.0, -2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    result, count = run(x, y)
    assert not count.requires_grad
    given = torch.autograd.grad(result.sum(), (x, y), retain_graph=True)
    assert [g.tolist() for g in given] == [[9.0, 12.0], [3.0, -6.0]]
    assert CALLS == ["forward", "backward"]
    (first,) = torch.autograd.grad((result**2).sum(), x, create_graph=True)
    assert CALLS == ["forward", "backward"]
    torch.testing.assert_close(first, 2 * 9 * x * y * y)
    torch.testing.assert_close(torch.autograd.grad(first.sum(), y)[0], 36 * x * y)


def test_gradients_of_many_at_once_are_the_formulas(kernel):
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    (rows,) = torch.autograd.grad(run(x)[0], x, torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[6.0, 0.0], [0.0, -12.0]]
    assert "backward" not in CALLS


def test_no_gradient_stays_none(kernel):
    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    x = torch.ones(2, requires_grad=True)
    assert torch.autograd.grad(Stop.apply(run(x)[0]).sum(), x, allow_unused=True) == (None,)


def test_a_kernel_that_serves_in_the_others_place(kernel, monkeypatch):
    other = Kernel(lambda x, y, factor: ((x * 0, x), ()), backward, lambda x, *_: "small" if len(x) < 3 else None)
    chain = Kernel(other.forward, other.backward, other.serves, otherwise=kernel)
    monkeypatch.setitem(kernels.KERNELS, ("triple", "cpu"), chain)
    assert run(torch.ones(2))[0].tolist() == [3.0, 3.0]
    assert run(torch.ones(3))[0].tolist() == [0.0, 0.0, 0.0]


def test_an_opaque_kernel_is_hidden_from_nobody(kernel, monkeypatch):
    """Who counts or traces ops is given the formula's."""
    opaque = Kernel(kernel.forward, kernel.backward, opaque=True)
    monkeypatch.setitem(kernels.KERNELS, ("triple", "cpu"), opaque)
    with FlopCounterMode(display=False):
        run(torch.ones(2))
    assert CALLS == []
    run(torch.ones(2))
    assert CALLS == ["forward"]


def test_what_a_device_needs_is_imported_when_it_asks(monkeypatch):
    monkeypatch.setitem(table.ROOMS, "meta", ".nowhere")
    assert run(torch.ones(2, device="meta"))[0].is_meta
    assert table.ROOMS.get("meta") is None
    assert "nowhere" in table.MISSING.pop("meta")


def test_softmax_keeps_its_result_alone():
    x = mt.masked_tensor(torch.randn(4, 4), torch.eye(4) == 0).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        torch.softmax(x, -1)
    assert sum(t.is_floating_point() for t in kept) == 1


def test_without_what_kernels_need_the_formula_serves(monkeypatch):
    """Triton, and a GPU for it: neither is here, or not for the CPU."""
    monkeypatch.setitem(table.ROOMS, "cpu", ".gpu.register")
    assert mt.softmax(torch.zeros(2), 0, mask=torch.tensor([True, True])).tolist() == [0.5, 0.5]
    assert table.MISSING.pop("cpu", "") or torch.cuda.is_available()


def test_explain_says_which_kernel_serves_and_why_another_does_not():
    x = mt.masked_tensor(torch.randn(4, 4), torch.eye(4) == 0)
    asked = mt.explain(torch.softmax, x, -1).splitlines()
    assert asked[0].startswith("aten::softmax")
    assert asked[-1] == "kernel  softmax, on cpu: serves"
    assert mt.explain("sum", x, 1).splitlines()[-1].endswith("of fewer than 524288 elements the formula costs less")
    assert mt.explain(torch.nn.LayerNorm(4), x).splitlines()[-1].startswith("kernel  standardize, on cpu: does not")
    assert mt.explain(torch.exp, x).splitlines()[-1] == "kernel  none is asked: the rule is a formula"
    assert kernels.KERNELS["sum", "cpu"].least == "LARGE", "the table is as it was"


def test_a_kernel_of_ones_own_is_asked_first(monkeypatch):
    for key in (("softmax", "cpu"), ("sum", "cpu")):
        monkeypatch.setitem(kernels.KERNELS, key, kernels.KERNELS[key])  # put back at the end
    seen = []

    def forward(data, mask, dim, log):
        seen.append(dim)
        return data.masked_fill(~mask, -float("inf")).softmax(dim).masked_fill(~mask, 0), (mask,)

    register_kernel("softmax", "cpu", forward, serves=lambda data, mask, dim, log: "a logarithm" if log else None)
    x = mt.masked_tensor(torch.tensor([[1.0, NAN, 1.0]]), torch.tensor([[True, False, True]]))
    assert x.softmax(1).tolist() == [[0.5, None, 0.5]]
    x.log_softmax(1)
    x.clone().requires_grad_().softmax(1)
    assert seen == [1], "it has no backward, and serves no logarithm"
    with pytest.raises(ValueError, match="no rule asks for a kernel named 'softmin': explain"):
        register_kernel("softmin", "cpu", forward)


def test_a_rule_of_ones_own_asks_for_a_kernel_of_ones_own(monkeypatch):
    monkeypatch.setattr(table, "KERNELS", dict(kernels.KERNELS))
    monkeypatch.setattr("masked_tensor.extend.kernels.KERNELS", table.KERNELS)
    calls = []

    def formula(data, mask, dim):
        return data.where(mask, 0).square().sum(dim)

    def forward(data, mask, dim):
        calls.append("forward")
        return formula(data, mask, dim), (data, mask)

    def backward(saved, grad, dim):
        calls.append("backward")
        data, mask = saved
        return (2 * grad.unsqueeze(dim) * data).where(mask, 0), None

    def few(data, mask, dim):
        return None if data.dim() < 3 else "too many dimensions"

    def energy(x, mask):
        return run_kernel("own_kernels::energy", formula, (x, mask), -1)

    register_kernel("own_kernels::energy", "cpu", forward, backward, serves=few)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    x = torch.tensor([[1.0, NAN, 2.0], [NAN, 1e30, float("inf")]], dtype=torch.float64, requires_grad=True)
    assert energy(x, mask).tolist() == [5.0, 0.0]
    energy(x, mask).sum().backward()
    assert x.grad.tolist() == [[2.0, 0.0, 4.0], [0.0, 0.0, 0.0]]
    assert calls == ["forward", "forward", "backward"]
    assert energy(x[None], mask[None]).tolist() == [[5.0, 0.0]]
    assert torch.func.vmap(energy)(x, mask).tolist() == [5.0, 0.0]
    assert len(calls) == 3, "the formula runs for what the kernel refuses, and for what is transformed"
    start = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: energy(x, mask), start)


@pytest.mark.parametrize("name", ["loss", "class_loss", "norm2"])
def test_a_kernel_may_be_registered_for_what_the_cpu_has_none_for(name, monkeypatch):
    monkeypatch.setattr("masked_tensor.extend.kernels.KERNELS", {})
    register_kernel(name, "cpu", lambda *_: None)
    with pytest.raises(ValueError, match="has a namespace, 'library::name'"):
        register_kernel("norm3", "cpu", lambda *_: None)


def test_explain_prints_what_is_told_while_it_watches(monkeypatch):
    @contextmanager
    def teller(lines):
        lines.append("reduce._reduce: compiled, at its first call")
        yield

    monkeypatch.setattr(watching, "TELLERS", [teller])
    x = mt.masked_tensor([1.0, None])
    assert "kernel  reduce._reduce: compiled, at its first call" in mt.explain("sum", x, 0).splitlines()
