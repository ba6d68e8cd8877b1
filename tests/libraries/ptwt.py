"""ptwt: wavelet transforms, beside rows that are masked."""

from ._case import Case, beside, load

LIBRARY = "ptwt"
CASES = [
    Case("wavedec", lambda: lambda x: load("ptwt").wavedec(x, "haar", level=1, mode="zero")[0], beside((16,))),
    Case("wavedec2", lambda: lambda x: load("ptwt").wavedec2(x, "haar", level=1, mode="zero")[0], beside((16, 16))),
]
