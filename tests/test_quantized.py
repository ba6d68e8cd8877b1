"""Layers with quantized weights."""

import pytest
import torch
from torch import nn
from torch.ao.quantization import observer

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

ROWS = torch.tensor([True, True, False, True, False])[:, None].expand(5, 6)
PIXELS = torch.rand(5, 6, generator=torch.Generator().manual_seed(0)) > 0.3


@pytest.mark.filterwarnings("ignore")  # of the quantization package, about itself
@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("payload", [0.0, 1e30, float("nan"), float("inf")])
def test_dynamic_quantization(dtype, payload) -> None:
    """The range of the input is that of its valid entries."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    model = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=dtype)
    rows, mask = torch.randn(5, 6), torch.tensor([True, True, False, True, False])
    x = mt.as_masked_tensor(torch.where(mask[:, None], rows, payload), mask[:, None])
    y = model(x)
    assert torch.equal(y.get_mask()[:, 0], mask)
    assert pair_of(y).mask.stride()[1] == 0
    torch.testing.assert_close(y.compressed().view(3, 3), model(rows[mask]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("made", [observer.MinMaxObserver, observer.MovingAverageMinMaxObserver])
@pytest.mark.parametrize("mask", [ROWS, PIXELS], ids=["rows", "pixels"])
@pytest.mark.parametrize("payload", [0.0, 1e30, float("nan"), float("-inf")])
def test_an_observer_sees_what_is_valid(made, mask, payload) -> None:
    ours, plain = made(), made()
    for scale in (1.0, 3.0):
        x = torch.randn(5, 6, generator=torch.Generator().manual_seed(1)) * scale + 10  # 0 is not among them
        y = ours(mt.as_masked_tensor(torch.where(mask, x, payload), mask))
        plain(x[mask])
        assert torch.equal(y.get_mask(), mask)
    for found, expected in zip(ours.calculate_qparams(), plain.calculate_qparams(), strict=True):
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close((ours.min_val, ours.max_val), (plain.min_val, plain.max_val))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("made", "sizes"),
    [(observer.HistogramObserver, (-1,)), (lambda: observer.PerChannelMinMaxObserver(ch_axis=1), (-1, 6))],
    ids=["histogram", "channels"],
)
def test_an_observer_that_keeps_vectors_takes_plain_values(made, sizes) -> None:
    """It writes what it sees into plain buffers, which raises; it can be given what is valid."""
    rows = torch.randn(5, 6)
    x = mt.as_masked_tensor(torch.where(ROWS, rows, torch.nan), ROWS)
    with pytest.raises(mt.MaskedWriteError, match="filled"):
        made()(x)
    ours, plain = made(), made()
    ours(x.compressed().view(sizes))
    plain(rows[ROWS[:, 0]])
    for found, expected in zip(ours.calculate_qparams(), plain.calculate_qparams(), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_recurrent_layer_with_quantized_weights_takes_plain_rows(kind, dtype) -> None:
    layers = torch.ao.quantization.quantize_dynamic(nn.Sequential(kind(6, 4, batch_first=True)), {kind}, dtype=dtype)
    x = mt.from_sequences([torch.randn(4, 6), torch.randn(2, 6)])
    with pytest.raises(mt.UnsupportedOpError, match=r"quantized_(lstm|gru).*filled"):
        layers(x)
    assert [layers(row[None])[0].shape[1] for row in x.unpad()] == [4, 2]
