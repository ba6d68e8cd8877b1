"""Reductions where the generated laws do not look: dtypes, sentinels, ties, special values, size, transforms."""

import itertools
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.pair import Payload
from masked_tensor.rules import reduction

from .laws import laws

NAN, INF = float("nan"), float("inf")
REFUSED = RuntimeError, TypeError  # which of the two, depends on the version of torch
T, F = True, False


def masked(data, mask, **kwargs):
    return mt.as_masked_tensor(torch.tensor(data, **kwargs), torch.tensor(mask))


def gradient(x, *outputs):
    return torch.autograd.grad([o.sum() for o in outputs], x)[0].filled(0)


# ------------------------------------------------------------------------- known failures of the predecessor, strided


def test_variance_gradient_with_nan_under_the_mask():
    x = masked([1.0, NAN, 4.0], [T, F, T]).requires_grad_()
    assert torch.equal(gradient(x, x.var(correction=0)), torch.tensor([-1.5, 0, 1.5]))


@pytest.mark.parametrize("garbage", [NAN, INF, 1e30])
@pytest.mark.parametrize("name", ["var", "std"])
def test_moment_gradients_are_finite_and_zero_in_an_empty_row(name, garbage):
    x = masked([[1.0, garbage, 4.0], [garbage, garbage, garbage]], [[T, F, T], [F, F, F]]).requires_grad_()
    grad = gradient(x, getattr(torch, name)(x, 1)[0])
    assert grad.isfinite().all()
    assert (grad[1] == 0).all()
    assert grad[0, 1] == 0


def test_std_of_one_valid_element():
    x = masked([3.0, NAN], [T, F]).requires_grad_()
    out = torch.std(x, correction=0)
    assert out.filled(9) == 0
    assert torch.equal(gradient(x, out), torch.zeros(2))
    assert torch.std(x).filled(9) == 9  # n <= correction: masked


@pytest.mark.parametrize(("name", "value"), [("mean", 1.0), ("var", 2.0), ("std", 2**0.5)])
def test_counts_are_of_the_valid_entries(name, value):
    x = masked([[0.0, 1.0, 2.0]], [[T, F, T]])
    assert torch.allclose(getattr(torch, name)(x, 1).filled(0), torch.tensor([value]))


@pytest.mark.parametrize(
    ("dtype", "size", "where"),
    [(torch.bfloat16, 2000, 1001), (torch.float16, 5000, 4097), (torch.uint8, 400, 300)],
)
def test_indices_are_int64_whatever_the_dtype(dtype, size, where):
    data = torch.zeros(size, dtype=dtype)
    data[where] = 1
    index = torch.argmax(mt.masked_tensor(data, torch.arange(size) != 3), 0)
    assert index.dtype is torch.int64
    assert index.filled(-1) == where


@pytest.mark.parametrize("function", [torch.argmax, lambda x, d: torch.max(x, d).indices])
def test_argmax_never_points_at_a_masked_entry_below_a_valid_infinity(function):
    assert function(masked([5.0, -INF], [F, T]), 0).filled(-1) == 1
    assert function(masked([NAN, -INF, -INF], [F, T, T]), 0).filled(-1) == 1


def test_argmin_never_points_at_a_masked_entry_above_the_greatest_integer():
    assert torch.argmin(masked([5, 127], [F, T], dtype=torch.int8), 0).filled(-1) == 1
    assert torch.argmax(masked([5, 0], [F, T], dtype=torch.uint8), 0).filled(-1) == 1
    assert torch.argmax(masked([7, -(2**63)], [F, T])).filled(-1) == 1


def test_cumsum_promotes_as_the_plain_op():
    x = masked([100, 100, 100], [T, T, T], dtype=torch.int8)
    assert torch.equal(x.cumsum(0).filled(0), torch.tensor([100, 200, 300]))
    b = masked([T, T, T], [T, F, T])
    assert torch.equal(b.cumsum(0).filled(0), torch.tensor([1, 0, 2]))


def test_logsumexp_of_integers():
    assert torch.allclose(torch.logsumexp(masked([4, 2, 99], [T, T, F]), 0).filled(0), torch.tensor(4.1269), atol=1e-4)


def test_amax_of_bool():
    x = masked([[F, T], [F, F], [T, T]], [[T, F], [T, T], [F, F]])
    assert x.amax(1).tolist() == [False, False, None]
    assert x.amin(1).tolist() == [False, False, None]
    assert x.max(1).values.tolist() == [False, False, None]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.mean(),
        lambda x: x.var(),
        lambda x: torch.linalg.vector_norm(x),
        lambda x: x.view(-1)[:0].amax(),
        lambda x: x.view(-1)[:0].argmax(0),
        lambda x: (x > 0).argmax(),
        lambda x: x.to(torch.complex64).amax(),
        lambda x: x.sum(5),
        lambda x: x.sum((0, 0)),
    ],
)
def test_errors_as_the_plain_op(call):
    data = torch.arange(6).reshape(2, 3)
    with pytest.raises((*REFUSED, IndexError)) as plain:
        call(data)
    with pytest.raises(IndexError if plain.type is IndexError else REFUSED):
        call(mt.masked_tensor(data, data != 2))


# ------------------------------------------------------------------------------------------------- dtypes, properly

DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128),
]
NAMES = (
    *("sum", "prod", "mean", "amax", "amin", "max", "min", "any", "all", "count_nonzero"),
    *("argmax", "argmin", "nansum", "var", "std"),
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_dtype_and_value_as_the_plain_op_on_the_valid_entries(name, dtype):
    generator = torch.Generator().manual_seed(0)
    data = torch.randint(0, 4, (40,), generator=generator).to(dtype)
    mask = torch.rand(40, generator=generator) < 0.5
    try:
        expected = getattr(torch, name)(data[mask])
    except REFUSED:
        with pytest.raises(REFUSED):
            getattr(torch, name)(mt.masked_tensor(data, mask))
        return
    result = getattr(torch, name)(mt.masked_tensor(data, mask))
    if name in ("argmax", "argmin"):
        expected = mask.nonzero()[expected, 0]
    assert result.dtype is expected.dtype
    torch.testing.assert_close(result.filled(0), expected)


@pytest.mark.parametrize("name", ["sum", "mean", "prod"])
def test_dtype_keyword(name):
    x = masked([[200, 100], [50, 1]], [[T, T], [F, T]], dtype=torch.uint8)
    result = getattr(torch, name)(x, 1, dtype=torch.float64)
    assert result.dtype is torch.float64
    assert result.tolist() == {"sum": [300, 1], "mean": [150, 1], "prod": [20000, 1]}[name]


def test_half_precision_means_are_rounded_once():
    data = torch.full((3000,), 1.0, dtype=torch.bfloat16)
    assert mt.masked_tensor(data, torch.arange(3000) < 2999).mean().filled(0) == 1
    assert mt.masked_tensor(data * 100, torch.arange(3000) < 2999).to(torch.float16).mean().filled(0) == 100


# ---------------------------------------------------------------------------------------------- gradients, ties, zeros


def test_ties_share_the_gradient_evenly_among_the_valid():
    x = masked([[2.0, 2.0, 2.0, 1.0], [-INF, -INF, -INF, 0.0]], [[T, F, T, T], [T, T, F, F]]).requires_grad_()
    assert torch.equal(gradient(x, x.amax(1)), torch.tensor([[0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0]]))
    assert torch.equal(gradient(x, x.max()), torch.tensor([[0.5, 0, 0.5, 0], [0, 0, 0, 0]]))


def test_values_with_indices_send_the_gradient_to_one():
    x = masked([[2.0, 2.0, 2.0, 1.0], [NAN, NAN, NAN, NAN]], [[F, T, T, T], [F, F, F, F]]).requires_grad_()
    assert torch.equal(gradient(x, x.max(1).values), torch.tensor([[0.0, 1, 0, 0], [0, 0, 0, 0]]))


@pytest.mark.parametrize("zeros", [(), (0,), (0, 3)])
def test_product_with_zeros(zeros):
    data = torch.tensor([2.0, NAN, 3.0, 5.0], dtype=torch.float64)
    data[list(zeros)] = 0
    mask = torch.tensor([T, F, T, T])
    x = mt.as_masked_tensor(data, mask).requires_grad_()
    valid = data[mask].requires_grad_()
    expected = torch.zeros(4, dtype=torch.float64).masked_scatter(mask, torch.autograd.grad(valid.prod(), valid)[0])
    assert torch.equal(gradient(x, x.prod()), expected)


def test_special_values_are_values():
    x = masked([[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [INF, -INF, 2.0]], [[T, T, F]] * 3)
    assert x.sum(1).filled(0).isnan().tolist() == [True, False, True]
    assert x.amax(1).filled(0)[1:].tolist() == [INF, INF]
    assert x.amax(1).filled(0)[0].isnan()
    assert x.nansum(1).tolist()[:2] == [1.0, INF]


def test_nan_variants_skip_nan_and_masked_entries():
    x = masked([[NAN, 1.0, 5.0], [NAN, NAN, 7.0], [3.0, 4.0, 5.0]], [[T, T, F], [T, T, F], [F, F, F]])
    assert x.nansum(1).tolist() == [1.0, 0.0, None]
    means = torch.nanmean(x, 1)
    assert means.tolist()[0] == 1.0
    assert means.tolist()[2] is None


FUNCTIONS = {
    "sum": lambda x: x.sum(1),
    "mean": lambda x: x.mean(1),
    "prod": lambda x: x.prod(1),
    "amax": lambda x: x.amax(1),
    "max.dim": lambda x: x.max(1).values,
    "logsumexp": lambda x: x.logsumexp(1),
    "var": lambda x: x.var(1),
    "std": lambda x: x.std(1),
    "norm": lambda x: torch.linalg.vector_norm(x, 2, 1),
    "norm 3": lambda x: x.norm(3, 1),
    "norm -1": lambda x: x.norm(-1, 1),
    "dist": lambda x: torch.dist(x, torch.full((4, 5), 0.3, dtype=x.dtype)[: x.shape[0], : x.shape[1]]),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "cummax": lambda x: x.cummax(1).values,
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "trapezoid": lambda x: torch.trapezoid(x, dim=1),
}


@pytest.mark.parametrize("pattern", ["random", "rows"])
@pytest.mark.parametrize("payload", [NAN, 3.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives(name, payload, pattern):
    generator = torch.Generator().manual_seed(1)
    data = torch.rand(4, 5, generator=generator, dtype=torch.float64) + 0.5
    mask = torch.rand((4, 5 if pattern == "random" else 1), generator=generator) < 0.7
    mask = mask.clone().index_fill_(0, torch.tensor([2]), False).expand(4, 5)
    weights = torch.rand(4, 5, generator=generator, dtype=torch.float64)

    def function(values):
        hidden = torch.where(mask, values, payload)
        out = FUNCTIONS[name](mt.as_masked_tensor(hidden, mask))
        return (out.filled(0) * weights.view(-1)[: out.shape.numel()].view(out.shape)).sum()

    data.requires_grad_()
    assert torch.autograd.gradcheck(function, data, check_batched_grad=False)
    assert torch.autograd.gradgradcheck(function, data, check_batched_grad=False)


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_valid_gives_zero_gradients(name):
    x = mt.as_masked_tensor(torch.full((3, 4), NAN), torch.zeros(3, 4, dtype=torch.bool)).requires_grad_()
    out = FUNCTIONS[name](x)
    assert not mt.get_mask(out).any() if hasattr(mt, "get_mask") else not out.get_mask().any()
    assert torch.equal(gradient(x, out), torch.zeros(3, 4))


# ----------------------------------------------------------------------- large tensors take the fused path: same values


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.complex64], ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "strided", "constant rows", "flat"])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "any", "count_nonzero"])
def test_walking_in_pieces_changes_nothing(name, layout, dtype):
    if name == "logsumexp" and dtype.is_complex:
        pytest.skip("the plain op has no complex kernel here")
    if name == "prod" and dtype is torch.bfloat16:
        pytest.skip("the plain op rounds after every factor")
    data, mask = _large(layout, dtype)
    for dim in (0, -1, None) if name != "logsumexp" else (0, -1):
        arguments = () if dim is None else (dim,)
        small = (data.double() if data.is_floating_point() else data)[mask] if dim is None else None
        try:
            result = getattr(torch, name)(mt.as_masked_tensor(data, mask), *arguments)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                getattr(torch, name)(data, *arguments)
            return
        if dim is None:
            expected = getattr(torch, name)(small)
            rtol = 1.6e-2 if dtype is torch.bfloat16 else 1e-3  # one bfloat16 step is 0.4 to 0.8 %
            torch.testing.assert_close(result.filled(0), expected.to(result.dtype), rtol=rtol, atol=1e-3)
        else:
            picked = torch.arange(0, result.shape.numel(), max(1, result.shape.numel() // 5))
            for i in picked.tolist():
                line, valid = data.select(1 + dim, i) if dim else data.select(1, i), None
                line, valid = (t.select(0, i) if dim else t.select(-1, i) for t in (data, mask))
                line = (line.double() if line.is_floating_point() else line)[valid]
                if line.numel() > 1:
                    expected = getattr(torch, name)(line, *([0] if name == "logsumexp" else []))
                    torch.testing.assert_close(
                        result.filled(0)[i],
                        expected.to(result.dtype),
                        rtol=2e-2 if dtype is torch.bfloat16 else 1e-3,
                        atol=1e-3,
                    )


def _large(layout, dtype):
    generator = torch.Generator().manual_seed(0)
    shape = (1500, 700)
    data = torch.randint(0, 3, shape, generator=generator).to(dtype)
    if dtype.is_floating_point:
        data = data + torch.rand(shape, generator=generator).to(dtype)
    mask = torch.rand(shape, generator=generator) < 0.5
    if layout == "transposed":
        data = data.t().contiguous().t()
    if layout == "strided":
        data, mask = torch.stack([data, data], -1)[..., 0], torch.stack([mask, mask], -1)[..., 0]
    if layout == "constant rows":
        mask = mask[:, :1].expand(shape)
    if layout == "flat":
        data, mask = data.view(1, -1)[:, :-3], mask.view(1, -1)[:, :-3]
    if dtype.is_floating_point:
        data = data.masked_fill(~mask, NAN)
    return data, mask


def test_var_does_not_write_into_its_input():
    data = torch.rand(1000, 1000)
    x = mt.masked_tensor(data, torch.ones_like(data, dtype=torch.bool))
    before = x.filled(0).clone()
    x.var(1), x.sum(1), x.std()
    assert torch.equal(x.filled(0), before)


# ---------------------------------------------------------------------------------------------- masks stay small, views


def test_constant_dimensions_cost_no_mask():
    x = mt.as_masked_tensor(torch.rand(4, 5, 6), (torch.rand(4, 5, 1) < 0.5).expand(4, 5, 6))
    out = x.sum(-1)
    assert torch.equal(pair_of(out).mask, pair_of(x).mask[..., 0])
    assert pair_of(x.sum(1)).mask.stride() == (1, 0) or pair_of(x.sum(1)).mask.stride(-1) == 0


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "logsumexp", "prod"])
def test_partly_constant_masks(name):
    data = torch.rand(3, 4, 5, dtype=torch.float64)
    mask = (torch.tensor([[T, F, T, T], [F, F, F, F], [T, T, T, T]])[..., None]).expand(3, 4, 5)
    hidden = torch.where(mask, data, NAN)
    for dims in [(1, 2), (0, 2), (2,), (0, 1)]:
        if name == "prod":
            if len(dims) > 1:
                continue
            dims = dims[0]
        a = getattr(torch, name)(mt.as_masked_tensor(hidden, mask), dims)
        b = getattr(torch, name)(mt.as_masked_tensor(hidden, mask.contiguous()), dims)
        assert torch.equal(pair_of(a).mask, pair_of(b).mask)
        torch.testing.assert_close(a.filled(0), b.filled(0))


def test_sum_promises_zeros_only_where_they_are():
    x = mt.as_masked_tensor(torch.full((2, 3), NAN), torch.tensor([[T], [F]]).expand(2, 3))
    out = pair_of(x.sum(1))
    assert out.payload is Payload.ANY or (out.data[~out.mask] == 0).all()


# ---------------------------------------------------------------------------------------------------- norms, transforms


def test_matrix_norms_that_decompose():
    data = torch.tensor([[1.0, -2.0], [3.0, NAN]])
    x = mt.as_masked_tensor(data, torch.tensor([[T, T], [T, F]]))
    assert torch.linalg.norm(x, "fro").filled(0) == pytest.approx(14**0.5)
    assert torch.linalg.matrix_norm(x, 1).filled(0) == 4
    assert torch.linalg.matrix_norm(x, INF).filled(0) == 3
    assert not mt.get_mask(torch.linalg.norm(x, "nuc"))  # singular values know no part of a matrix
    whole = mt.as_masked_tensor(data.nan_to_num(), torch.ones(2, 2, dtype=torch.bool))
    assert torch.linalg.norm(whole, "nuc").filled(0) == pytest.approx(torch.linalg.norm(data.nan_to_num(), "nuc"))


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "logsumexp", "var", "argmax"])
def test_vmap(name):
    x = masked([[1.0, NAN, 4.0], [2.0, 3.0, NAN]], [[T, F, T], [T, T, F]])
    function = getattr(torch, name)
    arguments = (0,) if name in ("logsumexp", "argmax") else ()
    together = torch.vmap(lambda row: function(row, *arguments))(x)
    torch.testing.assert_close(together.filled(0), function(x, 1).filled(0))


@pytest.mark.parametrize(("keepdim", "dim"), [*itertools.product([T, F], [(0, 2), -1, (1, -1), None, (2, 0, 1)])])
def test_dims(keepdim, dim):
    x = mt.masked_tensor(torch.rand(2, 3, 4), torch.rand(2, 3, 4) < 0.8)
    for function in (torch.sum, torch.mean, torch.amax, torch.var, torch.logsumexp, torch.any):
        if dim is None and function is torch.logsumexp:
            continue
        if dim is None and function is torch.any and keepdim is False:
            continue
        plain = torch.rand(2, 3, 4)
        assert function(x, dim, keepdim=keepdim).shape == function(plain, dim, keepdim=keepdim).shape


def test_a_fractional_correction_keeps_the_dtypes_precision() -> None:
    x = torch.tensor([0.0, 1, 3, 7], dtype=torch.float64)
    got = mt.masked_tensor(x, torch.ones(4, dtype=torch.bool)).var(correction=0.1)
    torch.testing.assert_close(got.item(), x.var(correction=0.1).item(), rtol=1e-14, atol=0)
    single = mt.masked_tensor(x.float(), torch.ones(4, dtype=torch.bool)).var(correction=0.1)
    assert single.dtype is torch.float32


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "logsumexp", "var", "std"])
def test_a_dimension_of_one_promises_no_zeros(name):
    # Constant along a dimension of size 1, without a stride of 0: what is promised of the payload must be true.
    x = mt.as_masked_tensor(torch.tensor([[1.0, float("nan")]]), torch.tensor([[True, False]]))
    arguments = {"correction": 0} if name in ("var", "std") else {}
    result = pair_of(getattr(x, name)(0, **arguments))
    assert result.mask.tolist() == [True, False]
    assert result.payload is Payload.ANY or result.data[1] == 0


test_law = laws("reduction")


NOTHING = {
    "sum": lambda x: x.sum(1),
    "sum of all": lambda x: x.sum(),
    "prod": lambda x: x.prod(1),
    "mean": lambda x: x.mean(1),
    "nansum": lambda x: x.nansum(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "any": lambda x: x.any(1),
    "all": lambda x: x.all(),
    "count_nonzero": lambda x: x.count_nonzero(1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=1),
    "median": lambda x: x.median(),
    "trapezoid": lambda x: torch.trapezoid(x, dim=1),
    "cdist": lambda x: torch.cdist(x, x),
    "mse": lambda x: torch.nn.functional.mse_loss(x, x),
    "mse sum": lambda x: torch.nn.functional.mse_loss(x, x, reduction="sum"),
    "bce": lambda x: torch.nn.functional.binary_cross_entropy(x, x),
}


@pytest.mark.filterwarnings("ignore:.*[Mm]ean of empty")
@pytest.mark.parametrize("name", NOTHING)
def test_a_slice_without_entries_gives_what_torch_gives(name):
    """Nothing in it is masked; a slice whose entries are all masked stays masked, or has the number 0 of entries."""
    function = NOTHING[name]
    expected = function(torch.zeros(2, 0))
    for mask in (torch.ones(2, 0, dtype=torch.bool), torch.zeros((), dtype=torch.bool).expand(2, 0)):
        result = function(mt.masked_tensor(torch.zeros(2, 0), mask))
        assert result.get_mask().all()
        torch.testing.assert_close(result.get_data(), expected, equal_nan=True)
    result = function(mt.masked_tensor(torch.ones(2, 1), torch.zeros(2, 1, dtype=torch.bool)))
    if name == "count_nonzero":
        assert result.get_mask().all()
        assert result.tolist() == [0, 0]
    else:
        assert not result.get_mask().any()


@pytest.mark.parametrize("small", [(1, 1, 1), (1, 1, 5), (4, 1, 5), (1, 3, 1), (4, 3, 5)])
def test_a_part_that_is_nan_is_not_skipped(small, monkeypatch):
    """inf - inf is NaN in the part of a slice where it is met, and in the whole: nansum skips entries, not sums."""
    monkeypatch.setattr("masked_tensor.settings.LARGE", 8)
    monkeypatch.setattr("masked_tensor.settings.CHUNK", 12)
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    x[1, 1, 2], x[2, 2, 3] = float("nan"), float("inf")
    for place in ((2, 2, 1), (0, 2, 3), (2, 0, 3)):
        y = x.clone()
        y[place] = -float("inf")
        given = mt.as_masked_tensor(y, torch.ones(small, dtype=torch.bool))
        for dim in (None, (0, 1), (1, 2), (0, 2), 0, 1, 2):
            torch.testing.assert_close(torch.nansum(given, dim).filled(0), torch.nansum(y, dim), equal_nan=True)


@pytest.mark.parametrize("args", [(), (0,), (-1,), ((0, 2),), (1, True), ((),)], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_the_derivative_by_hand_has_the_bits_of_the_formula(
    name: str, args: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, gradients and second derivatives, with garbage under the mask, of leaves, results and views."""
    served: list[bool] = []
    usual = reduction.is_by_hand
    for shape, garbage, dtype, way in itertools.product(
        [(3, 4, 5), (3, 1, 5)], [torch.nan, torch.inf, 1e30], [torch.float32, torch.float64, torch.bfloat16], range(3)
    ):
        mask = torch.rand(shape) < 0.6
        mask[0] = False
        data = torch.randn(shape, dtype=dtype).masked_fill(~mask, garbage)
        found = []
        for asked in (usual, lambda *_: False):
            monkeypatch.setattr(reduction, "is_by_hand", lambda *x, asked=asked: served.append(asked(*x)) or served[-1])
            leaf = mt.masked_tensor(data, mask).requires_grad_()
            result = getattr((leaf, leaf * 1.5, leaf.permute(2, 0, 1))[way], name)(*args)
            weights = torch.linspace(-1, 1, result.shape.numel(), dtype=dtype).view(result.shape)
            loss = mt.total((result * result * weights).sum(), leaf.sum())
            (first,) = torch.autograd.grad(loss, leaf, create_graph=True)
            (second,) = torch.autograd.grad(first.square().sum(), leaf)
            found.append((result, first, second))
        for ours, wanted in zip(*found, strict=True):
            assert torch.equal(ours.get_mask(), wanted.get_mask())
            assert torch.equal(ours.filled(0), wanted.filled(0))
    assert any(served)
