"""The functional metrics of torchmetrics on masked predictions and targets.

One draw of values and masks by default, ``MASKED_TENSOR_METRICS=20`` for the whole run.  Under the mask lies what looks
like any other value, or what no metric survives; a side that is not masked is plain.
The oracle is the metric of the valid entries, picked by hand.  Through ``select_valid`` every metric is right.  As it
is, a metric may be right, wrong (it divides by sizes, or sorts what is masked) or raise; under ``strict`` it must raise
wherever it would be wrong.  docs/metrics.md says how many do what.
"""

import importlib
import inspect
import os
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
FAMILIES = ("classification", "clustering", "segmentation")
PLACES = (functional, *(importlib.import_module(f"torchmetrics.functional.{family}") for family in FAMILIES))

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"
COUNT = 24
DRAWS = int(os.environ.get("MASKED_TENSOR_METRICS", "1"))
MASKS = ("different masks", "one mask", "masked target", "masked prediction")
ROWS = ("multiclass", "multilabel", "rows", "points")  # a row of the predictions is an entry


@cache
def inputs(draw: int) -> dict[str, tuple[Tensor, Tensor]]:
    seed = torch.Generator().manual_seed(draw)

    def uniform(*sizes: int) -> Tensor:
        return torch.rand(*sizes, generator=seed)

    def drawn(below: int, *sizes: int) -> Tensor:
        return torch.randint(below, sizes, generator=seed)

    return {
        "values": (uniform(COUNT) + 0.5, uniform(COUNT) + 0.5),
        "binary": (uniform(COUNT), drawn(2, COUNT)),
        "multiclass": (uniform(COUNT, 4).softmax(-1), drawn(4, COUNT)),
        "multilabel": (uniform(COUNT, 3), drawn(2, COUNT, 3)),
        "classes": (drawn(4, COUNT), drawn(4, COUNT)),
        "maps": (drawn(4, COUNT), drawn(4, COUNT)),
        "rows": (uniform(COUNT, 5), uniform(COUNT, 5)),
        "points": (uniform(COUNT, 5), drawn(3, COUNT)),
        "masks": (uniform(COUNT) > 0.2, uniform(COUNT) > 0.2),
    }


def valid_of(draw: int, masks: str) -> tuple[Tensor | None, Tensor | None]:
    """Which entries of either side are valid; None where the side is plain."""
    p, t = inputs(draw)["masks"]
    sides = {"different masks": (p, t), "one mask": (p, p), "masked target": (None, t), "masked prediction": (p, None)}
    return sides[masks]


OF_VALUES = """concordance_corrcoef critical_success_index explained_variance kendall_rank_corrcoef log_cosh_error
    mean_absolute_error mean_absolute_percentage_error mean_squared_error mean_squared_log_error minkowski_distance
    normalized_root_mean_squared_error peak_signal_noise_ratio pearson_corrcoef r2_score relative_squared_error
    scale_invariant_signal_distortion_ratio scale_invariant_signal_noise_ratio signal_noise_ratio spearman_corrcoef
    symmetric_mean_absolute_percentage_error tweedie_deviance_score weighted_mean_absolute_percentage_error"""
OF_CLASSES = """cramers_v pearsons_contingency_coefficient theils_u tschuprows_t adjusted_mutual_info_score
    adjusted_rand_score completeness_score fowlkes_mallows_index homogeneity_score mutual_info_score
    normalized_mutual_info_score rand_score v_measure_score"""
OF_POINTS = "calinski_harabasz_score davies_bouldin_score dunn_index"
OF_MAPS = "dice_score generalized_dice_score mean_iou"
OF_LABELS = "multilabel_coverage_error multilabel_ranking_average_precision multilabel_ranking_loss"
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
    kinds |= {"points": OF_POINTS.split(), "maps": OF_MAPS.split(), "multilabel": OF_LABELS.split()}
    kinds["binary"] = [name for name in functional.__all__ if name.startswith("retrieval_")]
    tasks = [n for n in functional.__all__ if "task" in inspect.signature(getattr(functional, n)).parameters]
    for task in TASKS:
        kinds[task] = kinds.get(task, []) + [n for n in tasks if WITHOUT.get(n) != task]
    return sorted(f"{name}-{kind}" for kind, names in kinds.items() for name in names)


def metric(call: str, p: Tensor, t: Tensor) -> Any:
    name, kind = call.split("-")
    function = next(vars(place)[name] for place in PLACES if name in getattr(place, "__all__", ()))
    task = {"task": kind, **TASKS[kind]} if "task" in inspect.signature(function).parameters else {}
    if kind == "maps":
        p, t, task = p[None], t[None], {"num_classes": 4, "input_format": "index", "include_background": True}
    if name in OF_LABELS.split():
        task = TASKS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(p, t, **task, **OPTIONS.get(name, {}))


def metric_and_warning(call: str, p: Tensor, t: Tensor) -> tuple[Any, bool]:
    """The metric, and whether it warned that a size counts masked entries."""
    told = []
    with mock.patch.object(numel_warning.warnings, "warn", lambda *args, **kwargs: told.append(args[1])):
        return metric(call, p, t), mt.MaskedSizeWarning in told


def masked(x: Tensor, valid: Tensor | None, under: str) -> Tensor:
    """``x`` with what lies ``under`` its mask."""
    if valid is None:
        return x
    valid = valid.reshape(-1, *[1] * (x.dim() - 1)).expand(x.shape)
    if under == "garbage":
        x = torch.where(valid, x, torch.nan if x.is_floating_point() else -7).to(x.dtype)
    return mt.as_masked_tensor(x, valid)


def right(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(map(right, found, expected))
    if mt.is_masked_tensor(found):
        return bool(found.get_mask().all()) and right(found.get_data(), expected)
    found, expected = torch.as_tensor(found).double(), torch.as_tensor(expected).double()
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=1e-5, equal_nan=True)


@cache
def oracle(call: str, masks: str, draw: int) -> Any:
    (p, t), (vp, vt) = inputs(draw)[call.split("-")[1]], valid_of(draw, masks)
    valid = vt if vp is None else vp if vt is None else vp & vt
    return metric(call, p[valid], t[valid])


@cache
def outcome(call: str, masks: str, way: str, draw: int, under: str) -> str:
    """``right``, ``wrong``, ``warns`` or ``raises``."""
    kind, expected = call.split("-")[1], oracle(call, masks, draw)
    (p, t), (vp, vt) = inputs(draw)[kind], valid_of(draw, masks)
    p, t = masked(p, vp, under), masked(t, vt, under)
    if way == "select_valid":
        found = metric(call, *mt.select_valid(p, t, dim=1 if kind in ROWS else None))
        return "right" if right(found, expected) else "wrong"
    with mt.strict() if way == "strict" else mt.meaning():
        try:
            found, warned = metric_and_warning(call, p, t)
        except Exception:
            return "raises"
        return "right" if right(found, expected) else "warns" if warned else "wrong"


def worst(call: str, masks: str, way: str) -> str:
    """Of all draws, with garbage in every second."""
    unders = ("legal", "garbage") if masks != "different masks" else ("garbage", "legal")
    found = {outcome(call, masks, way, draw, unders[draw % 2]) for draw in range(DRAWS)}
    return next(name for name in ("wrong", "raises", "warns", "right") if name in found)


@pytest.mark.parametrize("call", calls())
def test_compress_is_right_and_nothing_is_wrong(call: str) -> None:
    assert worst(call, "different masks", "select_valid") == "right"
    for masks in MASKS:
        assert worst(call, masks, "strict") in ("right", "raises"), masks
        assert worst(call, masks, "as it is") != "wrong", masks


def test_the_page_says_how_many() -> None:
    told = {
        "different masks": "both, with different masks",
        "one mask": "both, with one mask",
        "masked target": "the target; the prediction is plain",
        "masked prediction": "the prediction; the target is plain",
    }
    lines = []
    for masks in MASKS:
        for way, name in (("as it is", "none"), ("strict", "`strict()`")):
            counts = Counter(worst(call, masks, way) for call in calls())
            numbers = f"{counts['right']} | {counts['warns']} | {counts['raises']} | {counts['wrong'] or ''}"
            lines.append(f"| {told[masks]} | {name} | {numbers} |".replace("|  |", "| |"))
    text = PAGE.read_text()
    assert f"What {len(calls())} metrics do" in text
    assert "\n".join(lines) in text, "\n" + "\n".join(lines)


@pytest.mark.parametrize("side", ["target", "prediction"])
@pytest.mark.parametrize("name", ["accuracy", "average_precision", "auroc", "f1_score", "specificity", "eer"])
def test_missing_labels(name: str, side: str) -> None:
    """Of several labels each is counted where it is known, by function and class, binned and not, over two batches."""
    p, t = inputs(0)["multilabel"]
    known = torch.rand(t.shape, generator=torch.Generator().manual_seed(1)) > 0.3
    several = functional.__dict__[name]
    x = (p, masked_labels(t, known)) if side == "target" else (mt.as_masked_tensor(p, known), t)
    classes = vars(torchmetrics.classification).items()
    owner = next(value for key, value in classes if key.lower() == name.replace("_", "") != key)
    options = (
        ({"thresholds": None}, {"thresholds": 7}) if "thresholds" in inspect.signature(several).parameters else ({},)
    )
    for option in options:
        given = {"task": "multilabel", "num_labels": 3, "average": "none", **option}
        if name == "eer":
            del given["average"]
        one = {"task": "binary", **option}
        expected = torch.stack([torch.as_tensor(several(p[k, i], t[k, i], **one)) for i, k in enumerate(known.T)])
        assert right(torch.as_tensor(several(*x, **given)), expected)
        whole = owner(**given)
        for part in (slice(0, 10), slice(10, None)):
            whole.update(x[0][part], x[1][part])
        assert right(torch.as_tensor(whole.compute()), expected)
        other = owner(**given)  # as on another rank, which has seen no missing label
        other.load_state_dict(whole.state_dict())
        if option == {"thresholds": None}:
            other.preds, other.target, other._update_count = whole.preds, whole.target, 1
            assert right(torch.as_tensor(other.compute()), expected)


def masked_labels(t: Tensor, known: Tensor) -> Tensor:
    return mt.as_masked_tensor(torch.where(known, t, -7), known)


def test_one_number_for_each_sample() -> None:
    p, t = inputs(0)["classes"]
    p, t = p.reshape(4, 6), t.reshape(4, 6)
    known = torch.rand(t.shape, generator=torch.Generator().manual_seed(1)) > 0.3
    given = {"task": "multiclass", "num_classes": 4, "average": "micro"}
    found = functional.accuracy(p, masked_labels(t, known), multidim_average="samplewise", **given)
    expected = torch.stack([functional.accuracy(a[k], b[k], **given) for a, b, k in zip(p, t, known, strict=True)])
    assert right(found, expected)


def test_queries_of_a_retrieval() -> None:
    p, t = inputs(0)["binary"]
    index, known = torch.arange(COUNT) % 3, inputs(0)["masks"][0]
    metric, expected = (torchmetrics.retrieval.RetrievalMAP() for _ in range(2))
    metric.update(p, masked_labels(t, known), indexes=index)
    expected.update(p[known], t[known], indexes=index[known])
    assert right(metric.compute(), expected.compute())


def test_maps_of_classes_over_batches() -> None:
    """Each sample has places of its own; a map of one-hot classes is masked at a place."""
    p, t = (x.reshape(4, 2, 3) for x in inputs(0)["maps"])
    known = torch.rand(t.shape, generator=torch.Generator().manual_seed(1)) > 0.3
    segmentation = importlib.import_module("torchmetrics.segmentation")
    for name in ("MeanIoU", "DiceScore"):
        made = getattr(segmentation, name)(num_classes=4, input_format="index")
        expected = getattr(segmentation, name)(num_classes=4, input_format="index")
        hot = getattr(segmentation, name)(num_classes=4)
        made.update(p, masked_labels(t, known))
        many = torch.nn.functional.one_hot(t, 4).movedim(-1, 1), known[:, None].expand(4, 4, 2, 3)
        hot.update(torch.nn.functional.one_hot(p, 4).movedim(-1, 1), mt.as_masked_tensor(*many))
        for a, b, k in zip(p, t, known, strict=True):
            expected.update(a[k][None, None], b[k][None, None])
        for metric in (made, hot):
            assert right(metric.compute(), expected.compute())
    with pytest.raises(mt.MaskedSizeError, match="measures distances between shapes"):
        PLACES[-1].hausdorff_distance(p, masked_labels(t, known), 4, input_format="index")
