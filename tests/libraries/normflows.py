"""normflows: normalizing flows, beside rows that are masked."""

from ._case import Case, beside, load

ROWS = beside((4,))
LIBRARY = "normflows"


def flow(name, *args, **options):
    return lambda: getattr(load("normflows.flows"), name)(*args, **options)


def inverse(model, x):
    return model.inverse(x)


def whole():
    nf = load("normflows")
    layers = [nf.flows.AffineCouplingBlock(nf.nets.MLP([2, 8, 4])), nf.flows.Permute(4), nf.flows.LULinearPermute(4)]
    return nf.NormalizingFlow(nf.distributions.DiagGaussian(4), layers)


CASES = [
    Case("NormalizingFlow", whole, ROWS, call=lambda m, x: m.log_prob(x), within="masked_factories()"),
    Case("Planar", flow("Planar", (4,)), ROWS),
    Case("Radial", flow("Radial", (4,)), ROWS),
    Case("MaskedAffineAutoregressive", flow("MaskedAffineAutoregressive", 4, 8), ROWS),
    Case("AutoregressiveRationalQuadraticSpline", flow("AutoregressiveRationalQuadraticSpline", 4, 1, 8), ROWS),
    Case("CoupledRationalQuadraticSpline", flow("CoupledRationalQuadraticSpline", 4, 1, 8), ROWS),
    Case("AffineConstFlow", flow("AffineConstFlow", (4,)), ROWS),
    Case("MLP", lambda: load("normflows.nets").MLP([4, 8, 2]), ROWS),
    Case("ResidualNet", lambda: load("normflows.nets").ResidualNet(4, 2, 8), ROWS),
]
