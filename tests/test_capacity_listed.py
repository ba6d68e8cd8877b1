"""What stays packed of a batch at a capacity, forward and backward, and waits for no device."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor.kernels import table
from masked_tensor.kernels.attention import cuda as attention_cuda

B, T, C, CAPACITY = 3, 6, 8, 14
LENGTHS = ([3, 5, 1], [0, 6, 6], [0, 0, 0])
Case = Callable[[Any, Any], Any]


def heads(x: Tensor) -> list[Tensor]:
    return [y.unflatten(-1, (2, 4)).transpose(1, 2) for y in (x, x * 2, x + 1)]


def attention(causal: bool) -> Case:
    return lambda x, _: F.scaled_dot_product_attention(*heads(x), is_causal=causal).transpose(1, 2).flatten(2)


def of_layer(layer: nn.Module) -> Case:
    return lambda x, _: layer.to(x.dtype)(x)


def encoder_layer(norm_first: bool) -> nn.Module:
    return nn.TransformerEncoderLayer(C, 2, 16, 0.0, batch_first=True, norm_first=norm_first)


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(C, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.attend(x, x, x, need_weights=False)[0]
        return out


class OverSteps(nn.Module):
    """Batch norm of each feature over all steps."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(C)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x.transpose(1, 2)).transpose(1, 2)
        return out


def classes(x: Any, ids: Any) -> tuple[Any, Any]:
    return x.transpose(1, 2), ids


torch.manual_seed(0)
TABLE = torch.randn(C, C)
LISTED: dict[str, Case] = {
    "linear": of_layer(nn.Linear(C, 5)),
    "feed-forward": of_layer(nn.Sequential(nn.Linear(C, 16), nn.GELU(), nn.Linear(16, C))),
    "residual": lambda x, _: x + x.relu() * x.sigmoid(),
    "joined features": lambda x, _: torch.cat([x, x * 2], -1).split(C, -1)[1],
    "encoder layer": of_layer(encoder_layer(False)),
    "encoder layer, norm first": of_layer(encoder_layer(True)),
    "layer norm": of_layer(nn.LayerNorm(C)),
    "rms norm": of_layer(nn.RMSNorm(C)),
    "softmax of features": lambda x, _: x.softmax(-1),
    "log_softmax of features": lambda x, _: x.log_softmax(-1),
    "normalize": lambda x, _: F.normalize(x, dim=-1),
    "attention": attention(False),
    "attention, causal": attention(True),
    "multi-head attention": of_layer(SelfAttention()),
    "embedding": lambda x, ids: F.embedding(ids, TABLE.to(x.dtype)) * x,
    "mse": lambda x, _: F.mse_loss(x, x.detach() * 2),
    "l1": lambda x, _: F.l1_loss(x, x.detach() * 2),
    "smooth l1": lambda x, _: F.smooth_l1_loss(x, x.detach() * 2),
    "huber": lambda x, _: F.huber_loss(x, x.detach() * 2),
    "mse, summed": lambda x, _: F.mse_loss(x, x.detach() * 2, reduction="sum"),
    "mse of each": lambda x, _: F.mse_loss(x, x.detach() * 2, reduction="none"),
    "cross entropy": lambda x, ids: F.cross_entropy(*classes(x, ids)),
    "cross entropy, smoothed": lambda x, ids: F.cross_entropy(*classes(x, ids), label_smoothing=0.1),
    "nll": lambda x, ids: F.nll_loss(*classes(x.log_softmax(-1), ids)),
    "bce": lambda x, _: F.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid()),
    "bce with logits": lambda x, _: F.binary_cross_entropy_with_logits(x, x.detach().sigmoid()),
    "kl": lambda x, _: F.kl_div(x.log_softmax(-1), x.detach().softmax(-1), reduction="sum"),
    "sum": lambda x, _: x.sum(),
    "mean": lambda x, _: x.mean(),
    "amax": lambda x, _: x.amax(),
    "amin": lambda x, _: x.amin(),
    "var": lambda x, _: x.var(),
    "std": lambda x, _: x.std(),
    "logsumexp": lambda x, _: x.logsumexp((0, 1, 2)),
    "norm": lambda x, _: torch.linalg.vector_norm(x),
    "mean of features": lambda x, _: x.mean(-1),
    "amax of features": lambda x, _: x.amax(-1),
    "mean of a sequence": lambda x, _: x.mean(1),
    "sum of a sequence": lambda x, _: x.sum(1),
    "amax of a sequence": lambda x, _: x.amax(1),
    "batch norm": of_layer(OverSteps()),
    "dropout": lambda x, _: F.dropout(x, 0.0) * nn.Dropout(0.0)(x),
}
SHAPED = {
    "mean of a sequence",
    "sum of a sequence",
    "amax of a sequence",
    "mean over batch and time",
}  # no time is left


def given(lengths: list[int], fill: float, dtype: torch.dtype) -> tuple[Any, Any]:
    """A batch and its ids, packed by nobody yet."""
    valid = torch.arange(T) < torch.tensor(lengths)[:, None]
    generator = torch.Generator().manual_seed(sum(lengths))
    data = torch.randn(B, T, C, generator=generator, dtype=torch.float64).to(dtype)
    ids = torch.randint(0, C, (B, T), generator=generator)
    rows = valid[..., None].expand(B, T, C)
    return mt.masked_tensor(torch.where(rows, data, fill), rows), mt.masked_tensor(
        torch.where(valid, ids, 10**6), valid
    )


def step(run: Case, x: Any, ids: Any) -> tuple[Any, Any]:
    leaf = x.detach().requires_grad_()
    out = run(leaf, ids)
    out.sin().sum().filled(0.0).backward()
    return out, leaf.grad


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")
@pytest.mark.parametrize("name", LISTED)
def test_it_stays_packed_and_nothing_that_fills_it_up_counts(name: str) -> None:
    for turn, (lengths, fill) in enumerate(zip(LENGTHS, (float("nan"), float("inf"), 1e30), strict=True)):
        dtype = (torch.float64, torch.bfloat16, torch.float64)[turn]
        x, ids = given(lengths, fill, dtype)
        places = ids.packed(capacity=CAPACITY)
        with mt.extend.packing_report() as spread:
            out, grad = step(LISTED[name], x.packed(capacity=CAPACITY), places)
        assert not spread
        assert grad.is_packed
        assert out.is_packed or not out.dim() or name in SHAPED
        wanted, slope = step(LISTED[name], x, ids)
        near: Any = {} if dtype is torch.float64 else {"rtol": 0.05, "atol": 0.05}
        assert out.get_mask().equal(wanted.get_mask())
        torch.testing.assert_close(out.filled(0), wanted.filled(0), **near)
        torch.testing.assert_close(grad.filled(0), slope.filled(0), **near)


READS = {
    "_local_scalar_dense",
    "nonzero",
    "nonzero_static",
    "equal",
    "is_nonzero",
    "masked_select",
    "_unique2",
    "_assert",
}


class Reads(TorchDispatchMode):
    """What is called that would wait for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call, of plain tensors; a masked one makes its own."""
        if mt.MaskedTensor in types:
            return NotImplemented
        name = func.__name__.split(".")[0]
        masks = func is torch.ops.aten.index.Tensor and any(x is not None and x.dtype is torch.bool for x in args[1])
        counted = func is torch.ops.aten.repeat_interleave.Tensor and (kwargs or {}).get("output_size") is None
        if name in READS or counted or masks:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def kernel(
    q: Tensor, k: Tensor, v: Tensor, queries: Any, keys: Any, dropout: float, causal: bool, scale: float
) -> Tensor:
    """What the kernels of a GPU compute, without reading where a sequence begins."""
    place = torch.arange(q.shape[0])
    own, other = (torch.searchsorted(starts, place.int(), right=True) for starts, _ in (queries, keys))
    seen = own[:, None] == other
    seen = seen & (place[:, None] >= place) if causal else seen
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    return ((q @ k.mT * scale).masked_fill(~seen, -torch.inf).softmax(-1) @ v).transpose(0, 1)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory as that of a GPU: nothing of this package may look at it, and no kernel of the CPU serves."""
    monkeypatch.setattr(attention_cuda, "DEVICES", ("cpu",))
    monkeypatch.setattr(attention_cuda, "choose_kernel", lambda *_: kernel)
    for name, module in list(sys.modules.items()):
        if name.startswith("masked_tensor"):
            for asked in ("is_readable_memory", "is_host"):
                if hasattr(module, asked):
                    monkeypatch.setattr(module, asked, lambda *_: False)
    monkeypatch.setattr(table, "KERNELS", {key: kept for key, kept in table.KERNELS.items() if key[1] != "cpu"})


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("name", LISTED)
def test_nothing_is_read_from_the_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward, and while it is packed."""

    def refuse(x: Tensor) -> Any:
        raise AssertionError("read by tolist()")

    made, ids = given(LENGTHS[0], float("nan"), torch.float32)
    wanted, slope = step(LISTED[name], made, ids)
    monkeypatch.setattr(Tensor, "tolist", refuse)
    with mt.extend.packing_report() as spread, Reads() as reads:
        out, grad = step(LISTED[name], made.packed(capacity=CAPACITY), ids.packed(capacity=CAPACITY))
    assert not reads.found
    assert not spread
    monkeypatch.undo()
    torch.testing.assert_close(out.filled(0), wanted.filled(0))
    torch.testing.assert_close(grad.filled(0), slope.filled(0))


@pytest.mark.usefixtures("elsewhere")
def test_what_is_read_is_seen() -> None:
    x = given(LENGTHS[0], 0.0, torch.float32)[0]
    for read in (lambda: x.packed(), lambda: x.sum().item(), lambda: x.get_data()[x.get_mask()]):
        with Reads() as reads:
            read()
        assert reads.found
