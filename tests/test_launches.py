"""On a GPU a step waits for launches: how many kernels a masked layer asks for, beside the plain one."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt
from benchmarks.overhead import Llama
from masked_tensor import fill
from masked_tensor.masks import known

from .helpers.launches import launches, pretend, total

LENGTHS = (40, 31, 35)
LAYERS = {
    "BERT": (lambda: nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", batch_first=True), 1.0, 1.0),
    "Llama": (lambda: Llama(64, 4, 128), 1.25, 1.3),
}


def given(bad: float = torch.nan) -> dict[str, Tensor]:
    torch.manual_seed(0)
    sequences = [torch.randn(n, 64) for n in LENGTHS]
    plain = nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    masked = mt.from_lengths(nn.utils.rnn.pad_sequence(sequences, True, bad), LENGTHS)
    return {"plain": plain, "masked": masked, "packed": mt.from_sequences(sequences, packed=True)}


def stacked(layer: nn.Module, number: int) -> nn.Module:
    return nn.Sequential(*(copy.deepcopy(layer) for _ in range(number)))


def step(model: nn.Module, x: Tensor) -> Callable[[], object]:
    return lambda: model(x).square().mean().backward()


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_launches_hardly_more_than_the_plain_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward of four layers without those of two: what the ends of a model cost is in neither."""
    make, masked, packed = LAYERS[name]
    layer, batches, found = make(), given(), {}
    pretend(monkeypatch)
    for kind, x in batches.items():
        two, four = (total(launches(step(stacked(layer, number), x))) for number in (2, 4))
        found[kind] = four - two
    assert found["masked"] <= masked * found["plain"], found
    assert found["packed"] <= packed * found["plain"], found


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e30])
@pytest.mark.parametrize("name", LAYERS)
def test_the_way_of_other_devices_has_the_results_of_the_cpu(
    name: str, bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer, x = stacked(LAYERS[name][0](), 2).double(), given(bad)["masked"].double().detach().requires_grad_()

    def results() -> list[Tensor]:
        out = layer(x)
        found = torch.autograd.grad(out.square().mean(), [x, *layer.parameters()])
        return [out.filled(0), found[0].filled(0), *found[1:]]

    expected = results()
    pretend(monkeypatch)
    for ours, theirs in zip(results(), expected, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs)


def test_a_constant_is_made_once_for_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch)
    monkeypatch.setattr(fill, "_MADE", {})
    data, mask = torch.ones(4, 3), torch.rand(4, 3) < 0.5
    assert launches(lambda: fill.where(data, mask, 0)) == {"aten::where.self": 1}
    streams = iter([1, 2, 1, 2, None])
    monkeypatch.setattr(fill, "stream_of", lambda _: next(streams))
    monkeypatch.setattr(fill, "_MADE", {})
    for _ in range(5):  # at last while a CUDA graph is captured, whose memory is its own
        torch.testing.assert_close(fill.where(data, mask, -torch.inf), data.masked_fill(~mask, -torch.inf))
    assert [key[0] for key in fill._MADE] == [1, 2]
    assert launches(lambda: fill.where(data, mask, 0.5))["aten::full"] == 1  # a fill of one's own is not kept
    with torch.inference_mode():
        monkeypatch.setattr(fill, "stream_of", known.stream_of)
        fill.where(data, mask, 1)
    assert not any(constant.is_inference() for constant in fill._MADE.values())
