"""Order statistics, scans, distances, norm layers and losses of sparse inputs, against loops over their elements."""

import itertools

import pytest
import torch
from torch import Tensor

import masked_tensor.functional as masked

from .oracles import sparse as oracle
from .test_functional import INPUTS, check, masked_specified, masks_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse (CSR|CSC|BSR|BSC) tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:.*segment_reduce.. is in beta"),
]
NAN = float("nan")
SPARSE = [name for name in INPUTS if not name.startswith("strided")]


def with_nan(x: Tensor) -> Tensor:
    """The example with one NaN among the stored values (of a hybrid or blocked one, in the first stored block)."""
    x = x.clone()
    (x._values() if x.layout is torch.sparse_coo else x.values()).view(-1)[0] = NAN
    return x


# ---------------------------------------------------------------------------------------------------- order statistics

QUANTILES = [(0.5, "linear"), (0.2, "lower"), (0.7, "higher"), (0.35, "nearest"), (0.9, "midpoint")]


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantile(name: str, layout: str) -> None:
    x = INPUTS[layout]() if name == "quantile" and layout != "csr" else with_nan(INPUTS[layout]())
    dense = x.to_dense()
    modes = itertools.cycle(QUANTILES)
    for dim in (None, *range(x.dim())):
        dims = tuple(range(x.dim())) if dim is None else (dim,)
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            q, kind = next(modes)

            def function(v: Tensor, q: float = q, kind: str = kind) -> Tensor:
                return getattr(torch, name)(v, q, interpolation=kind)  # type: ignore[no-any-return]

            keepdim = q > 0.5
            expected, valid = oracle.reduction(function, dense, mask, dims, keepdim, NAN)
            out = getattr(masked, name)(x, q, dim, keepdim=keepdim, interpolation=kind, mask=mask)
            check(out, x, expected, valid, f"{name} {q} {kind} of {layout}, mask {mask_name}, dim {dim}", keepdim)


@pytest.mark.parametrize("layout", SPARSE)
def test_several_quantiles_come_first(layout: str) -> None:
    x = INPUTS[layout]()
    share = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    for mask_name, dim, keepdim in itertools.product(("none", "coo", "row"), (None, 0, -1), (False, True)):
        mask = masks_of(tuple(x.shape))[mask_name]
        out = masked.quantile(x, share, dim, keepdim=keepdim, mask=mask).to_dense()
        assert out.shape[0] == 3
        for q, part in zip(share, out, strict=True):
            one = masked.quantile(x, q, dim, keepdim=keepdim, mask=mask)
            torch.testing.assert_close(part, one.to_dense() if one.dim() else one, msg=f"{mask_name} {dim}")


@pytest.mark.parametrize("layout", SPARSE)
def test_mode(layout: str) -> None:
    x = with_nan(INPUTS[layout]()) if layout in ("coo", "csr batched") else INPUTS[layout]()
    dense = x.to_dense()
    keepdim = False
    for dim in range(-1, x.dim() - 1):
        dims = (dim % x.dim(),)
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            keepdim = not keepdim
            what = f"mode of {layout}, mask {mask_name}, dim {dim}"
            values, indices = masked.mode(x, dim, keepdim=keepdim, mask=mask)
            expected, valid = oracle.reduction(most_frequent, dense, mask, dims, keepdim, NAN)
            check(values, x, expected, valid, what, keepdim)
            expected, valid = oracle.position(last_mode, dense, mask, dims, keepdim)
            check(indices, x, expected, valid, what, keepdim)


def most_frequent(v: Tensor) -> Tensor:
    """torch.mode, but NaN, which equals nothing, is the last of several candidates (torch's sort leaves that open)."""
    numbers = v[~v.isnan()]
    return numbers.mode(0)[0] if numbers.numel() else v[0]


def last_mode(v: Tensor) -> Tensor:
    """The last of the positions of the mode; of NaN alone, which equal nothing, the first."""
    value = most_frequent(v)
    return v.isnan().nonzero()[0, 0] if value.isnan() else (v == value).nonzero()[-1, 0]


@pytest.mark.parametrize("layout", SPARSE)
def test_unique_consecutive(layout: str) -> None:
    for x in (INPUTS[layout](), with_nan(INPUTS[layout]())):
        dense = x.to_dense()
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            visible = oracle.shown(mask, tuple(x.shape))
            elements = torch.stack([dense[i] for i in visible if visible[i]])
            expected = torch.unique_consecutive(elements, return_counts=True)
            out = masked.unique_consecutive(x, return_counts=True, mask=mask)
            for a, b in zip(out, expected, strict=True):
                torch.testing.assert_close(a, b, equal_nan=True, msg=f"{layout}, mask {mask_name}")
        with pytest.raises(NotImplementedError, match=r"has no inverse; give it input\.to_dense"):
            masked.unique_consecutive(x, return_inverse=True)


def test_masks_that_repeat_are_never_spelled_out() -> None:
    """Positions among the valid ones, with a mask that varies in every subset of the dimensions."""
    generator = torch.Generator().manual_seed(5)
    shape = (3, 2, 4, 3)
    dense = torch.randint(-1, 2, shape, generator=generator).double()
    x = (dense * (torch.rand(shape, generator=generator) < 0.3)).to_sparse_coo()
    for small in itertools.product(*((1, n) for n in shape)):
        mask = torch.rand(small, generator=generator) < 0.6
        for given in (mask, mask.to_sparse_coo()):
            values = torch.masked_select(x.to_dense(), mask)
            out = masked.unique_consecutive(x, return_counts=True, mask=given)
            torch.testing.assert_close(out, torch.unique_consecutive(values, return_counts=True))
            for name, dim in itertools.product(("argmax", "argmin"), (None, 0, 2)):
                expected = getattr(masked, name)(x.to_dense(), dim, mask=mask)
                got = getattr(masked, name)(x, dim, mask=given)
                torch.testing.assert_close(got.to_dense() if got.dim() else got, expected)


# --------------------------------------------------------------------------------------------------------------- scans


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes(name: str, layout: str) -> None:
    x = INPUTS[layout]()
    dense, stored = x.to_dense(), masked_specified(x)
    scan = getattr(torch, name)

    def last_place(v: Tensor) -> Tensor:  # of values that carry their position
        value = torch.floor(v / 100)
        return (v - 100 * value)[scan(value, 0).indices].long()

    for dim in range(-1, x.dim() - 1):
        position = torch.arange(x.shape[dim]).view(-1, *[1] * (x.dim() - dim % x.dim() - 1)).expand(x.shape)
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            out = getattr(masked, name)(x, dim, mask=mask)
            values, valid = oracle.elementwise(lambda v: scan(v, 0).values, x, mask, dim % x.dim(), dense)
            indices, _ = oracle.elementwise(last_place, x, mask, dim % x.dim(), dense * 100 + position)
            for got, expected in ((out.values, values), (out.indices, indices)):
                assert got.layout is x.layout
                assert got.dtype is expected.dtype
                got = got.to_dense()
                what = f"{name} of {layout}, mask {mask_name}, dim {dim}"
                torch.testing.assert_close(got[valid], expected[valid], msg=what)
                assert (got[stored & ~valid] == 0).all(), what
