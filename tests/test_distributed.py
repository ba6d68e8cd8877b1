"""Ranks over gloo: uneven shards give what one process gives (every case: ``python -m tests.distributed``)."""

import pytest
from torch import distributed

if not distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

from .distributed import WRAPPERS, configurations, worst_errors

SEVERAL = (1, 3)


@pytest.fixture(scope="module")
def errors() -> dict[tuple[str, str, int], float]:
    return worst_errors(2, WRAPPERS, SEVERAL)


@pytest.mark.parametrize("case", configurations(WRAPPERS, SEVERAL), ids=str)
def test_uneven_shards_are_exact(case: tuple[str, str, int], errors: dict[tuple[str, str, int], float]) -> None:
    assert errors[case] < 1e-12
