"""The ``masked.*`` entries of torch's operator database, pointed at this package's functions.

Deviations from torch.masked, each deliberate:

* argmax and argmin give int64 (the peer: the input's dtype, which cannot hold large positions), and never name a
  masked-out element (the peer does when the extreme equals its fill value);
* logsumexp of integers is a float (the peer truncates), cumsum, cumprod of integers and prod of bool promote;
* var and std of complex numbers are real, as torch's;
* median is torch.median: all entries without a dim, values and indices with it (the peer: the last dim, values alone,
  and without a mask nanmedian);
* what the functions leave at masked-out elements differs (0 or -inf here), so only valid outputs are compared.
"""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import masked_tensor as mt
from masked_tensor import functional, layouts
from masked_tensor.engine.tensor import pair_of

from .helpers import database
from .helpers.trees import tree_leaves

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*prototype stage"),
]
NAMES = sorted(name for name in database.ENTRIES if name.startswith("masked."))
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
TOLERANCE = {torch.bfloat16: {"rtol": 2e-2, "atol": 2e-2}}
REAL_OF_COMPLEX = ("masked.var", "masked.std")
PROMOTES = ("masked.logsumexp", "masked.cumsum", "masked.cumprod", "masked.prod")


def form(name: str) -> Any:
    if name == "masked.median":
        return lambda x, dim=-1, *rest, **more: tree_leaves(functional.median(x, dim, *rest, **more))[0]
    return getattr(functional, name.removeprefix("masked."))


def test_the_database_has_the_nineteen_functions() -> None:
    assert len(NAMES) == 19
    assert all(hasattr(mt, name.removeprefix("masked.")) for name in NAMES)


def valid_outputs(sample: database.Sample, name: str) -> Tensor | None:
    """Where the masked result of the same call is valid."""
    mask = sample.kwargs.get("mask")
    if mask is None:
        return None
    x = mt.as_masked_tensor(sample.args[0], mask)
    keywords = {k: v for k, v in sample.kwargs.items() if k != "mask"}
    return pair_of(form(name)(x, *sample.args[1:], **keywords)).mask


@pytest.mark.filterwarnings("ignore:Casting complex values to real")  # torch 2.15's own norm of one complex number
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_samples_agree_with_torch_masked(name: str, dtype: torch.dtype) -> None:
    if dtype not in database.ENTRIES[name].supported_dtypes("cpu"):
        pytest.skip("the entry has no samples of this dtype")
    peer = getattr(torch.masked, name.removeprefix("masked."))
    for sample in database.samples(name, dtype, limit=10**6):
        actual, expected = form(name)(*sample.args, **sample.kwargs), peer(*sample.args, **sample.kwargs)
        assert actual.shape == expected.shape
        if name in ("masked.argmax", "masked.argmin"):
            expected = expected.to(torch.int64)
        elif name in REAL_OF_COMPLEX and dtype.is_complex:
            assert not actual.is_complex()
            expected = expected.real
        elif name in PROMOTES and actual.dtype != expected.dtype:
            assert not dtype.is_floating_point
            continue
        valid = valid_outputs(sample, name) if name != "masked.logaddexp" else None
        if valid is not None:
            actual, expected = actual[valid], expected[valid]
        torch.testing.assert_close(actual, expected, equal_nan=True, **TOLERANCE.get(dtype, {}))


SPARSE = {
    "coo": lambda x: x.to_sparse_coo(),
    "coo hybrid": lambda x: x.to_sparse(1),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((1, 1)),
    "bsc": lambda x: x.to_sparse_bsc((1, 1)),
}


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", [n for n in NAMES if n != "masked.logaddexp"])  # strided only, also in torch.masked
def test_samples_are_layout_invariant(name: str, layout: str) -> None:
    checked = 0
    for sample in database.samples(name, torch.float64, limit=60):
        x = sample.args[0]
        if x.dim() == 0 or x.numel() == 0 or (layout[:3] != "coo" and x.dim() < 2):
            continue
        dense = form(name)(*sample.args, **sample.kwargs)
        sparse = form(name)(SPARSE[layout](x), *sample.args[1:], **sample.kwargs)
        sparse = sparse.to_dense() if layouts.is_sparse(sparse) else sparse
        valid = valid_outputs(sample, name)
        if valid is not None:
            dense, sparse = dense[valid], sparse[valid]
        torch.testing.assert_close(sparse, dense, equal_nan=True)
        checked += 1
    assert checked


NOT_DIFFERENTIABLE = ("masked.argmax", "masked.argmin")


@pytest.mark.parametrize("name", [n for n in NAMES if n not in NOT_DIFFERENTIABLE])
def test_gradcheck(name: str) -> None:
    for sample in database.samples(name, torch.float64, limit=25):
        x = sample.args[0].detach().clone().requires_grad_()
        if x.numel() == 0 or not x.isfinite().all():  # torch's own gradients are NaN there
            continue

        def function(x: Tensor, sample: database.Sample = sample) -> Tensor:
            out = form(name)(x, *sample.args[1:], **sample.kwargs)
            return torch.nan_to_num(out, 0, 0, 0)

        assert gradcheck(function, (x,), check_batched_grad=False, fast_mode=True)
