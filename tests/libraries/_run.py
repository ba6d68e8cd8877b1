"""What becomes of a case, and which packages are there."""

import random
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from ..models.images import _drawn, _without_extension
from ..models.judge import Verdict, judge, short
from ._case import Case, drawing, first

HERE = Path(__file__).parent


def files() -> list[str]:
    """The names of the files of cases."""
    return sorted(path.stem for path in HERE.glob("[!_]*.py"))


def cases(name: str) -> ModuleType:
    """The file of a package: ``LIBRARY`` is what the index calls it, ``CASES`` what is run."""
    return import_module(f"{__package__}.{name}")


def installed(name: str) -> str | None:
    """The version of the package, or None."""
    try:
        return version(cases(name).LIBRARY).partition("+")[0]
    except PackageNotFoundError:
        return None


class Scaled(nn.Module):
    """A model or function after a factor of 1 for each input, whose gradient shows what comes back to the inputs."""

    def __init__(self, case: Case, inputs: int) -> None:
        super().__init__()
        with suppress(ImportError):  # torchvision need not be there
            _without_extension()
        made = case.make()
        self.inner = _drawn(made.double()).train(case.train) if isinstance(made, nn.Module) else None
        self.made, self.case = [made], case
        self.scales = nn.ParameterList(torch.ones((), dtype=torch.float64) for _ in range(inputs))

    def forward(self, *given: Any) -> Tensor:
        """The first floating tensor of the result."""
        torch.manual_seed(1)
        random.seed(1)
        scaled = [_times(x, s) for x, s in zip(given, self.scales, strict=True)]
        y = first(self.case.call(self.made[0], *scaled))
        return y if y.requires_grad else y + 0 * self.scales[0]  # of a metric that has no gradient


def _times(x: Any, scale: Tensor) -> Any:
    return x * scale if isinstance(x, Tensor) and x.is_floating_point() else x


def verdict(case: Case) -> Verdict:
    """What a masked batch gives, in the words of ``tests.models.judge``."""
    torch.manual_seed(drawing.seed)
    try:
        given = case.given()
        model = Scaled(case, len(given.batch))
    except Exception as error:
        return Verdict("not built", short(error))
    kept = given.kept
    start = {k: v.clone() for k, v in model.state_dict().items()} if case.train else None
    size = len(given.batch[0])
    masked = [i for i in range(size) if kept is not None and i not in kept]

    def call(model: nn.Module, inputs: dict[str, Any]) -> Tensor:
        if start is not None:
            with torch.no_grad():
                model.load_state_dict(start)
        is_batch = any(mt.is_masked_tensor(x) for x in inputs.values())
        with within(case.within) if is_batch else nullcontext():
            y = model(*inputs.values())
        if kept is None:
            return y.unsqueeze(-1) if y.dim() == 1 else y
        if is_batch and y.dim() and len(y) == size:
            y = y[kept] + 0 * mt.filled(y[masked], 0).sum()  # NaN, if what was masked shows anywhere
        if is_batch and not y.dim() and not mt.is_masked_tensor(y):  # a number has no mask to lose
            y = mt.as_masked_tensor(y, torch.tensor(True))
        return y.reshape(1, *(y.shape or (1,)))

    def named(values: tuple[Any, ...]) -> dict[str, Any]:
        return {str(i): x for i, x in enumerate(values)}

    return judge(model, call, [named(row) for row in given.rows], named(given.batch))


def within(text: str) -> AbstractContextManager[Any]:
    """The context that a case names, such as ``meaning(product="all")``."""
    return eval(f"mt.{text}", {"mt": mt}) if text else nullcontext()


def outcome(case: Case) -> tuple[str, str]:
    """Of the words of the page: ``exact``, ``meaning``, ``refused``, ``declared``; or ``WRONG`` and what was seen."""
    found = verdict(case)
    seen = {"differs": "declared"}.get(found.outcome, found.outcome)
    if seen != case.outcome or (seen != "exact" and not case.note):
        return "WRONG", f"{found.outcome} {found.detail}"
    return "meaning" if case.within else seen, found.detail
