"""Ragged batches with gaps, packed with their lengths: a missing step is stored, and what is padding does not exist.

``tests/test_packed_law.py`` compares every op with its strided form; here is what is known of the sequences themselves.
"""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import masked_tensor as mt

LENGTHS = [5, 2, 0, 7]
Call = Callable[[Any], Any]


def sequences(kind: str) -> list[mt.MaskedTensor]:
    """Sequences with missing first and last steps, or of steps that are masked in part; one is empty."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for n in LENGTHS:
        valid = torch.rand(n, 3 if kind == "in part" else 1, generator=generator) < 0.6
        valid[:1] = valid[-1:] = False
        data = torch.randn(n, 3, generator=generator, dtype=torch.float64)
        found.append(mt.as_masked_tensor(torch.where(valid, data, torch.nan), valid.expand(n, 3)))
    return found


def made(kind: str, side: str = "right") -> dict[str, mt.MaskedTensor]:
    """The batch, by each way there is."""
    parts = sequences(kind)
    padded = mt.from_sequences(parts, padding_side=side)
    return {
        "from_sequences": mt.from_sequences(parts, padding_side=side, packed=True),
        "from_lengths": mt.from_lengths(padded, LENGTHS, padding_side=side, packed=True),
        "collate": mt.collate(parts, padding_side=side, packed=True),
        "packed": padded.packed(lengths=torch.tensor(LENGTHS), padding_side=side),
        "again": padded.packed().packed(lengths=LENGTHS, padding_side=side),
    }


def same(actual: Any, expected: Any) -> None:
    assert actual.get_mask().equal(expected.get_mask())
    torch.testing.assert_close(actual.filled(0), expected.filled(0))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", ["in part", "whole"])
def test_every_step_that_exists_is_stored(kind: str, side: str) -> None:
    parts = sequences(kind)
    padded = mt.from_sequences(parts, padding_side=side)
    for x in made(kind, side).values():
        assert x.is_packed
        assert x.lengths().tolist() == LENGTHS
        same(x.unpacked(), padded)
        for found in (
            x.unpad(),
            padded.unpad(lengths=LENGTHS, padding_side=side),
            x.unpad(lengths=LENGTHS, padding_side=side),
        ):
            for a, b in zip(found, parts, strict=True):
                assert type(a) is mt.MaskedTensor
                same(a, b)
        turned = x.transpose(1, 2)
        assert turned.lengths(2).tolist() == LENGTHS
        for a, b in zip(turned.unpad(-1), parts, strict=True):
            same(a, b.T)


def saved(x: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file)


gru = nn.GRU(3, 3, batch_first=True).double()
attention = nn.MultiheadAttention(3, 1, batch_first=True).double()
encoder = nn.TransformerEncoderLayer(3, 1, 4, dropout=0, batch_first=True).double()
conv = nn.Conv1d(3, 3, 3, padding=1).double()
KEPT: dict[str, Call] = {
    "pointwise": lambda x: (x * 2 + 1).relu() - x,
    "other order": lambda x: x.unpacked() - x + x.packed(),
    "linear": lambda x: nn.functional.linear(x, torch.ones(3, 3, dtype=torch.float64)),
    "norm": lambda x: nn.functional.layer_norm(x, (3,)),
    "softmax": lambda x: x.softmax(1),
    "cumsum": lambda x: x.cumsum(1),
    "group norm": lambda x: nn.functional.group_norm(x.transpose(1, 2), 3).transpose(1, 2),
    "batch norm": lambda x: nn.functional.batch_norm(x.transpose(1, 2), None, None, training=True).transpose(1, 2),
    "gru": lambda x: gru(x)[0],
    "attention": lambda x: attention(x, x, x, need_weights=False)[0],
    "encoder": encoder,
    "conv": lambda x: conv(x.transpose(1, 2)).transpose(1, 2),
    "features": lambda x: torch.cat([x, x], -1)[..., 1:4],
    "time": lambda x: torch.cat([x[:, :3], x[:, 3:]], 1),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "save": saved,
    "deepcopy": copy.deepcopy,
    "view, copied": lambda x: copy.deepcopy((x, x[..., 1:]))[0],
    "detach": lambda x: x.detach().clone().float(),
    "eval": lambda x: encoder.eval()(x.detach()),
    "compiled": lambda x: torch.compile(lambda y: (y * 2).relu(), backend="aot_eager", fullgraph=True)(x.detach()),
}


@pytest.mark.parametrize("kind", ["in part", "whole"])
@pytest.mark.parametrize("name", KEPT)
def test_lengths_are_kept(name: str, kind: str) -> None:
    for x in (
        mt.from_sequences(sequences(kind), packed=True),
        mt.from_sequences(sequences(kind), packed=True, padding_side="left"),
    ):
        result = KEPT[name](x)
        assert result.is_packed
        assert result.lengths().tolist() == LENGTHS
        same(result.detach(), KEPT[name](x.unpacked()).detach())


def test_lengths_that_two_tensors_do_not_share() -> None:
    """They depend on no order: who stores other steps than another says nothing of which exist."""
    x = mt.from_sequences(sequences("whole"), packed=True)
    other = x.unpacked().packed(lengths=[6, 2, 1, 7])
    bare = mt.as_masked_tensor(x.filled(0), x.get_mask()).packed()
    for result in (x + bare, bare + x, x + x.unpacked(), bare * x):
        assert result.lengths().tolist() == LENGTHS
    for result in (x + other, other + x):
        with pytest.raises(ValueError, match="packed with lengths, but"):
            result.lengths()


def test_what_is_refused() -> None:
    x = mt.from_sequences(sequences("whole"), packed=True)
    padded = x.unpacked()
    with pytest.raises(ValueError, match="contradicts"):
        x.packed(lengths=[5, 2, 0, 6])
    with pytest.raises(ValueError, match="contradicts"):
        x.unpad(lengths=LENGTHS, padding_side="left")
    with pytest.raises(ValueError, match="pass one of them"):
        padded.packed(lengths=LENGTHS, like=x)
    with pytest.raises(ValueError, match="past the end"):
        padded.packed(lengths=[1, 1, 0, 1])
    with pytest.raises(ValueError, match="between 0 and 7"):
        padded.unpad(lengths=[5, 2, 0, 8])
    assert padded.packed(lengths="full").lengths().tolist() == [7, 7, 7, 7]
    assert mt.masked_tensor([[1.0, None], [2.0, 3.0]]).unpad()[0].tolist() == [
        1.0
    ]  # without lengths=: read of the mask


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # torch's own
def test_an_even_kernel_that_keeps_the_length() -> None:
    x = mt.from_lengths(torch.randn(2, 5, 3).double(), [5, 3], packed=True).transpose(1, 2)
    weight = torch.randn(2, 3, 3).double()
    same(torch.conv1d(x, weight[..., :2], padding="same"), torch.conv1d(x.unpacked(), weight[..., :2], padding="same"))


def test_a_convolution_that_keeps_the_length_stays_packed() -> None:
    x = mt.from_lengths(torch.randn(2, 5, 3).double(), [5, 3], packed=True).transpose(1, 2)
    weight = torch.randn(2, 3, 3).double()
    for padding in ("same", 1):
        result = torch.conv1d(x, weight, padding=padding)
        assert result.is_packed, padding
        same(result, torch.conv1d(x.unpacked(), weight, padding=padding))


SHORTER: dict[str, Call] = {
    "first rows": lambda x: x[:2],
    "last rows": lambda x: x[-2:],
    "every other": lambda x: x[::2],
    "split": lambda x: x.split(2)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "invalid": lambda x: mt.masked_invalid(x / 0 + x),
}


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", SHORTER)
def test_some_of_the_sequences_know_their_lengths(name: str, side: str) -> None:
    parts = sequences("in part")
    x = mt.from_sequences(parts, packed=True, padding_side=side)
    row = torch.arange(len(LENGTHS))[:, None].expand(-1, 1)
    result, wanted = SHORTER[name](x), SHORTER[name](x.unpacked())
    assert result.is_packed
    same(result, wanted)
    chosen = SHORTER[name](row) if name != "invalid" else row
    assert result.lengths().tolist() == [LENGTHS[i] for i in chosen.flatten()]
