"""Every op of torch's database under ``vjp``, ``jvp``, ``vmap(grad)`` and ``hessian``, against eager autograd.

A few ops run by default, all with ``MASKED_TENSOR_TRANSFORMS=1``.
"""

import os
import warnings

import pytest

from masked_tensor.errors import MaskedValueError

from .helpers import database, harness
from .helpers.derivatives import CHECKS
from .laws import extreme, plain_runs
from .oracles import ORACLES

NAMES = sorted(name for name in ORACLES if name in database.ENTRIES)
RUN = NAMES if os.environ.get("MASKED_TENSOR_TRANSFORMS") else NAMES[::15]
XFAIL = {
    ("scatter_reduce.prod", "jvp"): "torch's own formula gives 0, so it raises",
    ("chalf", "jvp"): "torch cannot sum complex numbers in half precision",
    ("special.entr", "hessian"): "NaN where torch's own second derivative of a zero is one",
}


@pytest.mark.parametrize("law", CHECKS)
@pytest.mark.parametrize("name", RUN)
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
