"""What every kernel for GPUs keeps to, beside its formula's values: ``.ci/kernels`` runs this, too."""

import os
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

triton = pytest.importorskip("triton")
GPU = torch.cuda.is_available()
if not (GPU or os.environ.get("TRITON_INTERPRET")):
    pytest.skip("no GPU, and no TRITON_INTERPRET=1", allow_module_level=True)

import triton.language as tl  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import masked_tensor as mt  # noqa: E402
from masked_tensor import kernels, settings  # noqa: E402
from masked_tensor.kernels.gpu import layout  # noqa: E402
from masked_tensor.kernels.gpu.entries import ENTRIES  # noqa: E402
from masked_tensor.kernels.gpu.tiles import indices, places  # noqa: E402

from .helpers import interpreter  # noqa: E402
from .helpers.gpu_cases import SMALL, Case, cases  # noqa: E402

if not GPU:
    interpreter.search_once()
DEVICE = "cuda" if GPU else "cpu"
pytestmark = [  # of numpy, in the interpreter
    pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning"),
]
FIRST: dict[str, Case] = {}
for _case in cases():
    FIRST.setdefault(_case.entry, _case)
each_entry = pytest.mark.parametrize("entry", ENTRIES)


def tensors_of(case: Case) -> list[Any]:
    """Its operands in float32, the ones that want it with a gradient."""
    found = [None if t is None else t.float() if t.is_floating_point() else t for t in case.tensors]
    return [
        None
        if t is None
        else t.to(DEVICE).requires_grad_(place in case.wanted and ENTRIES[case.entry].backward is not None)
        for place, t in enumerate(found)
    ]


@torch.no_grad()
def both_ways(case: Case, tensors: list[Any]) -> list[Tensor]:
    """The results of a kernel, and the gradients for ones."""
    kernel, options = ENTRIES[case.entry], case.options_for(torch.float32)
    assert kernel.serves(*tensors, *options) is None
    result, saved = kernel.forward(*tensors, *options)
    found = result if isinstance(result, tuple) else (result,)
    if kernel.backward is None:
        return list(found)
    grads = [
        torch.ones_like(r) if isinstance(r, Tensor) and r.is_floating_point() and i not in case.constant else None
        for i, r in enumerate(found)
    ]
    if case.entry == "standardize":
        grads[1:] = [None] * 3
    back = kernel.backward(saved, tuple(grads) if isinstance(result, tuple) else grads[0], *options)
    return [t for t in (*found, *back) if isinstance(t, Tensor)]


def small(monkeypatch: pytest.MonkeyPatch, **others: int) -> None:
    for name, value in (SMALL | others).items():
        monkeypatch.setattr(settings, name, value)


def alike(found: list[Tensor], wanted: list[Tensor], near: float = 0.0) -> None:
    for f, w in zip(found, wanted, strict=True):
        assert f.shape == w.shape
        torch.testing.assert_close(f, w, rtol=near, atol=near, equal_nan=True)


# --------------------------------------------------------------------------------------------------------------- layout


def strided(t: Tensor | None) -> Tensor | None:
    """The same values with gaps in between."""
    if t is None or t.dim() == 0:
        return t
    wide = t.detach().new_empty([2 * n for n in t.shape])
    if wide.is_floating_point():
        wide.fill_(torch.nan)
    place = tuple(slice(None, None, 2) for _ in t.shape)
    wide[place] = t.detach()
    return wide[place].requires_grad_(t.requires_grad)


@each_entry
def test_what_lies_with_steps_is_read_where_it_lies(entry: str) -> None:
    case = FIRST[entry]
    given = tensors_of(case)
    alike(both_ways(case, [strided(t) for t in given]), both_ways(case, given), 1e-6)


@each_entry
def test_indices_of_64_bits_give_the_same_bits(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken from 2**30 entries on."""
    small(monkeypatch)
    given = tensors_of(FIRST[entry])
    wanted = both_ways(FIRST[entry], given)
    small(monkeypatch, GPU_NARROW=1)
    alike(both_ways(FIRST[entry], given), wanted)


def test_tables_beyond_32_bits_are_wide() -> None:
    shape = (3, 1 << 30, 5)
    lies = (5 << 30, 5, 1), (0, 0, 0)
    for dims in ((0,), (1,), (2,), (0, 1, 2), (0, 2)):
        table = layout.walk(shape, dims, *lies, layout.result_strides(shape, dims))
        assert table is not None
        assert layout.blocks(table).wide


@triton.jit
def _places(out, blocks, near, outer, inner, B: tl.constexpr, TWO: tl.constexpr):
    k = indices(tl.load(blocks), B, True)
    tl.store(out + tl.arange(0, B), places(k, near, outer, inner, TWO))


@pytest.mark.parametrize("two", [False, True])
def test_places_beyond_32_bits(two: bool) -> None:
    """Where entries from the 2**33rd on lie, whose steps are as large as 2**20."""
    out, size, near = torch.empty(8, dtype=torch.int64, device=DEVICE), 8, 1000
    block, outer, inner = (1 << 30) + 1, (1 << 31) + 7, 1 << 20
    _places[(1,)](out, torch.tensor([block], device=DEVICE), near, outer, inner, B=size, TWO=two)
    index = [block * size + i for i in range(size)]
    wanted = [(i // near) * outer + (i % near) * inner if two else i * inner for i in index]
    assert out.tolist() == wanted


def test_steps_beyond_32_bits_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows, each 2**31 bytes from the other: memory that nobody touches is none."""
    step = 1 << 30
    memory = torch.empty(2 * step + 4, dtype=torch.float16, device=DEVICE)
    x = memory.as_strided((3, 4), (step, 1))
    x.copy_(torch.arange(12.0).view(3, 4))
    mask = torch.tensor([[True, True, False, True]] * 3, device=DEVICE)
    assert ENTRIES["sum"].forward(x, mask, None, (1,), False, None)[0].tolist() == [4, 16, 28]
    assert ENTRIES["sum"].forward(x.t(), mask.t(), None, (1,), False, None)[0].tolist() == [12, 15, 0, 21]
    found = ENTRIES["softmax"].forward(x, mask, 1, False)[0]
    torch.testing.assert_close(found, torch.where(mask, x, -torch.inf).float().softmax(1).half())


@pytest.mark.skipif(not GPU, reason="the interpreter takes hours")
def test_more_entries_than_32_bits_count() -> None:
    size = (1 << 31) + 4099
    x = torch.ones(size, dtype=torch.bfloat16, device=DEVICE)
    mask = torch.zeros(size, dtype=torch.bool, device=DEVICE)
    mask[-3:] = True
    assert ENTRIES["sum"].forward(x, mask, None, (0,), False, torch.float32)[0].item() == 3
    assert ENTRIES["mean"].forward(x, ~mask, None, (0,), False, torch.float32)[0][0].item() == 1


def test_the_sizes_of_blocks_come_from_a_table() -> None:
    """They cover every entry, and hold no more than the table says."""
    torch.manual_seed(0)
    for _ in range(300):
        shape = tuple(int(n) for n in torch.randint(1, 3000, (2,)))
        strides, dims = ((shape[1], 1), (1, shape[0]))[_ % 2], ((0,), (1,), (0, 1))[_ % 3]
        table = layout.walk(shape, dims, strides, layout.result_strides(shape, dims))
        assert table is not None
        for whole, share in ((False, True), (False, False), (True, False)):
            if whole and not layout.fits(table):
                continue
            sizes = layout.blocks(table, whole=whole, share=share)
            assert sizes.programs * sizes.kept >= table.kept > (sizes.programs - 1) * sizes.kept
            assert sizes.splits * sizes.steps * sizes.reduced >= table.reduced
            assert sizes.kept * sizes.reduced <= max(settings.GPU_TILE, settings.GPU_WHOLE)
            assert {n.bit_count() for n in (sizes.kept, sizes.reduced)} == {1}
            assert sizes.splits <= settings.GPU_SPLITS if share else sizes.splits == 1


def test_a_mask_of_padding_costs_a_byte_a_row() -> None:
    """It steps by 0 along the row, in every kernel that takes one with two dimensions."""
    for entry, case in FIRST.items():
        place = next(i for i, t in enumerate(case.tensors) if t is not None and t.dtype is torch.bool)
        given = tensors_of(case)
        if given[place].dim() < 2 or entry == "standardize":
            continue
        given[place] = given[place][:, :1].expand(given[place].shape)
        dense = [t.contiguous() if i == place else t for i, t in enumerate(given)]
        alike(both_ways(case, given), both_ways(case, dense), 1e-6)
        assert layout.as_bytes(given[place], given[place].shape).stride(1) == 0


# ------------------------------------------------------------------------------------------------------------ one entry


def single(case: Case, valid: bool) -> list[Any] | None:
    """The same call of one entry."""
    given = [None if t is None else t.detach().flatten()[:1].reshape((1,) * t.dim()) for t in tensors_of(case)]
    given = [None if t is None else torch.full_like(t, valid) if t.dtype is torch.bool else t for t in given]
    if case.entry == "class_loss":
        given[2] = torch.zeros_like(given[2])
    return [
        t if t is None else t.clone().requires_grad_(i in case.wanted and t.is_floating_point())
        for i, t in enumerate(given)
    ]


@each_entry
@pytest.mark.parametrize("valid", [False, True])
def test_one_entry(entry: str, valid: bool) -> None:
    case = FIRST[entry]
    own = single(case, valid)
    if entry == "standardize":
        own[4] = own[4].float().fill_(float(valid))
    found = both_ways(case, own)
    with torch.enable_grad():
        plain = [t if t is None or not t.is_floating_point() else t.detach().double().cpu() for t in own]
        plain = [t if t is None else t.cpu() for t in plain]
        expected = case.formula(*plain, *case.options)
    for f, e in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=False):
        if isinstance(e, Tensor):
            torch.testing.assert_close(f.cpu().double(), e.double(), rtol=1e-5, atol=1e-5, equal_nan=True)


# ----------------------------------------------------------------------------------------------------------------- host


class NoReads(TorchDispatchMode):
    """What would wait for a device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in (
            "_local_scalar_dense",
            "item",
            "nonzero",
            "equal",
            "is_nonzero",
            "masked_select",
            "unique",
        ), name
        return func(*args, **(kwargs or {}))


@each_entry
def test_nothing_is_read_on_the_host(entry: str) -> None:
    given = tensors_of(FIRST[entry])
    with NoReads():
        both_ways(FIRST[entry], given)


# ------------------------------------------------------------------------------------------------------------ the table

LABELS = torch.tensor([0, 3], device=DEVICE)
ZEROS, ONES = (
    torch.full((2, 4), n, dtype=torch.float64, device=DEVICE) for n in (0.0, 1.0)
)  # statistics are float64 on the CPU
TABLE: dict[str, tuple[Any, ...]] = {  # by op: its kernel, and a call, of which the masked tensor is the first argument
    "sum": ("sum", torch.sum, 1),
    "nansum": ("nansum", torch.nansum, 1),
    "mean": ("mean", torch.mean, 1),
    "mean of all": ("mean", torch.mean),
    "count_nonzero": ("count_nonzero", torch.count_nonzero, 1),
    "any": ("any", torch.any, 1),
    "all": ("all", torch.all, 1),
    "amax": ("amax", torch.amax, 1),
    "amin": ("amin", torch.amin, 1),
    "max of all": ("amax", torch.max),
    "prod": ("prod", torch.prod, 1),
    "var": ("variance", torch.var, 1),
    "std": ("variance", torch.std, 0),
    "var_mean": ("variance", torch.var_mean, 1),
    "std_mean": ("variance", torch.std_mean, 1),
    "logsumexp": ("logsumexp", torch.logsumexp, 1),
    "norm 1": ("norm1", torch.linalg.vector_norm, 1, 1),
    "norm 2": ("norm2", torch.linalg.vector_norm, 2, 1),
    "norm inf": ("norminf", torch.linalg.vector_norm, torch.inf, 1),
    "softmax": ("softmax", torch.softmax, 1),
    "log_softmax": ("softmax", torch.log_softmax, 1),
    "layer_norm": ("standardize", nn.LayerNorm(4)),
    "rms_norm": ("standardize", nn.RMSNorm(4)),
    "group_norm": ("standardize", nn.GroupNorm(2, 4)),
    "instance_norm": ("standardize", nn.InstanceNorm1d(2)),
    "batch_norm": ("standardize", nn.BatchNorm1d(4)),
    "mse_loss": ("loss", F.mse_loss, ZEROS),
    "l1_loss": ("loss", F.l1_loss, ZEROS),
    "smooth_l1_loss": ("loss", F.smooth_l1_loss, ZEROS),
    "huber_loss": ("loss", F.huber_loss, ZEROS, "none"),
    "binary_cross_entropy": ("loss", F.binary_cross_entropy, ZEROS),
    "binary_cross_entropy_with_logits": ("loss", F.binary_cross_entropy_with_logits, ZEROS),
    "kl_div": ("loss", F.kl_div, ONES, None, None, "sum"),
    "gaussian_nll_loss": ("loss", F.gaussian_nll_loss, ZEROS, ONES),
    "mt.gaussian_nll_loss": ("loss", mt.gaussian_nll_loss, ZEROS, ONES),
    "cross_entropy": ("class_loss", F.cross_entropy, LABELS),
    "nll_loss": ("class_loss", F.nll_loss, LABELS),
}


def test_every_kernel_is_asked_for_by_an_op() -> None:
    assert {kernel for kernel, *_ in TABLE.values()} == set(ENTRIES)


@pytest.mark.parametrize("op", TABLE)
def test_an_op_asks_once_and_explain_names_the_kernel(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, call, *others = TABLE[op]
    call = call.to(DEVICE, torch.float64) if isinstance(call, nn.Module) else call
    served: list[str] = []
    for name, kernel in ENTRIES.items():

        def forward(*given: Any, name: str = name, run: Any = kernel.forward) -> Any:
            served.append(name)
            return run(*given)

        monkeypatch.setitem(kernels.KERNELS, (name, DEVICE), replace(kernel, forward=forward))
    mask = torch.tensor([[True, False, True, True], [False] * 4])
    x = mt.masked_tensor(torch.where(mask, 0.5, torch.nan).double(), mask).to(DEVICE)
    with torch.no_grad():
        call(x, *others)
    assert served == [entry]
    assert f"kernel  {entry}, on {DEVICE}: serves" in mt.explain(call, x, *others).splitlines()
