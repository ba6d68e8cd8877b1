"""The functional forms under torch.compile (one graph), on meta tensors, and twice differentiated."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter
from torch.autograd import gradgradcheck

import masked_tensor as mt
from masked_tensor.compat import IS_OLD

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(4, 6, generator=GENERATOR, dtype=torch.float64)
M = torch.rand(4, 6, generator=GENERATOR) < 0.6
M[1] = False

FORMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": lambda x, m: mt.sum(x, 1, mask=m),
    "mean": lambda x, m: mt.mean(x, 1, mask=m),
    "prod": lambda x, m: mt.prod(x, (0, 1), mask=m),
    "amax": lambda x, m: mt.amax(x, 1, mask=m),
    "argmax": lambda x, m: mt.argmax(x, 1, mask=m),
    "median": lambda x, m: mt.median(x, 1, mask=m).values,
    "max": lambda x, m: mt.max(x, 1, mask=m, min_count=2).values,
    "var": lambda x, m: mt.var(x, 1, mask=m),
    "norm": lambda x, m: mt.norm(x, 2, 1, mask=m),
    "logsumexp": lambda x, m: mt.logsumexp(x, 1, mask=m),
    "softmax": lambda x, m: mt.softmax(x, 1, mask=m),
    "cumsum": lambda x, m: mt.cumsum(x, 1, mask=m),
    "normalize": lambda x, m: mt.normalize(x, 2, 1, mask=m),
    "mse_loss": lambda x, m: mt.mse_loss(x, torch.ones_like(x), mask=m),
    "min_count": lambda x, m: mt.sum(x, 1, mask=m, min_count=3, fill_value=0.0),
}


BREAKS = pytest.mark.xfail(IS_OLD, reason="Dynamo of torch 2.11 does not know id() of what a graph makes", strict=True)


@pytest.mark.parametrize("name", [pytest.param(n, marks=BREAKS) if n == "prod" else n for n in FORMS])
def test_compiles_into_one_graph(name: str) -> None:
    form = FORMS[name]
    torch._dynamo.reset()
    results = []
    for function in (form, torch.compile(form, fullgraph=True, backend="aot_eager")):
        x = X.clone().requires_grad_()
        out = function(x, M)
        if out.requires_grad:
            out.nan_to_num(0, 0, 0).sum().backward()
        results.append((out.detach(), x.grad))
    (eager, eager_grad), (compiled, compiled_grad) = results
    torch.testing.assert_close(compiled, eager, equal_nan=True)
    torch.testing.assert_close(compiled_grad, eager_grad)


@pytest.mark.parametrize("name", FORMS)
def test_meta_tensors(name: str) -> None:
    out = FORMS[name](X.to("meta"), M.to("meta"))
    plain = FORMS[name](X, M)
    assert out.is_meta
    assert (out.shape, out.dtype) == (plain.shape, plain.dtype)


@pytest.mark.parametrize("name", [n for n in FORMS if n not in ("argmax", "min_count")])
def test_gradgradcheck(name: str) -> None:
    x = X.clone().requires_grad_()
    assert gradgradcheck(
        lambda x: FORMS[name](x, M).nan_to_num(0, 0, 0), (x,), check_batched_grad=False, fast_mode=True
    )


def test_a_functional_form_itself_is_compiled() -> None:
    counter = CompileCounter()
    softmax = torch.compile(mt.softmax, backend=counter, fullgraph=True)
    x, mask = torch.randn(3, 4), torch.arange(12).view(3, 4) % 3 > 0
    torch.testing.assert_close(softmax(x, 1, mask=mask), mt.softmax(x, 1, mask=mask))
    assert counter.frame_count == 1


WORDS = torch.randn(2, 3, 4, generator=GENERATOR)
TOKENS = torch.tensor([[1, 1, 0], [1, 0, 0]])
OF_A_TOKENIZER: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "from_attention_mask": lambda x, m: mt.from_attention_mask(x, m).mean(1).filled(0.0),
    "from_attention_mask of a dict": lambda x, m: (
        mt.from_attention_mask({"words": x, "attention_mask": m, "task": "ner"})["words"].sum((0, 1)).filled(0.0)
    ),
    "mean": lambda x, m: mt.mean(x, 1, mask=m[..., None]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_A_TOKENIZER)
def test_the_mask_of_a_tokenizer_compiles_into_one_graph(name: str) -> None:
    form = OF_A_TOKENIZER[name]
    hidden = WORDS.masked_fill(TOKENS[..., None] == 0, float("nan"))
    for mask, dynamic in ((TOKENS, True), (TOKENS.bool(), False))[: 2 if name == "from_attention_mask" else 1]:
        torch._dynamo.reset()
        compiled = torch.compile(form, fullgraph=True, backend="aot_eager", dynamic=dynamic)
        found = []
        for function in (form, compiled):
            x = hidden.clone().requires_grad_()
            out = function(x, mask)
            out.nan_to_num(0, 0, 0).sum().backward()
            found.append((out.detach(), x.grad))
        (eager, eager_grad), (traced, traced_grad) = found
        torch.testing.assert_close(traced, eager, equal_nan=True)
        torch.testing.assert_close(traced_grad, eager_grad)


def test_without_a_gradient_it_compiles_as_well() -> None:
    def form(x: Tensor, mask: Tensor) -> Tensor:
        return mt.amax(x, 1, mask=mask[..., None]) + mt.var(x, 1, mask=mask[..., None])

    torch._dynamo.reset()
    compiled = torch.compile(form, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(WORDS, TOKENS), form(WORDS, TOKENS), equal_nan=True)
