"""Random programs on sparse masked tensors against the same programs on strided ones: values, validity, gradients.

Masks of which nothing is valid, rows and columns, and explicit False with garbage under it. The long run is
``MASKED_TENSOR_SPARSE=20000`` programs.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.errors import UnsupportedOpError

from .helpers.harness import Masked
from .helpers.sparse_cases import CONVERT, stored

PROGRAMS = int(os.environ.get("MASKED_TENSOR_SPARSE", "240"))
PARTS = 4
INF = float("inf")
NUMBER = mt.masked_tensor(torch.tensor(1.5))  # of another dtype than the data
NO_NUMBER = mt.as_masked_tensor(torch.tensor(float("nan")), torch.tensor(False))


def explicit(x: MaskedTensor) -> MaskedTensor:
    """COO that stores masked entries, too, with NaN under the mask."""
    return stored(Masked(x.get_data(), x.get_mask()), "coo", torch.Generator().manual_seed(1))


LAYOUTS: dict[str, Callable[[MaskedTensor], Tensor]] = {**CONVERT, "explicit": explicit}
# Each takes two tensors of one shape and a dimension, and keeps the shape.
STEPS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "number": lambda x, y, d: x * NUMBER,
    "no number": lambda x, y, d: x + NO_NUMBER,
    "exp": lambda x, y, d: x.exp(),
    "tanh": lambda x, y, d: x.tanh(),
    "abs": lambda x, y, d: x.abs(),
    "sqrt": lambda x, y, d: (x * x + 1).sqrt(),
    "relu": lambda x, y, d: F.relu(x),
    "add": lambda x, y, d: x + y,
    "mul": lambda x, y, d: x * y,
    "rsub": lambda x, y, d: y - x,
    "maximum": lambda x, y, d: torch.maximum(x, y),
    "where": lambda x, y, d: torch.where(x > y, x, y),
    "div": lambda x, y, d: x / (y * y + 1),
    "masked_fill": lambda x, y, d: x.masked_fill(x > 0, NUMBER),
    "clamp": lambda x, y, d: x.clamp(-0.5, 0.5),
    "centre": lambda x, y, d: x - x.mean(),
    "centre along": lambda x, y, d: x - x.mean(d, keepdim=True),
    "over its greatest": lambda x, y, d: x / (x.abs().max() + 1),
    "over its spread": lambda x, y, d: x / (x.std() + 1),
    "softmax": lambda x, y, d: x.softmax(d),
    "log_softmax": lambda x, y, d: x.log_softmax(d),
    "cumsum": lambda x, y, d: x.cumsum(d),
    "cummax": lambda x, y, d: x.cummax(d)[0],
    "sort": lambda x, y, d: x.sort(d)[0],
    "transpose": lambda x, y, d: x.transpose(0, 1).transpose(0, 1),
    "normalize": lambda x, y, d: F.normalize(x, dim=d),
    "layer_norm": lambda x, y, d: F.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda x, y, d: F.rms_norm(x, x.shape[-1:]),
    "cast": lambda x, y, d: x.float().double(),
    "detach": lambda x, y, d: x.detach() * x,
}
REDUCTION = ("mean", "sum")
ENDS: dict[str, Callable[[Tensor, Tensor, int], Tensor]] = {
    "itself": lambda x, y, d: x * 1,
    "sum": lambda x, y, d: x.sum(),
    "mean": lambda x, y, d: x.mean(d),
    "mean, kept": lambda x, y, d: x.mean(d, keepdim=True),
    "var": lambda x, y, d: x.var(d),
    "std": lambda x, y, d: x.std(),
    "amax": lambda x, y, d: x.amax(d),
    "amin": lambda x, y, d: x.amin(),
    "argmax": lambda x, y, d: x.argmax(d),
    "median": lambda x, y, d: x.median(d)[0],
    "quantile": lambda x, y, d: x.quantile(0.3, d),
    "logsumexp": lambda x, y, d: x.logsumexp(d),
    "prod": lambda x, y, d: x.prod(d),
    "norm": lambda x, y, d: x.norm(dim=d),
    "nansum": lambda x, y, d: x.nansum(),
    "nanmean": lambda x, y, d: x.nanmean(d),
    "any": lambda x, y, d: (x > 0).any(d),
    "all": lambda x, y, d: (x > 0).all(),
    "count_nonzero": lambda x, y, d: x.count_nonzero(),
    "unique": lambda x, y, d: x.unique(),
    "matmul": lambda x, y, d: x @ torch.arange(2.0 * x.shape[1], dtype=x.dtype).view(-1, 2),
    "mse_loss": lambda x, y, d: F.mse_loss(x, y, reduction=REDUCTION[d]),
    "huber_loss": lambda x, y, d: F.huber_loss(x, y, reduction=REDUCTION[d]),
    "bce": lambda x, y, d: F.binary_cross_entropy_with_logits(x, (y > 0).to(x.dtype), reduction=REDUCTION[d]),
    "cross_entropy": lambda x, y, d: F.cross_entropy(x, torch.arange(len(x)) % x.shape[1], reduction=REDUCTION[d]),
}


def drawn(rng: random.Random, shape: tuple[int, int], generator: torch.Generator) -> MaskedTensor:
    """A strided tensor, some of its entries 0 and infinite."""
    rows, columns = (torch.rand(size, generator=generator) < 0.6 for size in ((shape[0], 1), (1, shape[1])))
    mask = rng.choice(
        [
            torch.rand(shape, generator=generator) < 0.6,
            torch.zeros(shape, dtype=torch.bool),
            torch.ones(shape, dtype=torch.bool),
            rows.expand(shape),
            columns.expand(shape),
        ]
    )
    data = torch.randn(shape, generator=generator, dtype=torch.float64)
    if rng.random() < 0.2:
        data[0, 0] = 0
    if rng.random() < 0.1:
        data[0, -1] = rng.choice([INF, -INF])
    return mt.as_masked_tensor(data, mask.clone())


def run(program: list[Callable[[Tensor, Tensor, int], Tensor]], dims: list[int], x: Tensor, y: Tensor) -> Any:
    """The result, strided, and the gradients of ``x`` and ``y``; or the error."""
    leaves = [t.detach().requires_grad_() for t in (x, y)]
    try:
        found = leaves[0]
        for step, dim in zip(program, dims, strict=True):
            found = step(found, leaves[1], dim)
        found = found if found.layout is torch.strided else found.to_dense()
        if not found.requires_grad:
            return found, [None, None]
        weight = torch.rand(found.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        gradients = torch.autograd.grad((found * weight.to(found.dtype)).sum(), leaves, allow_unused=True)
        return found.detach(), [g if g is None or g.layout is torch.strided else g.to_dense() for g in gradients]
    except (RuntimeError, ValueError, IndexError) as error:
        return error


def entries(gradient: Tensor | None, mask: Tensor) -> Tensor:
    """A gradient where its tensor is valid, else 0."""
    return torch.zeros(mask.shape, dtype=torch.float64) if gradient is None else gradient.filled(0).where(mask, 0)


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")  # programs of which nothing is valid
@pytest.mark.filterwarnings("ignore:Sparse")  # torch's layouts are in beta
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for seed in range(part, PROGRAMS, PARTS):
        rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
        shape = rng.randint(1, 4), 2 * rng.randint(1, 3)
        x, y = drawn(rng, shape, generator), drawn(rng, shape, generator)
        names = [*(rng.choice(list(STEPS)) for _ in range(rng.randint(0, 4))), rng.choice(list(ENDS))]
        program, dims = [*(STEPS[name] for name in names[:-1]), ENDS[names[-1]]], [rng.randint(0, 1) for _ in names]
        layout = rng.choice(list(LAYOUTS))
        what = f"{seed}: {layout}, {names}, {dims}"
        expected, found = run(program, dims, x, y), run(program, dims, LAYOUTS[layout](x), LAYOUTS[layout](y))
        if isinstance(found, UnsupportedOpError | NotImplementedError):
            counts["refused"] += 1
            continue
        if isinstance(expected, Exception):
            assert isinstance(found, Exception), f"{what}: the strided program raises {expected!r}"
            counts["both raise"] += 1
            continue
        assert not isinstance(found, Exception), f"{what}: {found!r}"
        assert found[0].dtype is expected[0].dtype, what
        assert torch.equal(found[0].get_mask(), expected[0].get_mask()), what
        values = [t[0].filled(0).double() for t in (found, expected)]
        torch.testing.assert_close(
            *values, rtol=1e-5, atol=1e-8, equal_nan=True, msg=lambda text, w=what: f"{w}: {text}"
        )
        counts["equal"] += 1
        for mask, ours, theirs in zip((x.get_mask(), y.get_mask()), found[1], expected[1], strict=True):
            wanted = entries(theirs, mask)
            # NaN of infinite data reaches as far as each formula lets it.
            if bool(wanted.isfinite().all()) and bool(values[1].isfinite().all()):
                text = f"{what}, the gradient"
                torch.testing.assert_close(entries(ours, mask), wanted, rtol=1e-5, atol=1e-7, msg=text)
                counts["gradients"] += theirs is not None
    assert counts["equal"] > counts["refused"]
    assert counts["gradients"]
    record_property("sparse programs", dict(counts))
