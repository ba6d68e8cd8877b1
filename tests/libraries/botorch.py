"""botorch: transforms of inputs and outcomes, kernels, and what acquisition functions are made of."""

from ._case import Case, beside, load, ragged, unit

POINTS, SAMPLES = ragged(unit(None, 2)), ragged((None, 3))
LIBRARY = "botorch"


def transform(name, *args, **options):
    return lambda: getattr(load("botorch.models.transforms"), name)(*args, **options)


def outcome(made, y):
    return made(y)[0]


def function(place, name, *args, **options):
    return lambda: lambda *given: getattr(load(place), name)(*given, *args, **options)


def matrix(model, x):
    return model(x).to_dense()


def kernel(name, **options):
    return lambda: getattr(load("botorch.models.kernels"), name)(**options)


def rows(model, y):
    return model.train()(y)[0]


def improved(mean, sigma):
    return load("botorch.acquisition.analytic")._scaled_improvement(mean, sigma, 0.1, True)


SMOOTH = "botorch.utils.safe_math"
CASES = [
    Case("Normalize", transform("Normalize", d=2), beside(unit(5, 2)), train=True),
    Case("Standardize", transform("Standardize", m=1), beside(unit(1), rows=6), call=rows, train=True),
    Case("Log", transform("Log"), ragged(unit(None, 1)), call=outcome),
    Case("Power", transform("Power", power=0.5), ragged(unit(None, 1)), call=outcome),
    Case("Bilog", transform("Bilog"), SAMPLES, call=outcome),
    Case("Warp", transform("Warp", d=2, indices=[0, 1]), POINTS),
    Case("normalize", function("botorch.utils.transforms", "normalize", bounds=load("torch").tensor(
        [[0.0, 0.0], [2.0, 4.0]], dtype=load("torch").float64)), POINTS),
    *[Case(name, function(SMOOTH, name, dim=1), SAMPLES)
      for name in ("logsumexp", "smooth_amax", "smooth_amin", "fatmax", "fatmin")],
    *[Case(name, function(SMOOTH, name), SAMPLES) for name in ("log_softplus", "fatplus", "fatmoid", "sigmoid")],
    Case("logexpit", function(SMOOTH, "logexpit"), SAMPLES),
    Case("logmeanexp", function(SMOOTH, "logmeanexp", dim=1), SAMPLES, "declared",
         "subtracts the logarithm of the size; write `logsumexp(x, 1) - x.count(1).log()`"),
    Case("log_ndtr", function("botorch.utils.probability.utils", "log_ndtr"), SAMPLES),
    Case("ndtr", function("botorch.utils.probability.utils", "ndtr"), SAMPLES),
    Case("phi", function("botorch.utils.probability.utils", "phi"), SAMPLES),
    Case("scaled improvement", lambda: improved, ragged((None,), unit(None))),
]  # fmt: skip
