"""siren-pytorch: networks of coordinates, beside coordinates that are masked."""

from ._case import Case, load, ragged

POINTS = ragged((None, 2))
LIBRARY = "siren-pytorch"
CASES = [
    Case("SirenNet", lambda: load("siren_pytorch").SirenNet(2, 8, 3, num_layers=2), POINTS),
    Case("Siren", lambda: load("siren_pytorch").Siren(2, 3), POINTS),
]
