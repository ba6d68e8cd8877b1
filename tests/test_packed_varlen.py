"""Attention of packed rows on a GPU: what the kernels are given, where they are written out, and on a real one."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor.kernels.attention import cuda as attention_cuda
from masked_tensor.op import NoRule
from masked_tensor.packing import attention as packed_attention
from masked_tensor.packing.flat_attention import attend_within
from masked_tensor.packing.grid import Grid

B, T = 4, 6
ROWS = {
    "prefix": torch.arange(T) < torch.tensor([[6], [2], [4], [1]]),
    "scattered": torch.tensor([[1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 0, 0], [1] * 6, [0, 0, 1, 0, 1, 0]], dtype=torch.bool),
    "one without": torch.arange(T) < torch.tensor([[6], [0], [4], [1]]),
}


def one_by_one(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float
) -> Tensor:
    """What the kernels compute, sequence by sequence; of a query without keys anything, and a gradient of NaN."""
    (starts, most), (key_starts, key_most) = queries, keys
    assert starts.dtype is key_starts.dtype is torch.int32
    assert q.shape[-1] == k.shape[-1] == v.shape[-1]
    assert q.shape[-1] % 8 == 0
    assert k.shape[1] == v.shape[1]
    assert q.shape[1] % k.shape[1] == 0
    assert all(x.stride(-1) == 1 for x in (q, k, v))
    parts = []
    for (a, b), (c, d) in zip(starts.unfold(0, 2, 1).tolist(), key_starts.unfold(0, 2, 1).tolist(), strict=True):
        assert b - a <= most
        assert d - c <= key_most
        one = [x[None].transpose(1, 2) for x in (q[a:b], k[c:d], v[c:d])]
        if a == b:
            continue
        if c == d:
            parts.append(q[a:b] * float("nan"))
        else:
            out = F.scaled_dot_product_attention(*one, is_causal=causal, scale=scale, enable_gqa=True)
            parts.append(out[0].transpose(0, 1))
    return torch.cat(parts)


@pytest.fixture
def written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU has the kernels of a GPU, as they are written here."""
    monkeypatch.setattr(attention_cuda, "DEVICES", ("cpu",))
    monkeypatch.setattr(attention_cuda, "choose_kernel", lambda *_: one_by_one)


def both(run: Callable[..., Tensor], *inputs: Tensor, rows: list[Tensor]) -> list[list[Tensor]]:
    """Values, validity and gradients of ``run``, packed and not."""
    found = []
    for packed in (True, False):
        leaves = [mt.as_masked_tensor(x, m[..., None]) for x, m in zip(inputs, rows, strict=True)]
        leaves = [(x.packed() if packed else x).requires_grad_() for x in leaves]
        with mt.extend.packing_report() as report:
            out = run(*leaves)
        assert out.is_packed == packed
        assert not report
        out.filled(0).sin().sum().backward()
        found.append([out.filled(0).detach(), out.get_mask(), *(x.grad.filled(0) for x in leaves)])
    return found


@pytest.mark.usefixtures("written_out")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [(1, 1), (4, 2)], ids=str)
@pytest.mark.parametrize("rows", ROWS)
def test_self_attention(rows: str, heads: tuple[int, int], causal: bool) -> None:
    many, few = heads
    x = torch.randn(B, T, 3 * (many + 2 * few))

    def run(x: Tensor) -> Tensor:
        parts = x.split([3 * many, 3 * few, 3 * few], -1)
        q, k, v = (p.unflatten(-1, (-1, 3)).transpose(1, 2) for p in parts)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=0.7, enable_gqa=True)
        return out.transpose(1, 2).flatten(2)

    torch.testing.assert_close(*both(run, x, rows=[ROWS[rows]]))


@pytest.mark.usefixtures("written_out")
@pytest.mark.parametrize("keys", ROWS)
def test_cross_attention(keys: str) -> None:
    """Where a sequence has no key, its queries see nothing: masked, and no gradient."""

    def run(q: Tensor, k: Tensor) -> Tensor:
        q, k = (x.unflatten(-1, (2, -1)).transpose(1, 2) for x in (q, k))
        return F.scaled_dot_product_attention(q, k, k * 2).transpose(1, 2).flatten(2)

    torch.testing.assert_close(*both(run, *torch.randn(2, B, T, 8), rows=[ROWS["prefix"], ROWS[keys]]))


@pytest.mark.usefixtures("written_out")
def test_an_encoder() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    torch.testing.assert_close(*both(layer, torch.randn(B, T, 8), rows=[ROWS["prefix"]]))


@pytest.mark.usefixtures("written_out")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [*ROWS, "nothing"])
def test_at_a_capacity_in_eager_code(rows: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no value may be looked at; what fills the batch up is NaN, and is no step of any sequence."""
    monkeypatch.setattr(packed_attention, "is_readable_memory", lambda x: False)
    mask = ROWS.get(rows, torch.zeros(B, T, dtype=torch.bool))[..., None]
    data = torch.where(mask, torch.randn(B, T, 2 * 3 * 4), torch.nan)
    layer = nn.Linear(24, 24)

    def run(x: Tensor, layer: nn.Module) -> list[Tensor]:
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in layer(x).split(8, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out.sin().sum().filled(0.0).backward()
        return [out.filled(0).detach(), out.get_mask(), *(p.grad for p in layer.parameters())]

    x = mt.as_masked_tensor(data, mask)
    with mt.extend.packing_report() as report:
        packed = run(x.packed(capacity=B * T - 1), copy.deepcopy(layer))
    assert not report
    torch.testing.assert_close(packed, run(x, layer))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("sizes", [(8, 8), (5, 3)], ids=str)
def test_the_kernels_take_what_they_are_given(dtype: torch.dtype, sizes: tuple[int, int]) -> None:
    """Tensors without memory: the calls of torch's own operators, and of their derivatives, fit as far as that shows.

    Of the derivative in float32 torch 2.13 has no description that fits its own operator.
    """
    width, out = sizes
    q, k = (torch.randn(7, 2, width, device="meta", dtype=dtype, requires_grad=True) for _ in range(2))
    v = torch.randn(7, 2, out, device="meta", dtype=dtype, requires_grad=True)
    rows = Grid(torch.tensor([0, 1, 2, 3, 6, 7, 12], device="meta"), (3, 6))
    for causal in (False, True):
        result, seen = attention_cuda.attend(q, k, v, rows, rows, 0.1, causal, None)
        assert seen is None
        assert (result.shape, result.dtype, result.device.type) == (v.shape, dtype, "meta")
        for x in () if dtype is torch.float32 else (q, k, v):
            (grad,) = torch.autograd.grad(result, x, torch.ones_like(result), retain_graph=True)
            assert (grad.shape, grad.dtype) == (x.shape, dtype)


@pytest.mark.parametrize("causal", [False, True])
def test_windows_are_the_kernels_own(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The public call, and the operator that has dropout; the efficient kernel has none."""
    q = torch.randn(7, 2, 8, device="meta", dtype=torch.bfloat16, requires_grad=True)
    rows = Grid(torch.tensor([0, 1, 2, 3, 6, 7, 12], device="meta"), (3, 6))
    heads = q.transpose(0, 1)
    sides, given = (2, 0 if causal else 2), []
    monkeypatch.setattr(attention_cuda, "DEVICES", ("meta",))

    def public(q: Tensor, *rest: Any, window_size: Any, **options: Any) -> Tensor:
        given.append(window_size)
        return q

    monkeypatch.setattr(attention_cuda, "_public_kernel", lambda: public)
    attend_within(rows, heads, heads, heads, 0.0, causal, None, False, 3)
    attend_within(rows, heads, heads, heads, 0.0, causal, None, False, 6)  # as wide as a sequence can be
    assert given == [sides, (-1, 0 if causal else -1)]
    out, _ = attention_cuda.attend(q, q, q, rows, rows, 0.1, causal, None, window=3)
    (grad,) = torch.autograd.grad(out, q, torch.ones_like(out))
    assert grad.shape == q.shape
    with pytest.raises(NoRule):
        attention_cuda.attend(*[q.float()] * 3, rows, rows, 0.0, causal, None, window=3)


CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (9, 4), (10, 0), (12, 0), (12, 1)]


def forbidden(capability: tuple[int, int], width: int, dropout: float, trained: bool) -> bool:
    """What torch checks before it calls its flash kernel, as ``sdp_utils.cpp`` has it."""
    small = (8, 6) <= capability <= (8, 9) or capability in ((12, 0), (12, 1))
    wide = 192 < width <= 224 or (width > 224 and dropout > 0)
    return capability < (8, 0) or width > 256 or (small and trained and wide)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
def test_the_flash_kernel_is_chosen_only_where_torch_allows_it(
    capability: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_cuda, "_capability", lambda q: capability)
    monkeypatch.setattr(attention_cuda, "_public_kernel", lambda: True)  # torch 2.11 has none that takes all arguments
    chosen = set()
    for width in range(8, 272, 8):
        q = torch.empty(1, 1, width, dtype=torch.float16, device="meta")
        for dropout in (0.0, 0.1):
            for trained in (False, True):
                kernel = attention_cuda.choose_kernel(q, dropout, trained)
                chosen.add(kernel)
                if kernel is not attention_cuda._efficient:
                    assert not forbidden(capability, width, dropout, trained)
                    assert (kernel is attention_cuda._varlen) == (not dropout)
                elif width <= 192:
                    assert capability < (8, 0)
    assert (attention_cuda._varlen in chosen) == (capability >= (8, 0))


def test_an_activated_kernel_without_dropout_is_given_none(monkeypatch: pytest.MonkeyPatch) -> None:
    q = torch.empty(1, 1, 64, dtype=torch.bfloat16, device="meta")
    monkeypatch.setattr(attention_cuda, "_activated", lambda: "FA4")
    monkeypatch.setattr(attention_cuda, "_public_kernel", lambda: True)
    assert attention_cuda.choose_kernel(q, 0.1, True) is attention_cuda._efficient
    assert attention_cuda.choose_kernel(q, 0.0, True) is attention_cuda._varlen


def test_kernels_of_other_widths_and_dtypes() -> None:
    for shape, dtype in (((1, 1, 264), torch.float16), ((1, 1, 64), torch.float32)):
        q = torch.empty(shape, dtype=dtype, device="meta")
        assert attention_cuda.choose_kernel(q) is attention_cuda._efficient


def test_a_torch_whose_public_call_lacks_something_runs_the_private_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_cuda, "_public_kernel", lambda: None)
    q = torch.empty(1, 1, 64, dtype=torch.float16, device="meta")
    assert attention_cuda.choose_kernel(q) is attention_cuda._flash


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("width", [8, 64, 256])
def test_parts_of_a_projection_and_grouped_heads_are_not_copied(
    width: int, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is given the memory that it is called with, and as many heads of keys as there are."""
    given = []

    def kernel(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
        given.extend((q, k, v))
        return q

    monkeypatch.setattr(attention_cuda, "choose_kernel", lambda *_: kernel)
    projected = torch.randn(7, 8 * width, dtype=torch.float16)
    q, k, v = (p.unflatten(-1, (-1, width)) for p in projected.split([4 * width, 2 * width, 2 * width], -1))
    rows = Grid(torch.tensor([0, 1, 2, 3, 6, 7, 12]), (3, 6))
    attention_cuda.attend(q, k, v, rows, rows, dropout, True, None)
    assert [x.data_ptr() for x in given] == [x.data_ptr() for x in (q, k, v)]
    assert [x.shape[1] for x in given] == [4, 2, 2]


@pytest.mark.parametrize("first", [0, 1, 4, 8])
def test_what_16_bytes_do_not_divide_is_copied(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def kernel(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> Tensor:
        given.extend((q, k, v))
        return q

    monkeypatch.setattr(attention_cuda, "choose_kernel", lambda *_: kernel)
    x = torch.randn(7, 1, 24, dtype=torch.float16)[..., first : first + 8]
    rows = Grid(torch.tensor([0, 1, 2, 3, 6, 7, 12]), (3, 6))
    attention_cuda.attend(x, x, x, rows, rows, 0.0, False, None)
    assert all(torch.equal(y, x) for y in given)
    assert all(y.storage_offset() * 2 % 16 == 0 for y in given)
    assert (given[0].data_ptr() == x.data_ptr()) == (first % 8 == 0)


def test_heads_that_do_not_divide_are_unpacked() -> None:
    q, k = torch.ones(2, 3, 8), torch.ones(2, 2, 8)
    rows = Grid(torch.arange(2), (1, 2))
    with pytest.raises(NoRule):
        attention_cuda.attend(q, k, k, rows, rows, 0.0, False, None)


def test_other_dtypes_are_unpacked() -> None:
    x, rows = torch.ones(2, 1, 8, dtype=torch.float64), Grid(torch.arange(2), (1, 2))
    with pytest.raises(NoRule):
        attention_cuda.attend(x, x, x, rows, rows, 0.0, False, None)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", ROWS)
def test_on_a_gpu(rows: str, causal: bool, dtype: torch.dtype) -> None:
    mask, data = ROWS[rows].cuda(), torch.randn(B, T, 3, 2, 20, device="cuda", dtype=dtype)

    def run(x: Tensor) -> Tensor:
        q, k, v = (p.transpose(1, 2) for p in x.unbind(2))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    def total(x: Tensor) -> list[Tensor]:
        x = x.detach().requires_grad_()
        with mt.extend.packing_report() as report:
            out = run(x)
        assert not report
        out.filled(0).square().sum().backward()
        return [out.filled(0).detach(), out.get_mask(), x.grad.filled(0)]

    x = mt.as_masked_tensor(data, mask[:, :, None, None, None])
    close = {"atol": 2e-2, "rtol": 2e-2} if dtype in attention_cuda.HALVES else {}
    torch.testing.assert_close(total(x.packed()), total(x), **close)


@pytest.mark.cuda
def test_cross_attention_on_a_gpu() -> None:
    def run(q: Tensor, k: Tensor) -> Tensor:
        q, k = (x.cuda().unflatten(-1, (2, -1)).transpose(1, 2) for x in (q, k))
        return F.scaled_dot_product_attention(q, k, k * 2).transpose(1, 2).flatten(2).cpu()

    found = both(run, *torch.randn(2, B, T, 16), rows=[ROWS["prefix"], ROWS["one without"]])
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)
