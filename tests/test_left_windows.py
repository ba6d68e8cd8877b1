"""Rows padded on either side: windows, resampling and causal attention count from each row's own first step."""

import os
import random
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import masked_tensor as mt

#: How many ops each test of random ones draws.
DRAWS = int(os.environ.get("MASKED_TENSOR_WINDOWS", "2"))
PAYLOADS = [float("nan"), float("inf"), 1e30]


def from_sequences(rows, side):
    return mt.from_sequences(rows, dim=2, padding_side=side)


def from_lengths(rows, side):
    padded = mt.from_sequences(rows, dim=2, padding_side=side)
    return mt.from_lengths(
        padded.filled(PAYLOADS[len(rows[0]) % 3]), [r.shape[1] for r in rows], dim=2, padding_side=side
    )


def turned(rows, side):
    x = mt.from_sequences(rows, dim=2)
    return mt.to_right(x, 2) if side == "left" else x


def packed(rows, side):
    return mt.from_sequences(rows, dim=2, padding_side=side, packed=True)


def padded_more(rows, side):
    """Behind an op that keeps the ends of rows: a causal convolution that averages no neighbours."""
    x = mt.from_sequences([row[:, 1:] for row in rows], dim=2, padding_side=side)
    return F.pad(x, (1, 0), value=2.0)


MAKERS = [from_sequences, from_lengths, turned, packed, padded_more]


def convolution(rng):
    kernel, stride, dilation = rng.randint(1, 4), rng.randint(1, 4), rng.randint(1, 2)
    weight = torch.randn(4, 1, kernel, generator=torch.Generator().manual_seed(rng.randint(0, 99)), dtype=torch.float64)
    padding = rng.choice([0, 1, 2, "valid"])
    return partial(F.conv1d, weight=weight, stride=stride, padding=padding, dilation=dilation, groups=2)


def transposed(rng):
    kernel, stride, dilation = rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 2)
    weight = torch.randn(2, 3, kernel, generator=torch.Generator().manual_seed(rng.randint(0, 99)), dtype=torch.float64)
    more = rng.randint(0, max(stride, dilation) - 1)
    how = {"stride": stride, "padding": rng.choice([0, 1]), "output_padding": more, "dilation": dilation}
    return partial(F.conv_transpose1d, weight=weight, **how)


def max_pool(rng):
    kernel, stride = rng.randint(1, 4), rng.choice([None, 1, 2, 3])
    how = {"padding": rng.randint(0, kernel // 2), "dilation": rng.randint(1, 2), "ceil_mode": rng.random() < 0.5}
    return partial(F.max_pool1d, kernel_size=kernel, stride=stride, **how)


def avg_pool(rng):
    kernel, stride = rng.randint(1, 4), rng.choice([None, 1, 2, 3])
    how = {"padding": rng.randint(0, kernel // 2), "ceil_mode": rng.random() < 0.5}
    return partial(F.avg_pool1d, kernel_size=kernel, stride=stride, count_include_pad=rng.random() < 0.5, **how)


def lp_pool(rng):
    return partial(F.lp_pool1d, norm_type=2, kernel_size=rng.randint(1, 3), stride=rng.choice([None, 1, 2]))


def resampling(rng):
    mode = rng.choice(["nearest", "nearest-exact", "linear", "linear"])
    corners = {"align_corners": rng.random() < 0.6} if mode == "linear" else {}
    return partial(F.interpolate, scale_factor=rng.choice([0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 2.6]), mode=mode, **corners)


OPS = [convolution, transposed, max_pool, avg_pool, lp_pool, resampling]


def alone(op, row):
    """The op on one sequence ``(C, T)``; nothing, where torch says that it is too short."""
    try:
        return op(row[None])[0]
    except RuntimeError:
        return None


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", OPS, ids=lambda kind: kind.__name__)
def test_each_row_is_the_op_on_the_row_alone(kind, make, side):
    rng = random.Random(f"{kind.__name__} {side}")
    for draw in range(DRAWS):
        lengths = [rng.randint(2, 9) for _ in range(rng.randint(1, 3))] + [9]
        generator = torch.Generator().manual_seed(draw)
        rows = [torch.randn(2, n, generator=generator, dtype=torch.float64) for n in lengths]
        if make is padded_more:
            for row in rows:
                row[:, 0] = 2.0
        rows = [row.requires_grad_() for row in rows]
        op = kind(rng)
        whole = alone(op, rows[-1])
        if whole is None:
            continue
        y = op(make(rows, side))
        y = y.unpacked() if y.is_packed else y
        assert y.shape[2] == whole.shape[1], op
        found = torch.autograd.grad(y.sin().sum(), rows, allow_unused=True, materialize_grads=True)
        for i, row in enumerate(rows):
            expected = alone(op, row)
            n = 0 if expected is None else expected.shape[1]
            at = slice(y.shape[2] - n, None) if side == "left" else slice(n)
            valid = torch.zeros(y.shape[1:], dtype=torch.bool)
            valid[:, at] = True
            assert torch.equal(y.get_mask()[i], valid), (op, lengths, i)
            if not n:
                continue
            torch.testing.assert_close(y.get_data()[i][:, at], expected, msg=lambda m, op=op: f"{op}\n{m}")
            (wanted,) = torch.autograd.grad(expected.sin().sum(), row)
            if make is padded_more:
                wanted[:, 0] = 0
            torch.testing.assert_close(found[i], wanted)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_index_of_a_maximum_is_where_it_lies_in_the_batch(side):
    rows = [torch.randn(2, n) for n in (4, 7, 1)]
    x = mt.from_sequences(rows, dim=2, padding_side=side)
    value, index = F.max_pool1d(x, 2, return_indices=True)
    mask = value.get_mask()
    assert torch.equal(index.get_mask(), mask)
    assert torch.equal(x.filled(0).gather(2, index.filled(0))[mask], value.filled(0)[mask])


def spectrograms(side):
    rows = [torch.randn(n, 5, dtype=torch.float64) for n in (9, 4, 7)]
    return rows, mt.from_sequences(rows, padding_side=side).unsqueeze(1)


@pytest.mark.parametrize("side", ["left", "right"])
def test_windows_over_time_and_frequency(side):
    rows, x = spectrograms(side)
    torch.manual_seed(0)
    first, second = nn.Conv2d(1, 3, 3, stride=2, padding=1).double(), nn.Conv2d(3, 2, (2, 1), stride=(2, 1)).double()

    def net(x):
        y = F.max_pool2d(second(F.gelu(first(x))), (1, 2), return_indices=True)
        return y[0]

    y = net(x)
    for row, got in zip(rows, y, strict=True):
        expected = net(row[None, None])[0]
        n = expected.shape[1]
        at = slice(y.shape[2] - n, None) if side == "left" else slice(n)
        torch.testing.assert_close(got[:, at].filled(float("nan")), expected)
        assert got.count() == expected.numel()


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_encoder_of_waves_and_the_stem_of_whisper(side):
    """Strided convolutions, norms and activations behind one another, as speech models begin."""
    torch.manual_seed(0)
    wave = nn.Sequential(
        nn.Conv1d(1, 4, 10, stride=5, bias=False), nn.GroupNorm(4, 4), nn.GELU(),
        nn.Conv1d(4, 4, 3, stride=2, bias=False), nn.GELU(), nn.Conv1d(4, 4, 2, stride=2), nn.GELU(),
    ).double()  # fmt: skip
    stem = nn.Sequential(nn.Conv1d(1, 4, 3, padding=1), nn.GELU(), nn.Conv1d(4, 4, 3, stride=2, padding=1)).double()
    rows = [torch.randn(n, dtype=torch.float64) for n in (200, 113, 158)]
    x = mt.from_sequences(rows, padding_side=side)
    for net in (wave, stem):
        y = net(x[:, None]).transpose(1, 2)
        for row, got in zip(rows, y, strict=True):
            expected = net(row[None, None])[0].t()
            got = got[len(got) - len(expected) :] if side == "left" else got[: len(expected)]
            torch.testing.assert_close(got.filled(float("nan")), expected)


@pytest.mark.parametrize("sides", [("left", "left"), ("left", "right"), ("right", "left"), ("left", None)])
def test_causal_attention_between_batches_of_other_padding(sides):
    generator = torch.Generator().manual_seed(0)
    queries = [torch.randn(n, 2, 4, generator=generator, dtype=torch.float64) for n in (5, 3, 1)]
    keys = [torch.randn(n, 2, 4, generator=generator, dtype=torch.float64) for n in (2, 6, 6)]
    if sides[1] is None:
        keys = [torch.randn(6, 2, 4, generator=generator, dtype=torch.float64) for _ in queries]
    q, k = (
        torch.stack(rows) if side is None else mt.from_sequences(rows, padding_side=side)
        for rows, side in zip((queries, keys), sides, strict=True)
    )
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    y = F.scaled_dot_product_attention(q, k, k, is_causal=True)
    for a, b, got in zip(queries, keys, y, strict=True):
        a, b = a.transpose(0, 1), b.transpose(0, 1)
        expected = F.scaled_dot_product_attention(a, b, b, is_causal=True)
        n = a.shape[1]
        got = got[:, got.shape[1] - n :] if sides[0] == "left" else got[:, :n]
        torch.testing.assert_close(got.filled(float("nan")), expected)
