"""captum: attributions of the valid steps of a padded batch."""

from torch import nn

from ._case import Case, load, ragged

STEPS = ragged((None, 4))
LIBRARY = "captum"


class Score(nn.Module):
    """One number for each row."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x).mean((1, 2))


def attributed(name, **options):
    return lambda model, x: getattr(load("captum.attr"), name)(model).attribute(x, **options)


CASES = [
    Case("Saliency", Score, STEPS, call=attributed("Saliency")),
    Case("InputXGradient", Score, STEPS, call=attributed("InputXGradient")),
    Case("IntegratedGradients", Score, STEPS, call=attributed("IntegratedGradients", n_steps=8)),
    Case("Deconvolution", Score, STEPS, call=attributed("Deconvolution")),
]
