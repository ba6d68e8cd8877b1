"""torchmetrics: a few of its classes; docs/metrics.md has all of its functions."""

from ._case import Case, Input, beside, integers, load, plain, ragged, unit


def snr(p, t):
    return load("torchmetrics.functional").signal_noise_ratio(p, t)


def metric(name, **options):
    return lambda: lambda *x: load("torchmetrics").__dict__[name](**options).to(x[0].dtype)(*x)


PAIRS, ONE = beside((), ()), beside((), plain(Input(())))
UNITS, CLASSES = beside(unit(), unit(), rows=6), beside((5,), integers(5), rows=6)
LIBRARY = "torchmetrics"
CASES = [
    Case("MeanMetric", lambda: lambda x: load("torchmetrics").MeanMetric(nan_strategy="disable")(x), beside(())),
    Case("SumMetric", lambda: lambda x: load("torchmetrics").SumMetric(nan_strategy="disable")(x), beside(())),
    Case("MeanSquaredError", metric("MeanSquaredError"), PAIRS),
    Case("MeanAbsoluteError", metric("MeanAbsoluteError"), PAIRS),
    Case("MeanSquaredError (one side masked)", metric("MeanSquaredError"), ONE),
    Case("R2Score", metric("R2Score"), PAIRS),
    Case("PearsonCorrCoef", metric("PearsonCorrCoef"), PAIRS),
    Case("CosineSimilarity", metric("CosineSimilarity"), beside((5,), (5,))),
    Case("Accuracy", metric("Accuracy", task="multiclass", num_classes=5), CLASSES),
    Case("signal_noise_ratio", lambda: snr, ragged((None,), (None,))),
]
