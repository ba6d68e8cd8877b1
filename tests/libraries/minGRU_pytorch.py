"""minGRU-pytorch: recurrences as scans."""

from ._case import Case, load, ragged

STEPS = ragged((None, 8))
LIBRARY = "minGRU-pytorch"
CASES = [
    Case("minGRU", lambda: load("minGRU_pytorch").minGRU(8), STEPS),
    Case("minGRU (expansion)", lambda: load("minGRU_pytorch").minGRU(8, expansion_factor=1.5), STEPS),
    Case("minLSTM", lambda: load("minGRU_pytorch.minLSTM").minLSTM(8), STEPS),
]
