"""The page of other packages: it names what is run, and what the extras install gives what it says."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import nn

import masked_tensor as mt

from .libraries import _images, _page, _sides
from .libraries._case import Case, Given, beside, ragged
from .libraries._run import cases, files, installed, outcome
from .models import image_checks, image_page, left_page, other_page
from .models.judge import Verdict

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


@pytest.mark.parametrize("name", _images.names())
def test_a_padded_image_is_what_it_is_alone_or_the_page_says_why(name: str) -> None:
    found = _page.known()[name]["images"]
    assert list(found) == [case.name for case in _images.of_images(name)]
    assert not [off for case, said in found.items() if (off := _images.wrong(name, case, said))]


@pytest.mark.parametrize("name", [name for name, of in _page.known().items() if "sides" in of])
def test_a_loss_with_one_side_masked_is_that_of_the_valid_rows_or_the_page_says_why(name: str) -> None:
    found = _page.known()[name]["sides"]
    assert found.keys() <= {case.name for case in cases(name).CASES}
    assert not [off for case, said in found.items() for off in _sides.wrong(name, case, said)]


class _OfSizes(nn.Module):
    """The squares of a difference, divided by the rows of one side."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side, self.scale = side, nn.Parameter(torch.ones(()))

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        x, y = given
        return (self.scale * x - y).square().sum() / torch.isfinite(given[self.side]).sum()


def test_a_loss_that_counts_the_plain_side_is_found() -> None:
    found = [_sides.verdicts(Case("counts", lambda i=i: _OfSizes(i), beside((4,), (4,)))) for i in (0, 1)]
    assert [{side: said[0] for side, said in of.items()} for of in found] == [
        {"first": "exact", "second": "differs", "padded": "exact"},
        {"first": "differs", "second": "exact", "padded": "exact"},
    ]


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


class _Pooled(nn.Module):
    """Maps and scores; with a mean over the width of the batch, if it ``counts``."""

    def __init__(self, counts: bool) -> None:
        super().__init__()
        self.layers, self.counts = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3)), counts
        self.double()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layers(x)
        return y, y.sum((2, 3)) / y.shape[3] if self.counts else y.mean((2, 3))


@pytest.mark.parametrize(("counts", "outcome"), [(False, "exact"), (True, "differs")])
def test_the_law_of_padded_images(counts: bool, outcome: str) -> None:
    x = torch.randn(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert image_checks.half(_Pooled(counts), x).outcome == outcome


class _Turned(_Pooled):
    """Batch norm before a transpose, and scales that are computed once in eval mode."""

    def __init__(self) -> None:
        super().__init__(False)
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 4, 4), nn.BatchNorm2d(4))
        self.scale, self.kept = nn.Parameter(torch.ones(4)), None
        self.double()

    def train(self, mode: bool = True) -> "_Turned":
        self.kept = None
        return super().train(mode)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = self.scale * 2 if self.kept is None else self.kept
        return self.layers(x).transpose(1, 3) * self.kept


def test_the_law_of_padded_images_compares_with_right_gradients() -> None:
    """torch's backward of batch norm in eval mode is wrong for gradients of transposed strides."""
    x = torch.randn(2, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert image_checks.half(_Turned(), x) == Verdict("exact")


def test_what_differs_has_its_reason_on_the_page_of_models() -> None:
    def off(found: dict[str, dict[str, list[str]]], *checks: str) -> set[str]:
        return {name for name, said in found.items() for c in checks if said[c][0] in ("differs", "refused")}

    assert off(other_page.known("left"), "left") == left_page.REASONS.keys()
    assert off(other_page.known("vision"), "half") == other_page.REASONS.keys()
    assert off(image_page.known(), "padded", "half") == image_page.REASONS.keys()


def test_the_marginal_likelihood_of_what_was_observed() -> None:
    """As gpytorch has it: the covariance of a process, some of whose values are missing anywhere."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 3, 9, dtype=torch.float64, generator=generator)
    scale = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 9, generator=generator) > 0.3

    def normal(x: torch.Tensor) -> torch.distributions.MultivariateNormal:
        squares = (x.unsqueeze(-1) - x.unsqueeze(-2)).square()
        covariance = (-squares / scale).exp() + 0.1 * torch.eye(x.shape[-1], dtype=x.dtype)
        return torch.distributions.MultivariateNormal(torch.zeros_like(x), covariance)

    found = mt.log_prob(normal(x), mt.as_masked_tensor(y.masked_fill(~mask, torch.nan), mask))
    alone = torch.stack([normal(x[i, m]).log_prob(y[i, m]) for i, m in enumerate(mask)])
    torch.testing.assert_close(found.filled(0), alone)
    of_both = [torch.autograd.grad(p.sum(), scale)[0] for p in (found.filled(0), alone)]
    torch.testing.assert_close(*of_both)
