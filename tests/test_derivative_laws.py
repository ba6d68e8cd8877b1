"""Every op of torch's database under ``vjp``, ``jvp``, ``vmap(grad)``, ``hessian`` and ``jvp(grad)``: eager autograd's.

A few ops run by default, all with ``MASKED_TENSOR_TRANSFORMS=1``.
"""

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import grad, hessian, jacrev, jvp

import masked_tensor as mt
from masked_tensor.errors import MaskedValueError

from .helpers import database, harness
from .helpers.derivatives import CHECKS
from .laws import extreme, plain_runs
from .oracles import ORACLES

NAMES = sorted(name for name in ORACLES if name in database.ENTRIES)
RUN = NAMES if os.environ.get("MASKED_TENSOR_TRANSFORMS") else NAMES[::15]
#: What sees floats as integers, to put them in order: torch 2.11 has no batching rule for that.
ORDERED = ("kthvalue", "mode", "nanquantile", "quantile", "sort", "topk")
CASES = [(name, law) for name in RUN for law in CHECKS if law != "jvp(grad)" or RUN is NAMES]
CASES += [(name, "vmap(grad)") for name in ORDERED if name not in RUN]
XFAIL = {
    ("scatter_reduce.prod", "jvp"): "torch's own formula gives 0, so it raises",
    ("scatter_reduce.prod", "jvp(grad)"): "torch's own formula gives 0, so it raises",
    ("logcumsumexp", "jvp(grad)"): "torch's own formula is inexact where values lie far apart, of plain tensors, too",
    ("chalf", "jvp"): "torch cannot sum complex numbers in half precision",
    ("special.entr", "hessian"): (
        "the first derivative of a zero is inf: forward over reverse, which hessian is, has NaN in its row, "
        "reverse over reverse in its column, in torch, too"
    ),
}


@pytest.mark.parametrize(("name", "law"), CASES)
def test_derivative_law(name: str, law: str, request: pytest.FixtureRequest) -> None:
    if (name, law) in XFAIL:
        request.node.add_marker(pytest.mark.xfail(reason=XFAIL[name, law], strict=True))
    for sample in database.samples(name, limit=1):
        if not plain_runs(sample) or extreme(sample):
            continue
        for seed, which in enumerate(("all", "first")):
            case = harness.masked_case(sample, "random", which, seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if not harness.plain_has_gradient(case):
                    continue
                try:
                    CHECKS[law](case)
                except MaskedValueError:  # the documented refusal
                    continue


def test_the_hessian_of_a_scan_that_begins_with_masked_entries() -> None:
    mask = torch.tensor([[False, False, True, True, False, True], [True, False, True, True, True, True], [False] * 6])
    data, weights = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    loss = lambda x: (x.logcumsumexp(1) * weights).sum()  # noqa: E731
    x = mt.as_masked_tensor(data.masked_fill(~mask, float("nan")), mask)
    torch.testing.assert_close(hessian(loss)(x), jacrev(jacrev(loss))(x))


@pytest.mark.parametrize("around", [lambda f: f, grad], ids=["jvp", "jvp(grad)"])
@pytest.mark.parametrize("product", ["scatter_reduce", "scatter", "index_reduce"])
def test_products_by_index_are_refused_in_forward_mode(product: str, around: Callable[..., Any]) -> None:
    index, source = torch.tensor([0, 0, 2]), torch.rand(3)
    x = mt.masked_tensor([1.0, None, 3.0])
    options = {"reduce": "multiply" if product == "scatter" else "prod"}
    loss = lambda x: getattr(x, product)(0, index, source, **options).square().sum()  # noqa: E731
    with pytest.raises(RuntimeError, match="has no derivative in forward mode"):
        jvp(around(loss), (x,), (x,))


def test_the_hessian_of_entr_is_torchs_own_of_the_valid_entries() -> None:
    """With its NaN in the same places: the one entry above whose oracle differs."""
    data, mask = torch.tensor([0.0, 0.5, 7.0, 1.0]).double(), torch.tensor([True, True, False, True])
    loss = lambda x: torch.special.entr(x).square().sum()  # noqa: E731
    for payload in (0.0, float("nan")):
        found = hessian(loss)(mt.as_masked_tensor(torch.where(mask, data, payload), mask))
        assert torch.equal(found.get_mask(), mask[:, None] & mask)
        expected = hessian(loss)(data[mask])
        assert expected.isnan().any()
        torch.testing.assert_close(found.compressed().view(3, 3), expected, equal_nan=True)
