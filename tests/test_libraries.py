"""The page of other packages: it names what is run, and what the extras install gives what it says."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import nn

import masked_tensor as mt

from .libraries import _page
from .libraries._case import Case, Given, beside, ragged
from .libraries._run import cases, files, installed, outcome

SMALL = ("einops", "entmax", "torchdiffeq", "torchmetrics")  # what the extra "interop" installs
HERE = [(name, case) for name in SMALL if installed(name) for case in cases(name).CASES]


@pytest.mark.filterwarnings("ignore")  # the other packages' own
@pytest.mark.parametrize(("name", "case"), HERE, ids=[f"{name}-{case.name}" for name, case in HERE])
def test_a_case_gives_what_the_page_says(name: str, case: Case) -> None:
    result, seen = outcome(case)
    assert result != "WRONG", seen


@pytest.mark.parametrize("name", files())
def test_the_page_has_every_case_and_none_is_wrong(name: str) -> None:
    found = _page.known()[name]["cases"]
    assert list(found) == [case.name for case in cases(name).CASES]
    for case in cases(name).CASES:
        assert found[case.name][0] == ("meaning" if case.within else case.outcome), case.name
        assert case.note or case.outcome == "exact", case.name


def test_the_page_is_made_of_what_was_found() -> None:
    assert _page.PAGE.read_text() == _page.page(_page.known())


class _Counting(nn.Module):
    """A mean that divides by sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).sum((0, 1)) / x.shape[0] / x.shape[1]


class _Lost(_Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return y.get_data() if mt.is_masked_tensor(y) else y


class _Leaking(_Counting):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not mt.is_masked_tensor(x):
            return self.layer(x)
        return mt.as_masked_tensor(self.layer(x.get_data()), torch.tensor(True))


@pytest.mark.parametrize("wrong", [_Counting, _Lost, _Leaking])
@pytest.mark.parametrize("given", [ragged((None, 3)), beside((4, 3))], ids=["ragged", "beside"])
def test_a_wrong_class_is_found(wrong: type[nn.Module], given: Callable[[], Given]) -> None:
    """Values that count what is masked, a mask that is lost, padding that becomes valid."""
    case = Case("wrong", wrong, given)
    assert outcome(case)[0] == "WRONG"
    assert outcome(dataclasses.replace(case, make=lambda: nn.Linear(3, 3)))[0] == "exact"
