"""gluonts: scalers of padded series, and its layers."""

import torch

from ._case import Case, integers, load, ragged

STEPS = ragged((None,))
LIBRARY = "gluonts"


def scaler(name):
    return lambda: getattr(load("gluonts.torch.scaler"), name)(dim=1, keepdim=True)


def scaled(model, x):
    return model(x, torch.ones_like(x))[0]


CASES = [
    Case("MeanScaler", scaler("MeanScaler"), STEPS, call=scaled),
    Case("StdScaler", scaler("StdScaler"), STEPS, call=scaled),
    Case("NOPScaler", scaler("NOPScaler"), STEPS, call=scaled),
    Case("FeatureEmbedder", lambda: load("gluonts.torch.modules.feature").FeatureEmbedder([5, 5], [4, 4]),
         ragged(integers(5, None, 2))),
]  # fmt: skip
