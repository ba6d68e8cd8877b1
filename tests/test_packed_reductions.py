"""Reductions of packed batches with gaps give those of the strided form: of zeros and ones, where ties meet."""

import random
from typing import Any

import pytest
import torch

import masked_tensor as mt

NAMES = ("count_nonzero", "count", "sum", "mean", "prod", "amax", "amin", "any", "all")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
DIMS = (1, 0, 2, (1, 2), (0, 1), None)


def reduced(x: Any, name: str, dim: Any) -> Any:
    try:
        found = getattr(x, name)() if dim is None else getattr(x, name)(dim)
    except (RuntimeError, TypeError) as error:
        return type(error)
    return found.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_reductions_of_gaps(name: str) -> None:
    rng, compared = random.Random(name), 0
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    for _ in range(40):
        shape = tuple(rng.randint(1, 4) for _ in range(3))
        dtype = rng.choice(DTYPES)
        lengths = torch.randint(0, shape[1] + 1, shape[:1], generator=generator)
        lengths[0] = shape[1]
        valid = torch.rand(shape, generator=generator) > 0.4
        valid &= (torch.arange(shape[1]) < lengths[:, None])[..., None]
        data = torch.randint(0, 2, shape, generator=generator).to(dtype)
        x = mt.as_masked_tensor(torch.where(valid, data, torch.nan) if dtype.is_floating_point else data, valid)
        for packed in (x.packed(lengths=lengths), x.packed()):
            for dim in DIMS:
                found, expected = reduced(packed, name, dim), reduced(x, name, dim)
                assert found == expected or name == "mean", f"{dtype}, {dim}: {found}, not {expected}"
                if name == "mean" and not isinstance(expected, type):
                    flat = [mt.masked_tensor(v).filled(-1.0) for v in (found, expected)]
                    torch.testing.assert_close(*flat, rtol=1e-2 if dtype is torch.bfloat16 else 1e-6, atol=0)
                compared += 1
    assert compared == 40 * 2 * len(DIMS)
