"""The kernels for GPUs beside their formulas: under Triton's interpreter, or on a GPU; ``.ci/kernels`` runs this.

What a kernel does not write is NaN, and so is what is masked, or infinite, or 1e30.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

triton = pytest.importorskip("triton")
GPU = torch.cuda.is_available()
if not (GPU or os.environ.get("TRITON_INTERPRET")):
    pytest.skip("no GPU, and no TRITON_INTERPRET=1", allow_module_level=True)

from torch import Tensor  # noqa: E402

import masked_tensor as mt  # noqa: E402
from masked_tensor import fill, kernels, masks, settings  # noqa: E402
from masked_tensor.kernels import reductions  # noqa: E402
from masked_tensor.kernels.gpu.entries import ENTRIES  # noqa: E402
from masked_tensor.kernels.gpu.fill import fill_  # noqa: E402
from masked_tensor.kernels.gpu.layout import wide_dtype  # noqa: E402
from masked_tensor.kernels.gpu.reduce import LOGICAL, REDUCTIONS, reduce  # noqa: E402

from .helpers import interpreter  # noqa: E402
from .helpers.gpu_cases import SMALL, WAYS, Case, cases  # noqa: E402

if not GPU:
    interpreter.search_once()
COUNT = 4  # the place of the number of valid entries, which is as exact as what is added up
DEVICE = "cuda" if GPU else "cpu"
CASES = list(cases())
NARROW, SHORT = torch.float16, torch.bfloat16
CLOSE = {torch.float64: 1e-11, torch.float32: 3e-5, NARROW: 4e-3, SHORT: 3e-2}
pytestmark = [  # of numpy, in the interpreter
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def memory_is_full_of_nan() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)  # fills what is allocated
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(autouse=True)
def blocks_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small shapes have several, and lie at their borders."""
    for name, value in SMALL.items():
        monkeypatch.setattr(settings, name, value)


def garbage(x: Tensor, valid: Tensor) -> Tensor:
    kinds = [torch.nan, float("inf"), 1e30] if x.is_floating_point() else [10**9, -7, 3]
    bad = torch.tensor(kinds, device=x.device).repeat(x.numel() // 3 + 1)[: x.numel()].view(x.shape)
    return torch.where(valid, x, bad.to(x.dtype))


def given(case: Case, dtype: torch.dtype) -> tuple[list, list]:
    """The operands as the kernel and as the formula are given them."""
    kernels_, formulas = [], []
    for place, t in enumerate(case.tensors):
        kind = wide_dtype(dtype) if case.entry == "standardize" and place == COUNT else dtype
        t = t if t is None or not t.is_floating_point() else t.to(kind)
        own = t if t is None or place not in case.poison else garbage(t, case.poison[place])
        plain = t if t is None or not t.is_floating_point() else t.double()
        if place in case.wanted:
            own, plain = own.requires_grad_(), plain.requires_grad_()
        kernels_.append(own if own is None else own.detach().to(DEVICE).requires_grad_(own.requires_grad))
        formulas.append(plain)
    return kernels_, formulas


def several(found: object) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def is_float(x: object) -> bool:
    return isinstance(x, Tensor) and x.is_floating_point()


def compare(found: Tensor, wanted: Tensor, dtype: torch.dtype, of: str) -> None:
    near, scale = (
        CLOSE[dtype],
        max(1.0, wanted.double().nan_to_num(0, 0, 0).abs().max().item()) if wanted.numel() else 1.0,
    )
    torch.testing.assert_close(
        found.detach().cpu().double(), wanted.detach().double(), rtol=near, atol=near * scale, equal_nan=True,
        msg=lambda text: f"{of}: {text}",
    )  # fmt: skip


def in_each_format() -> Iterator[Any]:
    """Every kernel, and every loss, in each format of numbers: of a reduction the first case, of others two by two."""
    seen, formats = set(), list(CLOSE)
    for number, case in enumerate(CASES):
        kind = case.entry, case.name.endswith("True")
        if case.entry not in (*REDUCTIONS, *LOGICAL, "variance"):
            chosen = formats[number % 2 :: 2]
        else:
            chosen = formats if kind not in seen else formats[number % 4 :][:1]
        for dtype in chosen:
            yield pytest.param(case, dtype, id=f"{case.name}-{str(dtype).removeprefix('torch.')}")
        seen.add(kind)


@pytest.mark.parametrize(("case", "dtype"), list(in_each_format()))
def test_the_formula_is_the_oracle(case: Case, dtype: torch.dtype) -> None:
    kernel = ENTRIES[case.entry]
    own, plain = given(case, dtype)
    options = case.options_for(dtype)
    assert kernel.serves(*own, *options) is None
    with torch.no_grad():
        result, saved = kernel.forward(*own, *options)
    expected = several(case.formula(*plain, *options))
    for place, (r, e) in enumerate(zip(several(result), expected, strict=True)):
        if isinstance(r, Tensor):
            compare(r, e, dtype, f"result {place}")
    if not case.wanted:
        return
    slopes = [
        torch.randn(e.shape, dtype=e.dtype) if is_float(e) and i not in case.constant else None
        for i, e in enumerate(expected)
    ]
    if case.entry == "softmax" and case.options[1]:  # what arrives is 0 where the result is masked
        slopes[0] = torch.where(expected[0].isfinite(), slopes[0], 0)
    if case.entry == "standardize":
        alone = case.options[1] == (1,)  # the result: its gradient is one kernel
        slopes[1:] = [None if alone or not case.options[3] else slopes[1], None, None if alone else slopes[3]]
    handed = [s if s is None else s.to(DEVICE, r.dtype) for s, r in zip(slopes, several(result), strict=True)]
    with torch.no_grad():
        back = kernel.backward(saved, tuple(handed) if isinstance(result, tuple) else handed[0], *options)
    pairs = [(e, h.cpu().double()) for e, h in zip(expected, handed, strict=True) if h is not None and e.requires_grad]
    pairs = [(torch.where(e.isfinite(), e, 0), h) for e, h in pairs]
    wanted = torch.autograd.grad([e for e, _ in pairs], [plain[i] for i in case.wanted], [h for _, h in pairs])
    for place, w in zip(case.wanted, wanted, strict=True):
        valid = case.poison.get(place)
        w = w if valid is None else torch.where(valid, w, 0)
        compare(back[place], w.nan_to_num(0), dtype, f"gradient {place}")
        assert back[place].dtype is own[place].dtype
    assert all(b is None for i, b in enumerate(back) if i not in case.wanted)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
def test_one_entry_or_strided_ones(shape: tuple[int, int]) -> None:
    """Reductions and softmax of data and masks that lie with steps, the last row without a valid entry."""
    wide, valid = (
        torch.randn(shape[0], 2 * shape[1], device=DEVICE),
        torch.rand(shape[1], shape[0], device=DEVICE) > 0.3,
    )
    valid[:, -1:] = False
    mask = valid.t()
    x = garbage(wide[:, ::2], mask)
    data = torch.empty_like(wide)[:, ::2].copy_(x)
    for op, (fill_with, way) in WAYS.items():
        if op == "mean":
            continue
        found = ENTRIES[op].forward(data, mask, None, (1,), False, None)[0]
        filled = torch.where(mask, x, 0 if op == "norminf" else fill_with).double()
        compare(found, way(filled, (1,), False).cpu(), torch.float32, op)
    weights = torch.softmax(torch.where(mask, x, -torch.inf).double(), 1).nan_to_num(0)
    compare(ENTRIES["softmax"].forward(data, mask, 1, False)[0], weights.cpu(), torch.float32, "softmax")


def both_ways(entry: str) -> Callable[[], list[Tensor]]:
    """A function that runs the first case of a kernel forward and backward, on the same memory each time."""
    case = next(case for case in CASES if case.entry == entry)
    own, kernel, options = given(case, torch.float32)[0], ENTRIES[entry], case.options_for(torch.float32)

    @torch.no_grad()
    def run() -> list[Tensor]:
        result, saved = kernel.forward(*own, *options)
        found = several(result)
        grads = [torch.ones_like(r) if is_float(r) and i not in case.constant else None for i, r in enumerate(found)]
        if entry == "standardize":
            grads[1:] = [None] * 3
        back = kernel.backward and kernel.backward(
            saved, tuple(grads) if isinstance(result, tuple) else grads[0], *options
        )
        return [t for t in (*found, *(back or ())) if isinstance(t, Tensor)]

    return run


@pytest.mark.skipif(not GPU, reason="interpreted programs run in order; indices of both widths give the same bits")
@pytest.mark.parametrize("entry", ENTRIES)
def test_the_same_bits_from_run_to_run(entry: str) -> None:
    run = both_ways(entry)
    for first, second in zip(run(), run(), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=0, equal_nan=True)


@pytest.mark.cuda
@pytest.mark.skipif(not GPU, reason="there is nothing to capture")
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_kernel_is_captured_in_a_graph(entry: str) -> None:
    """Nothing is read on the host, and a replay writes what the calls wrote."""
    torch.use_deterministic_algorithms(False)
    run, stream, graph = both_ways(entry), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        wanted = run()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        found = run()
    for t in found:
        t.zero_()
    graph.replay()
    for f, w in zip(found, wanted, strict=True):
        torch.testing.assert_close(f, w, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("entry", REDUCTIONS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_validity_comes_with_the_result(entry: str, keepdim: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept with the mask, which is not read again."""
    mask = torch.eye(5, device=DEVICE) > 0
    mask[2] = False
    wanted = mask.any(1, keepdim)
    found = ENTRIES[entry].forward(torch.randn(5, 5, device=DEVICE), mask, None, (1,), keepdim, None)[0]
    for op in ("any", "sum", "count_nonzero"):
        monkeypatch.setattr(torch, op, None)
    assert masks.reduce_validity(mask, 1, keepdim).tolist() == wanted.tolist()
    if entry == "mean":
        assert found[1].tolist() == wanted.tolist()


@pytest.mark.parametrize("constant", [0, 1, -0.0, float("inf"), float("nan"), -1e30])
def test_any_constant_is_written_without_a_tensor_of_it(constant: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place and into a new tensor, by strides; nothing is made or copied for the constant."""
    monkeypatch.setitem(fill.FILLS, DEVICE, fill_)
    monkeypatch.setattr(fill, "can_fill_bits", lambda data: False)  # as on a GPU
    fill.fill_bits(constant, torch.float32)  # found on the CPU, and kept
    x, mask = torch.full((3, 4), torch.nan, device=DEVICE), torch.eye(3, 4, device=DEVICE) > 0
    for valid in (mask, mask[:, :1], mask[:, :1].expand(3, 4)):
        data = torch.where(valid, 2.0, x).requires_grad_()
        wanted = torch.where(valid, 2.0, constant).expand(3, 4)
        with monkeypatch.context() as m, torch.no_grad():
            for name in ("where", "full", "tensor", "masked_fill"):
                m.setattr(torch, name, None)
            new = fill.fill_outside(data.detach(), valid, constant)
            where = data.data_ptr()
            fill.write_constant_(data, valid, constant)
        assert data.data_ptr() == where
        for found in (new, data.detach()):
            torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
            assert torch.equal(found.signbit(), wanted.signbit())


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.float64, torch.bfloat16])
def test_a_fill_in_place_writes_what_is_masked_alone(dtype: torch.dtype) -> None:
    data = torch.randint(0, 2, (6, 9), device=DEVICE).to(dtype)
    mask = torch.rand(9, 6, device=DEVICE).t() > 0.5
    for x in (
        data.clone(),
        data.t().contiguous().t(),
        torch.zeros(6, 18, device=DEVICE, dtype=dtype)[:, ::2].copy_(data),
    ):
        assert fill_(x, mask, 1, x)
        assert torch.equal(x, torch.where(mask, data, torch.ones_like(data)))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int64])
def test_any_all_and_counts_of_whole_numbers(dtype: torch.dtype) -> None:
    x, mask = torch.randint(0, 2, (6, 9), device=DEVICE).to(dtype)[:, ::2], torch.rand(6, 5, device=DEVICE) > 0.5
    mask[1] = False
    for entry, formula in (
        ("any", reductions.any_nonzero),
        ("all", reductions.all_nonzero),
        ("count_nonzero", reductions.count_nonzero),
    ):
        assert ENTRIES[entry].serves(x, mask, 1, True) is None
        found, wanted = ENTRIES[entry].forward(x, mask, 1, True)[0], formula(x, mask, 1, True)
        assert torch.equal(found, wanted)
        assert found.dtype is wanted.dtype


def test_special_values_of_valid_entries() -> None:
    inf = float("inf")
    x = torch.tensor([[inf, 1, 2], [-inf, -inf, 0], [torch.nan, 1, 0], [inf, -inf, 9]], device=DEVICE)
    mask = torch.tensor(
        [[True, True, True], [True, True, False], [True, True, False], [True, True, False]], device=DEVICE
    )
    filled = torch.where(mask, x, -inf)
    softmax = ENTRIES["softmax"].forward(x, mask, 1, False)[0]
    assert torch.equal(softmax.isnan(), torch.where(mask, torch.softmax(filled, 1), 0).isnan())
    for op in ("amax", "logsumexp"):
        compare(reduce(op, x, mask, (1,))[0], getattr(filled, op)(1, True).cpu(), torch.float32, op)
    share = ENTRIES["amax"].backward(
        ENTRIES["amax"].forward(x, mask, None, (1,), True, None)[1],
        torch.ones(4, 1, device=DEVICE),
        None,
        (1,),
        True,
        None,
    )[0]
    assert share.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [1, 0, 0], [1, 0, 0]]  # a NaN is attained by every NaN


@pytest.mark.parametrize("entry", ["softmax", "sum", "mean", "variance", "norm2", "standardize", "loss", "class_loss"])
def test_the_table_runs_them_under_autograd(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through an op of the package: values, gradients, and the gradient of the gradient, which is the formula's."""
    calls = []
    forward = ENTRIES[entry].forward
    monkeypatch.setitem(
        kernels.KERNELS, (entry, DEVICE), replace(
            ENTRIES[entry], forward=lambda *a: calls.append(entry) or forward(*a)
        )
    )  # fmt: skip
    mask = torch.tensor([[True, False, True], [False, False, False]], device=DEVICE)
    x = torch.randn(2, 3, device=DEVICE, dtype=torch.float64, requires_grad=True)
    op = {
        "softmax": lambda x: mt.softmax(x, 1, mask=mask),
        "sum": lambda x: mt.sum(x, 1, mask=mask),
        "mean": lambda x: mt.as_masked_tensor(x, mask).mean(1),
        "standardize": lambda x: F.layer_norm(mt.as_masked_tensor(x, mask), (3,)),
        "variance": lambda x: mt.std(x, 1, mask=mask, correction=0, fill_value=0),
        "norm2": lambda x: torch.linalg.vector_norm(mt.as_masked_tensor(x, mask), dim=1),
        "loss": lambda x: F.binary_cross_entropy_with_logits(x, mt.as_masked_tensor(x.detach() > 0, mask).double()),
        "class_loss": lambda x: F.cross_entropy(
            x, mt.as_masked_tensor(torch.tensor([2, 0], device=DEVICE), mask[:, 0])
        ),
    }[entry]

    def plain(x: Tensor) -> Tensor:
        found = op(x)
        return found.filled(0.0) if isinstance(found, mt.MaskedTensor) else found

    assert torch.autograd.gradcheck(plain, x, fast_mode=True)
    assert torch.autograd.gradgradcheck(plain, x, fast_mode=True)
    assert calls


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_the_formulas(reduction: str, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the ops: plain scores and masked ones, some weights, labels that are not to count."""
    known = torch.tensor([True, False, True, True, False], device=DEVICE)
    labels = mt.as_masked_tensor(torch.tensor([1, 10**9, -100, 0, -7], device=DEVICE), known)
    mask = torch.tensor([[True, True, False], [False] * 3, [True] * 3, [True] * 3, [True] * 3], device=DEVICE)
    target = mt.as_masked_tensor(garbage(torch.rand(5, 3, device=DEVICE), mask), mask)
    weight = torch.rand(3, device=DEVICE) if weighted else None
    rows = torch.tensor([True, False, False, True, False], device=DEVICE)

    def run() -> list[Tensor]:
        found = []
        for loss, wide in (
            (lambda x: F.mse_loss(x, target, reduction=reduction), mask),
            (lambda x: F.smooth_l1_loss(x, target, reduction=reduction, beta=0.3), mask),
            (lambda x: F.binary_cross_entropy_with_logits(x, target, weight, reduction=reduction), mask),
            (lambda x: F.cross_entropy(x, labels, weight, reduction=reduction, label_smoothing=0.1), rows[:, None]),
            (lambda x: F.cross_entropy(mt.as_masked_tensor(x, mask), labels, weight, reduction=reduction),
             mask & rows[:, None]),
            (lambda x: F.nll_loss(x, labels, weight, reduction=reduction), rows[:, None]),
        ):  # fmt: skip
            start = garbage(torch.arange(15.0, device=DEVICE).view(5, 3) / 15, wide.expand(5, 3)).requires_grad_()
            result = loss(start)
            result.filled(0.0).sum().backward()
            found += [result.filled(0.0).detach(), result.mask, start.grad]
        return found

    for entry in ("loss", "class_loss"):
        monkeypatch.delitem(kernels.KERNELS, (entry, DEVICE), raising=False)
    wanted = run()
    for entry in ("loss", "class_loss"):
        monkeypatch.setitem(kernels.KERNELS, (entry, DEVICE), ENTRIES[entry])
    for place, (f, w) in enumerate(zip(run(), wanted, strict=True)):
        assert f.dtype is w.dtype
        compare(f, w.cpu(), torch.float32, f"{place}")


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_not_served_says_why(entry: str) -> None:
    case = next(case for case in CASES if case.entry == entry)
    serves = ENTRIES[entry].serves
    nothing = [t if t is None else t.to(DEVICE).flatten()[:0].view(0, *t.shape[1:]) for t in case.tensors]
    nothing = [nothing[0], *(None if t is None or t.is_floating_point() else t for t in nothing[1:])]
    assert serves(*nothing, *case.options_for(torch.float32)) == "no entries"
    complex_ = [t if t is None or not t.is_floating_point() else t.to(DEVICE).cfloat() for t in case.tensors]
    assert "complex64" in serves(*complex_, *case.options_for(torch.float32))


@pytest.mark.skipif(not GPU, reason="blocks as large as they are take the interpreter minutes")
@pytest.mark.parametrize("length", [2047, 2048, 2049, 8192, 8193, 70_001])
def test_at_the_borders_of_large_blocks(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    x, mask = torch.randn(5, length, device=DEVICE), torch.rand(5, length, device=DEVICE) > 0.4
    wide, bad = x.double(), torch.where(mask, x, torch.nan)
    filled = torch.where(mask, wide, -torch.inf)
    compare(
        ENTRIES["softmax"].forward(bad, mask, 1, False)[0], torch.softmax(filled, 1).cpu(), torch.float32, "softmax"
    )
    for data, valid, at in ((bad, mask, 1), (bad.t(), mask.t(), 1), (bad.t().contiguous(), mask.t().contiguous(), 0)):
        found = reduce("logsumexp", data, valid, (at,))[0].flatten()
        compare(found, (filled if data is bad else filled.t()).logsumexp(at).cpu(), torch.float32, "logsumexp")
    again = [ENTRIES["sum"].forward(bad, mask, None, (0, 1), False, None)[0] for _ in range(3)]
    assert torch.equal(again[0], again[1])
    assert torch.equal(again[0], again[2])
    compare(again[0], torch.where(mask, wide, 0).sum().cpu(), torch.float32, "sum")


@pytest.mark.skipif(GPU, reason="it is compiled and run in the others")
def test_every_kernel_compiles_for_a_gpu() -> None:
    """Without one: Triton brings what makes code for it."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    found = subprocess.run(
        [sys.executable, "-m", "tests.helpers.gpu_compiler"], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr[-3000:]
