"""FrEIA: invertible networks, beside rows that are masked."""

from torch import nn

from ._case import Case, beside, load

ROWS = beside((4,))
LIBRARY = "FrEIA"


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))


def block(name, **options):
    return lambda: getattr(load("FrEIA.modules"), name)([(4,)], **options)


def call(model, x):
    return model([x])[0][0]


COUPLINGS = ("NICECouplingBlock", "RNVPCouplingBlock", "GLOWCouplingBlock", "GINCouplingBlock", "AllInOneBlock")
CASES = [
    *[Case(name, block(name, subnet_constructor=net), ROWS, call=call) for name in COUPLINGS],
    Case("ActNorm", block("ActNorm"), ROWS, call=call),
]
