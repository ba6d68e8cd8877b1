"""nnAudio: spectrograms as convolutions, of padded waves."""

from ._case import Case, load, ragged

WAVES = ragged((None,), lengths=(640, 400, 512))
LIBRARY = "nnAudio"


def features(name, **options):
    return lambda: getattr(load("nnAudio.features"), name)(verbose=False, **options)


SHAPE = {"n_fft": 64, "hop_length": 16, "center": False}
CASES = [
    Case("STFT", features("STFT", output_format="Magnitude", **SHAPE), WAVES),
    Case("MelSpectrogram", features("MelSpectrogram", n_mels=8, sr=16000, **SHAPE), WAVES),
    Case("Gammatonegram", features("Gammatonegram", n_bins=8, sr=16000, **SHAPE), WAVES),
]
