"""The shadow over a sample of torch's operators: nothing masked changes nothing, and no garbage is seen."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import masked_tensor as mt

from . import transformed
from .helpers import database
from .shadow import __main__ as program
from .shadow.mode import Shadow
from .sweep import SKIPPED

EVERY = 12  # one operator in so many, in each of the tests another


def run(shadow: Shadow, first: int) -> Shadow:
    for name in sorted(set(database.ENTRIES) - set(SKIPPED))[first::EVERY]:
        for sample in database.samples(name, limit=1):
            shadow.test = name
            with shadow:
                sample.op(*sample.args, **sample.kwargs)
    return shadow


@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
@pytest.mark.parametrize("garbage", [False, True], ids=["nothing masked", "garbage"])
def test_the_shadow_of_torch_has_no_difference(garbage: bool) -> None:
    report = run(Shadow(garbage), first=3 + garbage).report
    assert report.counts["computed"] > 100
    assert not report.found, "\n".join(f"{f.name}: {f.which}: {f.detail} ({f.call})" for f in report.found)


def test_the_shadow_sees_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that keeps no dtype, or reads what is masked, is found."""
    x = torch.arange(4.0)
    for garbage, wrong in (
        (False, lambda y: y.double()),
        (True, lambda y: mt.as_masked_tensor(y.get_data(), y.get_mask() | True)),
    ):
        shadow = Shadow(garbage)
        arguments = shadow.kept("torch.neg", (x,), {})
        assert arguments is not None
        shadow.repeated(
            "torch.neg",
            lambda y, wrong=wrong: wrong(y) if mt.is_masked_tensor(y) else y,
            arguments,
            torch.get_rng_state(),
        )
        assert shadow.report.found


def masked_everywhere(y: torch.Tensor) -> torch.Tensor:
    return mt.masked_tensor(y.get_data(), torch.zeros_like(y.get_mask())) if mt.is_masked_tensor(y) else y


def plain(y: torch.Tensor) -> torch.Tensor:
    return y.get_data() if mt.is_masked_tensor(y) else y


def detached(y: torch.Tensor) -> torch.Tensor:
    return y.detach() if mt.is_masked_tensor(y) else y


def plain_dtype(x: torch.Tensor) -> torch.dtype:
    return torch.float64 if mt.is_masked_tensor(x) else x.dtype


X = torch.arange(6.0).view(2, 3)
TARGET = torch.tensor([0, 2])
NEW = {
    "var of enough values, masked": ("torch.var", lambda x: masked_everywhere(torch.var(x, 1)), (X,)),
    "cov of enough values, masked": ("torch.cov", lambda x: masked_everywhere(torch.cov(x)), (X,)),
    "another correlation": ("torch.corrcoef", lambda x: torch.corrcoef(x) * (1 + mt.is_masked_tensor(x)), (X,)),
    "a loss without ignored targets, masked": (
        "torch.nn.functional.nll_loss",
        lambda x, t: masked_everywhere(torch.nn.functional.nll_loss(x, t)),
        (X, TARGET),
    ),
    "a write that unmasks": ("torch.Tensor.add_", lambda x, y: plain(x.clone().add_(y)), (X, X + 1)),
    "an item that is plain": ("torch.Tensor.__getitem__", lambda x, k: plain(x[k]), (X, 0)),
    "floats of empty_like, masked": ("torch.empty_like", lambda x: masked_everywhere(torch.zeros_like(x)), (X,)),
    "a view without a gradient": ("torch.Tensor.view", lambda x: detached(x.view(3, 2)), (X,)),
    "a covariance of another dtype": ("torch.cov", lambda x: torch.cov(x).to(plain_dtype(x)), (X,)),
}


@pytest.mark.parametrize(("name", "call", "args"), NEW.values(), ids=NEW)
def test_a_new_difference_of_a_function_with_declared_ones_is_found(name: str, call: Any, args: Any) -> None:
    """A declaration explains one kind of difference under one condition, and nothing else of its function."""
    shadow = Shadow()
    arguments = shadow.kept(name, args, {})
    assert arguments is not None
    shadow.repeated(name, call, arguments, torch.get_rng_state())
    assert shadow.report.found


@pytest.mark.filterwarnings("ignore:var")  # of one value
def test_what_is_declared_is_counted_as_such() -> None:
    shadow = Shadow()
    with shadow:
        torch.var(X[:, :1], 1)
        torch.nn.functional.nll_loss(X, torch.tensor([0, -100]), reduction="none")
        torch.nn.functional.nll_loss(X, TARGET, reduction="none")
    report = shadow.report
    assert not report.found
    assert report.counts["declared"] >= 4
    assert sum(report.reasons.values()) >= report.counts["declared"]
    assert report.counts["computed"] >= 3
    assert not report.counts["known faults"]


def test_the_shadows_own_failure_changes_the_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*args: Any) -> None:
        raise ZeroDivisionError

    (tmp_path / "test_it.py").write_text("import torch\ndef test_it():\n    torch.ones(2).neg()\n")
    monkeypatch.setattr(sys, "argv", ["shadow", str(tmp_path), "--shuffle", "1", "--rootdir", str(tmp_path)])
    assert program.main() == 0
    monkeypatch.setattr(Shadow, "repeated", fail)
    assert program.main() == 1


def test_a_deadline_ends_a_run() -> None:
    session = SimpleNamespace(shouldstop=False)
    plugin = program.Plugin(Shadow(), deadline=0.0)
    plugin.pytest_runtest_protocol(SimpleNamespace(session=session, nodeid="test_it"))
    assert session.shouldstop == plugin.ended == "ended at the deadline, before test_it"
    items = list(range(20))
    program.Plugin(Shadow(), shuffle=3).pytest_collection_modifyitems(items)
    assert items != list(range(20)) == sorted(items)


@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
def test_transforms_of_a_sample_of_torchs_operators() -> None:
    """All of them: ``python -m tests.transformed``."""
    names = sorted(set(database.ENTRIES) - set(SKIPPED))[7::60]
    outcomes = {name: transformed.judge(name) for name in names}
    found = [(name, law, what) for name, laws in outcomes.items() for law, what in laws.items()]
    assert [entry for entry in found if entry[2].startswith("wrong")] == []
    assert sum(what == "holds" for _, _, what in found) > 10
