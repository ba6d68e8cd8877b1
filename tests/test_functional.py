"""Every functional form x input layout x mask layout x dim x keepdim against the note's pseudo-code."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor.functional as masked

from .oracles import sparse as oracle

pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse (CSR|CSC|BSR|BSC) tensor support is in beta"
)  # torch's own, once

INF, NAN = float("inf"), float("nan")


def example(shape: tuple[int, ...] = (4, 6)) -> Tensor:
    """Small integers (ties, exact sums), zeros, an empty row and an empty column."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randint(-3, 4, shape, generator=generator).to(torch.float64)
    x[torch.rand(shape, generator=generator) < 0.4] = 0
    x[..., 2, :] = 0
    x[..., 5] = 0
    x[..., 0, :2] = torch.tensor([2.0, 3.0])
    return x


def masks_of(shape: tuple[int, ...]) -> dict[str, Tensor | None]:
    generator = torch.Generator().manual_seed(3)
    m = torch.rand(shape, generator=generator) < 0.6
    m[..., 1, :] = False
    found: dict[str, Tensor | None] = {"none": None, "strided": m, "row": m[..., :1, :], "column": m[..., :1]}
    found["vector"] = m[(0,) * (m.dim() - 1)]
    found["coo"] = m.to_sparse_coo()
    everything = torch.ones(shape).to_sparse_coo()
    found["coo explicit False"] = torch.sparse_coo_tensor(
        everything.indices(), m.reshape(-1), shape, check_invariants=True
    ).coalesce()
    found["coo row"], found["coo column"] = m[..., :1, :].to_sparse_coo(), m[..., :1].to_sparse_coo()
    if len(shape) == 2:
        found |= {"csr": m.to_sparse_csr(), "csc": m.to_sparse_csc()}
        found |= {"bsr": m.to_sparse_bsr((2, 3)), "bsc": m.to_sparse_bsc((2, 3))}
    return found


def uncoalesced(x: Tensor) -> Tensor:
    x = x.to_sparse_coo()
    indices = torch.cat((x.indices(), x.indices()), 1)
    return torch.sparse_coo_tensor(
        indices, torch.cat((x.values() - 1, torch.ones_like(x.values()))), x.shape, check_invariants=True
    )


INPUTS: dict[str, Callable[[], Tensor]] = {
    "strided": example,
    "strided 3-d": lambda: example((2, 4, 6)),
    "coo": lambda: example().to_sparse_coo(),
    "coo hybrid": lambda: example().to_sparse(1),
    "coo uncoalesced": lambda: uncoalesced(example()),
    "coo 3-d": lambda: example((2, 4, 6)).to_sparse_coo(),
    "csr": lambda: example().to_sparse_csr(),
    "csc": lambda: example().to_sparse_csc(),
    "bsr": lambda: example().to_sparse_bsr((2, 3)),
    "bsc": lambda: example().to_sparse_bsc((2, 3)),
    "csr batched": lambda: torch.stack([example(), example().flip(1)]).to_sparse_csr(),
    "csr hybrid": lambda: example((4, 6))[..., None].expand(4, 6, 2).contiguous().to_sparse_csr(dense_dim=1),
}

REDUCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Any, dict[str, Any]]] = {
    "sum": (torch.sum, 0, {}),
    "prod": (torch.prod, 1, {}),
    "mean": (torch.mean, NAN, {}),
    "amax": (torch.amax, -INF, {}),
    "amin": (torch.amin, INF, {}),
    "any": (lambda v: v.ne(0).any(), False, {}),
    "all": (lambda v: v.ne(0).all(), True, {}),
    "count_nonzero": (torch.count_nonzero, 0, {}),
    "logsumexp": (lambda v: v.logsumexp(0), -INF, {}),
    "nansum": (torch.nansum, 0, {}),
    "nanmean": (torch.nanmean, NAN, {}),
    "var": (lambda v: v.var(correction=1) if v.numel() > 1 else v.new_tensor(NAN), NAN, {}),
    "std": (lambda v: v.std(correction=0), NAN, {"correction": 0}),
    "norm": (lambda v: torch.linalg.vector_norm(v), 0, {}),
    "norm 0": (lambda v: torch.linalg.vector_norm(v, 0), 0, {"ord": 0}),
    "norm 1": (lambda v: torch.linalg.vector_norm(v, 1), 0, {"ord": 1}),
    "norm 3": (lambda v: torch.linalg.vector_norm(v, 3), 0, {"ord": 3}),
    "norm -1": (lambda v: torch.linalg.vector_norm(v, -1), INF, {"ord": -1}),
    "norm inf": (lambda v: torch.linalg.vector_norm(v, INF), 0, {"ord": INF}),
    "norm -inf": (lambda v: torch.linalg.vector_norm(v, -INF), INF, {"ord": -INF}),
}

ONE_DIM: dict[str, tuple[Callable[[Tensor], Tensor], Any]] = {
    "median": (torch.median, NAN),
    "nanmedian": (torch.nanmedian, NAN),
    "argmax": (torch.argmax, 0),
    "argmin": (torch.argmin, 0),
}


def dims_of(ndim: int) -> Iterator[Any]:
    yield None
    yield from range(ndim)
    yield -1
    yield from itertools.combinations(range(ndim), 2)


def check(out: Tensor, x: Tensor, expected: Tensor, valid: Tensor, what: str, keepdim: bool) -> None:
    assert out.dtype == expected.dtype, f"{what}: {out.dtype}, not {expected.dtype}"
    assert out.shape == expected.shape, f"{what}: {tuple(out.shape)}, not {tuple(expected.shape)}"
    if x.layout is torch.strided or out.dim() == 0:
        assert out.layout is torch.strided, what
        torch.testing.assert_close(out, expected, equal_nan=True, msg=lambda m: f"{what}: {m}")
        return
    check_pattern(out)
    fits = x.layout is torch.sparse_coo or out.dim() == 2
    assert out.layout is (x.layout if fits else torch.sparse_coo), f"{what}: {out.layout}"
    dense = out.to_dense()
    assert not (dense[~valid] != 0).any(), f"{what}: something where nothing is valid"
    torch.testing.assert_close(dense[valid], expected[valid], equal_nan=True, msg=lambda m: f"{what}: {m}")


def check_pattern(x: Tensor) -> None:
    """torch's own invariants of the layout."""
    if x.layout is torch.sparse_coo:
        torch._validate_sparse_coo_tensor_args(x._indices(), x._values(), x.shape, x.is_coalesced())
    else:
        by_rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
        indices = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
        torch._validate_sparse_compressed_tensor_args(*indices, x.values(), x.shape, x.layout)


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, layout: str) -> None:
    function, empty, keywords = REDUCTIONS[name]
    form = getattr(masked, name.split()[0])
    x = INPUTS[layout]()
    dense = x.to_dense()
    for dim in dims_of(x.dim()):
        dims = (dim % x.dim(),) if isinstance(dim, int) else tuple(range(x.dim())) if dim is None else dim
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            for keepdim in (False, True):
                expected, valid = oracle.reduction(function, dense, mask, dims, keepdim, empty)
                out = form(x, dim=dim, keepdim=keepdim, mask=mask, **keywords)
                check(out, x, expected, valid, f"{name} of {layout}, mask {mask_name}, dim {dim}", keepdim)


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("name", ONE_DIM)
def test_order(name: str, layout: str) -> None:
    function, empty = ONE_DIM[name]
    x = INPUTS[layout]()
    dense = x.to_dense()
    for dim in (None, *range(x.dim()), -1):
        dims = tuple(range(x.dim())) if dim is None else (dim % x.dim(),)
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            for keepdim in (False, True):
                if name.startswith("arg"):
                    expected, valid = oracle.position(function, dense, mask, dims, keepdim)
                else:
                    expected, valid = oracle.reduction(function, dense, mask, dims, keepdim, empty)
                out = getattr(masked, name)(x, dim, keepdim=keepdim, mask=mask)
                check(out, x, expected, valid, f"{name} of {layout}, mask {mask_name}, dim {dim}", keepdim)


ALONG: dict[str, tuple[Callable[[Tensor], Tensor], Callable[..., Tensor], float]] = {
    "softmax": (lambda v: v.softmax(0), masked.softmax, 0),
    "log_softmax": (lambda v: v.log_softmax(0), masked.log_softmax, -INF),
    "softmin": (lambda v: (-v).softmax(0), masked.softmin, 0),
    "normalize": (
        lambda v: torch.nn.functional.normalize(v, 2, 0),
        lambda x, d, mask: masked.normalize(x, 2, d, mask=mask),
        0,
    ),
    "cumsum": (lambda v: v.cumsum(0), masked.cumsum, 0),
    "cumprod": (lambda v: v.cumprod(0), masked.cumprod, 0),
    "logcumsumexp": (lambda v: v.logcumsumexp(0), masked.logcumsumexp, 0),
}


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("name", ALONG)
def test_along(name: str, layout: str) -> None:
    function, form, hidden = ALONG[name]
    x = INPUTS[layout]()
    dense = x.to_dense()
    for dim in (*range(x.dim()), -1):
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            expected, valid = oracle.elementwise(function, x, mask, dim % x.dim(), dense)
            out = form(x, dim, mask=mask)
            what = f"{name} of {layout}, mask {mask_name}, dim {dim}"
            assert out.layout is x.layout, what
            values = out.to_dense()
            torch.testing.assert_close(values[valid], expected[valid], msg=lambda m, w=what: f"{w}: {m}")
            stored = masked_specified(x)
            assert (values[stored & ~valid] == hidden).all(), what


def masked_specified(x: Tensor) -> Tensor:
    if x.layout is torch.strided:
        return torch.ones(x.shape, dtype=torch.bool)
    flags = torch.zeros(x.shape, dtype=torch.bool)
    for index in oracle.pattern(x)[0]:
        flags[index] = True
    return flags
