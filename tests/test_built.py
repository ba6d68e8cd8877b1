"""Built kernels give what the ordinary way gives, whatever lies under the mask; each is built once for all sizes.

``MASKED_TENSOR_KERNELS=1 python -m pytest tests/test_reduction.py tests/test_extremes.py`` runs the laws, or any tests,
with every reduction that has a kernel.
"""

import itertools
import threading
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor import settings
from masked_tensor.shared import kernels as built

GARBAGE = (float("nan"), float("inf"), -float("inf"), 1e30)
#: Op, dtype, shapes and dimensions: of each op, dtype and side (rows or columns) one kernel is built.
CASES = {
    "sum, rows": (
        "sum",
        torch.float32,
        [((40, 67), 1), ((3, 4, 21), 2), ((16, 16), (0, 1)), ((5, 3, 2, 19), (1, 2, 3))],
    ),
    "sum, columns": (
        "sum",
        torch.float32,
        [((67, 40), 0), ((4, 33, 16), 1), ((3, 17, 4, 16), (0, 1)), ((16, 1, 18), 0)],
    ),
    "mean, rows": ("mean", torch.float32, [((40, 67), 1), ((1, 40, 1, 67), (1, 3)), ((64,), 0)]),
    "mean, columns": ("mean", torch.bfloat16, [((67, 40), 0)]),
    "amax, rows": ("amax", torch.float32, [((40, 67), 1), ((16, 3, 16), (0, 2))]),
    "amin, rows": ("amin", torch.int64, [((40, 67), 1)]),
    "prod, columns": ("prod", torch.float64, [((35, 20), 0)]),
    "sum, integers": ("sum", torch.int32, [((20, 35), 1)]),
}


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so are the stretches of 16 rows or 32 columns: all sizes have several, and a rest."""
    for name, value in {"LARGE": 1, "STRIP": 16, "RUN": 32}.items():
        monkeypatch.setattr(settings, name, value)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The reductions that a kernel computed, while kernels are asked for."""
    seen: list[str] = []

    def reduce(name: str, *args: object) -> tuple[Tensor, Tensor] | None:
        found = ordinary(name, *args)
        if found is not None:
            seen.append(name)
        return found

    ordinary = built.reduce
    monkeypatch.setattr(built, "reduce", reduce)
    with mt.kernels("compiled"):
        yield seen


def sample(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Data with garbage under the mask, NaN and inf among what is valid; the first and last slices all masked."""
    torch.manual_seed(seed)
    mask = torch.rand(shape) < 0.6
    mask[0] = mask[..., -1] = len(shape) == 1
    if not dtype.is_floating_point:
        data = torch.randint(-9, 9, shape, dtype=dtype)
        return torch.where(mask, data, torch.iinfo(dtype).max - 1), mask
    data = torch.randn(shape, dtype=torch.float64)
    junk = torch.tensor(GARBAGE, dtype=torch.float64)[torch.randint(4, shape)]
    data.view(-1)[prod(shape) // 2] = float("nan")
    data.view(-1)[prod(shape) // 3] = float("inf")
    return torch.where(mask, data, junk).to(dtype), mask


def twice(x: Tensor, op: str, dim: int | tuple[int, ...], keepdim: bool) -> tuple[Tensor, Tensor]:
    """With kernels, and without."""
    dims = (dim,) if op != "prod" or isinstance(dim, int) else ()
    with mt.kernels("ordinary"):
        expected = getattr(torch, op)(x, *dims, keepdim=keepdim)
    return getattr(torch, op)(x, *dims, keepdim=keepdim), expected


@pytest.mark.parametrize("case", CASES)
def test_a_kernel_gives_what_the_ordinary_way_gives(case: str, kernels: list[str]) -> None:
    op, dtype, samples = CASES[case]
    before, runs = set(built._BUILT), 0
    for seed, ((shape, dim), keepdim) in enumerate(itertools.product(samples, (False, True))):
        data, mask = sample(shape, dtype, seed)
        swapped = [t.transpose(0, -1).contiguous().transpose(0, -1) for t in (data, mask)]
        kinds = [(data, mask), tuple(swapped)] if dim == tuple(range(len(shape))) else [(data, mask)]
        for d, m in kinds:
            actual, expected = twice(mt.as_masked_tensor(d, m), op, dim, keepdim)
            torch.testing.assert_close(actual, expected, equal_nan=True)
            assert actual.stride() == expected.stride()
            runs += 1
    assert len(kernels) == runs
    assert len(set(built._BUILT) - before) <= 1  # for all shapes


def test_the_ordinary_way_is_taken_where_kernels_would_not_do(kernels: list[str]) -> None:
    data, mask = sample((40, 67), torch.float32)
    x = mt.as_masked_tensor(data, mask)

    class Counts(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            self.seen += 1
            return func(*args, **(kwargs or {}))

    with Counts() as mode:
        x.sum(1)
    assert mode.seen > 0
    x.double().to(torch.int8).sum(1)
    mt.as_masked_tensor(data, mask[:, :1]).sum(0)
    mt.as_masked_tensor(data.expand(2, 40, 67), mask.expand(2, 40, 67)).sum(2)
    mt.as_masked_tensor(data[:, ::2], mask[:, ::2]).sum(1)
    mt.as_masked_tensor(data[:3], mask[:3]).sum(0)
    x.sum(1, dtype=torch.complex64)
    assert kernels == []
    with mt.kernels("ordinary"):
        x.sum(1)
    thread = threading.Thread(target=lambda: x.sum(1))
    thread.start()
    thread.join()
    assert kernels == []


@pytest.mark.parametrize(("op", "forward"), [("sum", ["sum"]), ("mean", ["sum"]), ("amax", ["amax"]), ("prod", [])])
def test_gradients_are_the_ordinary_ones(op: str, forward: list[str], kernels: list[str]) -> None:
    data, mask = sample((40, 67), torch.float32)
    x = mt.as_masked_tensor(data, mask).requires_grad_()
    actual, expected = twice(x, op, 1, False)
    torch.testing.assert_close(actual, expected, equal_nan=True)
    assert kernels == forward
    for found, wanted in zip(*(torch.autograd.grad(t.sum(), x) for t in (actual, expected)), strict=True):
        torch.testing.assert_close(found.get_data(), wanted.get_data(), equal_nan=True)
        assert torch.equal(found.get_mask(), mask)


def test_choices_nest_and_end() -> None:
    assert settings.in_force().kernels == "ordinary"
    chosen = mt.kernels()
    with chosen, mt.kernels("ordinary"), chosen:
        assert settings.in_force().kernels == "compiled"
    assert settings.in_force().kernels == "ordinary"


def test_compiled_code_may_hold_the_context() -> None:
    def function(x: Tensor) -> Tensor:
        with mt.kernels("compiled"):
            return x.sum(1)

    x = mt.as_masked_tensor(*sample((4, 5), torch.float32))
    torch.testing.assert_close(torch.compile(function, backend="eager", fullgraph=True)(x), x.sum(1), equal_nan=True)


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(built, "_BUILT", {})
    x = mt.as_masked_tensor(*sample((40, 67), torch.float32))
    without = torch._inductor.config.patch({"cpp.cxx": ("/there/is/no/g++",)})
    with without, mt.kernels("compiled"), pytest.raises(RuntimeError, match=r"float32 could not be built.*\n.*CXX"):
        x.sum(1)
    assert x.sum(1).count() == 39
