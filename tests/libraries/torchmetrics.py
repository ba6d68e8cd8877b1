"""torchmetrics: a few of its classes; docs/metrics.md has all of its functions."""

from ._case import Case, beside, integers, load, ragged, unit


def snr(p, t):
    return load("torchmetrics.functional").signal_noise_ratio(p, t)


def metric(name, **options):
    return lambda: lambda *x: load("torchmetrics").__dict__[name](**options).to(x[0].dtype)(*x)


PAIRS = beside((), ())
UNITS, CLASSES = beside(unit(), unit(), rows=6), beside((5,), integers(5), rows=6)
COUNTS = "it counts entries by sizes: `metric(*mt.select_valid(p, t))`, [as shown](metrics.md)"
LIBRARY = "torchmetrics"
CASES = [
    Case("MeanMetric", lambda: lambda x: load("torchmetrics").MeanMetric(nan_strategy="disable")(x), beside(())),
    Case("SumMetric", lambda: lambda x: load("torchmetrics").SumMetric(nan_strategy="disable")(x), beside(())),
    Case("MeanSquaredError", metric("MeanSquaredError"), PAIRS, "declared", COUNTS),
    Case("MeanAbsoluteError", metric("MeanAbsoluteError"), PAIRS, "declared", COUNTS),
    Case("R2Score", metric("R2Score"), PAIRS, "declared", COUNTS),
    Case("PearsonCorrCoef", metric("PearsonCorrCoef"), PAIRS),
    Case("CosineSimilarity", metric("CosineSimilarity"), beside((5,), (5,))),
    Case("Accuracy", metric("Accuracy", task="multiclass", num_classes=5), CLASSES),
    Case("signal_noise_ratio", lambda: snr, ragged((None,), (None,))),
]
