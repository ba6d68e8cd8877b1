"""``python -m tests.libraries --sides [names]``: losses of which one side alone is masked.

The rows that are masked on one side are left out of the number, as where both sides are masked.  What is not so is
named in ``DECLARED``.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from ..models.judge import short
from ._case import Beside, Case
from ._run import Scaled, cases, verdict

_OUTCOMES = ("exact", "refused")
RESULTS = {"declared": "differs", "refused": "raises"}  # as the page says it
SIDES, PADDED = ("first", "second", "third", "fourth"), "padded"
_COUNTS = "counts the rows of the plain side"
_SUMS = "divides by a sum over the plain side"
_OTHERS = "still compares with the plain rows of the other side"
_INF = "the partner of a plain row is masked, which makes the loss of this row infinite"


def _of(file: str, reason: str, side: str, *names: str) -> dict[str, str]:
    return {f"{file}:{name}:{one}": reason for name in names for one in side.split()}


#: Why a loss is not that of the valid rows where one side alone is masked, by file, case and side.
DECLARED = {
    **_of("auraloss", _SUMS, "first", "STFTLoss", "MultiResolutionSTFTLoss"),
    **_of("lightly", _INF, "first second", "NTXentLoss (both sides masked)", "DirectCLRLoss"),
    **_of("lightly", _OTHERS, "first second", "DCLLoss (both sides masked)", "MACLLoss (both sides masked)"),
    **_of("litgpt", _COUNTS, "first", "chunked_cross_entropy (chunks)"),
    **_of("neuralforecast", _COUNTS, "second", "MAE", "MSE", "RMSE", "MAPE", "SMAPE", "HuberLoss", "QuantileLoss"),
    **_of("open_clip", _INF, "first second", "ClipLoss (both sides masked)"),
    **_of("pypots", _SUMS, "first", "MRE"),
    **_of("pytorch_metric_learning", _OTHERS, "first", "SupConLoss", "MultiSimilarityLoss", "AngularLoss",
          "TupletMarginLoss", "FastAPLoss"),
    **_of("pytorch_metric_learning", _COUNTS, "first second", "NCALoss"),
    **_of("pytorch_toolbelt", _COUNTS, "first", "BalancedBCEWithLogitsLoss"),
    **_of("segmentation_models_pytorch", _SUMS, "first second", "DiceLoss", "JaccardLoss", "TverskyLoss"),
    **_of("torchtune", _COUNTS, "first second", "ForwardKLLoss", "ReverseKLLoss", "SymmetricKLLoss"),
    **_of("torchtune", _COUNTS, "first", "CEWithChunkedOutputLoss"),
    **_of("torchtune", "a chunk without a label masks the sum of all chunks; use one chunk", PADDED,
          "CEWithChunkedOutputLoss"),
}  # fmt: skip
HEAD = """## Losses with one side masked

What a loss returns if only the prediction or only the target is masked. The {cases} losses and metrics above get rows
that are masked in all inputs. They also run in two more ways (`python -m tests.libraries --sides [NAME]`):

- *One side*: only one input is masked, and a row that is masked there should be left out. {exact} of {sides} sides are
  exact, {refused} raise, and {declared} return a different number, because the library counts, sums or compares the
  rows of the plain side. Mask both sides alike, `target = mt.as_masked_tensor(target, prediction.get_mask())`, or use
  `mt.select_valid(prediction, target)`.
- *Padded*: all inputs are padded within their rows, along the dimension that they share, and compared with the unpadded
  inputs. {padded_exact} of {padded} are exact, {padded_refused} raise.

| library | loss (the side that is masked, or padded) | result | why |
|---|---|---|---|
"""


def of_losses(name: str) -> list[Case]:
    """The cases of a file that have two masked sides or more, and give one number."""
    several = [case for case in cases(name).CASES if isinstance(case.given, Beside) and len(case.given.sides) > 1]
    as_they_are = [case for case in several if case.outcome == "exact" and not case.name.endswith("(valid rows)")]
    return [case for case in as_they_are if _is_number(case)]


def _is_number(case: Case) -> bool:
    given = case.given()
    try:
        return Scaled(case, len(given.batch))(*given.rows[0]).dim() == 0
    except Exception as error:
        print(f"{case.name} not built {short(error)}")
        return False


def verdicts(case: Case) -> dict[str, list[str]]:
    """What is found for each side, and for padding within all rows."""
    assert isinstance(case.given, Beside)
    found = {}
    for side in case.given.sides:
        said = verdict(replace(case, given=case.given.side(side)))
        found[SIDES[side]] = [said.outcome, said.detail]
    if padded := case.given.padded():
        said = verdict(replace(case, given=padded))
        found[PADDED] = [said.outcome, said.detail]
    return found


def wrong(file: str, case: str, found: dict[str, list[str]]) -> list[str]:
    """The sides that are neither exact nor refused nor declared."""
    names = {side: f"{file}:{case}:{side}" for side in found}
    return [name for side, name in names.items() if (found[side][0] == "differs") != (name in DECLARED)]


def section(found: dict[str, dict[str, Any]]) -> str:
    """The part of the page on sides."""
    rows = {
        (name, case, side): said
        for name, of in found.items()
        for case, sides in of.get("sides", {}).items()
        for side, said in sides.items()
    }
    counts = Counter((key[2] == PADDED, outcome) for key, (outcome, _) in rows.items())
    groups: dict[tuple[str, str], list[str]] = {}
    for (name, case, side), said in rows.items():
        if said[0] != "exact":
            groups.setdefault((name, _said(f"{name}:{case}:{side}", said)), []).append(f"`{case}` ({side})")
    lines = [f"| {cases(name).LIBRARY} | {', '.join(names)} | {said} |" for (name, said), names in groups.items()]
    numbers = {
        "cases": len({key[:2] for key in rows}),
        **{"padded_" * padded + outcome: counts[bool(padded), outcome] for padded in (0, 1) for outcome in _OUTCOMES},
        "sides": sum(key[2] != PADDED for key in rows),
        "padded": sum(key[2] == PADDED for key in rows),
        "declared": counts[False, "differs"],
    }
    return HEAD.format(**numbers) + "\n".join(lines) + "\n"


def _said(key: str, said: list[str]) -> str:
    return (
        f"{RESULTS['declared']} | {DECLARED[key]}"
        if key in DECLARED
        else f"{RESULTS.get(said[0], said[0])} | {said[1].partition(': ')[0]}"
    )
