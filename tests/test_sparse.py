"""MaskedTensor over sparse data: what is specified is valid, unless the mask stores an explicit False."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor, layouts
from masked_tensor.engine.tensor import pair_of
from masked_tensor.errors import UnsupportedOpError

from .helpers.sparse_cases import CONVERT

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
]
DATA = torch.tensor([[0.0, 0.5, 3.0, 0.0], [4.0, 0.0, 5.0, -1.0]])
MASK = torch.tensor([[False, True, True, True], [False, False, True, True]])  # a valid zero at (0, 3)


def dense() -> MaskedTensor:
    return mt.masked_tensor(DATA, MASK)


def same(actual: Tensor, expected: Tensor) -> None:
    actual = actual.to_dense() if actual.layout is not torch.strided else actual
    assert type(actual) is MaskedTensor
    assert type(expected) is MaskedTensor
    assert torch.equal(actual.get_mask(), expected.get_mask())
    torch.testing.assert_close(actual.filled(0).detach(), expected.filled(0).detach(), equal_nan=True)


def test_the_predecessors_sparse_tutorial() -> None:
    values = torch.tensor([[0, 0, 3], [4, 0, 5]])
    mask = torch.tensor([[False, False, True], [False, False, True]])
    x = mt.masked_tensor(values.float(), mask)
    for sparse in (x.to_sparse_coo(), x.to_sparse_csr()):
        assert layouts.values(pair_of(sparse).data).tolist() == [3, 5]
        torch.testing.assert_close(
            sparse.sin().to_dense().filled(0)[:, 2], torch.tensor([0.1411, -0.9589]), atol=1e-4, rtol=0
        )
        other = mt.masked_tensor([[9.0, 9.0, 20.0], [9.0, 9.0, 40.0]], mask)
        other = other.to_sparse_coo() if sparse.layout is torch.sparse_coo else other.to_sparse_csr()
        assert torch.mul(sparse, other).tolist() == [[None, None, 60], [None, None, 200]]
        torch.testing.assert_close(torch.div(other, sparse).to_dense()[:, 2].filled(0), torch.tensor([20 / 3, 8.0]))
        assert sparse.sum().item() == 8
        assert sparse.amin().item() == 3


def test_the_mask_is_the_pattern() -> None:
    indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
    data = torch.sparse_coo_tensor(indices, torch.tensor([3.0, 4.0, 5.0]), (2, 3), check_invariants=True)
    explicit = torch.sparse_coo_tensor(indices, torch.tensor([True, False, True]), (2, 3), check_invariants=True)
    short = torch.sparse_coo_tensor(indices[:, ::2], torch.tensor([True, True]), (2, 3), check_invariants=True)
    first, second = mt.masked_tensor(data, explicit), mt.masked_tensor(data, short)
    assert (first._nnz(), second._nnz()) == (3, 2)
    same(first, second.to_dense())
    same(first + second, (first.to_dense() + second.to_dense()))  # an error in the predecessor
    whole = mt.masked_tensor(data)
    assert whole.to_dense().get_mask().tolist() == [[False, False, True], [True, False, True]]
    same(mt.as_masked_tensor(data, explicit), first.to_dense())


@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize(
    "function",
    [torch.sin, torch.cos, torch.exp, torch.neg, lambda x: x + 1, lambda x: 2 / x, lambda x: x > 1, torch.isfinite,
     lambda x: x.clamp(max=1), lambda x: x.to(torch.float64), lambda x: x * torch.tensor([[2.0], [3.0]]),
     lambda x: x - torch.arange(4.0), torch.relu, torch.sigmoid, torch.zeros_like, torch.clone],
)  # fmt: skip
def test_elementwise(function: Callable[[Any], Any], layout: str) -> None:
    x = CONVERT[layout](dense())
    out = function(x)
    assert out.layout is x.layout
    same(out, function(dense()))


@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize(
    "function",
    [torch.sum, torch.mean, torch.amax, torch.amin, torch.prod, torch.any, torch.all, torch.logsumexp, torch.nansum,
     torch.var, torch.std, torch.argmax, torch.linalg.vector_norm],
)  # fmt: skip
def test_reductions(function: Callable[..., Any], layout: str) -> None:
    x = CONVERT[layout](dense())
    for dim in (0, 1):
        for keepdim in (False, True):
            arguments = {"dim": dim, "keepdim": keepdim}
            same(function(x, **arguments), function(dense(), **arguments))
    if function not in (torch.logsumexp, torch.argmax, torch.var, torch.std):
        same(function(x), function(dense()))
    if function is torch.amax:
        for dim in (0, 1):
            for a, b in zip(torch.max(x, dim), torch.max(dense(), dim), strict=True):
                same(a, b)


@pytest.mark.parametrize("layout", CONVERT)
def test_softmax(layout: str) -> None:
    x = CONVERT[layout](dense())
    for dim in (0, 1):
        same(x.softmax(dim), dense().softmax(dim))
        same(x.log_softmax(dim), dense().log_softmax(dim))
        same(mt.softmax(x, dim), dense().softmax(dim))


@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize("function", [torch.cumsum, torch.cumprod, torch.logcumsumexp])
def test_scans(function: Callable[..., Any], layout: str) -> None:
    x = CONVERT[layout](dense())
    for dim in (0, 1):
        same(function(x, dim), function(dense(), dim))


@pytest.mark.parametrize("layout", CONVERT)
def test_functional_forms_keep_masked_tensors_masked(layout: str) -> None:
    x = CONVERT[layout](dense())
    more = torch.tensor([[True, False, True, True], [True] * 4])
    for name in ("sum", "mean", "amax", "argmin", "std"):
        same(getattr(mt, name)(x, 1), getattr(mt, name)(dense(), 1))
        same(getattr(mt, name)(x, 1, mask=more), getattr(mt, name)(dense(), 1, mask=more))
        same(getattr(mt, name)(x, 1, mask=more.to_sparse()), getattr(mt, name)(dense(), 1, mask=more))


@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize("payload", [0.0, float("nan"), float("inf")])
def test_products_with_dense_matrices(layout: str, payload: float) -> None:
    data = torch.where(MASK, DATA, payload)
    x = CONVERT[layout](mt.as_masked_tensor(data, MASK))
    generator = torch.Generator().manual_seed(0)
    right, left = torch.randn(4, 3, generator=generator), torch.randn(3, 2, generator=generator)
    vector, masked = (
        torch.randn(4, generator=generator),
        mt.masked_tensor(right, torch.rand(4, 3, generator=generator) < 0.5),
    )
    for other in (right, vector, masked):
        same(x @ other, dense() @ other)
    same(left @ x, left @ dense())
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        x @ torch.ones(3, 3)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(-1, 0),
    "T": lambda x: x.T,
    "reshape": lambda x: x.reshape(4, -1),
    "view": lambda x: x.view(2, 2, 2),
    "flat": lambda x: x.reshape(-1),
    "flip": lambda x: x.flip(0, -1),
    "flip nothing": lambda x: x.flip(()),
    "squeeze": lambda x: x[:1].squeeze(0),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "select": lambda x: x[-1],
    "element": lambda x: x[1, 2],
    "masked entry": lambda x: x[0, 0],
    "slice": lambda x: x[:, 1:],
    "step": lambda x: x[:, ::2],
    "empty slice": lambda x: x[:, 2:2],
    "iterate": lambda x: list(x)[1],
}


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")  # of the view of a masked entry
@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize("name", VIEWS)
def test_views(name: str, layout: str) -> None:
    leaf, strided = CONVERT[layout](dense()), dense()
    same(VIEWS[name](leaf), VIEWS[name](strided))
    if layout in ("coo", "csr"):
        leaf, strided = leaf.detach().requires_grad_(), strided.requires_grad_()
        for x in (leaf, strided):
            out = VIEWS[name](x)
            (out * out).sum().backward()
        same(leaf.grad, strided.grad)


def test_views_refuse_what_torch_refuses() -> None:
    x = dense().to_sparse()
    with pytest.raises(RuntimeError, match=r"shape '\[3, 3\]' is invalid for input of size 8"):
        x.reshape(3, 3)
    with pytest.raises(IndexError, match="index 2 is out of"):
        x[2]
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.flip(2)


SORTS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: x.sort(1),
    "sort columns": lambda x: x.sort(0, descending=True),
    "descending": lambda x: torch.sort(x, -1, True),
    "argsort": lambda x: (x.argsort(1),),
    "topk": lambda x: x.topk(2, 1),
    "topk smallest": lambda x: x.topk(1, 0, largest=False),
    "kthvalue": lambda x: x.kthvalue(2, 1, keepdim=True),
    "median": lambda x: x.median(1),
    "median of all": lambda x: (x.median(),),
    "nanmedian": lambda x: x.nanmedian(0, keepdim=True),
    "mode": lambda x: x.mode(1),
    "quantile": lambda x: (x.quantile(0.3, 1),),
    "nanquantile": lambda x: (x.nanquantile(torch.tensor([0.2, 0.9]), 0, keepdim=True, interpolation="lower"),),
    "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: torch.cummin(x, 0),
    "aminmax": lambda x: x.aminmax(dim=1),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "std_mean": lambda x: torch.std_mean(x, 0, correction=0, keepdim=True),
}


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize("name", SORTS)
def test_order(name: str, layout: str, nan: bool) -> None:
    data = DATA.clone()
    data[0, 2] = float("nan") if nan else 3.0
    strided = mt.as_masked_tensor(data.masked_fill(~MASK, 99.0), MASK)
    for got, expected in zip(SORTS[name](CONVERT[layout](strided)), SORTS[name](strided), strict=True):
        same(got, expected)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "addmm": lambda x, right, rows, bias: torch.addmm(rows, x, right, beta=0.5, alpha=2),
    "addmm of nan": lambda x, right, rows, bias: torch.addmm(torch.full((2, 3), float("nan")), x, right, beta=0),
    "addmv": lambda x, right, rows, bias: torch.addmv(rows[:, 0], x, right[:, 0]),
    "linear": lambda x, right, rows, bias: torch.nn.functional.linear(x, right.t(), bias),
    "linear without bias": lambda x, right, rows, bias: torch.nn.functional.linear(x, right.t()),
    "sparse weight": lambda x, right, rows, bias: torch.nn.functional.linear(right.t(), x),
}


@pytest.mark.parametrize("layout", CONVERT)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_a_summand_and_their_gradients(name: str, layout: str) -> None:
    generator = torch.Generator().manual_seed(0)
    parts = [torch.randn(shape, generator=generator) for shape in ((4, 3), (2, 3), (3,))]
    results = []
    for convert in (CONVERT[layout], lambda x: x):
        x = mt.as_masked_tensor(torch.where(MASK, DATA, float("nan")), MASK)
        leaf = convert(x).detach().requires_grad_(layout in ("coo", "csr"))  # what torch's engine accumulates into
        operands = [p.clone().requires_grad_() for p in parts]
        out = PRODUCTS[name](leaf, *operands)
        out.square().sum().backward()
        results.append((out, leaf.grad, [p.grad for p in operands]))
    (out, grad, plain), (expected, strided_grad, strided) = results
    same(out, expected)
    if grad is not None:
        same(grad, strided_grad)
    torch.testing.assert_close(plain, strided)


def test_a_sparse_layer_learns() -> None:
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    x = dense().to_sparse()
    before = net(x).filled(0).square().sum().item()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for _ in range(5):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        assert all(type(p.grad) is Tensor and p.grad.isfinite().all() for p in net.parameters())
        optimizer.step()
    assert net(x).filled(0).square().sum().item() < before


def test_gradients() -> None:
    weight = torch.randn(4, 3, requires_grad=True)
    for convert in (CONVERT["coo"], CONVERT["csr"]):
        leaf = convert(dense()).detach().requires_grad_()
        strided = dense().requires_grad_()
        for x in (leaf, strided):
            weight.grad = None
            loss = (
                ((x * x).sin() @ weight).sum()
                + x.softmax(1).square().sum(0).to_dense().sum()
                + x.amax(1).to_dense().sum()
            )
            loss.backward()
        assert type(leaf.grad) is MaskedTensor
        assert leaf.grad.layout is leaf.layout
        same(leaf.grad, strided.grad)
    x = dense().requires_grad_()  # through the conversions
    x.to_sparse().exp().to_dense().sum().backward()
    expected = dense().requires_grad_()
    expected.exp().sum().backward()
    same(x.grad, expected.grad)


def test_gradients_accumulate_in_a_leaf() -> None:
    for convert in (CONVERT["coo"], CONVERT["csr"]):
        x = convert(dense()).detach().requires_grad_()
        for _ in range(2):
            x.sum().backward()
        assert type(x.grad) is MaskedTensor
        assert x.grad.to_dense().filled(0).tolist() == (2.0 * MASK).tolist()


def test_in_place_within_the_pattern() -> None:
    x, y = dense().to_sparse(), dense().to_sparse()
    x.mul_(2).add_(y)
    same(x, dense() * 3)
    with pytest.raises(RuntimeError, match="use x = op"):
        x.add_(mt.masked_tensor(DATA, ~MASK).to_sparse())
    with pytest.raises(RuntimeError, match="autograd tracks"):
        x.requires_grad_().mul_(2)


NUMBERS = {
    "valid": mt.masked_tensor(torch.tensor(2.0, dtype=torch.float64)),
    "masked": mt.masked_tensor(torch.tensor(torch.nan, dtype=torch.float64), False),
    "integer": mt.masked_tensor(torch.tensor(2)),
    "plain": torch.tensor(2.0, dtype=torch.float64),
}
WITH_A_NUMBER: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mul": torch.mul,
    "rsub": lambda x, n: n - x,
    "div": torch.div,
    "pow": torch.pow,
    "maximum": torch.maximum,
    "clamp": lambda x, n: torch.clamp(x, n, n),
    "where": lambda x, n: torch.where(x > 1, x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 1, n),
    "lerp": lambda x, n: torch.lerp(x, x * 2, n),
    "gt": torch.gt,
}


@pytest.mark.parametrize("name", WITH_A_NUMBER)
def test_a_number_without_dimensions_is_one_to_sparse_data(name: str) -> None:
    """Masked or not, sparse or not: the dtype of the result is that of the data, as of strided tensors."""
    for number in NUMBERS.values():
        for dtype in (torch.float32, torch.float64):
            x = dense().to(dtype)
            expected = WITH_A_NUMBER[name](x, number)
            for convert in CONVERT.values():
                for given in (number, number.to_sparse_coo()):
                    found = WITH_A_NUMBER[name](convert(x), given)
                    assert found.dtype is expected.dtype
                    same(found, expected)


def test_no_silent_densification() -> None:
    x = dense().to_sparse()
    for call in (
        lambda: torch.fft.fft(x),
        lambda: x.bincount(),
        lambda: torch.linalg.inv(x),
        lambda: torch.linalg.pinv(x, atol=0.1),
    ):
        with pytest.raises((UnsupportedOpError, NotImplementedError)):
            call()
    for convert in CONVERT.values():
        x = convert(dense())
        for call in (lambda: x.roll(1, 0), lambda: x.diagonal(), lambda: x.tril()):  # noqa: B023
            with pytest.raises(
                UnsupportedOpError, match=rf"does not support masked tensors of layout {x.layout}; use x.to_d"
            ):
                call()


@pytest.mark.parametrize("layout", CONVERT)
def test_expand_repeats_a_small_tensor_without_writing_it_down(layout: str) -> None:
    out = CONVERT[layout](dense()).expand(3, 2, 4)
    assert out.layout is torch.strided
    assert out.stride(0) == 0
    same(out, dense().expand(3, 2, 4))


def test_lists_and_norm() -> None:
    x = dense().to_sparse()
    with pytest.raises(UnsupportedOpError, match=r"aten::cat does not support masked tensors of layout torch.sp"):
        torch.cat([x, x])
    assert x.norm().item() == dense().norm().item()


def test_inference_mode() -> None:
    with torch.inference_mode():
        x = dense().to_sparse_csr()
        same(x.sin(), dense().sin())
        same(x.sum(1), dense().sum(1))


def test_views_and_parts() -> None:
    x = dense().to_sparse()
    same(x.t(), dense().t())
    assert x.values().tolist() == [0.5, 3.0, 0.0, 5.0, -1.0]
    assert type(x.indices()) is Tensor
    assert x.coalesce().is_coalesced()
    csr = dense().to_sparse_csr()
    assert csr.crow_indices().tolist() == [0, 3, 5]
    assert csr.col_indices().tolist() == [1, 2, 3, 2, 3]
    assert repr(csr).startswith("masked_tensor(")


def test_offsets_that_fall_in_the_middle_are_refused() -> None:
    offsets, columns = torch.tensor([0, 2, 1, 3]), torch.tensor([0, 1, 0])
    bad = torch.sparse_csr_tensor(offsets, columns, torch.ones(3), (3, 3), check_invariants=False)
    with pytest.raises(ValueError, match="must rise from 0 to the 3 stored values"):
        mt.functional.sum(bad, 1)
    for offsets in ([[0, 1, 2], [0, 1, 1]], [[0, 1, 2], [1, 1, 2]]):  # of one matrix of a batch
        columns = torch.tensor([[0, 1], [0, 1]])
        bad = torch.sparse_csr_tensor(
            torch.tensor(offsets), columns, torch.ones(2, 2), (2, 2, 2), check_invariants=False
        )
        with pytest.raises(ValueError, match="must rise from 0 to the 2 stored values"):
            mt.functional.sum(bad, 2)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_write_in_place_masks_what_is_masked_in_either(layout: torch.layout) -> None:
    x = mt.masked_tensor([[1.0, 2.0, None], [None, 3.0, 4.0]]).to_sparse(layout=layout)
    gaps = mt.masked_invalid((x - 2).log())  # stores entries that are masked
    for first, second in ((x, gaps), (gaps, x), (gaps, gaps), (x, x)):
        found = first.clone()
        found.add_(second)
        assert found.to_dense().tolist() == (first.to_dense() + second.to_dense()).tolist()


def test_logsumexp_of_complex_numbers() -> None:
    x = torch.tensor([[1 + 2j, 0], [0, 3.0]])
    for layout in (torch.sparse_coo, torch.sparse_csr):
        got = mt.functional.logsumexp(x.to_sparse(layout=layout), 1).to_dense()
        torch.testing.assert_close(got, mt.functional.logsumexp(x, 1))


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_zeros_of_a_sparse_layout_store_nothing(layout: torch.layout) -> None:
    x = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
    for made in (torch.zeros_like(x, layout=layout), x.new_zeros(2, 2, layout=layout)):
        assert made.layout is layout
        assert made.count().item() == 0
        assert made.to_dense().tolist() == [[None, None], [None, None]]
        assert torch.equal(made.filled(0).to_dense(), torch.zeros(2, 2))


@pytest.mark.parametrize("like", [torch.zeros_like, torch.ones_like, torch.empty_like, torch.rand_like])
def test_a_like_of_sparse_data_in_another_layout_is_refused(like: Callable[..., Any]) -> None:
    x = dense().to_sparse_csr()
    assert like(x, layout=torch.sparse_csr).layout is torch.sparse_csr
    for layout in (torch.strided, torch.sparse_coo):
        with pytest.raises(UnsupportedOpError, match=f"layout={layout} of a tensor whose layout is torch.sparse_csr"):
            like(x, layout=layout)
