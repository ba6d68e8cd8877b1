"""Order statistics over several dimensions, and over all: those of one dimension that holds the entries of them all."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor.testing import poison

DIMS = [d for n in (1, 2, 3) for d in combinations(range(3), n)]
FORMS = {
    "median": lambda x, dim, **k: mt.median(x, dim, **k),
    "nanmedian": lambda x, dim, **k: mt.nanmedian(x, dim, **k),
    "mode": lambda x, dim, **k: mt.mode(x, dim, **k),
    "quantile": lambda x, dim, **k: mt.quantile(x, 0.4, dim, **k),
    "quantiles": lambda x, dim, **k: mt.quantile(x, [0.1, 0.75], dim, **k),
    "scipy's quantile": lambda x, dim, **k: mt.quantile(x, 0.4, dim, alphap=0.4, betap=0.4, **k),
    "nanquantile": lambda x, dim, **k: mt.nanquantile(x, 0.4, dim, **k),
}


def entries(garbage: float = float("nan")) -> mt.MaskedTensor:
    torch.manual_seed(0)
    data = torch.randint(-9, 9, (2, 3, 4)).double()
    mask = torch.rand(2, 3, 4) > 0.3
    mask[1, 0] = False
    return poison(mt.masked_tensor(data, mask), garbage)


def flat(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    kept = [d for d in range(x.dim()) if d not in dims]
    return x.permute(*kept, *dims).reshape(*(x.shape[d] for d in kept), prod(x.shape[d] for d in dims))


def parts(result: object) -> list[Tensor]:
    return [result] if isinstance(result, Tensor) else list(result)  # type: ignore[call-overload]


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("name", FORMS)
def test_several_dimensions_are_one(name: str, dims: tuple[int, ...], garbage: float) -> None:
    x, form = entries(garbage), FORMS[name]
    theirs = parts(form(flat(x, dims), -1))
    for ours, expected in zip(parts(form(x, dims)), theirs, strict=True):
        assert ours.mask.equal(expected.mask)
        assert ours.filled(0).equal(expected.filled(0))
    lead = (2,) if name == "quantiles" else ()
    kept = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
    for ours, expected in zip(parts(form(x, dims, keepdim=True)), theirs, strict=True):
        assert ours.shape == (*lead, *kept)
        assert ours.filled(0).flatten().equal(expected.filled(0).flatten())
    by_mask = parts(form(x.get_data(), dims, mask=x.mask, fill_value=-77))
    assert by_mask[0].equal(theirs[0].filled(-77))


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("name", FORMS)
def test_several_dimensions_of_sparse_data(name: str, dims: tuple[int, ...]) -> None:
    data = torch.tensor([[[0.0, 3.0], [0.0, -1.0]], [[2.0, 0.0], [0.0, 0.0]]], dtype=torch.float64)
    mask = torch.tensor([[[True, True], [False, True]], [[True, True], [True, True]]])
    for ours, theirs in zip(
        parts(FORMS[name](data.to_sparse(), dims, mask=mask)), parts(FORMS[name](data, dims, mask=mask)), strict=True
    ):
        if theirs.dtype.is_floating_point:  # of several positions any one may be given
            assert ours.to_dense().equal(theirs)


@pytest.mark.parametrize("dims", [(0, 2), (0, 1, 2)])
def test_gradients_and_positions_of_several_dimensions(dims: tuple[int, ...]) -> None:
    x = entries()
    data = x.get_data().requires_grad_()
    values, places = mt.median(mt.as_masked_tensor(data, x.mask), dims)
    (grad,) = torch.autograd.grad(values.sum(), data)
    assert grad.sum() == values.count()
    assert flat(grad, dims).gather(-1, places.filled(0)[..., None])[..., 0].equal(values.mask.double())
    assert flat(x, dims).gather(-1, places.filled(0)[..., None])[..., 0].filled(0).equal(values.filled(0))


def test_several_dimensions_agree_with_numpy() -> None:
    x = entries()
    array = x.to_numpy_ma()
    for dims in ((0, 1), (1, 2), (0, 1, 2)):
        mean_of_two = np.ma.median(array, axis=dims)
        ours = mt.quantile(x, 0.5, axis=dims)
        np.testing.assert_allclose(ours.to_numpy_ma().filled(0), np.ma.filled(mean_of_two, 0))


def test_all_dimensions() -> None:
    x = mt.masked_tensor([[1.0, None], [3.0, 3.0]])
    assert mt.mode(x, None).values.item() == 3.0
    assert mt.mode(x, (0, 1)).indices.item() == 3
    assert mt.median(x, ()).item() == mt.median(x).item() == 3.0
    assert mt.quantile(x, 0.0, None, keepdim=True).shape == (1, 1)
    for wrong in ((0, 0), (0, 5)):
        with pytest.raises((RuntimeError, IndexError)):
            mt.median(x, wrong)
    with pytest.raises(IndexError, match="non-zero size"):
        mt.median(torch.ones(2, 0), (0, 1))
