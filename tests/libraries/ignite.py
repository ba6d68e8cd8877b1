"""ignite: metrics of rows of which one is masked on both sides, or on one; docs/metrics.md has the others."""

import torch

from ._case import Case, Input, beside, integers, load, plain


def metric(name, **options):
    def updated(p, t):
        made = load("ignite.metrics").__dict__[name](**options)
        made.update((p, t))
        return torch.as_tensor(made.compute(), dtype=torch.float64)

    return lambda: updated


PAIRS, ONE = beside((4,), (4,)), beside((4,), plain(Input((4,))))
CLASSES = beside((5,), integers(5), rows=6)
LIBRARY = "pytorch-ignite"
CASES = [
    *[Case(name, metric(name), PAIRS) for name in (
        "MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError", "MeanPairwiseDistance", "CosineSimilarity",
        "KLDivergence")],
    Case("MeanSquaredError (one side masked)", metric("MeanSquaredError"), ONE),
    Case("Accuracy", metric("Accuracy"), CLASSES),
    *[Case(name, metric(name, average=True), CLASSES) for name in ("Precision", "Recall")],
    Case("TopKCategoricalAccuracy", metric("TopKCategoricalAccuracy", k=2), CLASSES),
]  # fmt: skip
