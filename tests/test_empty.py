"""What has no entries gives torch's own result, valid; what has entries, and none of them valid, is masked.

Entries of torch's operator database run on samples of which a size became 0.  ``MASKED_TENSOR_EMPTY=1`` runs all of
them.  Segments and bags without entries have tests of their own, and so have packed batches and sparse tensors.
"""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import masked_tensor as mt
from masked_tensor.compat import IS_OLD
from masked_tensor.kernels.identity import identity

from .helpers import database, harness
from .helpers.trees import tree_leaves, tree_map
from .laws import plain_runs
from .oracles import FAMILY
from .sweep import SKIPPED

EVERYTHING = bool(os.environ.get("MASKED_TENSOR_EMPTY"))
# The families in which several entries become one; the others only in the large run.
REDUCING = {"reduction", "moment", "norm", "extremes", "order", "quantile", "covariance", "compare", "loss", "margin"}
REDUCING |= {
    "cross_entropy",
    "similarity",
    "distance",
    "average",
    "pool",
    "softmax",
    "scan",
    "unique",
    "search",
    "fold",
}
OTHERWISE = {
    "lu_unpack": "torch itself crashes",
    "_segment_reduce.lengths": "a sample without its lengths is none: see below",
    "_segment_reduce.offsets": "torch itself crashes",
    "nn.functional.multi_margin_loss": "torch does not write its result",
    "nn.functional.multilabel_margin_loss": "torch does not write its result",
    "nn.functional.embedding": "torch refuses with an assertion",
    "nn.functional.multi_head_attention_forward": "torch refuses with an assertion",
    "nn.functional.nll_loss": "without classes only an ignored target is left, which is masked",
    "nn.functional.batch_norm": "torch takes weights of another size, which raise here",
    "nn.functional.conv1d": "a convolution without channels",
    "nn.functional.conv2d": "a convolution without channels",
}
NAMES = [
    name
    for name in sorted(set(database.ENTRIES) - set(SKIPPED) - set(OTHERWISE))
    if not name.startswith("empty") and (EVERYTHING or FAMILY.get(name) in REDUCING)
]


def emptied(sample: database.Sample) -> Iterator[database.Sample]:
    """The sample with a size of its first tensor cut to 0, wherever it is met; of one tensor, each dim, too."""
    tensors = [t for t in tree_leaves((sample.args, sample.kwargs)) if isinstance(t, Tensor)]
    if not tensors or any(t.layout is not torch.strided for t in tensors):
        return
    ways = [lambda t, n=n: [d for d, size in enumerate(t.shape) if size == n] for n in set(tensors[0].shape)]
    if len(tensors) == 1:
        ways += [lambda t, d=d: [d] for d in range(tensors[0].dim())]
    for way in ways:

        def cut(value: Any, way: Any = way) -> Any:
            if isinstance(value, Tensor):
                for dim in way(value):
                    value = value.detach().narrow(dim, 0, 0)
            return value

        yield database.Sample(sample.op, *tree_map(cut, (sample.args, sample.kwargs)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, len(NAMES), 40))
def test_no_entries_at_all(start: int, record_property: Any) -> None:
    wrong, checked = [], 0
    for name in NAMES[start : start + 40]:
        for sample in database.samples(name, limit=12 if EVERYTHING else 3):
            for empty in filter(plain_runs, emptied(sample)):
                checked += 1
                try:
                    harness.check_identity(empty)
                except (mt.errors.MaskedValueError, mt.errors.UnsupportedOpError):
                    continue
                except Exception as error:
                    shapes = [tuple(t.shape) for t in tree_leaves((empty.args, empty.kwargs)) if isinstance(t, Tensor)]
                    wrong.append(f"{name} of {shapes}: {type(error).__name__}: {str(error)[:200]}")
    record_property("law", ("empty", f"entries from {start}", checked))
    assert not wrong, "\n".join(wrong)


SEGMENTS = [2, 0, 3, 0, 1]  # the third has entries, none of them valid
VALID = torch.tensor([True, False, False, False, False, True])


@pytest.mark.parametrize("where", ["lengths", "offsets"])
@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
@pytest.mark.parametrize("payload", harness.PAYLOADS)
def test_segments_without_entries(reduce: str, initial: float | None, where: str, payload: float) -> None:
    data = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor(SEGMENTS)
    extent = {"lengths": lengths} if where == "lengths" else {"offsets": F.pad(lengths.cumsum(0), (1, 0))}
    mask = VALID.unsqueeze(1).expand(6, 2)
    x = mt.as_masked_tensor(harness.poisoned(data, mask, payload), mask).requires_grad_()
    out = torch.segment_reduce(x, reduce, initial=initial, **extent)
    assert out.get_mask().tolist() == [[True] * 2, [True] * 2, [False] * 2, [True] * 2, [True] * 2]
    some = torch.segment_reduce(data[VALID], reduce, initial=initial, lengths=torch.tensor([1, 0, 0, 0, 1]))
    torch.testing.assert_close(out.filled(7)[[0, 1, 3, 4]], some[[0, 1, 3, 4]], equal_nan=True)
    out[0::4].sum().backward()
    gradient = x.grad.get_data()
    assert not gradient[~mask].any()
    assert gradient[mask].isfinite().all()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("what", ["ids", "weight"])
def test_bags_without_entries(what: str, padding: int | None, last: bool, mode: str) -> None:
    ids = torch.tensor([0, 3, 3, 1, 2, 3, 4])
    starts = torch.tensor([0, 0, 2, 3, 3, 5, 7] + [7] * last)  # bags of 0, 2, 1 (padding), 0, 2, 2 and 0 entries
    options = {"mode": mode, "padding_idx": padding, "include_last_offset": last}
    weight = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    if what == "ids":
        masked = torch.tensor([False, False, False, True, True, False, False])  # the fifth bag
        out = F.embedding_bag(mt.as_masked_tensor(ids.masked_fill(masked, 10**9), ~masked), weight, starts, **options)
    else:
        rows = torch.tensor([True, False, False, True, True]).unsqueeze(1).expand(5, 2)
        out = F.embedding_bag(ids, mt.as_masked_tensor(weight.masked_fill(~rows, 1e30), rows), starts, **options)
    valid = [True, True, True, True, False, True, True]
    assert out.get_mask().tolist() == [[v] * 2 for v in valid]
    expected = F.embedding_bag(ids, weight, starts, **options)
    torch.testing.assert_close(out.get_data()[valid], expected[valid])


def test_a_bag_of_padding_and_masked_ids_is_masked() -> None:
    ids = mt.masked_tensor([3, 0], [True, False])
    assert not F.embedding_bag(ids, torch.ones(5, 2), torch.tensor([0]), padding_idx=3).get_mask().any()


SIZES = itertools.product((0, 2), (0, 4), (0, 2), (0, 3), (0, 5), (0, 8), (0, 6))
ATTENTION = [sizes for sizes in SIZES if EVERYTHING or sizes.count(0) <= 2]
MASKED = {"query": (0,), "key": (1,), "value": (2,), "all": (0, 1, 2), "packed": ()}


def _result(function: Any) -> Any:
    """What a call gives, or the words of its error."""
    try:
        return function()
    except RuntimeError as error:
        return str(error)


ENDS = pytest.mark.skipif(IS_OLD, reason="torch 2.11 itself divides by zero heads, and ends the process")


@ENDS
@pytest.mark.parametrize("which", MASKED)
def test_attention_without_entries_in_any_dimension(which: str) -> None:
    """No sequences, heads, grouped heads, queries, keys, or features of any of them, and each of two of those."""
    checked = 0
    for batch, heads, groups, queries, keys, width, out in ATTENTION:
        shapes = ((batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, out))
        plain = [torch.rand(shape) for shape in shapes]
        valid = [mt.masked_tensor(x, torch.ones(x.shape, dtype=torch.bool)) for x in plain]
        given = [valid[i] if i in MASKED[which] else x for i, x in enumerate(plain)]
        if which == "packed":
            given = [x.transpose(1, 2).packed().transpose(1, 2) for x in valid]
        sight = [{}, {"is_causal": True}, {"attn_mask": torch.ones(queries, keys, dtype=torch.bool)}]
        for options, grouped in itertools.product(sight, (False, True)):
            expected, actual = (
                _result(lambda x=x: F.scaled_dot_product_attention(*x, enable_gqa=grouped, **options))  # noqa: B023
                for x in (plain, given)
            )
            name = f"{shapes} {options} {grouped}"
            if isinstance(expected, str):
                assert actual == expected, name
                continue
            assert actual.get_mask().all(), name
            torch.testing.assert_close(actual.get_data(), expected, equal_nan=True, msg=name)
            checked += 1
    assert checked > 150


@ENDS
def test_a_masked_query_without_key_heads_is_masked() -> None:
    query = mt.as_masked_tensor(torch.full((1, 4, 2, 8), torch.nan), torch.tensor([[True], [False]]).expand(4, 2, 8))
    out = F.scaled_dot_product_attention(query, *torch.ones(2, 1, 0, 3, 8), enable_gqa=True)
    assert out.get_mask()[..., 0].tolist() == [[[True, False]] * 4]


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("sizes", list(itertools.product((0, 3), (0, 2), (0, 4))), ids=str)
def test_distances_without_points_or_coordinates(sizes: tuple[int, int, int], p: float) -> None:
    rows, others, width = sizes
    x, y = torch.rand(rows, width), torch.rand(others, width)
    a, b = (mt.masked_tensor(t, torch.ones(t.shape, dtype=torch.bool)) for t in (x, y))
    found = [(torch.cdist(x, y, p), z) for z in (torch.cdist(a, y, p), torch.cdist(x, b, p), torch.cdist(a, b, p))]
    for expected, actual in (*found, (torch.pdist(x, p), torch.pdist(a, p))):
        assert actual.get_mask().all()
        torch.testing.assert_close(actual.get_data(), expected)


FORMS = ("sum", "prod", "mean", "any", "all", "count_nonzero", "logsumexp", "median")
FORMS += ("nanmedian", "nansum", "nanmean", "norm", "var", "std", "argmax", "amin")
SHAPES = ((3, 0), (0, 3), (0,), (2, 0, 3), (0, 0))


def _outcome(form: str, x: Any, dim: int | None) -> Any:
    """Data and mask of a reduction in strided layout, or the kind of error."""
    try:
        out = tree_leaves(getattr(mt, form)(x, dim=dim))[0]  # values, where there are indices, too
    except (RuntimeError, IndexError, ValueError) as error:
        return "raises" if str(error) else error
    valid = out.to_dense().get_mask() if type(out) is mt.MaskedTensor else torch.ones(out.shape, dtype=torch.bool)
    data = out.to_dense().filled(0) if type(out) is mt.MaskedTensor else out.to_dense()
    return data, valid


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functional_forms_of_no_entries_in_every_layout(shape: tuple[int, ...]) -> None:
    """The same of a plain tensor, with a mask, of a masked one, strided and sparse; and torch's own, if it has one."""
    plain, checked = torch.zeros(shape), 0
    layouts = (torch.strided, torch.sparse_coo, *((torch.sparse_csr, torch.sparse_csc) if len(shape) == 2 else ()))
    for form in FORMS:
        for dim in (None, *range(len(shape))):
            expected = _outcome(form, plain, dim)
            try:
                function = torch.linalg.vector_norm if form == "norm" else getattr(torch, form)
                own = tree_leaves(function(plain) if dim is None else function(plain, dim=dim))[0]
                torch.testing.assert_close(expected[0], own, equal_nan=True)
            except (RuntimeError, IndexError, TypeError):
                own = None  # logsumexp and nanmean need a dim there
            for layout in layouts:
                x = plain if layout is torch.strided else plain.to_sparse(layout=layout)
                mask = torch.zeros(shape, dtype=torch.bool)
                masked = mt.masked_tensor(x, mask) if layout is torch.strided else mt.as_masked_tensor(x)
                for given in (x, masked):
                    actual = _outcome(form, given, dim)
                    if isinstance(expected, str):
                        assert actual == expected, (form, dim, layout)
                        continue
                    assert actual[1].all(), (form, dim, layout)
                    torch.testing.assert_close(actual[0], expected[0], equal_nan=True)
                    checked += 1
    assert checked > 50


def _reduced(form: str, x: Any, dim: Any) -> Any:
    try:
        return getattr(torch, form)(x, dim)
    except (RuntimeError, IndexError, TypeError) as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("shape", [(3, 4, 0), (3, 0, 2), (0, 4, 2), (3, 4, 2, 0), (4, 3, 2)], ids=str)
def test_packed_batches_with_rows_and_features_of_no_entries(shape: tuple[int, ...]) -> None:
    """What the padded batch gives: a sequence of length 0 has entries, all masked; no features are no entries."""
    lengths = torch.tensor([2, 0, 1, 3][: shape[0]], dtype=torch.int64).clamp(max=shape[1])
    mask = mt.lengths_to_mask(lengths, shape[1]).reshape(*shape[:2], *(1,) * (len(shape) - 2)).expand(shape)
    padded = mt.masked_tensor(torch.randn(shape, generator=torch.Generator().manual_seed(0)), mask)
    for form in (*FORMS[:-2], "amax", "amin"):
        for dim in (*range(len(shape)), tuple(range(len(shape))), (1, 2)):
            expected, actual = (tree_leaves(_reduced(form, x, dim)) for x in (padded, padded.packed()))
            for a, e in zip(actual, expected, strict=True):
                harness.assert_same(a, e, f"{form} over {dim}")
    if all(shape):
        assert padded.packed().sum((1, 2)).get_mask().tolist() == [True, False, True, True]


def test_what_a_reduction_starts_from_is_what_torch_gives_for_nothing() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
        for name in ("sum", "prod"):
            assert identity(name, dtype) == getattr(torch, name)(torch.empty(0, dtype=dtype)).item()
        for name, largest in (("amax", True), ("max", True), ("amin", False), ("min", False)):
            start = torch.tensor(identity(name, dtype), dtype=dtype)
            for entry in torch.tensor([0, 1], dtype=dtype):
                assert (torch.maximum if largest else torch.minimum)(start, entry) == entry
