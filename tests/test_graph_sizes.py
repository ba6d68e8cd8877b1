"""A traced size is compared with no threshold of this package: a graph that serves one size serves all.

``MASKED_TENSOR_GUARDS=1`` traces every family and each operator of torch's database, some minutes.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

import masked_tensor as mt
from tests.helpers.database import ENTRIES, samples
from tests.test_families_compiled import PROGRAMS, batch

from .helpers.trees import tree_leaves, tree_map

# ``s0*s1 < 2048``; what torch asks of the sizes themselves are equations, or has the numbers of one window.
THRESHOLD = re.compile(r"[<>]=? (\d{3,})$")
WHOLE = os.environ.get("MASKED_TENSOR_GUARDS") == "1"
# In turn what fills, counts, adds up, standardizes, chooses and picks; the others are traced with WHOLE.
QUICK = ("choose", "reduction", "moment", "normalize", "order", "loss")
# What these return has a size that values decide: it is not traced by torch either.
UNTRACED = "(Could not (guard on|extract)|data.dependent|Dynamic|not supported|unbacked|has no|cannot)"


def thresholds(function: Callable[..., Any], *args: Tensor) -> list[str]:
    """The guards by which the graph of ``function(*args)``, with all sizes free, depends on a number of entries."""
    graph = make_fx(function, tracing_mode="symbolic", _allow_non_fake_inputs=True)(*args)
    return [text for guard in graph.shape_env.guards if THRESHOLD.search(text := str(guard.expr))]


def leaves_of(result: Any) -> list[Tensor]:
    return [t for t in tree_leaves(result) if isinstance(t, Tensor)]


@pytest.mark.parametrize("family", PROGRAMS if WHOLE else QUICK)
def test_no_family_compares_a_size_with_a_threshold(family: str) -> None:
    def step(data: Tensor, mask: Tensor) -> list[Tensor]:
        x = mt.as_masked_tensor(data, mask).requires_grad_()
        found = PROGRAMS[family](x)
        if not found.requires_grad:
            return [found.filled(0)]
        return [found.filled(0), torch.autograd.grad(found.sum(), x)[0].filled(0)]

    x = batch(6)
    assert not thresholds(step, x.get_data().detach(), x.mask)


def test_a_threshold_would_be_found() -> None:
    assert thresholds(lambda x: x + 1 if x.numel() < 2048 else x, torch.randn(5, 7))
    assert not thresholds(lambda x: x + 1, torch.randn(5, 7))


@pytest.mark.skipif(not WHOLE, reason="MASKED_TENSOR_GUARDS=1 traces all operators")
@pytest.mark.parametrize("name", ENTRIES if WHOLE else [])
def test_no_operator_compares_a_size_with_a_threshold(name: str) -> None:
    for sample in samples(name, limit=2):
        given = (sample.args, sample.kwargs)

        def run(*tensors: Tensor, given: Any = given, op: Any = sample.op) -> list[Tensor]:
            rest = iter(tensors)
            first = True

            def place(x: Any) -> Any:
                nonlocal first
                if not isinstance(x, Tensor):
                    return x
                data, masked, first = next(rest), first, False
                return mt.as_masked_tensor(data, data == data) if masked else data

            args, kwargs = tree_map(place, given)
            return [x.filled(0) if mt.is_masked_tensor(x) else x for x in leaves_of(op(*args, **kwargs))]

        tensors = leaves_of(given)
        try:
            found = thresholds(run, *tensors)
        except Exception as error:
            if not re.search(UNTRACED, str(error)):
                raise
            continue
        assert not found, found
