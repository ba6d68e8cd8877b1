"""The named exits."""

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import masked_tensor as mt

NAN = float("nan")


def example(requires_grad: bool = False) -> mt.MaskedTensor:
    data, mask = torch.tensor([[1.0, NAN], [3.0, 4.0]]), torch.tensor([[True, False], [True, True]])
    return mt.as_masked_tensor(data, mask).requires_grad_(requires_grad)


def test_filled_and_its_other_name() -> None:
    assert example().filled(-1).tolist() == [[1, -1], [3, 4]]
    assert example().to_tensor(-1).equal(mt.filled(example(), -1))
    assert type(example().filled(0)) is torch.Tensor


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex128])
def test_filled_takes_what_becomes_a_tensor(dtype: torch.dtype) -> None:
    pd = pytest.importorskip("pandas")
    for under in (7.0, NAN, float("inf")):
        if dtype is torch.int64 and under != 7:
            continue
        x = mt.as_masked_tensor(torch.tensor([[1, under], [under, 4]]).to(dtype), torch.eye(2).bool())
        wanted = torch.tensor([[1, 6], [5, 4]], dtype=dtype)
        column, rows = [5, 6], [[5, 6], [5, 6]]
        for values in (column, (5, 6), np.array(column), pd.Series(column), np.array([6.0, 5.0])[::-1], rows):
            assert x.filled(values).equal(wanted)
            assert x.to_tensor(values).dtype is dtype
        assert x.filled(np.array(5)).equal(x.filled(5))
        assert mt.filled(x.requires_grad_(dtype.is_floating_point), pd.DataFrame(rows)).equal(wanted)
    whole = mt.masked_tensor([1.0, None], dtype=torch.float64)
    assert whole.filled([0.1, 0.1]).tolist() == [1.0, 0.1]  # in the dtype of x, not the default one


def test_filled_is_fresh() -> None:
    x = mt.masked_tensor([1.0, 2.0], [True, False])
    x.filled(0).fill_(9)
    assert x.tolist() == [1.0, None]
    assert x.get_data().tolist() == [1.0, 0.0]


def test_exits_are_differentiable() -> None:
    for leave in (
        lambda x: x.filled(7.0).sum(),
        lambda x: x.get_data().nan_to_num(0).sum(),
        lambda x: x.compressed().sum(),
    ):
        x = example(requires_grad=True)
        leave(x).backward()
        assert x.grad.tolist() == [[1.0, None], [1.0, 1.0]]
        assert x.grad.get_data()[0, 1] == 0


def test_compressed() -> None:
    assert example().compressed().tolist() == [1.0, 3.0, 4.0]
    assert mt.masked_tensor(2.0, False).compressed().tolist() == []
    assert mt.masked_tensor(torch.ones(0, 2)).compressed().tolist() == []


def test_count() -> None:
    x = example()
    assert x.count().item() == 3
    assert x.count(0).tolist() == [2, 1]
    assert x.count((0, 1)).item() == 3
    assert x.count(-1, keepdim=True).tolist() == [[1], [2]]


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_count_of_a_plain_tensor_with_a_mask(dim: Any, keepdim: bool) -> None:
    data, mask = torch.full((3, 4), torch.nan), torch.rand(3, 4) < 0.6
    for given in (mask, mask[0], mask[:, :1], torch.tensor(True), mask & False):
        want = mt.as_masked_tensor(data, given.expand(3, 4)).count(dim, keepdim)
        assert torch.equal(mt.count(data, dim, keepdim, mask=given), want)
        both = mt.as_masked_tensor(data, mask).count(dim, keepdim, mask=given)
        assert torch.equal(both, mt.as_masked_tensor(data, mask & given).count(dim, keepdim))
    with pytest.raises(TypeError, match="expects a masked tensor"):
        mt.count(data)


def test_data_and_mask() -> None:
    x = example()
    assert x.get_mask().tolist() == [[True, False], [True, True]]
    assert x.get_data().isnan().tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    "x",
    [
        example(),
        mt.masked_tensor(torch.ones(2, 3), torch.zeros(2, 3).bool()),
        mt.masked_tensor(1.0),
        mt.masked_tensor(torch.ones(0, 2)),
        example().to_sparse(),
        mt.packed(mt.from_lengths(torch.ones(2, 3), torch.tensor([3, 1]))),
    ],
)
def test_the_mask_is_a_property_and_a_copy(x: mt.MaskedTensor) -> None:
    def bools(mask: torch.Tensor) -> torch.Tensor:
        return mask.to_dense() if mask.is_sparse else mask

    before = bools(x.get_mask()).clone()
    assert type(x.mask) is torch.Tensor
    assert x.mask.dtype is torch.bool
    assert torch.equal(bools(x.mask), before)
    if not x.is_sparse:
        x.mask.logical_not_()
        assert torch.equal(x.get_mask(), before)
        assert torch.equal(~x.mask, ~before)
    assert (mt.MaskedTensor.mask.__doc__ or "").startswith(
        "A copy of the mask as a plain bool tensor, with True = valid"
    )
    assert "x.mask" in (mt.MaskedTensor.get_mask.__doc__ or "")


def test_the_mask_in_a_compiled_function() -> None:
    x = example()
    inverted, number = torch.compile(lambda x: (~x.mask, x.mask.sum()), backend="eager", fullgraph=True)(x)
    assert torch.equal(inverted, ~x.get_mask())
    assert number == 3


def test_a_library_whose_mask_means_the_opposite_does_not_read_ours() -> None:
    x = example()
    assert np.ma.getmask(x) is np.ma.nomask
    with pytest.raises(mt.MaskedValueError):
        np.ma.array(x)
    with pytest.raises(AttributeError, match="unmasked"):
        pytest.importorskip("astropy.utils.masked").Masked(x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64])
def test_numpy_ma_and_back(dtype: torch.dtype) -> None:
    x = mt.masked_tensor(torch.tensor([[1, 2], [0, 1]]).to(dtype), [[True, False], [True, True]])
    array = x.to_numpy_ma()
    assert isinstance(array, np.ma.MaskedArray)
    assert array.tolist() == x.tolist()
    back = mt.masked_tensor(array)
    assert back.dtype is dtype
    assert back.tolist() == x.tolist()


def test_numpy_ma_holds_nan_under_the_mask_of_floats() -> None:
    """Libraries that ignore the mask of numpy.ma, as scikit-learn and scipy do, meet NaN instead of a number."""
    valid = torch.tensor([[True, False], [True, True]])
    for under in (7.0, 1e30, NAN, float("inf")):
        for dtype in (torch.float16, torch.float32, torch.float64, torch.complex64):
            data = torch.tensor([[1.0, under], [0.0, 3.0]]).to(dtype)
            x = mt.as_masked_tensor(data, valid)
            array = x.to_numpy_ma()
            assert np.isnan(array.data).tolist() == (~valid).tolist()
            assert array.data.dtype == data.numpy().dtype
            assert np.isnan(np.median(array.data))
            assert array.sum() == 4
            assert x.tolist() == [[1, None], [0, 3]]  # it is a copy
            assert mt.to_numpy_ma(x.requires_grad_()).tolist() == x.tolist()
    whole = mt.masked_tensor([1, 2], [True, False])
    assert whole.to_numpy_ma().tolist() == [1, None]


def test_statistics_agree_with_numpy_ma() -> None:
    x = mt.masked_tensor(torch.randn(5, 6, dtype=torch.float64), torch.rand(5, 6) < 0.6)
    assert np.ma.allclose(x.to_numpy_ma().sum(0), x.sum(0).to_numpy_ma())


LAYOUTS = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc]


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_sparse_tensors_come_and_go(layout: torch.layout) -> None:
    sparse = torch.tensor([[0.0, NAN, 3.0], [4.0, 0.0, 5.0]]).to_sparse(layout=layout)
    x = mt.masked_invalid(sparse)
    values = [[None, None, 3.0], [4.0, None, 5.0]]
    assert mt.as_masked_tensor(sparse).count().item() == 4
    assert x.layout is layout
    assert x.tolist() == values
    assert x.filled(-1.0).tolist() == [[-1.0, -1.0, 3.0], [4.0, -1.0, 5.0]]
    assert sorted(x.compressed().tolist()) == [3.0, 4.0, 5.0]
    assert (x.count().item(), x.count(0).tolist()) == (3, [1, 0, 2])
    assert x.to_numpy_ma().tolist() == values
    for again in (copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        assert again(x).tolist() == values
        assert again(x).layout is layout
    assert "nan" not in repr(x)
    assert "valid=3/6" in repr(x)
    assert mt.masked_equal(x, 4.0).tolist() == [[None, None, 3.0], [None, None, 5.0]]


TORCH_MASKED = [n for n in torch.masked.__all__ if "masked" not in n.lower()]


@pytest.mark.parametrize("name", TORCH_MASKED)
@pytest.mark.parametrize("dim", [0, -1, None])
def test_the_functions_of_torch_masked_take_our_mask(name: str, dim: int | None) -> None:
    """As of the data with a mask beside it, and with garbage under the mask."""
    data, mask = (
        torch.tensor([[1.0, 7.0, 3.0], [4.0, 5.0, 8.0]]),
        torch.tensor([[True, False, True], [True, True, False]]),
    )
    x = mt.as_masked_tensor(torch.where(mask, data, float("nan")), mask)
    rest: tuple[object, ...] = (dim,)
    if name in ("norm", "normalize"):
        rest = (2.0, dim)
    elif name == "logaddexp":
        rest = (x,)
    elif dim is None and name in ("cumsum", "cumprod", "softmax", "log_softmax", "softmin", "median", "normalize"):
        return
    if dim is None and name == "normalize":
        return
    function = getattr(torch.masked, name)
    found = function(x, *rest)
    given = (data,) if name == "logaddexp" else rest
    masks = {"input_mask": mask, "other_mask": mask} if name == "logaddexp" else {"mask": mask}
    expected = torch.where(found.get_mask(), function(data, *given, **masks), 0)
    assert type(found) is mt.MaskedTensor
    assert found.get_mask().any()
    torch.testing.assert_close(found.filled(0), expected, check_dtype=False)


def test_names_of_torch_masked_that_were_taken_before_the_import_take_our_mask() -> None:
    script = """
from torch.masked import mean, var
import masked_tensor as mt
import torch
x = mt.masked_tensor([1.0, None, 3.0])
assert mean(x).item() == torch.masked._ops.mean(x).item() == 2
assert var(x, 0).item() == torch.masked._ops.var(x, 0).item() == 2
assert mean(torch.tensor([1.0, 3.0, 8.0])).item() == 4
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_filled_returns_what_is_plain() -> None:
    for x in (torch.ones(2), torch.eye(2).to_sparse(), torch.ones(2, requires_grad=True)):
        assert mt.filled(x, 3) is x
    assert torch.equal(torch.vmap(lambda row: mt.filled(row, 3))(torch.ones(2, 3)), torch.ones(2, 3))
