"""The law of packed tensors over torch's operator database: what they give is what their strided forms give.

Every entry with an argument that can be packed is called, whether its row has a form for packed tensors or spreads
them, and every row with a form is among what is called.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from masked_tensor.engine.table import ENTRIES

from .helpers import database
from .helpers.packed_calls import CALLS, DRAWN
from .helpers.packed_cases import (
    KINDS,
    MORE,
    check,
    check_second_derivatives,
    chosen,
    forms_taken,
    outcome,
    packed_case,
    twice,
)
from .oracles import FAMILY
from .sweep import SKIPPED

SAMPLES = int(os.environ.get("MASKED_TENSOR_PACKED_SAMPLES", "1"))  # per entry; of more, every kind of case is run
PARTS = 16
SECOND = 3  # parts of the law of second derivatives
NAMES = sorted(name for name in database.ENTRIES if name not in SKIPPED)
OURS = {e.op.name: e.op for e in ENTRIES.values() if e.packed and "::" not in e.op.name}
pytestmark = pytest.mark.filterwarnings("ignore")  # those of the samples; what a call gives is compared


def cases(samples: list[database.Sample], turn: int | None = None) -> Iterator[tuple[str, database.Sample]]:
    """Each sample with each of the four masks, and with one of the further kinds of case, or all of them."""
    more = MORE if turn is None or SAMPLES > 1 else MORE[turn % len(MORE) :][:1]
    for sample in samples:
        for kind, which, dims in (*KINDS, *more):
            case = packed_case(sample, kind, which, dims)
            if case is not None:
                yield f"{kind}, {which} packed over {dims}", case


def of_entry(name: str, samples: int = SAMPLES) -> list[database.Sample]:
    return chosen(list(database.samples(name, limit=max(12, samples), forms=SAMPLES > 1)), samples)


def check_all(
    name: str, samples: list[database.Sample], drawn: bool, counts: Counter[str], turn: int | None = None
) -> None:
    for what, case in cases(samples, turn):
        try:
            check(case, counts, drawn)
        except AssertionError as error:
            raise AssertionError(f"{name}, {what}: {error}") from error


@pytest.mark.parametrize("part", range(PARTS))
def test_packed_results_equal_strided_ones(part: int, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for turn, name in enumerate(NAMES[part::PARTS]):
        check_all(name, of_entry(name), FAMILY.get(name) == "random", counts, turn)
    assert counts["gradients"]
    record_property("packed law", dict(counts))


def test_calls_of_our_own(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for name, samples in CALLS.items():
        check_all(name, samples, name in DRAWN, counts)
    assert counts["both raise"] < counts["equal"]
    record_property("packed law", dict(counts))


@pytest.mark.parametrize("part", range(SECOND))
def test_second_derivatives_are_those_of_strided_tensors(
    part: int, record_property: Callable[[str, object], None]
) -> None:
    """Of everything that torch can differentiate twice, attention included."""
    counts: Counter[str] = Counter()
    called = {name: of_entry(name) for name in NAMES[part::SECOND] if FAMILY.get(name) != "random"}
    called |= {name: samples for name, samples in list(CALLS.items())[part::SECOND] if name not in DRAWN}
    kinds = (*KINDS, *MORE)
    for turn, (name, samples) in enumerate(called.items()):
        more = kinds if "attention" in name else ()
        for sample in samples:
            for kind, which, dims in kinds if SAMPLES > 1 else (kinds[turn % len(kinds)], *more):
                case = packed_case(sample, kind, which, dims)
                if case is None or not twice(case):
                    continue
                try:
                    check_second_derivatives(case, counts)
                except AssertionError as error:
                    raise AssertionError(f"{name}, {kind}, {which} packed over {dims}: {error}") from error
    assert counts["second derivatives"]
    record_property("second derivatives of packed tensors", dict(counts))


def test_every_row_with_a_form_is_called() -> None:
    """Of the same calls, forward alone: the entries that are called as the row is, and our own."""
    called = {re.sub(r"\W", "_", name): name for name in NAMES}
    missing = []
    for name, op in OURS.items():
        base = name.partition(".")[0]
        near = [entry for text, entry in called.items() if base in text]
        near.sort(key=lambda entry: len(entry))
        if not _takes(op, [*CALLS.get(name, ()), *CALLS.get(base, ())]) and not any(
            _takes(op, of_entry(entry)) for entry in near
        ):
            missing.append(name)
    assert not missing, f"rows with a form for packed tensors that no call reaches: {missing}"


def _takes(op: Any, samples: list[database.Sample]) -> bool:
    for _, case in cases(samples):
        with forms_taken() as taken:
            outcome(case, packed=True, backward=False)
        if op in taken:
            return True
    return False
