"""The laws of masked tensors on packed ones: torch's operator database and module database, everything packed."""

import os
from collections import Counter
from collections.abc import Callable

import pytest

from masked_tensor import MaskedTensor
from masked_tensor.errors import MaskedValueError, UnsupportedOpError

from .helpers import database, harness
from .helpers.forced import packing
from .helpers.packed_cases import chosen
from .helpers.trees import tree_leaves
from .oracles import FAMILY, ORACLES, XFAIL
from .sweep import REASONS, SKIPPED
from .test_modules import LAW
from .test_modules import XFAIL as MODULE_XFAIL

SAMPLES = int(os.environ.get("MASKED_TENSOR_PACKED_SAMPLES", "0"))  # per entry; 0: one of every third entry
PARTS = 6
NAMES = sorted(name for name in database.ENTRIES if name not in SKIPPED and name not in REASONS)[:: 1 if SAMPLES else 3]
MODULES = sorted(database.MODULES)
pytestmark = pytest.mark.filterwarnings("ignore")  # those of the samples


@pytest.mark.parametrize("part", range(PARTS))
def test_operators(part: int, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for turn, name in enumerate(NAMES[part::PARTS]):
        for sample in chosen(list(database.samples(name, limit=max(12, SAMPLES))), max(1, SAMPLES)):
            case = harness.masked_case(sample, ("random", "rows")[turn % 2], seed=turn)
            with packing():
                inputs = tree_leaves(harness.build((case.args, case.kwargs)))
                counts["of packed inputs"] += any(type(x) is MaskedTensor and x.is_packed for x in inputs)
            for law, check in laws(name, sample, case).items():
                if (name, law) in XFAIL:
                    continue
                try:
                    with packing():
                        check()
                except (MaskedValueError, UnsupportedOpError):  # the documented refusals
                    counts["refused"] += 1
                except AssertionError as error:
                    raise AssertionError(f"{name}, {law}: {error}") from error
                else:
                    counts[law] += 1
    assert counts["of packed inputs"] > 0.9 * len(NAMES[part::PARTS])
    record_property("packed law", dict(counts))


def laws(name: str, sample: database.Sample, case: database.Sample) -> dict[str, Callable[[], None]]:
    """Garbage and exact zeros; the plain result where all is valid; the oracle's values."""
    found: dict[str, Callable[[], None]] = {
        "garbage": lambda: harness.check_garbage(case),
        "identity": lambda: harness.check_identity(sample),
    }
    if name in ORACLES and FAMILY[name] != "random":
        found["value"] = lambda: harness.check_value(case, ORACLES[name])
    return found


@pytest.mark.parametrize("law", ["garbage", "identity", "padding"])
def test_modules(law: str, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for turn, name in enumerate(MODULES):
        if (name, law) in MODULE_XFAIL:
            continue
        for sample in database.module_samples(name, bool(turn % 2), limit=max(1, SAMPLES)):
            try:
                with packing():
                    counts[f"modules {law}"] += LAW[law](sample)
            except AssertionError as error:
                raise AssertionError(f"{name}, {law}: {error}") from error
    record_property("packed law", dict(counts))
