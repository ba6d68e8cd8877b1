"""torchbnn: layers with drawn weights, with padded steps."""

from ._case import Case, beside, load, ragged

LIBRARY = "torchbnn"
CASES = [
    Case("BayesLinear", lambda: load("torchbnn").BayesLinear(0, 0.1, 4, 3), ragged((None, 4))),
    Case("BayesConv2d", lambda: load("torchbnn").BayesConv2d(0, 0.1, 3, 4, 3), beside((3, 8, 8))),
]
