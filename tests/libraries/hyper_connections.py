"""hyper-connections: several streams of residuals around a layer."""

from torch import nn

from ._case import Case, load, ragged

STEPS = ragged((None, 8))
LIBRARY = "hyper-connections"


def streams(kind="", **options):
    """A layer between an expansion into streams and their sum."""

    def made():
        package = load("hyper_connections")
        init, expand, reduce = getattr(package, kind + "get_init_and_expand_reduce_stream_functions")(4, **options)
        return nn.ModuleList([init(dim=8, branch=nn.Linear(8, 8)), *map(Wrapped, (expand, reduce))])

    return made


class Wrapped(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def through(model, x):
    layer, expand, reduce = model
    return reduce(layer(expand(x)))


def pair(name, **options):
    return lambda: getattr(load("hyper_connections.residuals"), name)(8, **options)


CASES = [
    Case("HyperConnections", streams(), STEPS, call=through),
    Case("HyperConnections (tanh=False)", streams(disable=False), STEPS, call=through),
    Case("Residual", streams(disable=True), STEPS, call=through),
    Case("ManifoldConstrainedHyperConnections", streams("mc_"), STEPS, call=through),
    Case("GRUGatedResidual", pair("GRUGatedResidual"), ragged((None, 8), (None, 8))),
    Case("GatedResidual", pair("GatedResidual"), ragged((None, 8), (None, 8))),
    Case(
        "OrthogonalResidualUpdate",
        lambda: load("hyper_connections.residuals").OrthogonalResidualUpdate(),
        ragged((None, 8), (None, 8)),
    ),
]
