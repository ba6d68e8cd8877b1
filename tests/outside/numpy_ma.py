"""numpy's own masked suite with a shadow: what a test asks of ``numpy.ma`` is asked of masked tensors, too.

The tests in numpy's wheel are run as they are. While they run, the functions of ``counterparts`` are wrapped: what a
test calls is called again on masked tensors made of the same arguments, with garbage under their masks (NaN, inf, 1e30
and integers out of range, by turns), and values, validity and what a call wrote in place are compared. Calls that numpy
makes itself are not outermost, and calls that cannot be said in torch (object, text and structured arrays, ``out=``)
are counted and left out.
"""

import functools
import itertools
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from numpy import ma

import masked_tensor as mt
from masked_tensor.testing import GARBAGE, poison

from .counterparts import ARRAY, BINARY, FUNCTIONS, UNARY, declared

VALUES = itertools.cycle(GARBAGE)
DEFAULTS = {"endwith": True, "keepdims": False}


class Unsayable(Exception):
    """The call has no counterpart in torch."""


def poisoned(data: torch.Tensor, mask: torch.Tensor) -> mt.MaskedTensor:
    """A masked tensor with the next garbage under its mask."""
    return poison(mt.masked_tensor(data, mask), next(VALUES))


def tensor(x: Any) -> Any:
    """A masked tensor for a masked array, a tensor for an array; numbers, slices and tuples as they are."""
    if x is ma.masked:
        return poisoned(torch.zeros((), dtype=torch.float64), torch.tensor(False))
    if type(x) is ma.MaskedArray:
        data = tensor(np.array(x.data))
        ours = poisoned(data, torch.from_numpy(np.array(~ma.getmaskarray(x))))
        return ours.harden_mask() if x.hardmask else ours
    if isinstance(x, np.ndarray):
        if type(x) is not np.ndarray or x.dtype.kind not in "biufc" or not x.dtype.isnative or x.dtype.itemsize > 16:
            raise Unsayable
        try:
            return torch.from_numpy(np.array(x, order="C"))
        except TypeError:
            raise Unsayable from None
    if isinstance(x, np.generic):
        return tensor(np.array(x)).item()
    if isinstance(x, tuple | list):
        return type(x)(map(tensor, x))
    if x is None or x is Ellipsis or isinstance(x, bool | int | float | complex | slice):
        return x
    raise Unsayable


def default(name: str, value: Any) -> bool:
    """Whether a keyword says what would hold without it: numpy's own functions pass all on."""
    return value is None or value is np._NoValue or value is DEFAULTS.get(name, np._NoValue)


def plain(x: Any) -> Any:
    """The same arguments with nothing masked."""
    if isinstance(x, tuple | list):
        return type(x)(map(plain, x))
    return x.filled(0) if mt.is_masked_tensor(x) else x


def refuses(call: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    """Whether plain torch does not know the call, either."""
    try:
        call(*plain(args), **{k: plain(v) for k, v in kwargs.items()})
    except Exception:
        return True
    return False


def is_masked(x: Any) -> bool:
    """Whether anything in the arguments is masked."""
    return (
        any(map(is_masked, x))
        if isinstance(x, tuple | list)
        else bool(ma.getmaskarray(x).any())
        if ma.isMA(x)
        else False
    )


def differs(ours: Any, theirs: Any, was_masked: bool) -> str:
    """What is wrong with a result, or nothing."""
    if isinstance(theirs, tuple | list):
        pairs = zip(ours, theirs, strict=True)
        return next(filter(None, (differs(a, b, was_masked) for a, b in pairs)), "")
    expected, mask = np.asarray(ma.getdata(theirs)), np.asarray(~ma.getmaskarray(theirs))
    data, valid = np.asarray(mt.get_data(ours) if mt.is_masked_tensor(ours) else ours), np.ones(np.shape(ours), bool)
    if mt.is_masked_tensor(ours):
        valid = mt.get_mask(ours).numpy()
    if data.shape != expected.shape:
        return f"shape {data.shape}, expected {expected.shape}"
    if (
        ma.isMA(theirs) or not was_masked
    ):  # a plain answer to a masked question names a position even where there is none
        domain = valid & ~mask & ~np.isfinite(data)  # numpy masks what lies outside a domain; here it is a NaN or inf
        if not np.array_equal(valid & ~domain, mask):
            return f"valid {valid.tolist()}, expected {mask.tolist()}"
    both = valid & mask
    rtol = 1e-3 if data.dtype.itemsize < 8 or expected.dtype.itemsize < 8 else 1e-9
    if not np.allclose(data[both], expected[both], rtol=rtol, atol=rtol / 1000, equal_nan=True):
        return f"{data[both].tolist()}, expected {expected[both].tolist()}"
    return ""


@dataclass
class Shadow:
    """Wraps numpy's functions, and counts what came of each call."""

    busy: bool = False
    test: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)

    def pytest_runtest_setup(self, item: Any) -> None:
        self.test = item.name

    def wrapped(self, name: str, theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(theirs)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.busy or not any(ma.isMA(x) for x in (*args, *(args[0] if args and type(args[0]) is tuple else ()))):
                return theirs(*args, **kwargs)
            self.busy = True
            try:
                twins = self.twins(args, kwargs)
                was_masked = twins is not None and (is_masked(args) or is_masked(tuple(kwargs.values())))
                result = theirs(*args, **kwargs)
                if twins is not None:
                    self.compare(name, ours, twins, result, args, was_masked)
                return result
            finally:
                self.busy = False

        return call

    def twins(self, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        try:
            return tensor(tuple(args)), {k: tensor(v) for k, v in kwargs.items() if not default(k, v)}
        except Unsayable:
            self.counts["no tensor of these arguments"] += 1
            return None

    def compare(self, name: str, ours: Any, twins: Any, theirs: Any, args: Any, was_masked: bool) -> None:
        try:
            result = ours(*twins[0], **twins[1])
        except Exception as error:
            if refuses(ours, *twins):
                self.counts["torch refuses it of plain tensors, too"] += 1
                return
            self.tell(name, f"{type(error).__name__}: {error}", twins)
            return
        detail = differs(result, theirs, was_masked) if result is not None else ""
        if not detail and name in ("__setitem__", "sort", *(n for n in ARRAY if n.startswith("__i"))):
            detail = differs(twins[0][0], args[0], was_masked)
        if detail:
            self.tell(name, detail, twins)
        else:
            self.counts["the same"] += 1

    def tell(self, name: str, detail: str, twins: Any) -> None:
        reason = declared(name, detail, *twins)
        self.counts[reason or "DIFFERENT"] += 1
        if not reason:
            self.found.append(f"{self.test}: {name}: {detail.splitlines()[0]}\n    {twins}")

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Wrap methods, functions and ufuncs of numpy.ma."""
        for name, ours in ARRAY.items():
            monkeypatch.setattr(ma.MaskedArray, name, self.wrapped(name, getattr(ma.MaskedArray, name), ours))
        for name, ours in (FUNCTIONS | UNARY | BINARY).items():
            call = self.wrapped(name, getattr(ma, name), ours)
            for attribute in ("reduce", "outer", "accumulate"):
                if hasattr(getattr(ma, name), attribute):
                    setattr(call, attribute, getattr(getattr(ma, name), attribute))
            for module in (ma, ma.core, ma.extras):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, call)


def run(*only: str) -> int:
    """Run numpy's tests (``only`` those that an expression of pytest's ``-k`` selects); 1 where something differs."""
    folder = os.path.join(os.path.dirname(ma.__file__), "tests")
    files = [os.path.join(folder, f"test_{part}.py") for part in ("core", "extras", "old_ma", "regression")]
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder, "-W", "ignore", "--tb=no"]
    shadow = Shadow()
    with pytest.MonkeyPatch.context() as monkeypatch:
        shadow.install(monkeypatch)
        failed = pytest.main([*options, *(("-k", only[0]) if only else ()), *files], plugins=[shadow])
    print(*shadow.found, sep="\n")
    for reason, number in shadow.counts.most_common():
        print(f"{number:6} {reason}")
    return int(bool(shadow.found) or bool(failed))
