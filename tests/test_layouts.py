"""The layouts are siblings: same verbs, same signatures; and nothing ever becomes dense."""

import importlib
import inspect
import itertools
import pkgutil
import re
import resource
import types

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import layouts
from masked_tensor.layouts import compressed, coo, strided
from masked_tensor.layouts.elements import canonical, same_pattern, values_at

from .helpers.examples import INPUTS
from .matrix import check_pattern
from .oracles import sparse as oracle

SPARSE = [name for name in INPUTS if not name.startswith("strided")]


def verbs(module: types.ModuleType) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(f)
        for name, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__ and not name.startswith("_")
    }


def test_siblings_have_identical_verbs() -> None:
    assert verbs(strided) == verbs(coo) == verbs(compressed)
    assert set(verbs(coo)) == {
        "assemble",
        "build",
        "canonical",
        "coordinate",
        "indices",
        "runs",
        "stored_values",
        "validate",
    }


def test_only_the_siblings_know_layouts() -> None:
    names = {info.name for info in pkgutil.iter_modules(layouts.__path__)}
    for name in names - {"strided", "coo", "compressed", "elements"}:
        source = inspect.getsource(importlib.import_module(f"{layouts.__name__}.{name}"))
        assert "torch.sparse_" not in source.partition('"""')[2].partition('"""')[2], name


@pytest.mark.parametrize("layout", SPARSE)
def test_keys_and_values_are_the_pattern(layout: str) -> None:
    x = canonical(INPUTS[layout]())
    indices, values = oracle.pattern(x)
    strides = torch.empty(x.shape, device="meta").stride()
    assert layouts.keys(x).tolist() == [sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]
    assert layouts.values(x).tolist() == values
    again = layouts.with_values(x, layouts.values(x))
    check_pattern(again)
    assert same_pattern(again, x)
    assert torch.equal(again.to_dense(), x.to_dense())
    everything = torch.arange(x.shape.numel())
    assert torch.equal(values_at(x, everything), x.to_dense().reshape(-1))


@pytest.mark.parametrize("layout", SPARSE)
def test_specified_mask(layout: str) -> None:
    x = INPUTS[layout]()
    mask = mt.extend.specified_mask(x)
    check_pattern(mask)
    assert mask.dtype is torch.bool
    assert same_pattern(mask, canonical(x))
    assert layouts.values(mask).all()
    assert set(oracle.pattern(mask)[0]) == set(oracle.pattern(x)[0])
    out = mt.mean(x, -1, mask=mask)  # the stored entries alone
    expected, valid = oracle.reduction(torch.mean, x.to_dense(), mask, (x.dim() - 1,), False, 0)
    torch.testing.assert_close(out.to_dense()[valid], expected[valid])


def test_specified_mask_of_a_strided_tensor() -> None:
    assert mt.extend.specified_mask(torch.zeros(2, 3)).tolist() == [[True] * 3] * 2


# Patterns that break the rules of their layout, by torch's words for it: (layout, its index tensors).
INVALID: dict[str, tuple[str, list[list[int]]]] = {
    "size is 2 but found index 7": ("coo", [[0, 7], [0, 1]]),
    "negative index -1": ("coo", [[0, -1], [0, 1]]),
    "cannot set is_coalesced to true": ("coo", [[1, 0], [1, 0]]),
    "0 <= col_indices < ncols": ("csr", [[0, 1, 2], [0, 9]]),
    "nnz` is not satisfied": ("csr", [[0, 2, 1], [0, 1]]),
    "crow_indices[..., -1] == nnz` is not satisfied": ("csr", [[0, 1, 50_000_000], [0, 1]]),
}


def invalid(message: str) -> Tensor:
    layout, indices = INVALID[message]
    values, shape = torch.tensor([1.0, 2.0]), (2, 3)
    if layout == "csr":
        return torch.sparse_csr_tensor(*map(torch.tensor, indices), values, shape, check_invariants=False)
    coalesced = "coalesced" in message or None
    return torch.sparse_coo_tensor(torch.tensor(indices), values, shape, is_coalesced=coalesced, check_invariants=False)


@pytest.mark.parametrize("message", INVALID)
def test_a_masked_tensor_is_not_made_of_an_invalid_pattern(message: str) -> None:
    x = invalid(message)
    for function in (mt.masked_tensor, mt.as_masked_tensor, mt.masked_invalid):
        with pytest.raises(RuntimeError, match=re.escape(message)):
            function(x)
    good = torch.ones(2, 3).to_sparse(layout=x.layout)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        mt.as_masked_tensor(good, x.bool())


@pytest.mark.parametrize("message", INVALID)
def test_an_invalid_pattern_never_leads_out_of_memory(message: str) -> None:
    """A functional form does not check the whole pattern, but what it reads lies inside."""
    x = invalid(message)
    messages = []
    for name, dim in itertools.product(("sum", "amax", "softmax", "argmax", "median", "cumsum"), (0, 1)):
        try:
            getattr(mt, name)(x, dim)
        except (RuntimeError, IndexError, ValueError) as reason:
            messages.append(str(reason))
    words = "out of bounds|out of range|non-negative|must rise from 0 to the 2 stored values"
    assert all(re.search(words, message) for message in messages)
    assert messages or "coalesced" in message


def huge(generator: torch.Generator, dtype: torch.dtype = torch.float32) -> Tensor:
    size = 1_000_000
    indices = torch.randint(size, (2, size), generator=generator)
    values = torch.ones(size, dtype=dtype) if dtype is torch.bool else torch.randn(size, generator=generator)
    return torch.sparse_coo_tensor(indices, values, (size, size), check_invariants=True).coalesce()


def test_a_million_by_a_million_stays_small() -> None:
    """One dense temporary would take 1e12 bytes and more; the input takes 20 MB."""
    generator = torch.Generator().manual_seed(0)
    x, mask = huge(generator), huge(generator, torch.bool)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    column = mask.to_sparse_coo().coalesce()
    rows = torch.sparse_coo_tensor(
        column.indices()[:1, ::10], column.values()[::10], (1_000_000,), check_invariants=True
    )
    broadcast = rows.coalesce()
    for given in (None, mask, mt.extend.specified_mask(x), broadcast):
        for dim in (0, 1, None):
            for name in ("sum", "mean", "amax", "prod", "var"):
                getattr(mt, name)(x, dim, mask=given)
        mt.softmax(x, 1, mask=given)
    mt.argmax(x, 1, mask=mask)
    mt.median(x, 0, mask=mask)
    mt.sum(x.to_sparse_csr(), 1, keepdim=True, mask=mask)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 500, f"{grown:.0f} MB"


def test_no_dense_output_where_few_outputs_speak() -> None:
    """A three-dimensional tensor with 1e18 elements and 1e12 outputs."""
    x = torch.sparse_coo_tensor(
        torch.tensor([[5, 5, 999_999], [7, 7, 0], [1, 2, 3]]),
        torch.tensor([1.0, 2.0, 3.0]),
        (10**6,) * 3,
        check_invariants=True,
    ).coalesce()
    out = mt.sum(x, 2)
    assert out.shape == (10**6, 10**6)
    assert out.coalesce().values().tolist() == [3.0, 3.0]
    assert mt.amax(x, (1, 2)).coalesce().values().tolist() == [2.0, 3.0]
    assert mt.logsumexp(x, 2, mask=mt.extend.specified_mask(x)).coalesce().values().numel() == 2
