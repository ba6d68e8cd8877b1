"""pyro: its own distributions and transforms, beside rows that are masked."""

import torch

from ._case import Case, beside, load, ragged, unit

ROWS, NUMBERS, UNITS = beside((4,)), ragged((None,)), ragged(unit(None))
LIBRARY = "pyro-ppl"


def density(name, *args, **options):
    numbers = [torch.tensor(a, dtype=torch.float64) if isinstance(a, float) else a for a in args]
    return lambda: getattr(load("pyro.distributions"), name)(*numbers, **options)


def log_prob(model, x):
    return model.log_prob(x)


def transform(name, *args):
    return lambda: getattr(load("pyro.distributions.transforms"), name)(*args)


CASES = [
    Case("AsymmetricLaplace", density("AsymmetricLaplace", 0.0, 1.0, 2.0), NUMBERS, call=log_prob),
    Case("SoftAsymmetricLaplace", density("SoftAsymmetricLaplace", 0.0, 1.0, 2.0), NUMBERS, call=log_prob),
    Case("SkewLogistic", density("SkewLogistic", 0.0, 1.0, 2.0), NUMBERS, call=log_prob),
    Case("Logistic", density("Logistic", 0.0, 1.0), NUMBERS, call=log_prob),
    Case("InverseGamma", density("InverseGamma", 2.0, 1.0), UNITS, call=log_prob),
    Case("AffineBeta", density("AffineBeta", 2.0, 3.0, 0.0, 1.0), UNITS, call=log_prob),
    Case("Normal", density("Normal", 0.0, 1.0), NUMBERS, call=log_prob),
    Case("Laplace", density("Laplace", 0.0, 1.0), NUMBERS, call=log_prob),
    Case("Gamma", density("Gamma", 2.0, 3.0), UNITS, call=log_prob),
    Case("Beta", density("Beta", 2.0, 3.0), UNITS, call=log_prob),
    Case("Planar", transform("planar", 4), ROWS),
    Case("Radial", transform("radial", 4), ROWS),
    Case("AffineAutoregressive", transform("affine_autoregressive", 4, [8]), ROWS),
    Case("Spline", transform("Spline", 4), ROWS),
    Case("SplineAutoregressive", transform("spline_autoregressive", 4, [8]), ROWS),
    Case("Householder", transform("householder", 4), ROWS),
    Case("GeneralizedChannelPermute", transform("GeneralizedChannelPermute", 4), beside((4, 8, 8))),
    Case("AutoRegressiveNN", lambda: load("pyro.nn").AutoRegressiveNN(4, [8]), ROWS),
    Case("DenseNN", lambda: load("pyro.nn").DenseNN(4, [8], [2]), ROWS),
]
