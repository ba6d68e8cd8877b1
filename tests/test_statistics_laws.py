"""Programs of ``RunningStatistics``: any order of any calls gives what exact arithmetic gives of all data at once.

``STATISTICS_PROGRAMS=5000 pytest tests/test_statistics_laws.py`` draws more of them.
"""

import copy
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

import masked_tensor as mt
from masked_tensor import compat
from masked_tensor.stats import histogram, options, running, state
from masked_tensor.stats.moments import columns as moments
from masked_tensor.stats.moments import pairs as pair_moments

PROGRAMS = int(os.environ.get("STATISTICS_PROGRAMS", "25"))
COLUMNS = 3
EDGES = torch.tensor([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
GARBAGE = torch.tensor([torch.nan, torch.inf, -torch.inf, 1e30], dtype=torch.float64)
PAIRS = 40  #: times the rounding of sums: around a value that is not the mean, a digit is lost
EPS = torch.finfo(torch.float64).eps
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.int64)
KINDS = ("plain", "outlier first", "outliers", "far", "two places", "constant", "on edges", "small", "large")


def values_of(kind: str, rows: int, generator: torch.Generator) -> Tensor:
    x = torch.randn(rows, COLUMNS, generator=generator, dtype=torch.float64)
    few = torch.rand(rows, COLUMNS, generator=generator) < 0.2
    if kind == "outlier first":
        x[:1] *= 1e14
    elif kind == "outliers":
        x = torch.where(few, x * 1e9, x)
    elif kind == "far":
        x = x + 1e8
    elif kind == "two places":
        x = torch.where(few, x + 1e7, x)
    elif kind == "constant":
        x[:, 0], x[:, 1] = 0.1, torch.where(few[:, 0], x[:, 1], 0.7)
    elif kind == "on edges":
        x = EDGES[torch.randint(0, len(EDGES), x.shape, generator=generator)].double()
    elif kind in ("small", "large"):
        x = x * (1e-60 if kind == "small" else 1e60)
    return x


def weights_of(kind: str, rows: int, generator: torch.Generator) -> Tensor | None:
    """One for each row; those of ``"shares"`` add up to 1."""
    if kind == "none":
        return None
    if kind == "whole":
        return torch.randint(0, 4, (rows, 1), generator=generator)
    w = torch.rand(rows, 1, generator=generator, dtype=torch.float64)
    return w / w.sum() if kind == "shares" else w * 1e6


class Program:
    """Data, and the calls by which they reach one object."""

    def __init__(self, seed: int, kind: str, dtype: torch.dtype, weights: str) -> None:
        g = self.generator = torch.Generator().manual_seed(seed)
        self.rows = int(torch.randint(1, 30, (), generator=g))
        x = values_of(kind, self.rows, g)
        self.dtype = torch.float64 if kind in ("small", "large") else dtype
        x = x.clamp(-1e17, 1e17).to(self.dtype) if kind not in ("small", "large") else x
        self.valid = torch.rand(x.shape, generator=g) < torch.rand(1, COLUMNS, generator=g) + 0.2
        garbage = GARBAGE[torch.randint(0, 4, x.shape, generator=g)]
        hidden = garbage.nan_to_num(7, 8, 9).clamp(max=10) if self.dtype is torch.int64 else garbage
        self.x = torch.where(self.valid, x, hidden.to(self.dtype))
        self.weight = weights_of(weights, self.rows, g)

    def draw(self, stop: int) -> int:
        return int(torch.randint(0, stop, (), generator=self.generator))

    def update(self, stats: mt.RunningStatistics, rows: Tensor) -> mt.RunningStatistics:
        batch = mt.as_masked_tensor(self.x[rows], self.valid[rows])
        return stats.update(batch, None if self.weight is None else self.weight[rows])

    def run(self) -> mt.RunningStatistics:
        """The rows in any order and in any parts: some added, some merged, saved and loaded, or copied in between."""
        self.calls = 0
        order = torch.randperm(self.rows, generator=self.generator)
        cuts = sorted(self.draw(self.rows + 1) for _ in range(self.draw(5)))
        parts = [made() for _ in range(1 + self.draw(3))]
        for rows in order.tensor_split(cuts):
            at = self.draw(len(parts))
            parts[at] = self.pass_on(self.update(parts[at], rows))
        while len(parts) > 1:
            part = parts.pop(self.draw(len(parts)))
            parts[-1] = self.pass_on(parts[-1].merge(part))
        return parts[0]

    def pass_on(self, stats: mt.RunningStatistics) -> mt.RunningStatistics:
        self.calls += 1
        way = self.draw(4)
        if way == 0:
            return copy.deepcopy(stats)
        if way == 1:
            new = made()
            new.load_state_dict(stats.state_dict())
            return new
        return made().merge(stats) if way == 2 else stats


def made() -> mt.RunningStatistics:
    return mt.RunningStatistics(COLUMNS, cov=True, edges=EDGES, correction=0)


def close(found: float, exact: Fraction, terms: Fraction, other: float, most: int) -> bool:
    """Off by at most ``most`` times the larger of numpy's error and half a unit of the sum of absolute terms."""
    ours, theirs = abs(Fraction(found) - exact), abs(Fraction(other) - exact)
    return ours <= Fraction(most) * max(theirs, terms * Fraction(EPS) / 2)


def exactly(program: Program, i: int, j: int) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """The values of columns i and j where both are valid, and their weights."""
    both = program.valid[:, i] & program.valid[:, j]
    weight = torch.ones(program.rows) if program.weight is None else program.weight[:, 0]
    both = both & (weight != 0)
    a, b = ([Fraction(v) for v in program.x[both, k].tolist()] for k in (i, j))
    return a, b, [Fraction(w) for w in weight[both].tolist()]


def check_pair(program: Program, stats: mt.RunningStatistics, i: int, j: int) -> None:
    a, b, w = exactly(program, i, j)
    cov, corr = stats.cov()[i, j], stats.corr()[i, j]
    assert bool(cov.get_mask()) == bool(w)
    if not w:
        return
    n = sum(w)
    means = [sum(x * k for x, k in zip(v, w, strict=True)) / n for v in (a, b)]
    terms = [k * (x - means[0]) * (y - means[1]) for x, y, k in zip(a, b, w, strict=True)]
    squares = [sum(k * (x - m) ** 2 for x, k in zip(v, w, strict=True)) for v, m in zip((a, b), means, strict=True)]
    size = Fraction(math.sqrt(squares[0] / n)) * Fraction(math.sqrt(squares[1] / n))
    assert close(float(cov.filled(0)), sum(terms) / n, size, float(sum(terms) / n), PAIRS + program.calls)
    if bool(corr.get_mask()) and all(squares):
        exact = float(sum(terms) / n / size)
        assert abs(float(corr.filled(0)) - exact) <= (PAIRS + program.calls) * EPS
    elif bool(corr.get_mask()):
        assert math.isnan(corr.filled(0))  # a constant, where both are valid


def check_column(program: Program, stats: mt.RunningStatistics, i: int) -> None:
    x, _, w = exactly(program, i, i)
    most = 4 + program.calls  # each call rounds the sum of weights, and what is divided by it, once more
    assert close(float(stats.count[i]), sum(w), sum(w), float(sum(w)), most)
    some = [stats.mean, stats.var, stats.std, stats.amin, stats.amax, stats.quantile(0.5)]
    assert {bool(value.get_mask()[i]) for value in some} == {bool(w)}
    data, weight = np.array([float(v) for v in x]), np.array([float(v) for v in w])
    counts, _ = np.histogram(data, EDGES.double().numpy(), weights=weight)
    np.testing.assert_allclose(stats.histogram[i, 1:-1].numpy(), counts, rtol=1e-13, atol=1e-15 * weight.sum())
    np.testing.assert_allclose(float(stats.histogram[i].sum()), weight.sum(), rtol=1e-13)
    if not w:
        return
    n = sum(w)
    mean = sum(v * k for v, k in zip(x, w, strict=True)) / n
    around = sum(k * (v - mean) ** 2 for v, k in zip(x, w, strict=True)) / n
    near = np.average(data, weights=weight)
    terms = sum(abs(v) * k for v, k in zip(x, w, strict=True)) / n
    assert close(float(stats.mean.filled(0)[i]), mean, terms, float(near), most)
    theirs = float(np.average((data - near) ** 2, weights=weight))
    assert close(float(stats.var.filled(0)[i]), around, around, theirs, most)
    assert [float(stats.amin.filled(0)[i]), float(stats.amax.filled(0)[i])] == [data.min(), data.max()]
    whole = (weight == weight.round()).all()
    repeated = np.repeat(data, weight.astype(int)) if whole else data
    for q in (0.0, 0.1, 0.5, 0.9, 1.0):
        how = {} if whole else {"method": "inverted_cdf", "weights": weight}
        off = abs(float(stats.quantile(q).filled(0)[i]) - np.quantile(repeated, q, **how))
        assert off <= float(stats.quantile_error(q).filled(0)[i]) * (1 + 1e-12) + 1e-12 * abs(data).max()


@hypothesis.settings(deadline=None, max_examples=PROGRAMS, derandomize=PROGRAMS == 25)
@hypothesis.given(
    st.integers(0, 2**31),
    st.sampled_from(KINDS),
    st.sampled_from(DTYPES),
    st.sampled_from(["none", "whole", "shares", "large"]),
)
def test_any_program_gives_what_exact_arithmetic_gives(seed: int, kind: str, dtype: torch.dtype, weights: str) -> None:
    program = Program(seed, kind, dtype, weights)
    stats = program.run()
    for i in range(COLUMNS):
        check_column(program, stats, i)
        for j in range(COLUMNS):
            check_pair(program, stats, i, j)


# --------------------------------------------------------------------------------------------------- all or nothing


class Stopped(BaseException):
    """An interrupt."""


FILES = {module.__file__ for module in (options, running, state, histogram, moments, pair_moments, compat)}


@contextmanager
def stopped_at(line: int) -> Iterator[None]:
    """Raises before the ``line``-th line of these files that runs, and of torch's loading."""
    left = line

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        here = frame.f_code.co_filename in FILES or frame.f_code.co_name == "_load_from_state_dict"
        if event == "line" and here:
            left -= 1
            if left == 0:
                raise Stopped
        return trace if here else None

    before, grad = sys.gettrace(), torch.is_grad_enabled()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        torch.set_grad_enabled(grad)  # torch's own loading was stopped where it leaves no_grad


def table(rows: int = 6, shift: float = 0.0) -> Tensor:
    x = torch.arange(rows * COLUMNS, dtype=torch.float64).reshape(rows, COLUMNS).sin() + shift
    return mt.as_masked_tensor(x, x.cos() > -0.9)


def begun() -> mt.RunningStatistics:
    return made().update(table())


def calls() -> dict[str, Callable[[mt.RunningStatistics], Any]]:
    other, weight = begun().update(table(4, 1e9)), torch.rand(6, 1)
    state = begun().update(table(2)).state_dict()
    return {
        "update": lambda s: s.update(table(shift=1e12), weight),
        "merge": lambda s: s.merge(other),
        "load": lambda s: s.load_state_dict(state),
        "reset": lambda s: s.reset(),
    }


def state_of(stats: mt.RunningStatistics) -> dict[str, Tensor]:
    return {name: buffer.clone() for name, buffer in stats.named_buffers()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name].nan_to_num(7), b[name].nan_to_num(7)) for name in a)


@pytest.mark.parametrize("call", calls())
def test_a_call_that_is_interrupted_changes_nothing(call: str) -> None:
    act = calls()[call]
    expected = begun()
    act(expected)
    stats, line, before = begun(), 0, state_of(begun())
    after = state_of(expected)
    while True:
        line += 1
        try:
            with stopped_at(line):
                act(stats)
        except Stopped:
            if same(state_of(stats), after):  # it was done, and had not returned
                stats = begun()
            assert same(state_of(stats), before), line
        else:
            break
    assert line > 5
    assert same(state_of(stats), after)


def other_edges() -> Tensor:
    return torch.linspace(-5, 5, len(EDGES))


REFUSED = {
    "columns": lambda s: s.update(torch.ones(5, 1)),
    "columns, standardised": lambda s: s(torch.ones(5, 1)),
    "a number": lambda s: s.update(torch.ones(())),
    "complex": lambda s: s.update(torch.ones(2, COLUMNS) * 1j),
    "sparse": lambda s: s.update(torch.ones(2, COLUMNS).to_sparse()),
    "weights of another shape": lambda s: s.update(torch.ones(2, COLUMNS), torch.ones(3, 1)),
    "weights of each entry": lambda s: s.update(torch.ones(2, COLUMNS), torch.ones(2, COLUMNS)),
    "complex weights": lambda s: s.update(torch.ones(2, COLUMNS), torch.ones(2, 1) * 1j),
    "merge: cov": lambda s: s.merge(mt.RunningStatistics(COLUMNS, edges=EDGES, correction=0)),
    "merge: edges": lambda s: s.merge(mt.RunningStatistics(COLUMNS, cov=True, edges=other_edges(), correction=0)),
    "merge: correction": lambda s: s.merge(mt.RunningStatistics(COLUMNS, cov=True, edges=EDGES)),
    "merge: features": lambda s: s.merge(mt.RunningStatistics(2, cov=True, edges=EDGES, correction=0)),
    "q": lambda s: s.quantile(1.5),
    "q below": lambda s: s.quantile_error(-0.1),
    "q is NaN": lambda s: s.refined(math.nan),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_and_changes_nothing(what: str) -> None:
    stats = begun()
    with pytest.raises((ValueError, TypeError)):
        REFUSED[what](stats)
    assert same(state_of(stats), state_of(begun()))


def states() -> dict[str, dict[str, Any]]:
    good = begun().update(table(2)).state_dict()
    of = {
        "other edges": mt.RunningStatistics(COLUMNS, cov=True, edges=other_edges(), correction=0).state_dict(),
        "no covariances": mt.RunningStatistics(COLUMNS, edges=EDGES, correction=0).state_dict(),
        "another correction": mt.RunningStatistics(COLUMNS, cov=True, edges=EDGES).state_dict(),
        "fewer columns": mt.RunningStatistics(2, cov=True, edges=EDGES, correction=0).state_dict(),
        "of version 0.1": dict.fromkeys(("count", "center", "squares", "low", "high", "origin"), torch.zeros(COLUMNS)),
        "something else": {**good, "more": torch.ones(1)},
        "another shape": {**good, "bins": torch.ones(COLUMNS, 2)},
        "nothing": {},
    }
    return of | {f"no {name}": {k: v for k, v in good.items() if k != name} for name in good}


@pytest.mark.parametrize("what", states())
@pytest.mark.parametrize("strict", [True, False])
def test_a_state_that_does_not_fit_is_not_loaded_in_part(what: str, strict: bool) -> None:
    stats, state = begun(), states()[what]
    if strict or what not in ("nothing", "something else"):
        with pytest.raises(RuntimeError, match="state_dict"):
            stats.load_state_dict(state, strict=strict)
    if what != "something else" or strict:
        assert same(state_of(stats), state_of(begun()))


def test_an_edge_counts_as_in_numpy_also_if_it_stands_twice() -> None:
    for edges in ([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 2.0], [0.0, 1.0]):
        x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0])
        found = mt.RunningStatistics(1, edges=torch.tensor(edges)).update(x[:, None]).histogram
        assert found[0, 1:-1].tolist() == np.histogram(x.numpy(), edges)[0].tolist()
        assert found.sum() == len(x)


def test_a_column_with_a_valid_nan_has_no_quantile_to_refine() -> None:
    x = torch.tensor([[1.0, torch.nan], [2.0, 1.0]])
    stats = mt.RunningStatistics(2, edges=torch.linspace(0, 3, 4)).update(x)
    assert stats.quantile(0.5).isnan().tolist() == [False, True]
    with pytest.raises(ValueError, match=r"columns \[1\], which hold a valid NaN"):
        stats.refined(0.5)
    unknown = mt.RunningStatistics(2, edges=torch.linspace(0, 3, 4)).update(mt.masked_tensor([[None, 1.0]]))
    assert unknown.refined(0.5).edges[0].tolist() == [0, 1, 2, 3]  # nothing was seen of it


def test_infinite_entries_have_quantiles() -> None:
    x = torch.tensor([[-torch.inf], [1.0], [2.0], [torch.inf]])
    stats = mt.RunningStatistics(1, edges=torch.tensor([0.0, 1.5, 3.0])).update(x)
    assert [stats.quantile(q).item() for q in (0.0, 1.0)] == [-torch.inf, torch.inf]
    assert stats.quantile_error(0.0).item() == torch.inf
    assert stats.refined(0.0).edges.tolist() == [[0.0, 1.5, 3.0]]


def test_a_pair_is_of_the_rows_where_both_are_valid() -> None:
    """What lies in others reaches it neither as NaN nor by rounding."""
    x = torch.randn(50, 2, dtype=torch.float64)
    clean = mt.RunningStatistics(2, cov=True).update(x).cov()[0, 1]
    for far in (1e18, torch.inf, torch.nan):
        more = mt.masked_tensor([[far, None], [None, far]], dtype=torch.float64)
        batch = mt.RunningStatistics(2, cov=True).update(torch.cat([more, mt.as_masked_tensor(x, True)]))
        parts = mt.RunningStatistics(2, cov=True).update(more).update(x)
        for found in (batch, parts):
            torch.testing.assert_close(found.cov()[0, 1], clean, rtol=1e-13, atol=0)


def test_before_anything_was_seen() -> None:
    stats = mt.RunningStatistics(2, edges=EDGES)
    for act in (lambda: stats(torch.ones(1, 2)), lambda: stats.refined(0.5)):
        with pytest.raises(RuntimeError, match="before a valid entry was seen: call update"):
            act()
    with pytest.raises(RuntimeError, match="before a valid entry"):
        stats.update(mt.masked_tensor([[None, None]]))(torch.ones(1, 2))
    assert stats.mean.tolist() == [None, None]
    full = mt.RunningStatistics(2, edges=EDGES).update(torch.ones(3, 2))
    stats.load_state_dict(full.state_dict())
    assert stats(torch.ones(1, 2)).tolist() == [[0.0, 0.0]]


def test_what_is_handed_out_is_a_copy() -> None:
    stats = begun()
    for value in (stats.count, stats.histogram, stats.mean, stats.amin, stats.var, stats.cov()):
        value.fill_(77)
    assert same(state_of(stats), state_of(begun()))


# ------------------------------------------------------------------------------------------------------------ names


def as_arrow(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def as_batch(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pyarrow").RecordBatch.from_pydict(columns)


def as_polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def as_pandas(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns).convert_dtypes()


@pytest.mark.parametrize("frame", [as_arrow, as_batch, as_polars, as_pandas])
@pytest.mark.parametrize("dim", [-1, 0])
def test_the_columns_of_a_table_go_by_name(frame: Callable[..., Any], dim: int) -> None:
    first, second = {"a": [1.5, 2.5], "b": [10.5, None]}, {"b": [20.5, 30.5], "a": [None, 3.5]}
    stats = mt.RunningStatistics(2, dim=dim, cov=True).update(frame(first)).update(frame(second))
    assert (stats.count.tolist(), stats.amax.tolist()) == ([3, 3], [3.5, 30.5])
    before = state_of(stats)
    for wrong in ({"a": [1.5], "c": [2.5]}, {"a": [1.5]}, {**first, "c": [2.5, 1.5]}):
        with pytest.raises(ValueError, match="columns"):
            stats.update(frame(wrong))
    assert same(state_of(stats), before)
    turned = mt.RunningStatistics(2, dim=dim, cov=True).update(frame(second)).update(frame(first))
    assert turned.amax.tolist() == [30.5, 3.5]
    for whole in (copy.deepcopy(stats).merge(turned), mt.RunningStatistics(2, dim=dim, cov=True).merge(stats)):
        assert whole.amax.tolist() == [3.5, 30.5]
    torch.testing.assert_close(stats.cov(), turned.cov().flip(0, 1))
    torch.testing.assert_close(stats(frame(second)), stats(frame({"a": second["a"], "b": second["b"]})))
    assert mt.RunningStatistics(2).update(frame({"a": [1, 2], "b": [0.5, 1.5]})).mean.tolist() == [1.5, 1.0]
    loaded = mt.RunningStatistics(2, dim=dim, cov=True)
    loaded.load_state_dict(stats.state_dict())
    assert loaded.update(frame({"b": [99.5], "a": [0.5]})).amax.tolist() == [3.5, 99.5]


def test_columns_of_other_names_are_not_merged_or_loaded() -> None:
    pa = pytest.importorskip("pyarrow")
    a, b = (mt.RunningStatistics(2).update(pa.table({name: [1.0], "z": [2.0]})) for name in "ab")
    with pytest.raises(ValueError, match="columns of the same names"):
        a.merge(b)
    with pytest.raises(RuntimeError, match="columns of the same names"):
        a.load_state_dict(b.state_dict())
    with pytest.raises(ValueError, match="two have one name"):
        a.update(pa.table([[1.0], [2.0]], names=["a", "a"]))
    own = mt.RunningStatistics(2, edges=torch.tensor([[0.0, 1.0], [5.0, 6.0]]))
    turned = copy.deepcopy(own).update(pa.table({"z": [2.0], "a": [1.0]}))
    with pytest.raises(ValueError, match="edges of their own"):
        own.update(pa.table({"a": [1.0], "z": [2.0]})).merge(turned)


def test_anything_that_makes_a_masked_tensor_may_be_given() -> None:
    for x in ([[1.0, None]], np.array([[1.0, 2.0]]), np.ma.array([[1.0, 2.0]], mask=[[0, 1]])):
        assert mt.RunningStatistics(2).update(x).count[0] == 1
