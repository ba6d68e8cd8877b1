"""The family batch norm under the laws, and the dtypes of its buffers and parameters."""

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt

from .laws import laws

test_law = laws("batch_norm")


def run_as(name: str, kind: str, dtypes: tuple[torch.dtype | None, ...], training: bool) -> list[Tensor] | None:
    """The result and the buffers; None where that raises."""
    dtype, running, weight = dtypes
    x = torch.randn(3, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)
    buffers = [None if running is None else torch.tensor(v, dtype=running) for v in ([0.1, 0.2], [1.0, 2.0])]
    parameters = [None if weight is None else torch.tensor(v, dtype=weight) for v in ([1.5, 2.5], [0.3, 0.7])]
    op, masking = getattr(F if kind != "form" else mt, name), {"mask": torch.tensor(True)} if kind == "form" else {}
    try:
        result = op(mt.masked_tensor(x, True) if kind == "masked" else x, *buffers, *parameters, training, **masking)
    except RuntimeError:
        return None
    return [t.get_data() if isinstance(t, mt.MaskedTensor) else t for t in (result, *buffers) if t is not None]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_other_dtypes_of_buffers_and_parameters_as_in_torch(name: str, training: bool) -> None:
    """What torch computes is computed, in the same dtypes, and what it refuses is refused."""
    dtypes = torch.float64, torch.float32, torch.bfloat16
    for each in product(dtypes, (None, *dtypes) if training else dtypes, (None, *dtypes)):
        expected = run_as(name, "plain", each, training)
        for kind in ("masked", "form"):
            found = run_as(name, kind, each, training)
            assert (found is None) == (expected is None), (each, kind)
            if expected is not None:
                close = {"rtol": 0.02, "atol": 0.02} if torch.bfloat16 in each else {}
                torch.testing.assert_close(found, expected, **close)


def test_a_plain_batch_before_a_masked_one() -> None:
    """What the plain one keeps for its gradient is not taken for changed: its running statistics have moved since."""
    norm = torch.nn.BatchNorm1d(3).double()
    plain = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    masked = mt.masked_tensor(torch.randn(4, 3, dtype=torch.float64), torch.ones(4, 3, dtype=torch.bool))
    both = norm(plain).square().sum() + norm(masked.requires_grad_()).square().sum().filled(0)
    again = torch.nn.BatchNorm1d(3).double()
    wanted = torch.autograd.grad(again(plain).square().sum(), plain)
    torch.testing.assert_close(torch.autograd.grad(both, plain), wanted)
    again(masked.get_data())
    torch.testing.assert_close([*norm.buffers()], [*again.buffers()])
