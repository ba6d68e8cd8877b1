"""piqa: image quality, beside masked images."""

from ._case import Case, beside, load, unit

PAIRS = beside(unit(3, 32, 32), unit(3, 32, 32))
LIBRARY = "piqa"
CASES = [
    *[
        Case(name, lambda name=name: getattr(load("piqa"), name)(reduction="none"), PAIRS)
        for name in ("PSNR", "SSIM", "GMSD", "MDSI", "VSI", "FSIM")
    ],
    Case("TV", lambda: load("piqa").TV(reduction="none"), beside(unit(3, 32, 32))),
]
