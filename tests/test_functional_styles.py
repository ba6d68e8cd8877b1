"""A functional form is called as torch's function of its name is: what torch accepts is accepted, and gives the same.

The styles are tried on torch itself: positional ``dim`` and ``keepdim``, numpy's ``axis``, ``keepdims``, ``x`` and
``a``, an ``unbiased`` in the place of ``dim``.  What torch refuses is not asked for.
"""

import inspect
import itertools
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor import functional

from .helpers.trees import tree_leaves

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
FORMS = [n for n in functional.__all__ if "dim" in inspect.signature(getattr(mt, n)).parameters and hasattr(torch, n)]
LEAD = {"quantile": (0.3,), "nanquantile": (0.3,), "norm": (2.0,)}  # what stands between the input and the dim


def styles(name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments after the input, or all of them where it is named."""
    lead = LEAD.get(name, ())
    found: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((X, *lead, 1), {}), ((X, *lead, -1, True), {})]
    found += [((X, *lead, 1, False), {}), ((X, *lead, 1, False, True), {}), ((X, *lead, 1, True, True), {})]
    for dim, keepdim in itertools.product(("dim", "axis"), ("keepdim", "keepdims")):
        found += [((X, *lead), {dim: 1}), ((X, *lead), {dim: 1, keepdim: True}), ((X, *lead, 1), {keepdim: True})]
        found += [((X, *lead), {dim: (0, 1)}), ((X, *lead), {dim: (0, 1), keepdim: True})]
    for given in ("input", "x", "a", "x1"):
        found += [((), {given: X, "axis": 1}), ((), {given: X, "dim": 1})]
    if name in ("var", "std", "var_mean", "std_mean"):
        found += [((X, False), {}), ((X, True), {}), ((X, 1), {"correction": 0, "keepdims": True})]
    return found


@pytest.mark.parametrize("name", FORMS)
def test_what_torch_accepts_is_accepted(name: str, record_property: Any) -> None:
    checked = 0
    for args, kwargs in styles(name):
        try:
            expected = getattr(torch, name)(*args, **kwargs)
        except (TypeError, RuntimeError, ValueError, IndexError):
            continue
        actual = getattr(mt, name)(*args, **kwargs)
        assert type(actual) is type(expected), (args, kwargs)
        for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
            torch.testing.assert_close(a, e)
        checked += 1
    record_property("law", ("call styles", name, checked))
    assert checked >= 2


DIMS = [n for n in functional.__all__ if "dim" in inspect.signature(getattr(mt, n)).parameters]
SCAN_LIKE = [n for n in DIMS if inspect.signature(getattr(mt, n)).parameters["dim"].annotation in (int, "int")]


SERIES = ("interpolate", "ffill", "bfill", "rolling", "shift")  # time has no default where there are several dimensions


@pytest.mark.parametrize("name", DIMS)
def test_a_dim_is_none_where_the_signature_says_so(name: str) -> None:
    """Of every layout: a result for all dims, or torch's words; never another error, and no number but an int."""
    masked = mt.masked_tensor(X, torch.ones(X.shape, dtype=torch.bool))
    lead = LEAD.get(name, (X.to(torch.bool),) if name.startswith("masked_") else ())
    others = {"rolling": {"window": 2}}.get(name, {})
    for x in (
        X,
        masked,
        masked.packed(),
        *(() if name in SERIES else (X.to_sparse(),)),
    ):
        for dim in (None, 1.5, "1", True):
            if name in SERIES and dim is None:
                with pytest.raises(ValueError, match=rf"{name}: say which dimension .* is time: dim=1 for"):
                    getattr(mt, name)(x, dim=dim, **others)
            elif name in SCAN_LIKE or name in SERIES:
                message = rf"{name}\(\): argument 'dim' must be int, not {type(dim).__name__}"
                with pytest.raises(TypeError, match=message):
                    getattr(mt, name)(x, *lead, dim=dim, **others)
            elif name == "rankdata" and dim is None and x.layout is torch.sparse_coo:
                with pytest.raises(mt.UnsupportedOpError, match=r"rankdata\(dim=None\) does not support"):
                    mt.rankdata(x)
            elif dim is None:
                getattr(mt, name)(x, *lead, dim=dim, **others)


KEPT_PACKED = {
    "sum": (2,), "mean": (-1,), "softmax": (-1,), "log_softmax": (1,), "cumsum": (1,), "cumprod": (-1,),
    "normalize": (2.0, -1), "layer_norm": ((4,),), "rms_norm": ((4,),),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT_PACKED)
def test_a_form_that_names_a_packed_rule_keeps_packed_tensors_packed(name: str) -> None:
    form, arguments = getattr(mt, name), KEPT_PACKED[name]
    data = torch.arange(60.0).view(3, 5, 4).sin()
    padded = mt.masked_tensor(data, (torch.arange(5) < torch.tensor([[4], [2], [5]]))[..., None])
    results = []
    for x in (padded, padded.packed()):
        x.requires_grad_()
        result = form(x, *arguments)
        assert result.is_packed == x.is_packed
        results += [result.unpacked(), torch.autograd.grad(result.sum(), x)[0].unpacked()]
    for ours, expected in zip(results[2:], results[:2], strict=True):
        torch.testing.assert_close(ours, expected)
    assert not form(padded.packed(), *arguments, mask=torch.ones(3, 5, 4, dtype=torch.bool)).is_packed


def test_quantiles_by_lists() -> None:
    for q in ([0.1, 0.9], (0.1, 0.9), [0.5]):
        for x in (X, X.to_sparse_coo(), mt.as_masked_tensor(X, X > -1)):
            for form in (mt.quantile, mt.nanquantile):
                given = form(x, q, 1)
                torch.testing.assert_close(_dense(given), _dense(form(x, torch.tensor(q, dtype=X.dtype), 1)))
    torch.testing.assert_close(mt.quantile(X, [0.1, 0.9]), torch.quantile(X, torch.tensor([0.1, 0.9], dtype=X.dtype)))


def _dense(x: Any) -> torch.Tensor:
    x = x.to_dense()
    return x.filled(0) if type(x) is mt.MaskedTensor else x


def test_pad_sequence_has_torchs_arguments() -> None:
    def arguments(function: Any) -> list[tuple[str, Any, Any]]:
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    theirs = torch.nn.utils.rnn.pad_sequence
    *same, length, multiple = arguments(mt.pad_sequence)
    assert same == arguments(theirs)
    own = inspect.Parameter.KEYWORD_ONLY, None  # torch's may get more by position
    assert [length, multiple] == [("length", *own), ("pad_to_multiple_of", *own)]
    assert arguments(mt.to_packed_sequence)[1:] == arguments(torch.nn.utils.rnn.pack_sequence)[1:]
    assert arguments(mt.normalize)[:4] == arguments(torch.nn.functional.normalize)[:4]
    parts = [torch.ones(2), torch.zeros(1)]
    for batch_first, side in itertools.product((False, True), ("left", "right")):
        out, want = mt.pad_sequence(parts, batch_first, 5.0, side), theirs(parts, batch_first, 5.0, side)
        assert torch.equal(out.filled(5.0), want)
        assert torch.equal(out.mask, want != 5.0)
    assert torch.equal(mt.pad_sequence(parts).filled(), theirs(parts))


def test_no_public_signature_says_side() -> None:
    for name in mt.__all__:
        thing = getattr(mt, name)
        if not isinstance(thing, type):
            assert "side" not in inspect.signature(thing).parameters, name


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_a_position_has_no_dtype(name: str) -> None:
    for function in (getattr(torch, name), getattr(mt, name)):
        with pytest.raises(TypeError, match="dtype"):
            function(X, 0, dtype=torch.float32)
