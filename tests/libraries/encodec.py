"""encodec: the layers of a codec of padded sound."""

from ._case import Case, load, ragged

CHANNELS = ragged((8, None))
LIBRARY = "encodec"


def module(name, *args, **options):
    return lambda: getattr(load("encodec.modules"), name)(*args, **options)


CASES = [
    Case("SConv1d (causal)", module("SConv1d", 8, 4, 3, causal=True, pad_mode="constant"), CHANNELS),
    Case("SConv1d", module("SConv1d", 8, 4, 3, pad_mode="constant"), CHANNELS),
    Case("SConv1d (reflect)", module("SConv1d", 8, 4, 3), CHANNELS),
    Case("SLSTM", module("SLSTM", 8, 1), CHANNELS),
    Case(
        "SConvTranspose1d (causal)",
        module("SConvTranspose1d", 8, 4, 4, 2, causal=True),
        CHANNELS,
        "declared",
        "cuts off the end of the batch, not of each sequence; mask the steps after the lengths times the stride",
    ),
]
