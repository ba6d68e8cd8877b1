"""Resampling, pooling and sampling in graphs with free sizes: values and gradients are those of eager code.

``MASKED_TENSOR_GUARDS=1`` compiles each mode in every way, some minutes.
"""

import os
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounterWithBackend

import masked_tensor as mt
from masked_tensor.testing import assert_close

WHOLE = os.environ.get("MASKED_TENSOR_GUARDS") == "1"
Program = Callable[[Any], Any]
DIMS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}
WAYS: dict[str, dict[str, Any]] = {
    "size": {"size": 7},
    "factor": {"scale_factor": 1.5},
    "recomputed": {"scale_factor": 0.7, "recompute_scale_factor": True},
}


def programs() -> dict[str, tuple[int, Program]]:
    """How many dimensions an image has, and what is done with it."""
    found: dict[str, tuple[int, Program]] = {}
    for mode, way, align, antialias in product(DIMS, WAYS, (False, True), (False, True)):
        if antialias and (mode != "bilinear" or (align and way == "factor")):  # torch compiles none, or it is refused
            continue
        call = partial(F.interpolate, **WAYS[way], mode=mode, align_corners=align, antialias=antialias)
        found[f"{mode}-{way}{'-align' * align}{'-antialias' * antialias}"] = DIMS[mode], call
    for mode, dims, way in product(("nearest", "nearest-exact", "area"), (1, 2, 3), WAYS):
        found[f"{mode}{dims}-{way}"] = dims, partial(F.interpolate, **WAYS[way], mode=mode)
    for dims in (1, 2, 3):
        for kind in ("max_pool", "avg_pool"):
            found[f"{kind}{dims}"] = dims, partial(getattr(F, f"{kind}{dims}d"), kernel_size=3, stride=2, padding=1)
        found[f"lp_pool{dims}"] = dims, partial(getattr(F, f"lp_pool{dims}d"), norm_type=2, kernel_size=2)
        for kind in ("max", "avg"):
            found[f"adaptive_{kind}_pool{dims}"] = (
                dims,
                partial(getattr(F, f"adaptive_{kind}_pool{dims}d"), output_size=1),
            )
    for dims, mode, align in product((2, 3), ("bilinear", "nearest"), (False, True)):
        found[f"grid_sample{dims}-{mode}{'-align' * align}"] = dims, partial(sampled, dims=dims, mode=mode, align=align)
    return found


def sampled(x: Any, dims: int, mode: str, align: bool) -> Any:
    theta = (torch.eye(dims, dims + 1, dtype=x.dtype) * 0.9).expand(x.shape[0], -1, -1)
    return F.grid_sample(x, F.affine_grid(theta, x.shape, align), mode, align_corners=align)


PROGRAMS = programs()
QUICK = ("linear-size",)  # of the op below it torch has no gradient at a free size


def image(size: int, dims: int) -> mt.MaskedTensor:
    generator = torch.Generator().manual_seed(size)
    shape = (2, 3, *range(size, size + dims))
    mask = torch.rand(shape, generator=generator) < 0.7
    data = torch.randn(shape, generator=generator, dtype=torch.float64)
    return mt.as_masked_tensor(torch.where(mask, data, torch.nan), mask).requires_grad_()


@pytest.mark.parametrize("name", PROGRAMS if WHOLE else QUICK)
def test_free_sizes(name: str) -> None:
    torch._dynamo.reset()
    dims, program = PROGRAMS[name]
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(program, backend=counter, fullgraph=True, dynamic=True)
    graphs = []
    for size in (5, 8):
        x, y = image(size, dims), image(size, dims)
        actual, expected = compiled(x), program(y)
        assert_close(actual, expected)
        actual.sin().sum().backward()
        expected.sin().sum().backward()
        assert_close(x.grad, y.grad)
        graphs.append(counter.frame_count)
    assert graphs[0] == graphs[1]
