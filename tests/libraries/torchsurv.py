"""torchsurv: losses of survival times, beside rows that are masked."""

import torch

from ._case import Case, beside, load, unit

ROWS = beside((1,), unit(), rows=6)
LIBRARY = "torchsurv"


def cox(model, x, time):
    return load("torchsurv.loss.cox").neg_partial_log_likelihood(x, torch.ones_like(time).bool(), time)


CASES = [
    Case("neg_partial_log_likelihood", lambda: torch.nn.Identity(), ROWS, call=cox),
]
