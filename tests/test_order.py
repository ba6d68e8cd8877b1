"""Order statistics where sentinels fail: valid infinities, NaN, extremes of the dtype, ties; and their gradients."""

import itertools

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of

from .helpers.trees import tree_leaves
from .laws import laws

INF, NAN = float("inf"), float("nan")
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]


def extremes(dtype: torch.dtype) -> torch.Tensor:
    """The hardest values of a dtype, some of them twice."""
    if dtype.is_floating_point:
        info = torch.finfo(dtype)
        values = [INF, -INF, NAN, -NAN, info.max, info.min, 0.0, -0.0, 1.0, 1.0, -INF, INF, info.tiny]
    else:
        info = torch.iinfo(dtype)
        values = [info.max, info.min, 0, 1, info.max, info.min, info.max - 1, info.min + 1, 0]
    return torch.tensor(values, dtype=dtype)


def cases(dtype: torch.dtype) -> list[tuple[MaskedTensor, torch.Tensor, torch.Tensor]]:
    """Rows of shuffled extremes under random masks: (masked tensor with extremes as payload, data, mask)."""
    generator = torch.Generator().manual_seed(1)
    values = extremes(dtype)
    rows = torch.stack([values[torch.randperm(len(values), generator=generator)] for _ in range(40)])
    mask = torch.rand(rows.shape, generator=generator) < torch.rand(40, 1, generator=generator)
    mask[0], mask[1] = False, True
    wide = (rows.repeat(1, 1), mask), (rows.t().contiguous(), mask.t().contiguous())
    return [(mt.as_masked_tensor(d, m), d, m) for d, m in wide]


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(
        torch.nan_to_num(a.double(), nan=-7.5, posinf=None, neginf=None), torch.nan_to_num(b.double(), nan=-7.5)
    ) and (torch.equal(a.isnan(), b.isnan()))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_sort(dtype, descending) -> None:
    for dim, (x, data, mask) in zip((1, 0), cases(dtype), strict=True):
        values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
        v, i, m = (t.movedim(dim, -1) for t in (values.get_data(), indices.get_data(), values.get_mask()))
        for row in range(40):
            d, ok = data.movedim(dim, -1)[row], mask.movedim(dim, -1)[row]
            n = int(ok.sum())
            expected, order = torch.sort(d[ok], descending=descending, stable=True)
            assert m[row].tolist() == [True] * n + [False] * (len(d) - n)
            assert same(v[row, :n], expected)
            assert i[row, :n].tolist() == ok.nonzero().reshape(-1)[order].tolist(), "stable"
            assert sorted(i[row].tolist()) == list(range(len(d))), "indices are unique and in range"


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_topk_and_kthvalue(dtype, largest) -> None:
    x, data, mask = cases(dtype)[0]
    for k in (1, 4, data.shape[1]):
        values, indices = torch.topk(x, k, largest=largest)
        for row in range(40):
            d, ok = data[row], mask[row]
            n = min(k, int(ok.sum()))
            assert values.get_mask()[row].tolist() == [True] * n + [False] * (k - n)
            assert same(values.get_data()[row, :n], torch.sort(d[ok], descending=largest)[0][:n])
            chosen = indices.get_data()[row]
            assert ok[chosen[:n]].all(), "a masked-out entry was chosen"
            assert len(set(chosen.tolist())) == k
            assert same(d[chosen[:n]], values.get_data()[row, :n])
        if not largest:
            value, index = torch.kthvalue(x, k)
            assert torch.equal(value.get_mask(), mask.sum(1) >= k)
            assert same(value.get_data()[value.get_mask()], values[:, -1].get_data()[value.get_mask()])
            assert mask.gather(1, index.get_data()[:, None])[:, 0][value.get_mask()].all()


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS[:-1]], ids=str)
def test_topk_of_long_rows_looks_at_few_blocks(dtype, largest, monkeypatch) -> None:
    generator = torch.Generator().manual_seed(2)
    values = extremes(dtype)
    rows = values[torch.randint(0, len(values), (60, 480), generator=generator)]
    mask = torch.rand(rows.shape, generator=generator) < torch.rand(60, 1, generator=generator) ** 6
    mask[0], mask[1], mask[2, 1:] = False, True, False
    x = mt.as_masked_tensor(rows, mask)
    for k in (1, 3):
        expected, _ = torch.topk(x, k, largest=largest)
        monkeypatch.setattr("masked_tensor.settings.BLOCKS", 0)
        found, index = torch.topk(x, k, largest=largest)
        monkeypatch.undo()
        assert torch.equal(found.get_mask(), expected.get_mask())
        assert same(found.filled(0), expected.filled(0))
        assert same(x.get_data().gather(1, index.get_data()), found.get_data())
        assert torch.equal(mask.gather(1, index.get_data()), found.get_mask())
        assert all(len(set(row)) == k for row in index.get_data().tolist())


@pytest.mark.parametrize("op", [torch.median, torch.nanmedian, torch.mode], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_median_and_mode(op, dtype) -> None:
    for dim, (x, data, mask) in zip((1, 0), cases(dtype), strict=True):
        value, index = op(x, dim)
        assert torch.equal(value.get_mask(), mask.any(dim))
        for row in range(40):
            d, ok = data.movedim(dim, -1)[row], mask.movedim(dim, -1)[row]
            if not ok.any():
                assert index.get_data()[row] == 0
                continue
            if op is torch.mode and d[ok].isnan().any():
                continue  # torch's own result depends on where the NaN stands
            expected = op(d[ok], 0).values
            assert same(value.get_data()[row], expected), (d[ok], expected)
            assert ok[index.get_data()[row]], "the index points at a masked-out entry"
            assert same(d[index.get_data()[row]], value.get_data()[row])
        if op is not torch.mode:
            assert same(op(x).get_data(), op(data[mask]))


@pytest.mark.parametrize("op", [torch.quantile, torch.nanquantile], ids=lambda f: f.__name__)
@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantile(op, interpolation) -> None:
    x, data, mask = cases(torch.float64)[0]
    q = torch.tensor([0.0, 0.3, 0.5, 1.0], dtype=torch.float64)
    result = op(x, q, 1, interpolation=interpolation)
    assert torch.equal(result.get_mask(), mask.any(1).expand(4, 40))
    for row in range(1, 40):
        if mask[row].any():
            assert same(result.get_data()[:, row], op(data[row][mask[row]], q, interpolation=interpolation))
    assert op(x, 0.5, 1, keepdim=True).shape == (40, 1)
    with pytest.raises(RuntimeError, match=r"q values must be in the range \[0, 1\]|q must be in the range"):
        op(x, 1.5, 1)


TIED = ("sort", "topk", "kthvalue", "median", "nanmedian", "mode", "max", "min", "cummax", "cummin", "argmax", "argmin")
FIRST = ("max", "min", "cummax", "cummin", "argmax", "argmin")  # torch says which of equal values it is


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
@pytest.mark.parametrize("name", [*TIED, "stable sort", "argsort", "unique", "unique_consecutive"])
def test_ties_with_nothing_masked(name, dtype) -> None:
    """Values are torch's; so is the index where torch says which one it is, and else it is of an equal value."""
    for shape, levels, dim in itertools.product([(5,), (40,), (3, 17)], (1, 2, 4), (0, -1)):
        x = torch.randint(levels, shape, generator=torch.Generator().manual_seed(levels)).to(dtype)
        m = mt.masked_tensor(x, torch.ones(shape, dtype=torch.bool))
        lead = (min(3, shape[dim]),) if name in ("topk", "kthvalue") else ()
        options = {"dim": dim} | ({"stable": True} if name in ("stable sort", "argsort") else {})
        options |= {"return_inverse": True, "return_counts": True} if "unique" in name else {}
        op = getattr(torch, name.rpartition(" ")[2])
        expected, actual = (tree_leaves(op(t, *lead, **options)) for t in (x, m))
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            a = a.get_data() if mt.is_masked_tensor(a) else a
            if i == 1 and name in TIED and name not in FIRST:
                few = e if e.dim() == x.dim() else e.unsqueeze(dim)
                wide = a if a.dim() == x.dim() else a.unsqueeze(dim)
                torch.testing.assert_close(x.gather(dim, wide), x.gather(dim, few))
            else:
                torch.testing.assert_close(a, e)


def test_upstream_failures() -> None:
    big = mt.masked_tensor(torch.tensor([2**24 + 1, 5]), torch.tensor([True, False]))
    assert torch.median(big, 0).values.item() == 2**24 + 1, "int64 does not go through float32"
    rows = mt.masked_tensor(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[False, False], [True, True]]))
    assert torch.median(rows, 1).values.tolist() == [None, 3], "an integer row with nothing valid"
    square = mt.masked_tensor(torch.tensor([[1.0, 9.0], [2.0, 3.0]]), torch.tensor([[True, False], [True, True]]))
    assert torch.median(square).item() == 2, "without dim the whole tensor"
    with pytest.raises((RuntimeError, TypeError)):  # torch 2.15: TypeError
        torch.median(mt.masked_tensor(torch.tensor([1j, 2j]), torch.tensor([True, False])), 0)
    nan = mt.masked_tensor(torch.tensor([1.0, NAN, 3.0]), torch.tensor([True, True, True]))
    assert torch.median(nan).isnan().item(), "NaN is a value"
    assert torch.median(mt.masked_invalid(nan.get_data())).item() == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64], ids=str)
def test_unique(dtype) -> None:
    x = mt.as_masked_tensor(
        torch.tensor([[3, 1, 3], [7, 1, 9]], dtype=dtype), torch.tensor([[1, 1, 1], [0, 1, 1]]).bool()
    )
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 3, 9], [[1, 0, 1], [None, 0, 2]], [2, 2, 1])
    values, inverse, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist()) == ([3, 1, 3, 1, 9], [[0, 1, 2], [None, 3, 4]])
    rows = mt.as_masked_tensor(
        torch.tensor([[1, 8], [1, 2], [1, 9], [5, 6]], dtype=dtype),
        torch.tensor([[1, 0], [1, 1], [1, 0], [0, 0]]).bool(),
    )
    values, inverse, counts = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    assert sorted(values.tolist(), key=str) == [[1, 2], [1, None]], "equal if valid at the same places and equal there"
    assert inverse[0] == inverse[2]
    assert inverse.tolist()[3] is None
    assert sorted(counts.tolist()) == [1, 2]


def test_counting() -> None:
    x = mt.as_masked_tensor(torch.tensor([1, -5, 2, 10**9, 1]), torch.tensor([True, False, True, False, True]))
    assert torch.bincount(x).tolist() == [0, 2, 1]
    assert torch.bincount(x, mt.masked_tensor([1.0, 2, 3, 4, 5], [True, True, True, True, False])).tolist() == [0, 1, 3]
    assert torch.histc(x.double(), 2, 0, 2).tolist() == [0, 3]
    hist, edges = torch.histogram(x.double(), 2)
    assert (hist.tolist(), edges.tolist()) == ([2, 1], [1, 1.5, 2])
    points = mt.as_masked_tensor(
        torch.tensor([[0.0, 1], [NAN, 1], [1, 0]]), torch.tensor([[1, 1], [0, 1], [1, 1]]).bool()
    )
    assert torch.histogramdd(points, [2, 2]).hist.tolist() == [[0, 1], [1, 0]]
    assert torch.nonzero(x - 1).tolist() == [[2]]
    assert torch.argwhere(x).tolist() == [[0], [2], [4]]


def test_searching() -> None:
    ladder = mt.as_masked_tensor(
        torch.tensor([1.0, 3.0, 5.0, NAN, -7.0]), torch.tensor([True, True, True, False, False])
    )
    values = mt.masked_tensor([0.0, 3.0, 9.0, 4.0], [True, True, True, False])
    assert torch.searchsorted(ladder, values).tolist() == [0, 1, 3, None]
    assert torch.searchsorted(ladder, values, right=True).tolist() == [0, 2, 3, None]
    assert torch.bucketize(values, ladder).tolist() == [0, 1, 3, None]
    assert torch.bucketize(torch.tensor([4.0]), ladder).tolist() == [2]


@pytest.mark.parametrize("payload", [NAN, INF, 1e30])
def test_gradients_reach_only_what_was_chosen(payload) -> None:
    mask = torch.tensor([[True, False, True, True], [False, True, False, False], [False] * 4])
    data = torch.tensor([[3.0, 0, 1, 2], [0, 5, 0, 0], [0] * 4], dtype=torch.float64)
    leaf = torch.where(mask, data, payload).requires_grad_()
    x = mt.as_masked_tensor(leaf, mask)
    expected = {
        "median": [[0, 0, 0, 1], [0, 1, 0, 0], [0] * 4],
        "kthvalue": [[0, 0, 0, 1], [0] * 4, [0] * 4],
        "topk": [[1, 0, 0, 1], [0, 1, 0, 0], [0] * 4],
        "sort": [[1, 0, 1, 1], [0, 1, 0, 0], [0] * 4],
        "quantile": [[0, 0, 0.5, 0.5], [0, 1, 0, 0], [0] * 4],
        "mode": [[0, 0, 1, 0], [0, 1, 0, 0], [0] * 4],
    }
    results = {
        "median": torch.median(x, 1).values,
        "kthvalue": torch.kthvalue(x, 2, 1).values,
        "topk": torch.topk(x, 2, 1).values,
        "sort": torch.sort(x, 1).values,
        "quantile": torch.quantile(x, 0.25, 1),
        "mode": torch.mode(x, 1).values,
    }
    for name, result in results.items():
        (grad,) = torch.autograd.grad(result.sum(), leaf, retain_graph=True)
        assert grad.tolist() == expected[name], name


def test_row_masks_cost_nothing_and_stay_rows() -> None:
    x = mt.masked_tensor(torch.randn(3, 5), torch.tensor([[True], [False], [True]]))
    for result in (*x.sort(1), *x.topk(2, 1)):
        assert pair_of(result).mask.stride(1) == 0
    for a, b in itertools.pairwise([x.median(1).values, x.kthvalue(3, 1).values]):
        assert a.tolist() == b.tolist()


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch's own where has no kernel")
@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_wide_unsigned_integers_are_sorted(dtype):
    signed = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    data = torch.tensor([[5, -1, 0, 7], [-2, 3, 9, 2]], dtype=signed).view(dtype)  # -1 is the greatest of all
    mask = torch.tensor([[True, True, False, True], [True, False, True, True]])
    x = mt.as_masked_tensor(data, mask)
    for descending in (False, True):
        values, indices = x.sort(-1, descending=descending)
        for row in range(2):
            expected, places = torch.sort(data[row][mask[row]], descending=descending)
            assert torch.equal(values[row].compressed(), expected)
            assert torch.equal(indices[row].compressed(), mask[row].nonzero().squeeze(1)[places])
            assert values.get_mask()[row].tolist() == [True, True, True, False]
    assert torch.equal(x.median(-1).values.to_tensor(0), x.sort(-1).values.to_tensor(0)[:, 1])


test_law = laws("order")
