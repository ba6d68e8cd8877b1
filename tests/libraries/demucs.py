"""demucs: layers of padded sound, and its augmentation."""

from ._case import Case, load, ragged

CHANNELS, STEPS = ragged((8, None)), ragged((None, 8))
SOUND = ragged((2, None), lengths=(640, 400, 512))
LIBRARY = "demucs"


def layer(place, name, *args, **options):
    return lambda: getattr(load(f"demucs.{place}"), name)(*args, **options)


def blocks(name, **options):
    return layer("transformer", name, 8, 2, 16, 0.0, batch_first=True, **options)


CASES = [
    Case("BLSTM", layer("demucs", "BLSTM", 8, layers=1), CHANNELS),
    Case("LocalState", layer("demucs", "LocalState", 8, heads=2), CHANNELS),
    Case("DConv", layer("demucs", "DConv", 8, compress=2, depth=2, init=0.1), CHANNELS),
    Case(
        "DConv (attention, LSTM)",
        layer("demucs", "DConv", 8, compress=1, depth=1, attn=True, lstm=True, heads=2),
        CHANNELS,
    ),
    Case("MyTransformerEncoderLayer", blocks("MyTransformerEncoderLayer"), STEPS),
    Case("MyTransformerEncoderLayer (layer_scale)", blocks("MyTransformerEncoderLayer", layer_scale=True), STEPS),
    Case("CrossTransformerEncoderLayer", blocks("CrossTransformerEncoderLayer"), ragged((None, 8), (None, 8))),
    Case("MyGroupNorm", layer("transformer", "MyGroupNorm", 1, 8), STEPS),
    Case("LayerScale", layer("transformer", "LayerScale", 8, 0.5, True), STEPS),
    Case("HEncLayer", layer("hdemucs", "HEncLayer", 2, 8, freq=False, dconv=False, pad=False), SOUND),
]
