"""Events of real training loops around ``mean_over``, against one process (all: ``python -m tests.mean_over_events``).

``MASKED_TENSOR_RANKS=4`` runs every wrapper, loss and event on so many ranks; without it two ranks run a part.
"""

import os

import pytest
from torch import distributed

if not distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

from .mean_over_events import EVENTS, ONE_SIDED, TIMEOUT, WRAPPERS, Case, clashes, configurations, worst_errors

RANKS = int(os.environ.get("MASKED_TENSOR_RANKS", "0"))
LOSSES = ("squares", "weighted", "both") if not RANKS else ("squares", "classes", "weighted", "both")
CASES = configurations(WRAPPERS if RANKS else ("plain sum", "ddp", "fsdp2"), LOSSES, EVENTS)
CLEAR = "ranks do not take the same losses", "another rank ended"


@pytest.fixture(scope="module")
def errors() -> dict[Case, float]:
    return worst_errors(RANKS or 2, CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_events_leave_the_mean_of_what_is_kept(case: Case, errors: dict[Case, float]) -> None:
    assert errors[case] < 1e-12


@pytest.mark.parametrize("event", ONE_SIDED if RANKS else ["one skips", "one ends"])
@pytest.mark.parametrize("kind", ["plain", "ddp", "fsdp2"] if RANKS else ["plain"])
def test_what_only_some_ranks_do_is_an_error_on_every_rank(kind: str, event: str) -> None:
    found = clashes(RANKS or 2, (kind, "squares", event))
    assert len(found) == (RANKS or 2) - (event == "one ends")
    for message, seconds in found:
        assert not message.startswith("no error")
        assert seconds < 3 * TIMEOUT
        if kind == "plain":
            assert any(part in message for part in CLEAR)
