"""Collectives over ranks: validity travels with the data, and reductions are over the ranks where it is valid."""

import pytest
import torch
from torch import distributed

if not distributed.is_available():
    pytest.skip("torch was built without torch.distributed", allow_module_level=True)

import masked_tensor as mt
from masked_tensor import MaskedWriteError

from .helpers.collectives import CASES, outcomes
from .helpers.ranks import alone, gathered


@pytest.fixture(scope="module")
def found() -> list[dict[str, str]]:
    return gathered(2, outcomes)


@pytest.mark.parametrize("case", CASES)
def test_on_two_ranks(case: str, found: list[dict[str, str]]) -> None:
    if case == "all_to_all" and torch.__version__ < "2.13":
        pytest.skip("gloo has none yet")
    assert [rank[case] for rank in found] == ["", ""]


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")  # functions that torch 2.13 names anew
def test_a_plain_tensor_cannot_receive_what_has_masked_entries() -> None:
    x, plain = mt.masked_tensor([1.0, None]), torch.zeros(2)
    with alone():
        for call in (
            lambda: distributed.all_gather([plain], x),
            lambda: distributed.all_gather_into_tensor(plain, x),
            lambda: distributed.all_to_all_single(plain, x),
        ):
            with pytest.raises(MaskedWriteError, match="cannot write a masked tensor"):
                call()
        for call in (lambda: distributed.scatter(plain, [x]), lambda: distributed.reduce_scatter(plain, [x])):
            with pytest.raises(RuntimeError):  # the dispatcher does not look into lists of lists: torch's own words
                call()
    assert plain.tolist() == [0, 0]
