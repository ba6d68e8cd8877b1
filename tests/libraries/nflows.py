"""nflows: normalizing flows, beside rows that are masked."""

from ._case import Case, beside, load


def transform(path, *args, **options):
    return lambda: getattr(load(f"nflows.transforms.{path[0]}"), path[1])(*args, **options)


def net(inputs, outputs):
    return load("nflows.nn.nets").ResidualNet(inputs, outputs, hidden_features=8, num_blocks=1)


def flow():
    base, transforms = load("nflows.distributions.normal").StandardNormal([4]), load("nflows.transforms")
    steps = [
        transforms.MaskedAffineAutoregressiveTransform(4, 8, num_blocks=1),
        transforms.ReversePermutation(4),
        transforms.PiecewiseRationalQuadraticCouplingTransform(load("torch").tensor([1, 0, 1, 0]), net, tails="linear"),
    ]
    return load("nflows.flows").Flow(transforms.CompositeTransform(steps), base)


ROWS = beside((4,))
MIXED = ([1, 0, 1, 0], net)
BUFFER = "writes statistics into plain buffers; train on the valid rows: `x[x.get_mask().all(1)].filled(0)`"
LIBRARY = "nflows"
CASES = [
    Case("Flow", flow, ROWS, call=lambda f, x: f.log_prob(x)),
    Case("AffineCouplingTransform", transform(("coupling", "AffineCouplingTransform"), *MIXED), ROWS),
    Case("AdditiveCouplingTransform", transform(("coupling", "AdditiveCouplingTransform"), *MIXED), ROWS),
    Case(
        "MaskedAffineAutoregressiveTransform",
        transform(("autoregressive", "MaskedAffineAutoregressiveTransform"), 4, 8, num_blocks=1),
        ROWS,
    ),
    Case("LULinear", transform(("lu", "LULinear"), 4), ROWS),
    Case("QRLinear", transform(("qr", "QRLinear"), 4, 2), ROWS),
    Case("SVDLinear", transform(("svd", "SVDLinear"), 4, 2), ROWS),
    Case("HouseholderSequence", transform(("orthogonal", "HouseholderSequence"), 4, 2), ROWS),
    Case("BatchNorm", transform(("normalization", "BatchNorm"), 4), ROWS),
    Case("BatchNorm (training)", transform(("normalization", "BatchNorm"), 4), ROWS, "refused", BUFFER, train=True),
    Case("ActNorm (first step)", transform(("normalization", "ActNorm"), 4), ROWS, "refused", BUFFER, train=True),
    Case("LeakyReLU", transform(("nonlinearities", "LeakyReLU")), ROWS),
    Case("Sigmoid", transform(("nonlinearities", "Sigmoid")), ROWS),
    Case("ResidualNet", lambda: net(4, 3), ROWS),
    Case("MADE", lambda: load("nflows.transforms.made").MADE(4, 8, num_blocks=1), ROWS),
]
