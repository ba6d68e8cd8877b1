"""The functional forms case by case: the predecessor's failures, the RFC's examples, modes, options, errors."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.trees import tree_leaves

INF, NAN = float("inf"), float("nan")

RFC_INPUT = torch.tensor([[-3.0, -2.0, -1.0], [0.0, 1.0, 2.0]])
RFC_MASK = torch.tensor([[True, False, True], [False, False, False]])


def close(actual: Tensor, expected: Any) -> None:
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    torch.testing.assert_close(actual, expected, equal_nan=True, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------------------------------- the RFC's printed lines


def test_the_rfc_prints_these_reductions() -> None:
    arguments = {"keepdim": False, "mask": RFC_MASK}
    close(mt.sum(RFC_INPUT, 1, **arguments), [-4, 0])
    close(mt.prod(RFC_INPUT, 1, **arguments), [3, 1])
    close(mt.mean(RFC_INPUT, 1, **arguments), [-2, NAN])
    close(mt.amin(RFC_INPUT, 1, **arguments), [-3, INF])
    close(mt.amax(RFC_INPUT, 1, **arguments), [-1, -INF])
    assert mt.any(RFC_MASK, 1).tolist() == [True, False]


def test_the_rfc_prints_these_normalizations() -> None:
    plain = {"dtype": torch.double, "mask": RFC_MASK, "mode": "none"}
    close(mt.softmax(RFC_INPUT, 1, **plain), [[0.1192, 0, 0.8808], [NAN] * 3])
    close(mt.log_softmax(RFC_INPUT, 1, **plain), [[-2.1269, -INF, -0.1269], [NAN] * 3])
    close(mt.normalize(RFC_INPUT, 2.0, 1, mask=RFC_MASK), [[-0.9487, 0, -0.3162], [0, 0, 0]])
    close(mt.normalize(RFC_INPUT, 3.0, 1, mask=RFC_MASK), [[-0.9880, 0, -0.3293], [0, 0, 0]])


# --------------------------------------------------------------------------------------- what torch.masked gets wrong


def test_a_masked_tensor_brings_its_own_mask_and_stays_one() -> None:
    x = mt.masked_tensor(torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[True, False, True]]))
    for function, value in ((mt.mean, 1.0), (mt.var, 2.0), (mt.std, 1.4142)):
        out = function(x, 1)
        assert type(out) is MaskedTensor
        close(out.filled(NAN), [value])
    out = mt.sum(x, 1, mask=torch.tensor([True, True, False]))
    assert type(out) is MaskedTensor
    assert out.tolist() == [0.0]
    assert mt.sum(x, 1, mask=torch.tensor([False, True, False])).tolist() == [None]
    assert mt.sum(x, 1, mask=torch.tensor([False, True, False]), fill_value=7.0).tolist() == [7.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.uint8, torch.int8])
def test_positions_are_int64(dtype: torch.dtype) -> None:
    for size in (300, 1001, 4097):
        x = torch.zeros(size + 1, dtype=dtype)
        x[size] = 1
        assert mt.argmax(x, mask=torch.ones(size + 1, dtype=torch.bool)).item() == size
        assert mt.argmax(x.to_sparse_coo(), 0).item() == size


def test_a_masked_out_position_is_never_named() -> None:
    mask = torch.tensor([False, True])
    assert mt.argmax(torch.tensor([5.0, -INF]), 0, mask=mask).item() == 1
    assert mt.argmin(torch.tensor([5, 127], dtype=torch.int8), 0, mask=mask).item() == 1
    assert mt.argmin(torch.tensor([5.0, INF]), 0, mask=mask).item() == 1


def test_median() -> None:
    with pytest.raises(RuntimeError, match="complex"):
        mt.median(torch.ones(3, dtype=torch.complex64), 0)
    x = torch.tensor([[1.0, 9.0, 3.0], [4.0, 5.0, 6.0]])
    assert mt.median(x, None).item() == 4.0
    assert [t.item() for t in mt.median(x, (0, 1))] == [4.0, 3]
    assert [t.item() for t in mt.mode(x, None)] == [1.0, 0]
    with pytest.raises(RuntimeError, match=r"dim \(0, 0\) appears multiple times"):
        mt.median(x, (0, 0))
    large = torch.tensor([2**24 + 1] * 3)
    assert mt.median(large, 0).values.item() == 2**24 + 1
    assert mt.median(large, 0, mask=torch.tensor([True, False, True])).values.item() == 2**24 + 1
    assert mt.median(torch.tensor([1.0, NAN, 3.0]), 0).values.isnan()
    assert [t.tolist() for t in mt.median(torch.tensor([[1, 2]]), 1, mask=torch.tensor([[False, False]]))] == [[0], [0]]


def test_integers_promote_as_in_torch() -> None:
    x = torch.tensor([100, 100, 100], dtype=torch.int8)
    assert mt.cumsum(x, 0, mask=torch.ones(3, dtype=torch.bool)).tolist() == [100, 200, 300]
    assert mt.cumsum(torch.tensor([True, True]), 0, mask=torch.tensor([True, True])).tolist() == [1, 2]
    close(mt.logsumexp(torch.tensor([3, 2, 4]), 0, mask=torch.tensor([True, True, True])), 4.4076)
    assert mt.amax(torch.tensor([[True, False]]), 1, mask=torch.tensor([[False, True]])).tolist() == [False]


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int32])
def test_a_dtype_of_integers_is_that_of_the_result(dtype: torch.dtype, layout: str) -> None:
    """torch's sum of int32 is int64, unless int32 is asked for."""
    x, mask = torch.tensor([[1, 0, 3], [4, 5, 6]]), torch.tensor([[True, True, False], [False, True, True]])
    given = {"strided": x.clone, "coo": x.to_sparse_coo, "csr": x.to_sparse_csr}[layout]()
    for name in ("sum", "prod", "cumsum", "cumprod", *(("nansum",) if dtype is not torch.bool else ())):
        for tensor, m in ((given, None), (given, mask), (mt.masked_tensor(x, mask), None)):
            out = getattr(mt, name)(tensor, 1, dtype=dtype, mask=m)
            assert out.dtype is dtype, name
        if layout == "strided" and dtype is not torch.bool:  # of which torch has no scans
            assert torch.equal(getattr(mt, name)(x, 1, dtype=dtype), getattr(torch, name)(x, 1, dtype=dtype))


def test_unique_slices() -> None:
    x = torch.tensor([[1.0, NAN], [1.0, 7.0], [2.0, 3.0], [1.0, INF], [5.0, 5.0]])
    mask = torch.tensor([[True, False], [True, True], [True, True], [True, False], [False, False]])
    values, inverse, counts = mt.unique(x, True, True, True, 0, mask=mask)
    assert sorted(zip(values.tolist(), counts.tolist(), strict=True)) == [([1, 0], 2), ([1, 7], 1), ([2, 3], 1)]
    assert inverse[0] == inverse[3]
    masked = mt.unique(mt.as_masked_tensor(x, mask), dim=0)
    assert type(masked) is MaskedTensor
    assert sorted(masked.tolist(), key=str) == [[1.0, 7.0], [1.0, None], [2.0, 3.0]]
    values, counts = mt.unique_consecutive(x[[0, 3, 1]], return_counts=True, dim=0, mask=mask[[0, 3, 1]])
    assert counts.tolist() == [2, 1]
    with pytest.raises(mt.UnsupportedOpError, match=r"masked_tensor.unique\(dim=\) does not support"):
        mt.unique(x.to_sparse_coo(), dim=0)


@pytest.mark.parametrize("dirt", [NAN, INF, 1e30])
def test_moments_have_finite_gradients(dirt: float) -> None:
    x = torch.tensor([[1.0, dirt, 4.0], [dirt, dirt, dirt]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [False] * 3])
    mt.var(x, 1, correction=0, mask=mask)[0].backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[-1.5, 0, 1.5], [0, 0, 0]]
    single = torch.tensor([5.0], requires_grad=True)
    mt.std(single, 0, unbiased=False, mask=torch.tensor([True])).backward()
    assert single.grad is not None
    assert single.grad.tolist() == [0.0]


# ------------------------------------------------------------------------------------------------------------- softmax


@pytest.mark.parametrize("log", [False, True])
def test_safe_softmax(log: bool) -> None:
    function = mt.log_softmax if log else mt.softmax
    x = torch.tensor([[1.0, 2.0, NAN], [NAN, INF, 3.0], [-INF, -INF, 0.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [False] * 3, [True, True, False]])
    out = function(x, 1, mask=mask)
    nothing = -INF if log else 0.0
    assert out[1].tolist() == [nothing] * 3
    assert out[0, 2].item() == nothing
    assert out[2, :2].isnan().all()  # valid -inf scores: what torch gives
    (gradient,) = torch.autograd.grad(out[0, :2].sum() + out[1].sum(), x)
    assert (gradient[1] == 0).all()
    assert gradient[0, 2] == 0
    assert gradient[0].isfinite().all()


def test_inf_as_zero_is_torchs_safe_softmax() -> None:
    x = torch.tensor([[1.0, -INF, 2.0], [-INF] * 3, [0.0, -1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    ours, theirs = mt.softmax(x, 1, mode="inf_as_zero"), torch._safe_softmax(y, 1)
    torch.testing.assert_close(ours, theirs)
    weight = torch.rand(3, 3, dtype=torch.float64)
    (ours * weight).sum().backward()
    (theirs * weight).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    mask = torch.tensor([[True, True, False], [True] * 3, [False] * 3])
    out = mt.softmax(x.detach(), 1, mask=mask, mode="inf_as_zero")
    close(out, [[1, 0, 0], [0, 0, 0], [0, 0, 0]])
    for mode in ("safe", "none", "inf_as_zero"):
        sparse = mt.softmax(torch.tensor([[-INF, -INF], [1.0, 1.0]]).to_sparse_coo(), 1, mode=mode).to_dense()
        close(sparse, [[0, 0] if mode == "inf_as_zero" else [NAN, NAN], [0.5, 0.5]])
    with pytest.raises(ValueError, match="mode must be 'safe', 'inf_as_zero' or 'none', got 'zero'"):
        mt.softmax(x, 1, mode="zero")  # type: ignore[arg-type]


def test_sparse_softmax_agrees_with_torch() -> None:
    x = torch.tensor([[0.0, 2.0, 3.0], [1.0, 0.0, 0.0]]).to_sparse_coo()
    for dim in (0, 1):
        torch.testing.assert_close(mt.softmax(x, dim).to_dense(), torch.sparse.softmax(x, dim).to_dense())


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse_coo, torch.Tensor.to_sparse_csr])
def test_nothing_stored_and_no_size(convert: Any) -> None:
    empty, nothing = convert(torch.zeros(3, 4)), convert(torch.zeros(0, 4))
    for name in ("sum", "prod", "mean", "any", "all", "logsumexp", "std", "norm", "argmax", "median", "amin"):
        arguments: dict[str, Any] = {"dim": 0}
        for x in (empty, nothing):
            if x is nothing and name in ("argmax", "median", "amin", "std"):
                continue  # torch refuses, or warns
            for mask in (None, mt.extend.specified_mask(x)):
                out = tree_leaves(getattr(mt, name)(x, mask=mask, **arguments))[0]
                assert out.shape == (4,)
                if mask is None:
                    want = tree_leaves(getattr(mt, name)(x.to_dense(), **arguments))[0]
                    torch.testing.assert_close(out.to_dense(), want, equal_nan=True)
                else:
                    assert out._nnz() == (0 if x is empty else 4)  # without entries, torch's own result is valid
    for function in (mt.softmax, mt.cumsum, mt.log_softmax):
        assert function(empty, 1)._nnz() == 0
        scalar = function(torch.tensor(2.0).to_sparse_coo(), 0)
        torch.testing.assert_close(scalar.to_dense(), function(torch.tensor(2.0), 0))


# ------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("sparse", [False, True])
def test_min_count_and_fill_value(sparse: bool) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    mask = torch.tensor([[True, True, True], [True, False, False], [False] * 3])
    given = x.to_sparse_coo() if sparse else x

    def dense(t: Tensor) -> Any:
        return (t.to_dense() if t.layout is not torch.strided else t).tolist()

    assert dense(mt.sum(given, 1, mask=mask, fill_value=-1.0)) == [6, 4, -1]
    assert dense(mt.sum(given, 1, mask=mask, fill_value=-1.0, min_count=2)) == [6, -1, -1]
    assert dense(mt.amax(given, 1, mask=mask, min_count=0)) == [3, 4, -INF]
    assert str(dense(mt.sum(given, 1, mask=mask, min_count=2))) == "[6.0, nan, nan]"
    assert dense(mt.argmax(given, 1, mask=mask, fill_value=-1)) == [2, 0, -1]
    assert dense(mt.median(given, 1, mask=mask, fill_value=-1.0).values) == [2, 4, -1]
    x = mt.as_masked_tensor(x, mask)
    assert mt.sum(x, 1, min_count=2).tolist() == [6.0, None, None]


def test_a_mask_of_integers_is_read_as_nonzero() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    for dtype in (torch.int64, torch.int32, torch.uint8):
        mask = torch.tensor([2, 0, 1]).to(dtype)
        assert mt.sum(x, mask=mask).item() == 4.0
        assert mt.sum(x.to_sparse_coo(), mask=mask.to_sparse_coo()).item() == 4.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_a_mask_of_floats_is_refused_everywhere(dtype: torch.dtype) -> None:
    """In an additive mask 0 is valid, in one of zeros and ones 1 is: nothing is guessed."""
    x, labels = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), torch.tensor([0, 1])
    for mask in (torch.tensor([[0.0, 0.0, -math.inf]] * 2).to(dtype), torch.ones(2, 3, dtype=dtype)):
        calls: dict[str, Callable[[], object]] = {
            "mask": lambda mask=mask: mt.mean(x, 1, mask=mask),
            "sparse": lambda mask=mask: mt.mean(x.to_sparse_coo(), 1, mask=mask.to_sparse_coo()),
            "masked": lambda mask=mask: mt.softmax(mt.as_masked_tensor(x, x > 1), 1, mask=mask),
            "packed": lambda mask=mask: mt.ffill(mt.from_lengths(x, [3, 1], packed=True), 1, mask=mask),
            "count": lambda mask=mask: mt.count(x, mask=mask),
            "loss": lambda mask=mask: mt.mse_loss(x, x, mask=mask),
            "target_mask": lambda mask=mask: mt.cross_entropy(x, labels, target_mask=mask[:, 0]),
            "key_mask": lambda mask=mask: mt.scaled_dot_product_attention(x, x, x, key_mask=mask[0, :2]),
            "data": lambda mask=mask: mt.masked_tensor(x, mask),
            "attention_mask": lambda mask=mask: mt.from_attention_mask(x, mask),
        }
        for name, call in calls.items():
            said = name if name.endswith("mask") else "mask"
            with pytest.raises(
                TypeError, match=rf"^{said} must be a bool.* {said} != 0 .* {said} == 0 for an additive"
            ):
                call()


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.bool, torch.complex64]
)
def test_dtypes(dtype: torch.dtype, layout: str) -> None:
    dense = torch.tensor([[3, 0, 2], [0, 0, 0], [1, 1, 0]]).to(dtype)
    mask = torch.tensor([[True, True, False], [True] * 3, [True, False, True]])
    x = {"strided": dense.clone, "coo": dense.to_sparse_coo, "csr": dense.to_sparse_csr}[layout]()
    for name in (
        "sum",
        "prod",
        "any",
        "all",
        "count_nonzero",
        "amax",
        "amin",
        "argmax",
        "mean",
        "norm",
        "var",
        "median",
    ):
        plain = {"amax": "amax", "norm": "sum", "median": "sum"}.get(name, name)
        ordered = name in ("amax", "amin", "argmax", "median")
        if (ordered and dtype.is_complex) or (name in ("mean", "norm", "var") and not dtype.is_floating_point):
            continue
        if name in ("argmax", "median") and dtype is torch.bool:
            continue
        arguments: dict[str, Any] = {"dim": 1, "keepdim": True, "mask": mask}
        out = tree_leaves(getattr(mt, name)(x, **arguments))[0]
        want = tree_leaves(getattr(mt, name)(dense, **arguments))[0]
        out = out.to_dense() if out.layout is not torch.strided else out
        assert out.dtype == want.dtype, (name, plain)
        torch.testing.assert_close(out, want, equal_nan=True)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("layout", ["strided", "coo", "csr", "csc", "bsr", "bsc"])
def test_bad_masks_of_every_layout(layout: str) -> None:
    convert = {
        "strided": Tensor.clone,
        "coo": Tensor.to_sparse_coo,
        "csr": Tensor.to_sparse_csr,
        "csc": Tensor.to_sparse_csc,
        "bsr": lambda x: x.to_sparse_bsr((1, 1)),
        "bsc": lambda x: x.to_sparse_bsc((1, 1)),
    }[layout]
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    numbers = torch.tensor([[2, 0, 1], [0, 0, -1]])  # read as mask != 0
    for given in (x, convert(x), convert(mt.as_masked_tensor(x, x > 0))):
        out = mt.sum(given, 1, keepdim=True, mask=convert(numbers))
        assert out.to_dense().tolist() == [[4.0], [6.0]]
        with pytest.raises(ValueError, match=r"input's shape \(2, 3\), got a mask of shape \(3, 2\)"):
            mt.mean(given, 1, mask=convert(numbers.t().contiguous()))
        with pytest.raises(ValueError, match=r"on one device, got mask on meta, input on cpu"):
            mt.amax(given, 1, mask=torch.ones(2, 3, dtype=torch.bool, device="meta"))
        with pytest.raises(TypeError, match="mask must be a plain tensor or None, got MaskedTensor"):
            mt.amax(given, 1, mask=mt.as_masked_tensor(x > 0, x > 0))
    with pytest.raises(RuntimeError, match=r"mean\(\): .*nput dtype .*(int64|Long)"):
        mt.mean(convert(x.long()), 1)


def test_a_mask_of_rows_is_not_read_as_one_of_columns() -> None:
    """A head of one output gives (B, 1): with a mask (B,) it would be expanded to (B, B), and the mask cancel out."""
    x, keep = torch.tensor([[1.0], [NAN], [3.0]]), torch.tensor([True, False, True])
    for call in (mt.mean, mt.sum, mt.softmax):
        with pytest.raises(ValueError, match=r"shape \(3, 1\), got a mask of shape \(3,\); use mask\[\.\.\., None\]"):
            call(x, 0, mask=keep)
    with pytest.raises(ValueError, match=r"input's shape \(3, 1\), got a mask of shape \(3,\)"):
        mt.mse_loss(x, torch.zeros(3, 1), mask=keep)
    with pytest.raises(ValueError, match=r"target_mask must broadcast to target's shape \(3, 1\)"):
        mt.mse_loss(x, torch.zeros(3, 1), target_mask=keep)
    assert mt.mean(x, 0, mask=keep[:, None]).item() == 2.0
    assert mt.mean(x[:1].clamp(1), mask=keep).item() == 1.0  # wider: there is no row of its own to mean


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss", "multi_margin_loss"])
@pytest.mark.parametrize(("samples", "classes"), [(3, 3), (1, 3), (3, 2), (3, 1)])
def test_a_mask_of_labels_is_not_read_as_one_of_classes(name: str, samples: int, classes: int) -> None:
    """Whatever the sizes are: a batch of as many samples as there are classes is no other call."""
    loss: Any = getattr(mt, name)
    scores, labels, keep = (
        torch.randn(samples, classes),
        torch.zeros(samples, dtype=torch.long),
        torch.ones(samples) > 0,
    )
    with pytest.raises(ValueError, match="as target_mask="):
        loss(scores, labels, mask=keep)
    image, pixels = scores[..., None].expand(-1, -1, samples), labels[:, None].expand(-1, samples)
    if name != "multi_margin_loss":
        with pytest.raises(ValueError, match="as target_mask="):
            loss(image, pixels, mask=keep.expand(samples, samples))
    close(loss(scores, labels, target_mask=keep), loss(scores, labels))
    close(loss(scores, labels, mask=torch.ones(1, classes) > 0), loss(scores, labels))


def test_errors_name_both_sides() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(ValueError, match=r"mask must broadcast to input's shape \(2, 3\), got a mask of shape \(2,\)"):
        mt.sum(x, mask=torch.ones(2, dtype=torch.bool))
    with pytest.raises(
        ValueError, match=r"mask must broadcast to input's shape \(2, 3\), got a mask of shape \(4, 3\)"
    ):
        mt.sum(x.to_sparse_coo(), mask=torch.ones(4, 3, dtype=torch.bool).to_sparse_coo())
    with pytest.raises(ValueError, match="got mask on meta, input on cpu"):
        mt.sum(x, mask=torch.ones(2, 3, dtype=torch.bool, device="meta"))
    with pytest.raises(TypeError, match="mask must be a plain tensor or None, got list"):
        mt.sum(x, mask=[True])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="input must be a tensor, got int"):
        mt.sum(1)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="Dimension out of range"):
        mt.sum(x.to_sparse_coo(), 5)
    with pytest.raises(NotImplementedError, match=r"masked_tensor.logaddexp does not support torch.sparse_coo inputs"):
        mt.logaddexp(x.to_sparse_coo(), x)
    with pytest.raises(ValueError, match="unbiased or correction, not both"):
        mt.var(x, 0, True, correction=1)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'msk'"):
        mt.mse_loss(x, x, msk=x)  # type: ignore[call-arg]


def test_functional_transforms() -> None:
    x, mask = torch.tensor([[1.0, NAN, 4.0], [2.0, 3.0, NAN]]), torch.tensor([[True, False, True], [True, True, False]])
    gradient = torch.func.grad(lambda x: mt.var(x, 1, correction=0, mask=mask).sum())(x)
    close(gradient, [[-1.5, 0, 1.5], [-0.5, 0.5, 0]])
    close(torch.func.vmap(lambda x, m: mt.mean(x, 0, mask=m))(x, mask), [2.5, 2.5])
    gradient = torch.func.grad(lambda x: mt.softmax(x, 1, mask=mask)[:, 0].sum())(x)
    assert gradient.isfinite().all()
