"""Second derivatives by an intermediate result: those of plain torch, or an error; by hooks and ``retain_grad``, too.

Ops of torch's database, a few by default, all with ``MASKED_TENSOR_INTERMEDIATES=1``.
"""

import gc
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.testing._internal.common_methods_invocations import op_db

import masked_tensor as mt
from masked_tensor.engine.boundary import intermediates

KEEPS = "with respect to an intermediate masked tensor would be incomplete"
FEW = (
    "exp tanh sigmoid softmax sqrt reciprocal logsumexp cumprod square linear nn.functional.layer_norm relu sin matmul"
)
INFOS = [
    info
    for number, info in enumerate(op_db)
    if info.supports_autograd
    and info.supports_gradgrad
    and torch.float64 in info.supported_dtypes("cpu")
    and (os.environ.get("MASKED_TENSOR_INTERMEDIATES") or info.name in FEW.split() or number % 90 == 0)
]


def second_derivative(op: Callable[..., Any], x: torch.Tensor, args: Any, kwargs: Any) -> torch.Tensor | None:
    """The derivative, by what ``op`` gives, of the squared derivative by what it is given; None without one."""
    result = op(x * 1, *args, **kwargs)
    results = [r for r in (result if isinstance(result, tuple | list) else [result]) if isinstance(r, torch.Tensor)]
    h = next((r for r in results if r.requires_grad), None)
    if h is None:
        return None
    (first,) = torch.autograd.grad(mt.filled((h * h).sum(), 0), x, create_graph=True, allow_unused=True)
    if first is None or not first.requires_grad:
        return None
    (second,) = torch.autograd.grad(mt.filled((first * first).sum(), 0), h, allow_unused=True)
    return None if second is None else mt.filled(second, 0)


@pytest.mark.filterwarnings("ignore")  # torch's own, of its samples
@pytest.mark.parametrize("info", INFOS, ids=lambda info: f"{info.name}.{info.variant_test_name}".rstrip("."))
def test_a_second_derivative_by_an_intermediate_is_plain_torchs_or_raises(info: Any) -> None:
    for sample in info.sample_inputs("cpu", torch.float64, requires_grad=False):
        x = sample.input
        if not isinstance(x, torch.Tensor) or not 0 < x.numel() <= 150 or x.layout is not torch.strided:
            continue
        try:
            wanted = second_derivative(info.op, x.clone().requires_grad_(), sample.args, sample.kwargs)
        except RuntimeError:
            continue
        valid = torch.ones_like(x, dtype=torch.bool)
        try:
            given = mt.masked_tensor(x.clone(), valid, requires_grad=True)
            found = second_derivative(info.op, given, sample.args, sample.kwargs)
        except (RuntimeError, TypeError):  # this one, or that of an op without masked derivatives
            return
        zeros = torch.zeros(())
        torch.testing.assert_close(
            *torch.broadcast_tensors(zeros if found is None else found, zeros if wanted is None else wanted),
            rtol=1e-6,
            atol=1e-8,
            equal_nan=True,
            check_dtype=False,
        )
        return


def softmax(x: Any) -> Any:
    return x.softmax(-1)


def watched(h: Any, how: str) -> None:
    if how == "register_hook":
        h.register_hook(lambda grad: None)
    elif how == "retain_grad":
        h.retain_grad()


def take(h: Any, x: Any, how: str) -> None:
    """The second derivative, by ``h`` or with a look at its gradient."""
    watched(h, how)
    (first,) = torch.autograd.grad((h * h).sum(), x, create_graph=True)
    loss = (first * first).sum()
    if how == "grad":
        torch.autograd.grad(loss, h)
    else:
        loss.backward(inputs=[h] if how == "backward" else None)


@pytest.mark.parametrize("how", ["grad", "backward", "register_hook", "retain_grad"])
@pytest.mark.parametrize("op", [softmax, torch.exp, torch.tanh, torch.sigmoid])
def test_every_look_at_an_incomplete_gradient_raises(op: Callable[[Any], Any], how: str) -> None:
    x = mt.masked_tensor([[1.0, None, 3.0]], requires_grad=True)
    with pytest.raises(RuntimeError, match=KEEPS):
        take(op(x * 1), x, how)


@pytest.mark.parametrize("how", ["grad", "backward", "register_hook", "retain_grad"])
@pytest.mark.parametrize("op", [torch.square, torch.relu, lambda x: F.layer_norm(x, (3,)), lambda x: x @ torch.eye(3)])
def test_a_look_at_a_complete_gradient_does_not(op: Callable[[Any], Any], how: str) -> None:
    x = mt.masked_tensor([[1.0, None, 3.0]], requires_grad=True)
    take(op(x * 1), x, how)


def test_leaves_and_functions_have_the_whole_second_derivative() -> None:
    """By a leaf nothing is missing; ``torch.func`` is the way out that the error names."""
    values = torch.tensor([[0.3, 1.0, -0.5]], dtype=torch.float64)
    valid = torch.tensor([[True, True, False]])
    x = mt.masked_tensor(values, valid, requires_grad=True)
    h = softmax(x * 1)
    (first,) = torch.autograd.grad((h * h).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    plain = values[:, :2].clone().requires_grad_()
    g = softmax(plain * 1)
    (one,) = torch.autograd.grad((g * g).sum(), plain, create_graph=True)
    (two,) = torch.autograd.grad((one * one).sum(), plain)
    torch.testing.assert_close(second.filled(0)[:, :2], two)
    assert second.filled(0)[0, 2] == 0


def test_no_pass_looks_for_what_was_watched_in_graphs_that_are_gone() -> None:
    x = mt.masked_tensor([[1.0, None, 3.0]], requires_grad=True)
    gc.collect()
    before = len(intermediates.WATCHED)
    for op in (torch.square, torch.exp):
        h = op(x * 1)
        h.register_hook(lambda gradient: None)
        assert len(intermediates.WATCHED) == before + 1
        del h
        gc.collect()
        assert len(intermediates.WATCHED) == before
