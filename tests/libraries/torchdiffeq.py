"""torchdiffeq: solvers of differential equations, one for each row of a batch."""

import torch
from torch import nn

from ._case import Case, load, ragged


def solved(solver, **options):
    def call(model, start):
        times = torch.linspace(0, 1, 5, dtype=start.dtype)
        return getattr(load("torchdiffeq"), solver)(lambda t, y: model(y).tanh(), start, times, **options)[-1]

    return call


def layer():
    return nn.Linear(4, 4)


FIXED = {"within": "masked_factories()"}
STEPS = ragged((None, 4))
LIBRARY = "torchdiffeq"
CASES = [
    Case("odeint (euler)", layer, STEPS, call=solved("odeint", method="euler"), **FIXED),
    Case("odeint (midpoint)", layer, STEPS, call=solved("odeint", method="midpoint"), **FIXED),
    Case("odeint (rk4)", layer, STEPS, call=solved("odeint", method="rk4"), **FIXED),
    Case("odeint (explicit_adams)", layer, STEPS, call=solved("odeint", method="explicit_adams"), **FIXED),
    Case("odeint (dopri5)", layer, STEPS, call=solved("odeint", rtol=1e-9, atol=1e-10), **FIXED),
]
