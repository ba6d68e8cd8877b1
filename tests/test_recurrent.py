"""Recurrent nets: the plain module on the valid steps of each row alone is the oracle."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.shared.rows import sequences

from .helpers.machines import expect_bfloat16

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")  # torch, once per process

STEPS, ROWS, FEATURES = 6, 5, 3
PAYLOADS = (float("nan"), float("inf"), 1e30)
KINDS = [
    (kind, dict(zip(("num_layers", "bidirectional", "batch_first", "proj_size"), values, strict=True)))
    for kind in (nn.RNN, nn.LSTM, nn.GRU)
    for values in itertools.product((1, 2), (False, True), (False, True), (0, 2))
    if kind is nn.LSTM or values[3] == 0
]
IDS = [f"{kind.__name__}-{'-'.join(str(int(v)) for v in options.values())}" for kind, options in KINDS]


def valid_steps(pattern):
    """``(T, B)``: which steps are valid; the last row is empty, save in ``full``."""
    lengths = torch.tensor([6, 3, 1, 4, 0])
    steps = torch.arange(STEPS)[:, None]
    if pattern == "suffix":
        return steps < lengths
    if pattern == "left":
        return steps >= STEPS - lengths
    if pattern == "scattered":
        return (torch.rand(STEPS, ROWS, generator=torch.Generator().manual_seed(0)) < 0.6) & (lengths > 0)
    if pattern == "rows":
        return (lengths > 3).expand(STEPS, ROWS)
    return torch.ones((), dtype=torch.bool).expand(STEPS, ROWS)


def make(kind, options):
    torch.manual_seed(0)
    options = {k: v for k, v in options.items() if k != "proj_size" or v}
    return kind(FEATURES, 4, **options)


def initial(module):
    width, directions = module.proj_size or 4, 2 if module.bidirectional else 1
    layers = module.num_layers * directions
    h = torch.randn(layers, ROWS, width)
    return (h, torch.randn(layers, ROWS, 4)) if isinstance(module, nn.LSTM) else h


def one_row(module, x, state):
    """The plain module on ``x`` ``(T, F)`` with the state of one row; outputs ``(T, D)`` and the last states."""
    out, last = module(x.unsqueeze(0 if module.batch_first else 1), state)
    return out.squeeze(0 if module.batch_first else 1), last


def pick(state, row):
    return tuple(h[:, row : row + 1] for h in state) if isinstance(state, tuple) else state[:, row : row + 1]


def listed(state):
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("pattern", ["suffix", "left", "scattered", "rows", "full"])
@pytest.mark.parametrize(("kind", "options"), KINDS, ids=IDS)
def test_rows_equal_the_plain_module_on_their_valid_steps(kind, options, pattern):
    module = make(kind, options)
    valid, clean, state = valid_steps(pattern), torch.randn(STEPS, ROWS, FEATURES), initial(module)
    results = []
    for payload in PAYLOADS:
        data = torch.where(valid[..., None], clean, payload)
        mask = valid[..., None].expand(data.shape)
        if module.batch_first:
            data, mask = data.transpose(0, 1), mask.transpose(0, 1)
        x = mt.as_masked_tensor(data, mask).requires_grad_()
        module.zero_grad()
        out, last = module(x, state)
        (out.square().sum() + sum(h.sin().sum() for h in listed(last))).backward()
        results.append(
            (
                pair_of(out),
                [pair_of(h) for h in listed(last)],
                pair_of(x.grad),
                [p.grad.clone() for p in module.parameters()],
            )
        )
    module.zero_grad()
    total = torch.zeros(())
    rows = clean.clone().requires_grad_()
    expected, ends = [], []
    for row in range(ROWS):
        steps = valid[:, row].nonzero().squeeze(1)
        begin = pick(state, row)
        if len(steps) == 0:
            expected.append(None)
            ends.append(listed(begin))
        else:
            y, last = one_row(module, rows[steps, row], begin)
            total = total + y.square().sum()
            expected.append(y)
            ends.append(listed(last))
        total = total + sum(h.sin().sum() for h in ends[-1])
    total.backward()
    for out, last, grad, grads in results:
        data, mask = (t.transpose(0, 1) if module.batch_first else t for t in (out.data, out.mask))
        assert torch.equal(mask, valid[..., None].expand(mask.shape))
        assert mask.stride(2) == 0
        for row, y in enumerate(expected):
            if y is not None:
                torch.testing.assert_close(data[valid[:, row], row], y)
        for i, h in enumerate(last):
            assert h.mask.all(), "an empty row keeps its (plain) initial state"
            torch.testing.assert_close(h.data, torch.cat([e[i] for e in ends], 1))
        given = grad.data.transpose(0, 1) if module.batch_first else grad.data
        torch.testing.assert_close(given, rows.grad)
        for g, p in zip(grads, module.parameters(), strict=True):
            torch.testing.assert_close(g, p.grad)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_features_masked_one_by_one_count_zero(kind):
    module = make(kind, {})
    mask = torch.rand(STEPS, ROWS, FEATURES) < 0.6
    clean = torch.randn(STEPS, ROWS, FEATURES)
    out, _ = module(mt.as_masked_tensor(torch.where(mask, clean, torch.nan), mask))
    zeros = mt.as_masked_tensor(torch.where(mask, clean, 0), mask.any(2, True).expand(mask.shape))
    same, _ = module(zeros)
    assert torch.equal(pair_of(out).mask, pair_of(same).mask)
    torch.testing.assert_close(out.filled(0), same.filled(0))


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_all_true_mask_is_the_plain_module_with_dropout(kind):
    module = make(kind, {"num_layers": 2})
    module.dropout = 0.5
    x = torch.randn(STEPS, ROWS, FEATURES)
    for mask in (torch.ones(STEPS, ROWS, FEATURES, dtype=torch.bool), torch.ones((), dtype=torch.bool).expand(x.shape)):
        torch.manual_seed(1)
        expected, _ = module(x)
        torch.manual_seed(1)
        out, _ = module(mt.as_masked_tensor(x, mask))
        torch.testing.assert_close(out.filled(0), expected)


def test_nothing_valid():
    module = make(nn.LSTM, {})
    x = mt.as_masked_tensor(torch.full((STEPS, ROWS, FEATURES), torch.nan), torch.zeros(STEPS, ROWS, FEATURES).bool())
    x.requires_grad_()
    out, (h, c) = module(x)
    assert not pair_of(out).mask.any()
    assert torch.equal(h.filled(9), torch.zeros(1, ROWS, 4))
    with pytest.warns(mt.MaskedLossWarning):
        (out.sum() + h.sum() + c.sum()).backward()
    assert all(p.grad is None or torch.equal(p.grad, torch.zeros_like(p)) for p in module.parameters())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_masked_initial_state(kind):
    """A masked state counts 0, becomes valid with the first valid step, and an empty row keeps it masked."""
    module = make(kind, {})
    h = mt.as_masked_tensor(torch.full((1, ROWS, 4), torch.nan), torch.zeros(1, ROWS, 4, dtype=torch.bool))
    valid = valid_steps("suffix")
    clean = torch.randn(STEPS, ROWS, FEATURES)
    x = mt.as_masked_tensor(clean, valid[..., None].expand(clean.shape))
    out, last = module(x, (h, h) if kind is nn.LSTM else h)
    expected, _ = module(x)
    torch.testing.assert_close(out.filled(0), expected.filled(0))
    assert pair_of(listed(last)[0]).mask[0, :, 0].tolist() == [True, True, True, True, False]


@pytest.mark.parametrize("enforce_sorted", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_both_ways(batch_first, enforce_sorted):
    lengths = torch.tensor([6, 4, 3, 1]) if enforce_sorted else torch.tensor([3, 6, 1, 4])
    valid = torch.arange(STEPS)[:, None] < lengths
    clean = torch.randn(STEPS, 4, FEATURES)
    x = mt.as_masked_tensor(torch.where(valid[..., None], clean, torch.nan), valid[..., None].expand(clean.shape))
    shaped, plain = (t.transpose(0, 1) if batch_first else t for t in (x, clean))
    packed = pack_padded_sequence(shaped, lengths, batch_first, enforce_sorted)
    reference = pack_padded_sequence(plain, lengths, batch_first, enforce_sorted)
    assert isinstance(packed, PackedSequence)
    assert pair_of(packed.data).mask.all()
    torch.testing.assert_close(packed.data.filled(0), reference.data)
    module = make(nn.LSTM, {"bidirectional": True})
    out, (h, _) = module(packed)
    expected, (h_expected, _) = module(reference)
    torch.testing.assert_close(out.data.filled(0), expected.data)
    torch.testing.assert_close(h.filled(0), h_expected)
    padded, sizes = pad_packed_sequence(out, batch_first, padding_value=7.0)
    assert torch.equal(sizes, lengths)
    got = pair_of(padded)
    mask = valid[..., None].expand(STEPS, 4, 8)
    assert torch.equal(got.mask, mask.transpose(0, 1) if batch_first else mask)


def test_packed_sequence_with_a_masked_entry():
    clean = torch.randn(STEPS, 1, FEATURES)
    mask = torch.ones(STEPS, 1, 1, dtype=torch.bool)
    mask[2] = False
    x = mt.as_masked_tensor(torch.where(mask, clean, torch.nan), mask.expand(clean.shape))
    module = make(nn.GRU, {})
    out, last = module(pack_padded_sequence(x, torch.tensor([5])))
    expected, h = module(clean[[0, 1, 3, 4]])
    assert pair_of(out.data).mask[:, 0].tolist() == [True, True, False, True, True]
    torch.testing.assert_close(out.data.filled(0)[[0, 1, 3, 4]], expected[:, 0])
    torch.testing.assert_close(last.filled(0), h)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.LSTMCell, nn.GRUCell])
def test_cells_carry_the_state_over_masked_steps(kind):
    torch.manual_seed(0)
    module = kind(FEATURES, 4)
    rows = torch.tensor([True, False, True])
    clean, h = torch.randn(3, FEATURES), torch.randn(3, 4, requires_grad=True)
    state = (h, h.detach().clone()) if kind is nn.LSTMCell else h
    x = mt.as_masked_tensor(torch.where(rows[:, None], clean, torch.nan), rows[:, None].expand(3, FEATURES))
    x.requires_grad_()
    got = listed(module(x, state))
    plain = [torch.where(rows[:, None], n, o) for n, o in zip(listed(module(clean, state)), listed(state), strict=True)]
    for g, e in zip(got, plain, strict=True):
        assert pair_of(g).mask.all()
        torch.testing.assert_close(g.filled(0), e)
    sum(g.square().sum() for g in got).backward()
    assert torch.isfinite(h.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters())
    assert torch.equal(pair_of(x.grad).data[1], torch.zeros(FEATURES))


def test_inference_mode_and_unbatched():
    module = make(nn.LSTM, {"batch_first": True})
    mask = torch.tensor([True, False, True, True])[:, None].expand(4, FEATURES)
    x = mt.as_masked_tensor(torch.randn(4, FEATURES), mask)
    out, _ = module(x)
    expected, _ = module(x.filled(0)[mask[:, 0]])
    torch.testing.assert_close(out.filled(0)[mask[:, 0]], expected)
    with torch.inference_mode():
        inside, _ = module(x)
    torch.testing.assert_close(inside.filled(0), out.filled(0).detach())


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_autocast_in_every_mode(kind, dtype, mode):
    torch.manual_seed(0)
    expect_bfloat16(kind)
    module, data = kind(3, 4), torch.randn(STEPS, ROWS, 3).to(dtype)
    cell = getattr(nn, f"{kind.__name__}Cell")(3, 4)
    for pattern in ("full", "suffix"):
        valid = valid_steps(pattern)[..., None]
        with mode(), torch.autocast("cpu", torch.bfloat16):
            out = module(mt.masked_tensor(data, valid))[0]
            step, whole = cell(mt.masked_tensor(data[0], valid[0])), cell(data[0])
            packed = module(mt.masked_tensor(data, valid).packed())[0]
            assert out.dtype is packed.dtype is module(data)[0].dtype
            packed = module(mt.masked_tensor(data, valid).packed())[0]
            assert out.dtype is packed.dtype is module(data)[0].dtype
        exact = module(mt.masked_tensor(data.float(), valid))[0]
        assert torch.equal(out.get_mask(), exact.get_mask())
        torch.testing.assert_close(out.filled(0).float(), exact.filled(0), atol=0.03, rtol=0.03)
        if kind is nn.LSTM:
            step, whole = step[0], whole[0]
        some = valid[0, :, 0]
        torch.testing.assert_close(step.filled(0).float()[some], whole.float()[some], atol=0.03, rtol=0.03)


def test_without_autocast_two_dtypes_stay_an_error():
    x = mt.masked_tensor(torch.randn(STEPS, ROWS, 3).bfloat16(), valid_steps("suffix")[..., None])
    for mode in (torch.inference_mode, torch.no_grad):
        with mode(), pytest.raises((RuntimeError, ValueError), match="dtype"):
            nn.GRU(3, 4)(x)


@pytest.mark.parametrize("given", ["plain", "masked"])
def test_ops_on_packed_data_take_valid_batch_sizes(given: str) -> None:
    """As ``torch.lstm`` and ``pad_packed_sequence`` see them where all tensors of a program are masked tensors."""
    data, sizes = torch.randn(6, FEATURES), torch.tensor([3, 2, 1])
    module = make(nn.LSTM, {})
    state, weights = torch.zeros(1, 3, 4), [p.detach() for p in module.parameters()]

    def run(x, batch_sizes):
        out, h, c = torch.lstm(x, batch_sizes, (state, state), weights, True, 1, 0.0, False, False)
        return out, h, c, *torch._pad_packed_sequence(out, batch_sizes, True, 0.0, 4)

    x = data if given == "plain" else mt.masked_tensor(data, torch.ones(6, 1).bool())
    for found, expected in zip(run(x, mt.masked_tensor(sizes, torch.ones(3).bool())), run(data, sizes), strict=True):
        torch.testing.assert_close(found.filled(0) if isinstance(found, mt.MaskedTensor) else found, expected)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bias": False}, {"batch_first": True}, {"proj_size": 2}])
def test_a_batch_that_is_padded_on_the_right_may_run_as_it_is(
    kind: type[nn.RNNBase], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values, states, gradients and their gradients are those of the sequences in pieces."""
    if "proj_size" in options and kind is not nn.LSTM:
        return
    torch.manual_seed(0)
    net = kind(3, 4, **options).double()
    lengths, layers = torch.tensor([5, 2, 0, 6, 2]), options.get("num_layers", 1)
    valid = (torch.arange(6)[:, None] < lengths)[..., None].expand(6, 5, 3)
    data = torch.where(valid, torch.randn(6, 5, 3, dtype=torch.float64), torch.nan)
    if options.get("batch_first"):
        valid, data = valid.transpose(0, 1), data.transpose(0, 1)
    sizes = [options.get("proj_size", 4), 4][: 2 if kind is nn.LSTM else 1]
    states = [torch.randn(layers, 5, size, dtype=torch.float64) for size in sizes]

    def found(padded: bool) -> list[Tensor]:
        called = []
        run = sequences.run_padded
        monkeypatch.setattr(sequences, "saves_time", lambda *given: padded)
        monkeypatch.setattr(sequences, "run_padded", lambda *given: called.append(1) or run(*given))
        x = mt.masked_tensor(data, valid, requires_grad=True)
        first = [h.clone().requires_grad_() for h in states]
        out, last = net(x, tuple(first) if kind is nn.LSTM else first[0])
        monkeypatch.setattr(sequences, "run_padded", run)
        assert bool(called) is padded
        results = [out, *(last if kind is nn.LSTM else [last])]
        given = [x, *first, *net.parameters()]
        total = sum((k * r.filled(0).pow(2)).sum() for k, r in enumerate(results, 1))
        slopes = torch.autograd.grad(total, given, create_graph=True)
        again = torch.autograd.grad(sum(strided(g).pow(2).sum() for g in slopes), given)
        return [*(r.get_mask() for r in results), *(strided(t) for t in (*results, *slopes, *again))]

    for a, b in zip(found(True), found(False), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def strided(x: Tensor) -> Tensor:
    return x.filled(0) if isinstance(x, mt.MaskedTensor) else x


def chooses_padding(kind: type[nn.RNNBase], inputs: int, width: int, steps: int, lengths: list[int]) -> bool:
    weights = [p.detach() for p in kind(inputs, width).parameters()]
    return sequences.saves_time(kind.__name__.lower(), torch.float32, steps, lengths, weights)


def test_the_way_is_chosen_by_what_it_costs() -> None:
    """Whatever the number of lengths: of a padded step little is computed, of a call much, of wide nets the reverse."""
    few = [64, *(44 + k % 20 for k in range(31))]
    assert chooses_padding(nn.LSTM, 32, 48, 64, few)  # which was in pieces, at 3 times the time
    assert chooses_padding(nn.GRU, 16, 16, 40, [40, *range(20, 36)])
    assert not chooses_padding(nn.LSTM, 32, 48, 64, [64] * 16 + [8] * 16)
    assert not chooses_padding(nn.GRU, 16, 16, 400, [40, *range(20, 36)])  # steps that no row has
    assert not chooses_padding(nn.LSTM, 256, 256, 64, [64, 8, *[9] * 30])
    assert chooses_padding(nn.LSTM, 256, 256, 64, [64, *range(60, 64)])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_sequence_with_a_gap_does_not_run_as_padded(kind: type[nn.RNNBase], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "run_padded", None)  # which is not called
    net, valid = kind(3, 4), torch.tensor([[True, False, True], [True, True, False]]).mT[..., None]
    x = mt.masked_tensor(torch.randn(3, 2, 3), valid)
    assert torch.equal(net(x)[0].get_mask()[..., :1], valid)


def test_a_float32_lstm_leaves_zeros_at_padded_steps() -> None:
    """By the fused kernel of float32."""
    torch.manual_seed(0)
    net, lengths = nn.LSTM(8, 8), torch.tensor([9, 4, 7])
    valid = (torch.arange(9)[:, None] < lengths)[..., None]
    data = torch.randn(9, 3, 8)
    out, (h, c) = net(mt.masked_tensor(torch.where(valid, data, torch.nan), valid))
    assert not out.get_data()[~valid[..., 0]].any()
    for row, length in enumerate(lengths):
        wanted, (state, cell) = net(data[:length, row : row + 1])
        torch.testing.assert_close(out.filled(0)[:length, row : row + 1], wanted, rtol=1e-5, atol=1e-6)
        for last, expected in ((h, state), (c, cell)):
            torch.testing.assert_close(last.filled(0)[:, row : row + 1], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("net", [nn.GRU, nn.LSTM, nn.RNN])
def test_the_last_state_of_a_sequence_of_length_0_is_the_first_one(net, packed):
    """As the page on limits says."""
    layer, first = net(4, 3, batch_first=True), torch.randn(1, 2, 3)
    x = mt.from_lengths(torch.randn(2, 5, 4), [5, 0], packed=packed)
    for start in (None, (first, first + 1) if net is nn.LSTM else first):
        y, last = layer(x, start)
        assert y[1].count() == 0
        given = [first, first + 1] if start is not None else [torch.zeros(1, 2, 3)] * 2
        for state, expected in zip(last if net is nn.LSTM else [last], given, strict=False):
            torch.testing.assert_close(mt.filled(state[:, 1], float("nan")), expected[:, 1])
