"""Fourier transforms: whole slices; signals of different lengths in one batch."""

import pytest
import torch

import masked_tensor as mt

from .helpers import harness
from .helpers.database import Sample
from .helpers.harness import Masked
from .laws import laws
from .oracles.fourier import istft

test_law = laws("fourier")

SIZES = (40, 28, 16)
FRAMES = [(8, 2, 8, True), (8, 4, 6, True), (9, 3, 9, True), (8, 2, None, False), (8, 4, 8, False)]


def signals(side: str) -> tuple[list[torch.Tensor], mt.MaskedTensor]:
    torch.manual_seed(0)
    rows = [torch.randn(n, dtype=torch.float64) for n in SIZES]
    padded = mt.from_sequences(rows, padding_value=torch.nan, padding_side=side)
    return rows, padded


def windowed(n: int, center: bool) -> torch.Tensor:
    return torch.hann_window(n, dtype=torch.float64) if center else torch.ones(n, dtype=torch.float64)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("n", "hop", "win", "center"), FRAMES)
def test_a_padded_batch_is_cut_as_its_rows_are(n, hop, win, center, side) -> None:
    if side == "left":
        hop = 4 if n == 8 else 3  # of which the paddings are multiples, as with any strided window
        if n == 9:
            return
    rows, x = signals(side)
    window = windowed(win or n, center)
    x.requires_grad_()
    spectra = torch.stft(x, n, hop, win, window, center, return_complex=True)
    again = torch.istft(spectra, n, hop, win, window, center)
    spectra.abs().square().sum().backward()
    for i, row in enumerate(rows):
        row.requires_grad_()
        alone = torch.stft(row, n, hop, win, window, center, return_complex=True)
        valid = spectra[i].get_mask()
        torch.testing.assert_close(spectra[i].get_data()[valid].view(alone.shape), alone)
        back = torch.istft(alone, n, hop, win, window, center)
        torch.testing.assert_close(again[i].compressed(), back)
        alone.abs().square().sum().backward()
        torch.testing.assert_close(x.grad[i].compressed(), row.grad)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_the_overload_that_pads(mode) -> None:
    rows, x = signals("right")
    spectra = torch.ops.aten.stft.center(x, 8, 2, None, None, True, mode, return_complex=True)
    for i, row in enumerate(rows):
        alone = torch.ops.aten.stft.center(row, 8, 2, None, torch.ones(8).double(), True, mode, return_complex=True)
        torch.testing.assert_close(spectra[i].compressed().view(alone.shape), alone)


MASKS = {
    "right": torch.arange(8) < torch.tensor([8, 5, 3])[:, None],
    "left": torch.arange(8) >= torch.tensor([0, 2, 5])[:, None],
    "inside": torch.tensor([[1, 1, 0, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0, 1, 1], [0, 1, 1, 1, 1, 0, 0, 0]]).bool(),
}


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.filterwarnings("ignore:The length of signal is shorter")
@pytest.mark.parametrize("where", MASKS)
@pytest.mark.parametrize(
    "options",
    [{}, {"center": False}, {"length": 11}, {"length": 40}, {"hop_length": 4}, {"win_length": 7}, {"window": True}],
    ids=str,
)
def test_frames_missing_from_a_spectrum(where, options) -> None:
    torch.manual_seed(0)
    spectra = torch.randn(3, 9, 8, dtype=torch.complex128)
    options = {**options, "window": torch.hamming_window(16, dtype=torch.float64)} if "window" in options else options
    case = Sample(torch.istft, (Masked(spectra, MASKS[where][:, None, :].expand(3, 9, 8)), 16), options)
    harness.check_value(case, istft)
    harness.check_garbage(case)


def test_a_padded_batch_of_sequences_has_no_spectrum_of_part_of_a_row() -> None:
    x = mt.from_lengths(torch.ones(2, 4), [4, 2])
    assert torch.fft.fft(x).abs().tolist() == [[4, 0, 0, 0], [None] * 4]
    assert torch.fft.fft(x, n=2).abs().tolist() == [[2, 0], [2, 0]]
