"""bayesian-torch: layers with drawn weights, with padded steps."""

from ._case import Case, load, ragged

LIBRARY = "bayesian-torch"


def layer(name, *args):
    return lambda: getattr(load("bayesian_torch.layers"), name)(*args)


CASES = [
    Case("LinearReparameterization", layer("LinearReparameterization", 4, 3), ragged((None, 4))),
    Case("LinearFlipout", layer("LinearFlipout", 4, 3), ragged((None, 4)), "declared",
         "draws signs in the shape of the batch; to compare rows, run them one by one"),
    Case("Conv1dReparameterization", layer("Conv1dReparameterization", 4, 3, 3), ragged((4, None))),
]  # fmt: skip
