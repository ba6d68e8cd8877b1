"""Covariance and correlation by definition: torch's own on the common observations of every two variables."""

import itertools
import warnings
from typing import Any

import torch

from ..helpers.harness import Masked
from .matmul import masked


def _pairwise(x: Any, function: Any, observations: torch.Tensor, enough: Any) -> Masked:
    x = masked(x)
    data, mask = (t.reshape(1, -1) if t.dim() < 2 else t for t in (x.data, x.mask))
    size = data.shape[0]
    result = torch.zeros(size, size, dtype=data.dtype)
    valid = torch.zeros(size, size, dtype=torch.bool)
    for i, j in itertools.product(range(size), range(size)):
        both = mask[i] & mask[j] & observations
        if enough(both):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result[i, j] = function(data[[i, j]][:, both], both)[0, 1]
            valid[i, j] = True
    return Masked(result.squeeze(), valid.squeeze())


def cov(op: Any, x: Any, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Masked:
    given = [None if w is None else masked(w) for w in (fweights, aweights)]
    columns = masked(x).data.shape[-1] if masked(x).data.dim() else 1
    observations = torch.ones(columns, dtype=torch.bool)
    for w in given:
        if w is not None:
            observations = observations & w.mask

    def function(data: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
        f, a = (None if w is None else w.data[both] for w in given)
        return torch.cov(data, correction=correction, fweights=f, aweights=None if a is None else a.double())

    def enough(both: torch.Tensor) -> bool:
        f, a = (torch.ones(int(both.sum())) if w is None else w.data[both].double() for w in given)
        total = float((f * a).sum())
        lost = correction * (float((f * a * a).sum()) / total if given[1] is not None and total else 1)
        return total > 0 and total - lost > 0

    return _pairwise(x, function, observations, enough)


def corrcoef(op: Any, x: Any) -> Masked:
    everything = torch.ones(masked(x).data.shape[-1], dtype=torch.bool)
    return _pairwise(x, lambda data, _: torch.corrcoef(data), everything, lambda both: int(both.sum()) > 1)


ORACLES = {"cov": cov, "corrcoef": corrcoef}
XFAIL = {
    ("cov", "identity"): "torch adds up the database's float32 weights in float32, we in the data's float64",
    ("cov", "gradient"): "the database's weights are float32: gradcheck wants float64",
}
