"""Every option of every function of torch.nn.functional, also those that branch in Python: padding and garbage.

The calls are the operator database's, each with one more option, found in the signature of the function: a switch
turned over, another reduction, another number, a weight.  Whole rows of the input are masked.
"""

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.testing import assert_close

from .helpers import database
from .helpers.trees import tree_leaves

REDUCTIONS = ("none", "mean", "sum", "batchmean")
TENSORS = ("weight", "pos_weight")
# Deprecated spellings, caches and debugging; nothing that means something for a mask.
IGNORED = {"size_average", "reduce", "inplace", "out", "_stacklevel", "return_indices", "generator", "training"}
# Random draws; tables whose rows are no batch; keys, which do not go with the queries.
OTHERS = (
    "dropout",
    "rrelu",
    "gumbel",
    "fractional",
    "embedding",
    "linear_cross",
    "multi_head",
    "scaled_dot",
)
NAMES = sorted(n for n in database.ENTRIES if n.startswith("nn.functional.") and not any(o in n for o in OTHERS))


def function(name: str) -> Any:
    return getattr(F, name.split(".")[2], None)


def values(option: inspect.Parameter, x: Tensor) -> list[Any]:
    """Other values of an option."""
    if option.name == "reduction":
        return list(REDUCTIONS)
    if option.name in TENSORS and option.default is None:
        return [torch.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape)]
    if isinstance(option.default, bool):
        return [not option.default]
    if isinstance(option.default, float):
        return [option.default * 1.5 + 0.1]
    return []


def calls(name: str) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Plain calls that torch takes: what was changed, positional arguments, keywords."""
    parameters = inspect.signature(function(name)).parameters.values()
    for sample in database.samples(name, limit=3):
        x = sample.args[0]
        if not isinstance(x, Tensor) or x.dim() < 2 or x.shape[0] < 2 or not x.is_floating_point():
            continue
        given = {p.name for p, _ in zip(parameters, sample.args, strict=False)} | set(sample.kwargs)
        for option in parameters:
            if option.name in given or option.name in IGNORED:
                continue
            for value in values(option, x):
                keywords = {**sample.kwargs, option.name: value}
                if runs(name, sample.args, keywords):
                    shown = value if not isinstance(value, Tensor) else "a tensor"
                    yield f"{name}({option.name}={shown})", sample.args, keywords


def runs(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(name)(*args, **keywords)
    except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError):
        return False
    return True


def goes_with(value: Any, x: Tensor) -> bool:
    """Whether a tensor has an entry for each of the input's, or is a target with a class for each row."""
    if not isinstance(value, Tensor) or not value.dim() or value.shape[0] != x.shape[0]:
        return False
    return value.shape == x.shape or not value.is_floating_point()


def rows(value: Any, x: Tensor, keep: Tensor) -> Any:
    """The rows that are kept of what goes with the input."""
    return value[keep] if goes_with(value, x) else value


def hidden(value: Any, x: Tensor, keep: Tensor) -> Any:
    """NaN in the other rows of what goes with the input."""
    if not goes_with(value, x) or not value.is_floating_point():
        return value
    return value.masked_fill(~keep.reshape(-1, *[1] * (value.dim() - 1)), float("nan"))


def outcome(name: str, args: tuple[Any, ...], keywords: dict[str, Any], keep: Tensor, payload: float) -> list[Any]:
    """Results and the input's gradient, with the payload under the mask and NaN in what goes with it."""
    mask = keep.reshape(-1, *[1] * (args[0].dim() - 1)).expand(args[0].shape)
    x = mt.as_masked_tensor(args[0].masked_fill(~mask, payload), mask).requires_grad_()
    if payload != payload:
        keywords = {k: hidden(v, args[0], keep) for k, v in keywords.items()}
        args = (args[0], *(hidden(a, args[0], keep) for a in args[1:]))
    out = [o for o in tree_leaves(function(name)(x, *args[1:], **keywords)) if isinstance(o, Tensor)]
    tracked = [o for o in out if o.requires_grad]
    grads = torch.autograd.grad(tracked, x, [torch.ones_like(o) for o in tracked]) if tracked else ()
    return [*out, *grads]


def check(name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    keep = torch.arange(args[0].shape[0]) % 3 != 1
    clean, dirty = (outcome(name, args, keywords, keep, payload) for payload in (0.0, float("nan")))
    for a, e in zip(dirty, clean, strict=True):
        assert_close(a, e, message="garbage: ")
    alone = [rows(a, args[0], keep) for a in args]
    kept = {k: rows(v, args[0], keep) for k, v in keywords.items()}
    if not runs(name, tuple(alone), kept):
        return
    expected = [o for o in tree_leaves(function(name)(*alone, **kept)) if isinstance(o, Tensor)]
    for a, e in zip(clean, expected, strict=False):
        got = pair_of(a).data if mt.is_masked_tensor(a) else a
        got = got[keep] if got.shape != e.shape and got.shape[:1] == keep.shape else got
        if got.shape == e.shape:
            torch.testing.assert_close(got.detach(), e, equal_nan=True, msg=lambda m: f"padding: {m}")


@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(function(n))])
def test_options(name: str, record_property: Any) -> None:
    wrong: list[str] = []
    checked = 0
    torch.manual_seed(0)
    for what, args, keywords in calls(name):
        try:
            check(name, args, keywords)
        except mt.errors.UnsupportedOpError:
            continue
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {str(error)[:300]}")
        checked += 1
    record_property("law", ("options", name, checked))
    assert not wrong, "\n".join(wrong)
