"""The functional metrics of torchmetrics on masked predictions and targets.

The oracle is the metric of the valid entries, picked by hand.  Through ``select_valid`` every metric is right.  As it
is, a metric may be right, wrong (it divides by sizes, or sorts what is masked) or raise; under ``strict`` it must raise
wherever it would be wrong.  docs/metrics.md says how many do what.
"""

import inspect
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor.api.losses import numel_warning

torchmetrics = pytest.importorskip("torchmetrics", reason="optional: pip install torch-masked-tensor[interop]")
functional = torchmetrics.functional

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
COUNT = 24
SEED = torch.Generator().manual_seed(0)


def uniform(*sizes: int) -> Tensor:
    return torch.rand(*sizes, generator=SEED)


def drawn(below: int, *sizes: int) -> Tensor:
    return torch.randint(below, sizes, generator=SEED)


INPUTS = {
    "values": (uniform(COUNT) + 0.5, uniform(COUNT) + 0.5),
    "binary": (uniform(COUNT), drawn(2, COUNT)),
    "multiclass": (uniform(COUNT, 4).softmax(-1), drawn(4, COUNT)),
    "multilabel": (uniform(COUNT, 3), drawn(2, COUNT, 3)),
    "classes": (drawn(4, COUNT), drawn(4, COUNT)),
    "rows": (uniform(COUNT, 5), uniform(COUNT, 5)),
}
ROWS = ("multiclass", "multilabel", "rows")  # a row of the predictions is an entry
P, T = uniform(COUNT) > 0.2, uniform(COUNT) > 0.2
MASKS = {"different masks": (P, T), "one mask": (P, P), "masked target": (torch.ones_like(P), T)}

OF_VALUES = """concordance_corrcoef critical_success_index explained_variance kendall_rank_corrcoef log_cosh_error
    mean_absolute_error mean_absolute_percentage_error mean_squared_error mean_squared_log_error minkowski_distance
    normalized_root_mean_squared_error peak_signal_noise_ratio pearson_corrcoef r2_score relative_squared_error
    scale_invariant_signal_distortion_ratio scale_invariant_signal_noise_ratio signal_noise_ratio spearman_corrcoef
    symmetric_mean_absolute_percentage_error tweedie_deviance_score weighted_mean_absolute_percentage_error"""
OF_CLASSES = "cramers_v pearsons_contingency_coefficient theils_u tschuprows_t"
OF_ROWS = "cosine_similarity kl_divergence"
TASKS = {"binary": {}, "multiclass": {"num_classes": 4}, "multilabel": {"num_labels": 3}}
OPTIONS = {
    "critical_success_index": {"threshold": 1.0},
    "fbeta_score": {"beta": 2.0},
    "minkowski_distance": {"p": 3},
    "precision_at_fixed_recall": {"min_recall": 0.5},
    "recall_at_fixed_precision": {"min_precision": 0.5},
    "sensitivity_at_specificity": {"min_specificity": 0.5},
    "specificity_at_sensitivity": {"min_sensitivity": 0.5},
    "tweedie_deviance_score": {"power": 1.5},
}
WITHOUT = {"calibration_error": "multilabel", "cohen_kappa": "multilabel", "hinge_loss": "multilabel"}
WITHOUT["exact_match"] = "binary"


def calls() -> list[str]:
    """``name-kind of input`` of every metric of pairs of entries; those of windows of images and of text are not."""
    kinds = {"values": OF_VALUES.split(), "classes": OF_CLASSES.split(), "rows": OF_ROWS.split()}
    kinds["binary"] = [name for name in functional.__all__ if name.startswith("retrieval_")]
    tasks = [n for n in functional.__all__ if "task" in inspect.signature(getattr(functional, n)).parameters]
    for task in TASKS:
        kinds[task] = kinds.get(task, []) + [n for n in tasks if WITHOUT.get(n) != task]
    return sorted(f"{name}-{kind}" for kind, names in kinds.items() for name in names)


def metric(call: str, p: Tensor, t: Tensor) -> Any:
    name, kind = call.split("-")
    function = getattr(functional, name)
    task = {"task": kind, **TASKS[kind]} if "task" in inspect.signature(function).parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(p, t, **task, **OPTIONS.get(name, {}))


def metric_and_warning(call: str, p: Tensor, t: Tensor) -> tuple[Any, bool]:
    """The metric, and whether it warned that a size counts masked entries."""
    told = []
    with mock.patch.object(numel_warning.warnings, "warn", lambda *args, **kwargs: told.append(args[1])):
        return metric(call, p, t), mt.MaskedSizeWarning in told


def with_garbage(x: Tensor, valid: Tensor) -> Tensor:
    """With what no metric survives under the mask."""
    valid = valid.reshape(-1, *[1] * (x.dim() - 1)).expand(x.shape)
    return mt.as_masked_tensor(torch.where(valid, x, torch.nan if x.is_floating_point() else -7).to(x.dtype), valid)


def right(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(map(right, found, expected))
    if mt.is_masked_tensor(found):
        return bool(found.get_mask().all()) and right(found.get_data(), expected)
    found, expected = torch.as_tensor(found).double(), torch.as_tensor(expected).double()
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-5, equal_nan=True)


@cache
def outcome(call: str, masks: str, way: str) -> str:
    """``right``, ``wrong`` or ``raises``."""
    kind = call.split("-")[1]
    (p, t), (vp, vt) = INPUTS[kind], MASKS[masks]
    expected = metric(call, p[vp & vt], t[vp & vt])
    p, t = with_garbage(p, vp), with_garbage(t, vt)
    if way == "select_valid":
        found = metric(call, *mt.select_valid(p, t, dim=1 if kind in ROWS else None))
        return "right" if right(found, expected) else "wrong"
    with mt.strict() if way == "strict" else mt.meaning():
        try:
            found, warned = metric_and_warning(call, p, t)
        except Exception:
            return "raises"
        return "right" if right(found, expected) else "warns" if warned else "wrong"


@pytest.mark.parametrize("call", calls())
def test_compress_is_right_and_strict_is_never_wrong(call: str) -> None:
    for masks in MASKS:
        assert outcome(call, masks, "select_valid") == "right", masks
        assert outcome(call, masks, "strict") != "wrong", masks
        assert outcome(call, masks, "as it is") != "wrong", masks


def test_the_page_says_how_many() -> None:
    told = {
        "different masks": "both, with different masks",
        "one mask": "both, with one mask",
        "masked target": "the target",
    }
    lines = []
    for masks in MASKS:
        for way, name in (("as it is", "none"), ("strict", "`strict()`")):
            counts = Counter(outcome(call, masks, way) for call in calls())
            lines.append(f"| {told[masks]} | {name} | {counts['right']} | {counts['warns']} | {counts['raises']} |")
    assert "\n".join(lines) in PAGE.read_text(), "\n" + "\n".join(lines)
