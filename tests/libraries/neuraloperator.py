"""neuraloperator: Fourier operators, beside fields that are masked."""

from ._case import Case, beside, images, load

FIELDS = images(3, 16, 16)
LIBRARY = "neuraloperator"
CASES = [
    Case("ChannelMLP", lambda: load("neuralop.layers.channel_mlp").ChannelMLP(3, 3, 8), FIELDS),
    Case("LpLoss", lambda: load("neuralop.losses").LpLoss(d=2, reduction="sum"), beside((3, 8, 8), (3, 8, 8))),
]
