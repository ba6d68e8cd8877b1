"""Masked tensors on their way to other processes: what arrives is what left, and a mask travels as bits.

``MASKED_TENSOR_WORKERS=1`` also starts workers that import everything anew (spawn, forkserver).
"""

import os
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing import reductions
from torch.utils.data import DataLoader, Dataset

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

STARTS = ("fork", "spawn", "forkserver") if "MASKED_TENSOR_WORKERS" in os.environ else ("fork",)
DATA = torch.arange(60.0).view(5, 4, 3) - 20
MASK = torch.rand(5, 4, 3, generator=torch.Generator().manual_seed(0)) < 0.7
PADDING = (torch.tensor([3, 1, 4, 0, 2])[:, None] > torch.arange(4))[..., None]
SPARSE = torch.where(MASK[..., 0], DATA[..., 0], 0)


def hidden(mask: Tensor, data: Tensor = DATA) -> mt.MaskedTensor:
    """With masked-out data that are not 0, which travel as they are."""
    return mt.as_masked_tensor(torch.where(mask, data, torch.nan), mask)


def sparse(x: Tensor) -> mt.MaskedTensor:
    mask = x.detach().clone()
    return mt.masked_tensor(x, torch.sparse_coo_tensor(x.indices(), mask.values() > 0, x.shape).coalesce())


MADE: dict[str, Callable[[], mt.MaskedTensor]] = {
    "random": lambda: hidden(MASK),
    "zeroed": lambda: mt.masked_tensor(DATA, MASK),
    "padding": lambda: hidden(MASK[..., :1]),
    "expanded": lambda: hidden(MASK[:1, :, :1]),
    "0-d": lambda: hidden(torch.tensor(False)),
    "all masked": lambda: hidden(torch.zeros((), dtype=torch.bool)),
    "all valid": lambda: mt.masked_tensor(DATA),
    "all valid, not known": lambda: hidden(torch.ones(5, 4, 3, dtype=torch.bool)),
    "empty": lambda: hidden(MASK[:0], DATA[:0]),
    "scalar": lambda: mt.masked_tensor(3.0, False),
    "columns": lambda: hidden(MASK.mT.contiguous().mT, DATA.mT.contiguous().mT),
    "steps": lambda: hidden(MASK[:, ::2], DATA[:, ::2]),
    "integers": lambda: mt.masked_tensor(DATA.long(), MASK),
    "a view": lambda: mt.masked_tensor(DATA, MASK)[1:, :, 1],
    "a leaf": lambda: mt.masked_tensor(DATA, MASK, requires_grad=True),
    "packed": lambda: mt.packed(mt.masked_tensor(DATA, PADDING)),
    "packed, more masked": lambda: mt.packed(mt.masked_tensor(DATA, PADDING & MASK)),
    "sparse": lambda: sparse(SPARSE.to_sparse_coo()),
    "sparse, all valid": lambda: mt.masked_tensor(SPARSE.to_sparse_coo()),
    "csr": lambda: sparse(SPARSE.to_sparse_coo()).to_sparse_csr(),
}


def seen(x: Any) -> tuple[Any, ...]:
    """All that there is to see of a masked tensor, masked-out data included."""
    pair = pair_of(x)
    if x.layout is not torch.strided:
        return pair.data.to_dense(), pair.mask.to_dense(), x.layout, x.requires_grad
    strides = pair.data.stride(), None if pair.mask.all() else pair.mask.stride()
    return pair.data, pair.mask, x.requires_grad, x._packed is None, strides


def assert_alike(got: Any, sent: Any) -> None:
    for a, b in zip(seen(got), seen(sent), strict=True):
        if isinstance(a, Tensor):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        else:
            assert a == b


class Made(Dataset[Any]):
    def __len__(self) -> int:
        return len(MADE)

    def __getitem__(self, i: int) -> mt.MaskedTensor:
        return list(MADE.values())[i]()


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
@pytest.mark.parametrize("start", STARTS)
def test_what_a_worker_sends_arrives(start: str, strategy: str) -> None:
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy(strategy)
    try:
        loader = DataLoader(Made(), batch_size=None, num_workers=1, multiprocessing_context=start)
        for got, make in zip(loader, MADE.values(), strict=True):
            assert_alike(got, make())
    finally:
        torch.multiprocessing.set_sharing_strategy(before)


@pytest.mark.parametrize("name", sorted(MADE.keys() - {"a view"}))  # whose family has a mask that it shares
def test_a_mask_is_sent_as_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No mask is among the tensors of a message, each of which has a file descriptor."""
    sent: list[Tensor] = []

    def reduce(x: Tensor) -> Any:
        sent.append(x)
        return reductions.reduce_tensor(x)

    x = MADE[name]()
    mask = pair_of(x).mask
    alone = len(ForkingPickler.dumps(pair_of(x).data))
    monkeypatch.setitem(ForkingPickler._extra_reducers, Tensor, reduce)
    message = bytes(ForkingPickler.dumps(x))
    assert sent
    assert not [t for t in sent if t.dtype is torch.bool]
    if x.layout is torch.strided:
        assert len(message) < alone + (400 if x._packed is None else 1500)
        mask = mask if x._packed is None else x._packed.inner
        assert mask is None or (b"SentMask" in message) != bool(mask.all())
    assert_alike(ForkingPickler.loads(message), x)


def test_the_bits_of_a_large_mask() -> None:
    """An eighth of the bytes; those of a padding mask are one per token."""
    data = torch.randn(64, 1024, 8)
    for mask in (torch.rand(data.shape) < 0.7, torch.rand(64, 1024, 1) < 0.7):
        x = mt.masked_tensor(data, mask)
        message = bytes(ForkingPickler.dumps(x))
        assert mask.numel() / 8 < len(message) < mask.numel() / 8 + 1500
        assert_alike(ForkingPickler.loads(message), x)
