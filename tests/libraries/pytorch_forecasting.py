"""pytorch-forecasting: metrics of masked targets."""

from ._case import Case, beside, load

PAIRS = beside((6,), (6,))
LIBRARY = "pytorch-forecasting"


def metric(name, **options):
    return lambda: lambda p, y: getattr(load("pytorch_forecasting.metrics"), name)(**options).loss(p, y)


CASES = [
    *[Case(f"{name}.loss", metric(name), PAIRS) for name in ("MAE", "RMSE", "SMAPE", "MAPE")],
    Case("QuantileLoss.loss", metric("QuantileLoss", quantiles=[0.3, 0.7]), beside((6, 2), (6,))),
]
