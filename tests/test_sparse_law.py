"""The law of rows and sparse layouts over torch's operator database: equal to the strided result, or refused."""

import os
from collections import Counter
from collections.abc import Callable

import pytest

from .helpers import database, harness
from .helpers.sparse_cases import check
from .laws import plain_runs
from .oracles import FAMILY
from .sweep import SKIPPED

SAMPLES = int(os.environ.get("MASKED_TENSOR_SPARSE_SAMPLES", "2"))  # per entry
NAMES = sorted(name for name in database.ENTRIES if name not in SKIPPED)
XFAIL = dict.fromkeys(
    ("linalg.matrix_power", "linalg.matrix_rank.hermitian")[: SAMPLES - 1],
    "torch makes an identity matrix or a constant in the layout of the argument before a row is asked",
)


@pytest.mark.filterwarnings("ignore")  # those of the samples; what a call gives is compared
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.xfail(reason=XFAIL[n], strict=True) if n in XFAIL else ()) for n in NAMES],
)
def test_sparse_results_equal_strided_ones(name: str, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for sample in database.samples(name, limit=SAMPLES):
        if plain_runs(sample):
            check(harness.masked_case(sample, "random"), counts, drawn=FAMILY.get(name) == "random")
    record_property("sparse law", dict(counts))
