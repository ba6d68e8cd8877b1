"""Products of sparse masked matrices with strided ones: pairs written down one by one, against torch's CSR kernels."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor import MaskedTensor, layouts
from masked_tensor.engine.tensor import pair_of

from .helpers.harness import Masked
from .helpers.sparse_cases import stored

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
LAYOUTS = ("coo", "hybrid coo", "csr", "csc", "bsr", "bsc")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64)
KINDS = ("plain", "vector", "masked", "masked rows", "masked columns", "masked vector", "infinite")


def matrix(generator: torch.Generator, dtype: torch.dtype, layout: str) -> MaskedTensor:
    """6 x 8: garbage is stored under the mask, one row is valid throughout, two have nothing valid."""
    data, mask = draw((6, 8), dtype, generator), torch.rand(6, 8, generator=generator) < 0.5
    mask[0], mask[2], mask[4] = True, False, False
    return stored(Masked(data, mask), layout, generator)


def draw(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randint(-4, 5, shape, generator=generator).to(dtype)  # sums are exact in every dtype


def other(kind: str, size: int, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    shape = (size,) if "vector" in kind else (size, 3)
    data = draw(shape, dtype, generator)
    if kind == "infinite" and (dtype.is_floating_point or dtype.is_complex):
        data[1, 0], data[3, 1] = torch.inf, torch.nan
    if "masked" not in kind:
        return data
    narrow = {"masked rows": (size, 1), "masked columns": (1, 3)}.get(kind, shape)
    mask = (torch.rand(narrow, generator=generator) < 0.6).expand(shape)
    if dtype.is_floating_point or dtype.is_complex:
        data = data.masked_fill(~mask, torch.nan)
    return mt.as_masked_tensor(data, mask)


def written_down(x: MaskedTensor, y: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    """The sums of the valid pairs of what ``x`` stores, one after the other, and which of them are valid."""
    wide = y.unsqueeze(1) if y.dim() == 1 else y
    data, mask = (wide.get_data(), wide.get_mask()) if type(wide) is MaskedTensor else (wide, wide == wide)
    mask = mask if type(wide) is MaskedTensor else torch.ones_like(mask)
    inside = pair_of(x)
    key, seen = layouts.elements.keys(inside.mask), layouts.values(inside.mask)
    entries = layouts.values(inside.data)
    total, hits = data.new_zeros(x.shape[0], wide.shape[1]), torch.zeros(x.shape[0], wide.shape[1])
    for k, v, shown in zip(key.tolist(), entries, seen.tolist(), strict=True):
        i, j = divmod(k, x.shape[1])
        for column in range(wide.shape[1]):
            if shown and mask[j, column]:
                total[i, column] += v.detach() * data[j, column].detach()
                hits[i, column] += 1
    valid = hits > 0
    if rule == "all":
        rows = torch.zeros(x.shape[0])
        rows.index_add_(0, key[seen] // x.shape[1], torch.ones(int(seen.sum())))
        valid = valid & (hits == rows.unsqueeze(1)) & (hits == mask.sum(0))
    return (total.squeeze(1), valid.squeeze(1)) if y.dim() == 1 else (total, valid)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_are_sums_of_valid_pairs(layout: str) -> None:
    count = 0
    dtypes = DTYPES if layout in ("csr", "csc") else DTYPES[1::2]
    for dtype, kind, rule in itertools.product(dtypes, KINDS, ("any", "all")):
        generator = torch.Generator().manual_seed(0)
        x, y = matrix(generator, dtype, layout), other(kind, 8, dtype, generator)
        with mt.meaning(product=rule):
            out = x @ y
        total, valid = written_down(x, y, rule)
        assert torch.equal(out.get_mask(), valid), (dtype, kind, rule)
        assert out.dtype is dtype
        torch.testing.assert_close(out.get_data()[valid], total[valid], rtol=0, atol=0, equal_nan=True)
        count += int(valid.any())
    assert count > len(dtypes) * len(KINDS)  # of all with rule=any, and a few more


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_transpose_and_linear_give_the_same(layout: str) -> None:
    for dtype, kind in itertools.product(
        DTYPES[1::2], ("plain", "masked", "masked rows", "masked columns", "infinite")
    ):
        generator = torch.Generator().manual_seed(0)
        x, y = matrix(generator, dtype, layout), other(kind, 6, dtype, generator)
        turned = matrix(torch.Generator().manual_seed(0), dtype, "coo").t()
        expected = turned @ y
        for out in (torch.matmul(y.mT, x), torch.nn.functional.linear(y.mT, turned)):
            assert torch.equal(out.mT.get_mask(), expected.get_mask()), (dtype, kind)
            torch.testing.assert_close(out.mT.filled(0), expected.filled(0), rtol=0, atol=0, equal_nan=True)


def gradients(x: Tensor, pattern: MaskedTensor, dense: Tensor, left: bool, kind: str) -> list[Tensor]:
    """First and second derivatives of a product by the stored values and by the other factor."""
    inside = pair_of(pattern)
    sparse = mt.as_masked_tensor(layouts.with_values(inside.data.detach(), x), inside.mask.detach())
    y = dense if "masked" not in kind else mt.as_masked_tensor(dense, torch.rand(dense.shape) < 0.6)
    out = y.mT @ sparse if left else sparse @ y
    total = (out.filled(0) ** 2).sum() if out.layout is torch.strided else out.sum()
    first = torch.autograd.grad(total, (x, dense), create_graph=True)
    return [*first, *torch.autograd.grad(sum((g**3).sum() for g in first), (x, dense))]


@pytest.mark.parametrize(("layout", "left"), list(itertools.product(("coo", "csr", "csc", "bsr"), (False, True))))
def test_derivatives_by_kernels_and_by_pairs_agree(layout: str, left: bool, monkeypatch: Any) -> None:
    from masked_tensor.sparse import csr

    for dtype, kind, columns in itertools.product((torch.float64, torch.bfloat16), ("plain", "masked"), (1, 20)):
        pattern = matrix(torch.Generator().manual_seed(1), dtype, layout)
        dense = torch.randn(6 if left else 8, columns, dtype=dtype, requires_grad=True)
        values = layouts.values(pair_of(pattern).data).detach().clone().requires_grad_()
        assert values.isnan().any()
        results = []
        for kernel in (True, False):
            with monkeypatch.context() as patch:
                if not kernel:
                    patch.setattr(csr, "_has_kernel", lambda v, dense: False)
                torch.manual_seed(0)
                results.append(gradients(values, pattern, dense, left, kind))
        for got, expected in zip(*results, strict=True):
            assert got.isfinite().all()
            if dtype is torch.float64:
                torch.testing.assert_close(got, expected)
            else:
                assert got.dtype is dtype
        assert not results[0][0][values.isnan()].any()


def test_masked_values_do_not_meet_infinite_gradients() -> None:
    x = mt.as_masked_tensor(torch.eye(2).to_sparse_csr(), torch.tensor([[1, 0], [0, 0]]).bool().to_sparse_csr())
    dense = torch.tensor([[1.0, 2.0], [torch.inf, torch.nan]], requires_grad=True)
    out = x @ dense
    assert out.tolist() == [[1, 2], [None, None]]
    out.backward(mt.masked_tensor([[torch.inf, 1.0], [0.0, 0.0]], out.get_mask()))
    assert dense.grad is not None
    assert dense.grad.tolist() == [[torch.inf, 1.0], [0.0, 0.0]]


class Largest(TorchDispatchMode):
    """How many bytes the largest tensor took that was made."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if any(r.alias_info is not None for r in func._schema.returns):  # a view
            return out
        for x in out if isinstance(out, tuple | list) else (out,):
            if type(x) is Tensor and x.layout is torch.strided and 0 not in x.stride():
                self.size = max(self.size, x.numel() * x.itemsize)
        return out


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_no_pairs_and_no_wide_masks_are_written_down(layout: str) -> None:
    """Forward and backward: nothing is larger than the values in 8 bytes, or than the strided factor."""
    generator = torch.Generator().manual_seed(0)
    number, size, columns = 20_000, 500, 8
    key = torch.randperm(size * size, generator=generator)[:number].sort().values
    coo = torch.sparse_coo_tensor(
        torch.stack((key // size, key % size)),
        torch.randn(number, generator=generator),
        (size, size),
        is_coalesced=True,
        check_invariants=False,
    )
    plain = coo if layout == "coo" else coo.to_sparse(layout=getattr(torch, f"sparse_{layout}"))
    mask = layouts.with_values(plain, torch.rand(number, generator=generator) < 0.7)
    x = mt.as_masked_tensor(plain, mask)
    dense = torch.randn(size, columns, requires_grad=True)
    for y in (dense, mt.as_masked_tensor(dense, torch.rand(size, columns, generator=generator) < 0.5)):
        with Largest() as seen:
            for out in (x @ y, y.mT @ x):
                (out * out).sum().backward()
        assert 0 < seen.size <= 8 * number
