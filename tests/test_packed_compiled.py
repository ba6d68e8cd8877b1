"""Packed tensors as inputs of compiled functions: a graph is given a copy, spread, and never loses a write."""

import pytest
import torch

import masked_tensor as mt


def batch(*lengths: int, width: int = 2, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return mt.pad_sequence([torch.randn(n, width, dtype=dtype) for n in lengths]).packed()


@pytest.fixture(autouse=True)
def fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("order", ["natural", "turned"])
def test_guards_tell_the_parts_of_packed_inputs_apart(order: str) -> None:
    for _ in range(6):  # by addresses it would go wrong now and then
        torch.compiler.reset()
        x, other = batch(3, 2), batch(3, 2)
        if order == "turned":
            x, other = x.transpose(1, 2), other.transpose(1, 2)
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


def test_the_refusal_names_the_way_out_for_a_view_too() -> None:
    def written(x):
        x[0].zero_()
        return x

    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"call it with x\.unpacked"):
        torch.compile(written, backend="aot_eager", fullgraph=True)(batch(2, 1))


def test_what_a_graph_returns_is_not_what_it_is_given_next() -> None:
    x = batch(3, 2)
    turn = torch.compile(lambda x: x.transpose(0, 1), backend="aot_eager", fullgraph=True)
    turned = turn(x)
    turned.mul_(5)
    torch.testing.assert_close(turn(x), x.unpacked().transpose(0, 1))


def test_new_lengths_take_no_new_graph() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Linear(4, 1))
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    function = torch.compile(lambda x: model(x).square().mean().filled(0), backend=counter, fullgraph=True)
    for lengths in ((3, 2), (5, 1, 4), (2, 2), (6, 3)):
        x = batch(*lengths)
        model.zero_grad()
        function(x).backward()
        ours = [p.grad for p in model.parameters()]
        model.zero_grad()
        model(x.unpacked()).square().mean().filled(0).backward()
        for p, grad in zip(model.parameters(), ours, strict=True):
            torch.testing.assert_close(grad, p.grad)
    assert counter.frame_count <= 3


def test_what_lies_in_holes_within_rows_stays_out_of_graphs() -> None:
    data = torch.tensor([[[1.0, torch.nan], [2.0, 3.0]], [[torch.inf, 5.0], [torch.nan, torch.nan]]])
    x = mt.as_masked_tensor(data, data.isfinite()).packed()
    weight = torch.randn(2, 3)
    for function in (lambda x: x @ weight, lambda x: (x * 2).mean(), lambda x: torch.layer_norm(x, (2,))):
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x).filled(0), function(x).filled(0))
