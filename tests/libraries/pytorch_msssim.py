"""pytorch-msssim: structural similarity, beside masked images."""

from ._case import Case, beside, load, unit

PAIRS = beside(unit(3, 32, 32), unit(3, 32, 32))
LIBRARY = "pytorch-msssim"


def similarity(name, **options):
    return lambda: lambda x, y: getattr(load("pytorch_msssim"), name)(x, y, data_range=1.0, win_size=3, **options)


CASES = [
    Case("ssim", similarity("ssim", size_average=False), PAIRS),
    Case("ssim (mean)", similarity("ssim"), PAIRS),
    Case("SSIM", lambda: load("pytorch_msssim").SSIM(data_range=1.0, win_size=3, channel=3), PAIRS),
]
