"""e3nn: equivariant layers of padded sets of points."""

from ._case import Case, load, ragged

IRREPS = "4x0e + 2x1o"
FEATURES, POINTS = ragged((None, 10)), ragged((None, 3))
LIBRARY = "e3nn"


def o3(name, *args, **options):
    return lambda: getattr(load("e3nn.o3"), name)(*args, **options)


def net(name, *args, **options):
    return lambda: getattr(load("e3nn.nn"), name)(*args, **options)


def harmonics(x):
    return load("e3nn.o3").spherical_harmonics([0, 1, 2], x, normalize=True, normalization="component")


def gate():
    torch = load("torch")
    return load("e3nn.nn").Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")


def soft(x):
    return load("e3nn.math").soft_one_hot_linspace(x.norm(dim=-1), 0.0, 3.0, 5, basis="gaussian", cutoff=False)


CASES = [
    Case("spherical_harmonics", lambda: harmonics, POINTS),
    Case("Linear", o3("Linear", IRREPS, IRREPS), FEATURES),
    Case(
        "FullyConnectedTensorProduct",
        o3("FullyConnectedTensorProduct", IRREPS, IRREPS, IRREPS),
        ragged((None, 10), (None, 10)),
    ),
    Case("FullTensorProduct", o3("FullTensorProduct", "2x0e + 1x1o", "2x0e + 1x1o"), ragged((None, 5), (None, 5))),
    Case("TensorSquare", o3("TensorSquare", IRREPS), FEATURES),
    Case("Norm", o3("Norm", IRREPS), FEATURES),
    Case("Gate", gate, ragged((None, 12))),
    Case("NormActivation", net("NormActivation", IRREPS, load("torch").sigmoid), FEATURES),
    Case("FullyConnectedNet", net("FullyConnectedNet", [3, 8, 2], load("torch").tanh), POINTS),
    Case("BatchNorm", net("BatchNorm", IRREPS), FEATURES),
    Case("BatchNorm (instance)", net("BatchNorm", IRREPS, instance=True), FEATURES),
    Case("Extract", net("Extract", IRREPS, ["4x0e"], [(0,)]), FEATURES),
    Case("soft_one_hot_linspace", lambda: soft, POINTS),
]
