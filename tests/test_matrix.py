"""Every public functional form on every layout of input and mask: it agrees with the oracle, or is refused by name.

A third of the calls; ``python -m tests.matrix`` makes them all.
"""

import zlib
from typing import Any

import pytest

from masked_tensor import functional

from . import matrix
from .helpers.examples import INPUTS

pytestmark = [
    pytest.mark.filterwarnings("ignore:reduction. 'mean' divides"),  # torch's own kl_div
]


ELSEWHERE = {"average", "bfill", "ffill", "interpolate", "rolling"}  # of strided series alone: test_series.py
ELSEWHERE |= {"shift"}  # of strided series, too: test_batch_joins.py
ELSEWHERE |= {"corrcoef", "cov", "rankdata", "scaled_dot_product_attention"}  # test_functional_statistics.py
ELSEWHERE |= {"log_prob"}  # test_density.py


@pytest.mark.parametrize("layout", INPUTS)
@pytest.mark.parametrize("name", matrix.ROWS)
def test_every_function(name: str, layout: str, record_property: Any) -> None:
    first = zlib.crc32(f"{name} {layout}".encode()) % 8  # neighbours are called with other masks and dimensions
    outcome, calls = matrix.judge(name, layout, first, every=8)
    record_property("matrix", (layout, outcome, calls))


def test_every_public_function_is_a_row() -> None:
    rows = {name.split()[0] for name in matrix.ROWS}
    assert rows | ELSEWHERE == set(functional.__all__)
    assert rows >= set(matrix.REFUSED)
