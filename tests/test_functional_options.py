"""``fill_value``, ``min_count``, ``keepdim``, dtypes, empty and 0-d inputs: the same in every layout, or refused."""

import inspect
import itertools
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import MaskedTensor, layouts

from .helpers.trees import tree_leaves

pytestmark = [
    pytest.mark.filterwarnings("ignore:(std|var).*degrees of freedom"),
]
NAN, INF = float("nan"), float("inf")
NAMES = ("sum", "prod", "mean", "amax", "amin", "any", "all", "count_nonzero", "logsumexp", "nansum", "nanmean")
NAMES += ("var", "std", "norm", "argmax", "argmin")
CHOICES = ("max", "min", "median", "nanmedian", "mode")  # whose results have indices, too
NAMES += CHOICES
OPTIONS: list[dict[str, Any]] = [
    {},
    {"fill_value": 7},
    {"min_count": 0},
    {"min_count": 2},
    {"min_count": 2, "fill_value": 7},
]
DTYPES = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)


def inputs() -> list[Tensor]:
    x = torch.tensor([[3, 0, 2], [0, 0, 0], [1, 1, 0], [2, 0, 0]])
    return [x, x[3, 0], x[:0], x[:, :0]]


def masks_of(x: Tensor) -> list[Tensor | None]:
    shown = torch.arange(x.numel()).view(x.shape) % 5 < 3
    if x.dim() == 2:
        shown[2:3] = False
    return [None, shown, shown.to_sparse_coo(), torch.zeros_like(shown).to_sparse_coo()]


def outcome(name: str, x: Tensor, dim: int | None, options: dict[str, Any]) -> Any:
    try:
        out = mt.norm(x, 2, dim, **options) if name == "norm" else getattr(mt, name)(x, dim, **options)
    except (RuntimeError, IndexError, ValueError, TypeError) as reason:
        return type(reason)
    return tree_leaves(out)[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_layout_answers_alike(name: str, dtype: torch.dtype) -> None:
    for x in (x.to(dtype) for x in inputs()):
        dims = (-1,) if name == "mode" else (None, -1)
        if name == "mode" and dtype.is_complex and x.numel() < 2:
            continue  # of one entry, or none, torch asks for no order
        sparse = [x.to_sparse_coo()] + ([x.to_sparse_csr()] if x.dim() == 2 else [])
        cases = itertools.product(masks_of(x), dims, OPTIONS if x.numel() else OPTIONS[:3])
        for number, (mask, dim, options) in enumerate(cases):
            keepdim = number % 3 == 0
            keywords = {**options, "mask": mask, "keepdim": keepdim}
            want = outcome(name, x, dim, keywords)
            if name.endswith("median") and dim is None and x.numel() == 0 and dtype is torch.int64:  # nothing is masked
                continue  # torch's own median of no integers is their least, from a NaN
            for given in sparse:
                compare(outcome(name, given, dim, keywords), want, x, mask, dim, {**options, "keepdim": keepdim}, name)


def compare(out: Any, want: Any, x: Tensor, mask: Any, dim: Any, options: dict[str, Any], name: str) -> None:
    what = f"{name} of {tuple(x.shape)} {x.dtype}, mask {mask}, dim {dim}, {options}"
    if isinstance(want, type):
        assert isinstance(out, type), what
        assert issubclass(out, want) or issubclass(want, out), what
        return
    assert isinstance(out, Tensor), f"{what}: {out}"
    assert (out.dtype, out.shape) == (want.dtype, want.shape), what
    dense = out
    if layouts.is_sparse(out):  # by hand: torch's own to_dense makes NaN of a complex -inf
        dense = torch.zeros(out.numel(), dtype=out.dtype)
        dense = dense.index_put((layouts.keys(out),), layouts.values(out)).view(out.shape)
    count = (torch.ones(x.shape) if mask is None else mask.to_dense()).expand(x.shape).to(torch.int64)
    count = count.sum(dim, keepdim=options["keepdim"]) if dim is not None else count.sum().reshape(want.shape)
    least = 1 if name not in ("var", "std") else 2
    said = count >= max(options.get("min_count", 1), least)
    if (
        "fill_value" in options
        or options.get("min_count", 0) > 0  # NaN where too few are valid
        or (options.get("min_count") == 0 and least == 1)
        or (mask is None and len(options) == 1)
    ):
        said = torch.ones_like(said)
    torch.testing.assert_close(dense[said], want[said], equal_nan=True, msg=lambda m: f"{what}: {m}")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_min_count_tells_too_few_from_a_result(name: str, dtype: torch.dtype) -> None:
    """Of a plain input NaN exactly where too few are valid; by dtype, never by value, an error that asks for a fill."""
    torch.manual_seed(0)
    x = torch.randint(1, 9, (6, 4)).to(dtype)
    shown = torch.arange(4) < torch.tensor([0, 1, 2, 3, 4, 4]).unsqueeze(1)
    form = (lambda x, dim, **options: mt.norm(x, 2, dim, **options)) if name == "norm" else getattr(mt, name)

    def function(*args: Any, **options: Any) -> Any:
        return tree_leaves(form(*args, **options))[0]

    for least, given in itertools.product((1, 3), (x, x.to_sparse_coo(), x.to_sparse_csr())):
        try:
            data = function(given, 1, mask=shown)
        except RuntimeError:  # there is no such reduction of the dtype
            continue
        options = {"mask": shown, "min_count": least}
        if not (data.dtype.is_floating_point or data.dtype.is_complex):
            for mask in (shown, torch.ones_like(shown)):
                with pytest.raises(ValueError, match=rf"{name}\(\): with min_count.* fill_value="):
                    function(given, 1, mask=mask, min_count=least)
            filled = function(given, 1, **options, fill_value=1).to_dense()
            assert torch.equal(filled, data.to_dense().masked_fill(shown.sum(1) < least, 1))
            continue
        out = function(given, 1, **options).to_dense()
        short = shown.sum(1) < max(least, 2 if name in ("var", "std") else 1)
        assert torch.equal(out.isnan(), short), (name, given.layout)
        torch.testing.assert_close(out[~short], data.to_dense()[~short])
        masked = function(mt.as_masked_tensor(x, shown), 1, min_count=least)
        assert torch.equal(masked.get_mask(), ~short)


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
@pytest.mark.parametrize("name", CHOICES)
def test_an_index_names_a_valid_entry_that_has_the_value(name: str, layout: str, record_property: Any) -> None:
    """Of plain and of masked inputs, wherever enough entries are valid; 0, or masked, elsewhere."""
    convert = {"strided": Tensor.clone, "coo": Tensor.to_sparse_coo, "csr": Tensor.to_sparse_csr}[layout]
    checked = 0
    for seed, dim, least, keepdim in itertools.product(range(6), (0, 1), (None, 0, 2), (False, True)):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randint(-2, 3, (5, 7), generator=generator).double()
        shown = torch.rand(x.shape, generator=generator) < 0.4
        enough = shown.sum(dim, keepdim=True) >= (1 if least is None else least)
        some, options = enough & shown.any(dim, keepdim=True), {"min_count": least, "keepdim": keepdim}
        if least == 0 and layout != "strided":
            continue  # what is not stored is 0
        dirty = x if layout != "strided" else torch.where(shown, x, NAN)
        plain = getattr(mt, name)(convert(dirty), dim, mask=shown, **options)
        values, indices = (t.to_dense().view(some.shape) for t in plain)
        assert indices.dtype is torch.int64
        at = indices.clamp(0)
        assert bool(shown.gather(dim, at)[some].all())
        assert torch.equal(x.gather(dim, at)[some], values[some])
        assert not bool(indices[~some].any())
        masked = getattr(mt, name)(convert(mt.as_masked_tensor(dirty, shown)), dim, **options)
        filled = getattr(mt, name)(convert(mt.as_masked_tensor(dirty, shown)), dim, fill_value=9, **options)
        assert all(type(t) is MaskedTensor for t in (*masked, *filled))
        for first, second in zip(masked, filled, strict=True):
            first, second = first.to_dense(), second.to_dense()
            assert torch.equal(first.get_mask().view(some.shape), enough)
            torch.testing.assert_close(first.filled(9), second.filled(9), equal_nan=True)
        assert bool(filled.values.get_mask().to_dense().all())
        checked += int(some.sum())
    record_property("law", ("indices", f"{name}, {layout}", checked))
    assert checked > 100


def test_min_count_and_gradients() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, INF]], requires_grad=True)
    out = mt.sum(x, 1, mask=torch.tensor([[True, True], [True, False]]), min_count=2)
    out[0].backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("sparse", [False, True])
def test_no_masked_out_data_where_nothing_need_be_valid(sparse: bool) -> None:
    x = torch.tensor([[5.0, 6.0], [1.0, 2.0]])
    mask = torch.tensor([[False], [True]])
    given = x.to_sparse_coo() if sparse else x
    for name, empty in (("sum", 0), ("prod", 1), ("mean", NAN), ("amax", -INF), ("amin", INF), ("median", NAN)):
        out = tree_leaves(getattr(mt, name)(given, 1, mask=mask, min_count=0))[0]
        assert torch.tensor(out.to_dense()[0].item()).eq(empty) or (out.to_dense()[0].isnan() and empty != empty), name
    masked = mt.sum(mt.as_masked_tensor(x, mask), 1, min_count=0)
    assert type(masked) is MaskedTensor
    assert masked.tolist() == [0.0, 3.0]


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
def test_moments_of_too_few_are_filled_and_masked(layout: str) -> None:
    x, mask = torch.tensor([[1.0, 3.0], [5.0, 0.0]]), torch.tensor([[True, True], [True, False]])
    convert = {"strided": Tensor.clone, "coo": Tensor.to_sparse_coo, "csr": Tensor.to_sparse_csr}[layout]
    out = mt.var(convert(x), 1, keepdim=True, mask=mask, fill_value=-1.0, min_count=1)
    assert out.to_dense().tolist() == [[2.0], [-1.0]]
    masked = mt.var(convert(mt.as_masked_tensor(x, mask)), 1, keepdim=True)
    assert masked.to_dense().tolist() == [[2.0], [None]]


@pytest.mark.parametrize("layout", ["strided", "coo"])
def test_nan_is_a_value_that_nanmean_leaves_out(layout: str) -> None:
    x = torch.tensor([[NAN, NAN, 9.0], [NAN, 4.0, 9.0], [9.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True, False], [True, True, False], [False] * 3])
    given = mt.as_masked_tensor(x, mask)
    given = given.to_sparse() if layout == "coo" else given
    assert str(mt.nanmean(given, 1).to_dense().tolist()) == "[nan, 4.0, None]"
    assert str(mt.nanmean(given, 1, fill_value=0.0).to_dense().tolist()) == "[nan, 4.0, 0.0]"
    leaf = x.clone().requires_grad_()
    mt.nanmean(leaf, 1, mask=mask)[1:2].sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]


def test_a_fill_value_is_never_rounded() -> None:
    mask = torch.tensor([False, False])
    for x in (torch.tensor([1, 2]), torch.tensor([1, 2]).to_sparse_coo()):
        with pytest.raises(ValueError, match=r"fill_value 0.5 does not fit a result of torch.int64"):
            mt.sum(x, 0, mask=mask, fill_value=0.5)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("name", ["amax", "amin", "max", "mode", "median", "aminmax", "ffill"])
def test_a_fill_value_never_wraps(name: str, dtype: torch.dtype) -> None:
    """-1 in uint8 would be 255."""
    x, mask, limits = torch.ones(2, 2, dtype=dtype), torch.tensor([[True], [False]]), torch.iinfo(dtype)
    call = partial(getattr(mt, name), dim=1, **({"lengths": "full"} if name == "ffill" else {}))
    for value in (limits.min - 1, limits.max + 1, 2**70, 1e30, float("inf")):
        with pytest.raises(ValueError, match=r"fill_value .* does not fit a result of torch\."):
            call(x, mask=mask, fill_value=value)
    for fits in (limits.min, limits.max, 1.0, True):
        assert tree_leaves(call(x, mask=mask, fill_value=fits))[0].flatten()[-1] == int(fits)


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "max", "min", "median", "nanmedian"])
def test_what_has_no_order_is_refused(name: str) -> None:
    x = torch.ones(2, 2, dtype=torch.complex64)
    for given in (x, x.to_sparse_coo(), x.to_sparse_csr()):
        with pytest.raises(RuntimeError, match=rf"{name}\(\): complex numbers have no order, got torch.complex64"):
            getattr(mt, name)(given, 1)
    for given in (mt.as_masked_tensor(x, x == 1).to_sparse(), mt.as_masked_tensor(x, x == 1).to_sparse_csr()):
        with pytest.raises(RuntimeError, match=r"complex numbers have no order"):
            given.amax(0)
    if name not in ("amax", "amin", "max", "min"):
        for given in (x.bool(), x.bool().to_sparse_coo()):
            with pytest.raises(RuntimeError, match=rf"{name}\(\): bool input is not supported, got torch.bool"):
                getattr(mt, name)(given, 1)


@pytest.mark.parametrize("sparse", [False, True])
def test_losses_of_integers_are_never_cut_off(sparse: bool) -> None:
    x, y, mask = (
        torch.tensor([100, 121], dtype=torch.int8),
        torch.zeros(2, dtype=torch.int8),
        torch.tensor([True, True]),
    )
    x = x.to_sparse_coo() if sparse else x
    total = mt.l1_loss(x, y, mask=mask, reduction="sum")
    assert (total.dtype, total.item()) == (torch.int64, 221)
    with pytest.raises(RuntimeError, match=r"mean\(\): input dtype must be floating point or complex, got torch.int"):
        mt.l1_loss(x, y, mask=mask)
    half = torch.full((3000,), 60.0, dtype=torch.float16)
    out = mt.l1_loss(half.to_sparse_coo() if sparse else half, torch.zeros_like(half), mask=half > 0)
    assert out.item() == 60


def test_a_dimension_that_does_not_exist() -> None:
    x = mt.masked_tensor(torch.ones(2, 3), True).to_sparse()
    for function in (torch.sum, torch.softmax, torch.cumsum, torch.argmax):
        with pytest.raises(IndexError, match="Dimension out of range"):
            function(x, 2)  # type: ignore[operator]


def test_a_mask_in_the_place_of_dim_is_refused() -> None:
    """``mt.mean(x, mask)``: every form that takes ``input, dim`` and ``mask=`` names the keyword."""
    x, found = torch.ones(2, 3), []
    for name in filter(lambda name: inspect.isfunction(getattr(mt, name)), mt.__all__):
        taken = inspect.signature(getattr(mt, name)).parameters
        if [*taken][:2] == ["input", "dim"] and "mask" in taken:
            found += [] if "Tensor" in str(taken["dim"].annotation) else [name]  # ``max(input, other)`` takes one
    assert len(found) > 30
    for name in found:
        with pytest.raises(TypeError, match="a mask is given as mask="):
            getattr(mt, name)(x, x > 0)
