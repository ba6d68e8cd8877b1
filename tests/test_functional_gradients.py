"""Gradients of the functional forms with respect to stored values: in the input's layout and pattern."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import masked_tensor.functional as masked
from masked_tensor import layouts
from masked_tensor.layouts.elements import canonical, same_pattern

from .helpers.examples import INPUTS, masks_of
from .matrix import ALONG, REDUCTIONS, Positions

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),  # inside gradcheck
]

WHOLE = bool(os.environ.get("MASKED_TENSOR_LAWS"))  #: each form and layout with both masks, not in turn
NO_GRADIENT = ("any", "all", "count_nonzero", "norm 0")
AS_ANOTHER = ("aminmax min", "aminmax max", "var_mean var", "var_mean mean", "std_mean std", "std_mean mean")
FORMS: dict[str, Callable[..., Tensor]] = {
    name: (lambda x, mask, form=row.form: form(x, dim=-1, mask=mask))
    for name, row in REDUCTIONS.items()
    if not row.at and name not in (*NO_GRADIENT, *AS_ANOTHER)
}
FORMS |= {
    name: (lambda x, mask, form=row.form: form(x, -1, mask=mask))
    for name, row in ALONG.items()
    if not isinstance(row, Positions)
}


def distinct(layout: str) -> Tensor:
    """The example with generic values: no ties, no stored zeros, so that every form is differentiable there."""
    x = INPUTS[layout]()
    generator = torch.Generator().manual_seed(1)
    stored = layouts.values(canonical(x))
    return layouts.with_values(canonical(x), stored + torch.rand(stored.shape, generator=generator).double() / 2 + 0.1)


def finite_dense(out: Tensor) -> Tensor:
    if layouts.is_sparse(out):  # by hand: torch's own to_dense has no backward for batched layouts
        values = layouts.values(out)
        out = values.new_zeros(out.shape.numel()).index_put((layouts.keys(out.detach()),), values).view(out.shape)
    return out.nan_to_num(0, 0, 0)


@pytest.mark.parametrize("layout", [name for name in INPUTS if "batched" not in name])  # gradcheck cannot iterate it
@pytest.mark.parametrize("name", FORMS)
def test_gradcheck(name: str, layout: str) -> None:
    turn = (list(FORMS).index(name) + list(INPUTS).index(layout)) % 2
    for mask_name in ("none", "coo") if WHOLE else ("none", "coo")[turn : turn + 1]:
        mask = masks_of(tuple(INPUTS[layout]().shape))[mask_name]
        x = distinct(layout).requires_grad_()
        options: dict[str, Any] = {"masked": True, "check_batched_grad": False, "check_undefined_grad": False}
        assert gradcheck(lambda x: finite_dense(FORMS[name](x, mask)), (x,), **options), mask_name  # noqa: B023


@pytest.mark.parametrize("layout", INPUTS)
def test_the_gradient_has_the_pattern_of_the_input(layout: str) -> None:
    x = distinct(layout).requires_grad_()
    dense = x.detach().to_dense().requires_grad_()
    keys = layouts.elements.keys(canonical(x.detach()))
    for mask in masks_of(tuple(x.shape)).values():
        sparse_grad, dense_grad = (
            torch.autograd.grad(finite_dense(masked.amax(tensor, -1, mask=mask)).sum(), tensor)[0]
            for tensor in (x, dense)
        )
        assert same_pattern(canonical(sparse_grad), canonical(x.detach()))
        torch.testing.assert_close(layouts.values(canonical(sparse_grad)), dense_grad.reshape(-1)[keys])


# torch's engine cannot accumulate into leaves of the other layouts ("Sparse CSC tensors do not have is_contiguous")
@pytest.mark.parametrize("layout", ["coo", "coo hybrid", "coo 3-d", "coo uncoalesced", "csr"])
def test_gradients_accumulate(layout: str) -> None:
    x = distinct(layout).requires_grad_()
    dense = x.detach().to_dense().requires_grad_()
    mask = masks_of(tuple(x.shape))["coo"]
    for tensor in (x, dense):
        (
            finite_dense(masked.sum(tensor, 1, mask=mask)) + finite_dense(masked.mean(tensor, 1, mask=mask))
        ).sum().backward()
        finite_dense(masked.amax(tensor, 0, mask=mask)).sum().backward()
    assert x.grad is not None
    assert dense.grad is not None
    assert x.grad.layout is x.layout
    keys = layouts.elements.keys(canonical(x.detach()))
    torch.testing.assert_close(x.grad.to_dense().reshape(-1)[keys], dense.grad.reshape(-1)[keys])


def test_an_uncoalesced_leaf_gets_one_gradient_per_position() -> None:
    x = INPUTS["coo uncoalesced"]().requires_grad_()
    masked.sum(x, 0).to_dense().sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad.to_dense(), torch.ones(x.shape).double() * (x.grad.to_dense() != 0))


def test_double_backward() -> None:
    for layout in ("coo", "csr"):
        x = distinct(layout).requires_grad_()
        out = masked.logsumexp(x, 1, mask=masks_of((4, 6))["coo"]).to_dense()
        (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(layouts.values(grad).square().sum(), x)
        assert second.layout is x.layout
        assert layouts.values(second).abs().sum() > 0


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("dirt", [float("nan"), float("inf")])
def test_what_the_mask_hides_reaches_no_gradient(layout: str, dirt: float) -> None:
    mask = masks_of(tuple(INPUTS[layout]().shape))["strided"]
    for name, form in FORMS.items():
        clean = distinct(layout)
        stored = layouts.values(clean)
        keys = layouts.elements.keys(clean)
        hidden = ~mask.reshape(-1)[keys]
        results = []
        for values in (stored, torch.where(hidden, dirt, stored)):
            x = layouts.with_values(clean, values).requires_grad_()
            out = finite_dense(form(x, mask))
            (grad,) = torch.autograd.grad(out.sum(), x)
            results.append((out.detach(), layouts.values(canonical(grad))))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, msg=lambda m, n=name: f"{n}: {m}")
        assert (results[1][1][hidden] == 0).all(), name
