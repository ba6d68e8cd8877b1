"""A functional form takes every call that torch's function of its name takes, and gives the equal result.

The calls are those of torch's operator database, each as it stands, with as many arguments by position as torch takes,
and all by keyword.  Nothing is masked: a plain result of torch's own type, dtype and values is expected.
"""

import inspect
import os
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import functional
from masked_tensor.compat import IS_OLD

from .helpers import database
from .helpers.trees import tree_leaves, tree_map

MOST = int(os.environ.get("MASKED_TENSOR_CALLS", "12"))  # samples of an entry and dtype
DTYPES = (torch.float64, torch.bfloat16, torch.int64, torch.bool, torch.complex128)
ALONE = {  # forms that are not compared
    "interpolate": "torch's function of this name resamples images; the form fills gaps as pandas does",
    **dict.fromkeys(
        ("average", "bfill", "ffill", "log_prob", "rankdata", "rolling", "shift"), "torch has no such function"
    ),
    **dict.fromkeys(("masked_fill_", "masked_scatter_"), "a method of torch's: the database has the other form"),
}
FORMS = [n for n in functional.__all__ if n not in ALONE]
OTHERS = {"norm": "linalg.vector_norm"}  # torch.norm takes p="fro", and is no longer recommended
ENDS = {  # what stands at one of these places in torch, or behind it, is given by keyword
    "size_average": "of losses: retired, reduction= says it",
    "reduce": "the same",
    "_stacklevel": "of softmin: for a warning of torch's own",
    "out": "of normalize: a plain tensor has no room for a mask",
}


def entries(name: str) -> list[str]:
    names = (OTHERS[name],) if name in OTHERS else (name, f"nn.functional.{name}")
    return [full for full, info in database.ENTRIES.items() if info.name in names]


def orders(op: Any) -> Iterator[list[tuple[str, Any, bool]]]:
    """Name, default and whether by keyword only, of the arguments of each overload."""
    try:
        parameters = inspect.signature(op).parameters.values()
    except (TypeError, ValueError):
        packet = getattr(torch.ops.aten, op.__name__)
        for overload in (getattr(packet, n) for n in packet.overloads()):
            arguments = overload._schema.arguments
            yield [
                ("input" if a.name == "self" else a.name, a.default_value, a.kwarg_only)
                for a in arguments
                if not a.is_out
            ]
        return
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        yield [(p.name, p.default, p.kind is p.KEYWORD_ONLY) for p in parameters]
    elif op is torch.unique:
        names = ("sorted", True), ("return_inverse", False), ("return_counts", False), ("dim", None)
        yield [("input", None, False), *((n, d, False) for n, d in names)]


def function_of(entry: str) -> Any:
    """torch's function itself, not the database's own one around it."""
    info = database.ENTRIES[entry]
    short = info.name.removeprefix("nn.functional.")
    return getattr(torch.nn.functional, short) if short != info.name else info.op


def styles(op: Any, sample: database.Sample) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The call, and for every overload that fits it with all by keyword, and with all that may be by position."""
    yield sample.args, sample.kwargs
    for order in orders(op):
        places = [n for n, _, keyword in order if not keyword]
        names = {n for n, *_ in order}
        if len(sample.args) > len(places) or not names >= set(sample.kwargs):
            continue
        given = dict(zip(places, sample.args, strict=False)) | sample.kwargs
        if isinstance(given.get("dim"), Tensor):
            continue  # max(x, dim=tensor(0)), which torch reads as a dim: by position it is the other tensor
        yield (), given
        until = next((i for i, n in enumerate(places) if n in ENDS), len(places))
        last = max((i for i, n in enumerate(places[:until]) if n in given), default=-1)
        leading = tuple(given.get(n, default) for n, default, _ in order[: last + 1])
        yield leading, {n: v for n, v in given.items() if n not in places[: last + 1]}


def copied(value: Any) -> Any:
    return tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, value)


def wrong(name: str, op: Any, args: Any, kwargs: Any) -> str | None:
    """What differs; None where torch refuses the call; an empty text where nothing does."""
    torch.manual_seed(42)
    try:
        expected = op(*copied(args), **copied(kwargs))
    except Exception:
        return None
    torch.manual_seed(42)
    try:
        actual = getattr(mt, name)(*copied(args), **copied(kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if type(actual) is not type(expected):
        return f"gives {type(actual)}, not {type(expected)}"
    for a, e in zip(tree_leaves(actual), tree_leaves(expected), strict=True):
        try:
            torch.testing.assert_close(a, e, equal_nan=True)
        except AssertionError as error:
            return f"{name}: {error}"
    return ""


@pytest.mark.parametrize("name", FORMS)
def test_every_call_of_torchs_is_taken(name: str, record_property: Any) -> None:
    checked, said = 0, {}
    for entry in entries(name):
        for dtype in DTYPES:
            if dtype not in database.ENTRIES[entry].supported_dtypes("cpu"):
                continue
            if IS_OLD and name == "nanmean" and dtype.itemsize == 2:  # torch 2.11 rounds the sum before it divides
                continue
            for sample in database.samples(entry, dtype, MOST):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    op = function_of(entry)
                    for args, kwargs in styles(op, sample):
                        found = wrong(name, op, args, kwargs)
                        checked += found is not None
                        if found:
                            said.setdefault(found, (dtype, tree_map(shown, args), tree_map(shown, kwargs)))
    record_property("law", ("calls", name, checked))
    assert not said, "\n".join(f"{text}: {call}" for text, call in said.items())
    assert checked >= 3


def shown(value: Any) -> Any:
    return tuple(value.shape) if isinstance(value, Tensor) else value


def test_every_form_is_compared_or_listed() -> None:
    assert [n for n in FORMS if not entries(n)] == []
    assert set(functional.__all__) > set(ALONE)


X = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 1.0]], dtype=torch.float64)
OWN: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {  # calls of the forms that are alone
    **dict.fromkeys(("bfill", "ffill", "interpolate"), ((X,), {"dim": 1, "lengths": "full"})),
    "rankdata": ((X,), {"dim": 1}),
    "average": ((X, 1, X), {}),
    "log_prob": ((torch.distributions.Normal(0.0, 1.0), X), {}),
    "masked_fill_": ((X, X > 1, 2.0), {}),
    "masked_scatter_": ((X, X > 1, X), {}),
    "rolling": ((X, 2), {"dim": 1}),
    "shift": ((X, 1), {"dim": 1, "lengths": "full"}),
}
OF = {"target_mask": "target", "other_mask": "other", "key_mask": "key"}  # else the first tensor
STUB = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "forms.py"))


def given_calls(name: str) -> Iterator[dict[str, Any]]:
    """Arguments by name, of a few calls."""
    signature = inspect.signature(getattr(mt, name))
    found = [OWN[name]] if name in OWN else []
    for entry in entries(name) if name in FORMS else ():
        for sample in database.samples(entry, None, 3):
            found.append((sample.args, sample.kwargs))
    for args, kwargs in found:
        yield dict(signature.bind(*copied(args), **copied(kwargs)).arguments)


def results_of(name: str, given: dict[str, Any]) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = getattr(mt, name)(**given)
    return tree_leaves([result.mean(), result.max(), result.std()] if name == "rolling" else result)


@pytest.mark.parametrize("name", functional.__all__)
def test_plain_in_plain_out_and_masked_in_masked_out(name: str, record_property: Any) -> None:
    """A masked tensor in any of the places that the stub says gives masked results; a mask of a plain one does not."""
    node, checked = STUB["_source"](name), 0
    masks = (
        [] if name in STUB["CHOOSE"] else sorted(STUB["MASKS"] & inspect.signature(getattr(mt, name)).parameters.keys())
    )
    for given in given_calls(name):
        for mask in masks:
            of = OF.get(mask, next(name for name, value in given.items() if isinstance(value, Tensor)))
            of = of if of in given else "negative"
            valid = torch.ones(given[of].shape, dtype=torch.bool)
            valid = valid[..., 0] if mask == "key_mask" else valid
            found = results_of(name, {**copied(given), mask: valid})
            assert [type(x) for x in found if type(x) is mt.MaskedTensor] == []
            checked += 1
        for place in STUB["_inputs"](node):
            if isinstance(given.get(place), Tensor):
                value = given[place]
                masked = mt.as_masked_tensor(value, torch.ones(value.shape, dtype=torch.bool))
                found = results_of(name, {**copied(given), place: masked})
                assert {type(x) for x in found} == {mt.MaskedTensor}, place
                checked += 1
    record_property("law", ("plain and masked", name, checked))
    assert checked


@pytest.mark.parametrize("name", FORMS)
def test_a_form_has_none_of_the_arguments_that_are_left_out(name: str) -> None:
    assert not ENDS.keys() & inspect.signature(getattr(mt, name)).parameters.keys()
