"""The shadow over a sample of torch's operators: nothing masked changes nothing, and no garbage is seen."""

import pytest
import torch

import masked_tensor as mt

from .helpers import database
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
