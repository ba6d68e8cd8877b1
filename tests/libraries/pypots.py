"""PyPOTS: layers and losses of padded series; networks of a fixed length, beside series that are masked whole."""

import torch

from ._case import Case, beside, load, ragged

STEPS = ragged((None, 8))
WHOLE = beside((12, 8))
PAIRS = beside((12, 8), (12, 8))
HEADS = ragged((None, 2, 4), (None, 2, 4), (None, 2, 4))
LIBRARY = "pypots"
ENDS = "repeats the last step of the padded batch, which is masked for short rows; batch rows of equal length"
SPECTRUM = (
    "takes a spectrum over all steps of the padded batch, which is masked for short rows; batch rows of equal length"
)


def part(path, name, *args, **options):
    return lambda: getattr(load(f"pypots.nn.modules.{path}"), name)(*args, **options)


def attention():
    return load("pypots.nn.modules.transformer").ScaledDotProductAttention(2.0, 0.0)


def with_mask(model, x):
    """As PyPOTS calls it: values with zeros, and the mask."""
    mask = x.get_mask() if hasattr(x, "get_mask") else torch.ones_like(x)
    return model(x, mask.to(x.dtype))


CASES = [
    Case("ScaledDotProductAttention", attention, HEADS, call=lambda m, *qkv: m(*qkv)[0]),
    Case("MultiHeadAttention",
         lambda: load("pypots.nn.modules.transformer").MultiHeadAttention(attention(), 8, 2, 4, 4),
         ragged((None, 8), (None, 8), (None, 8)), call=lambda m, *qkv: m(*qkv, None)[0]),
    Case("TransformerEncoder", part("transformer", "TransformerEncoder", 2, 8, 2, 4, 4, 16, 0.0, 0.0), STEPS),
    Case("TransformerDecoder", part("transformer", "TransformerDecoder", 2, 8, 2, 4, 4, 16, 0.0, 0.0),
         ragged((None, 8), (None, 8))),
    Case("PositionalEncoding", part("transformer", "PositionalEncoding", 8), STEPS),
    Case("PositionWiseFeedForward", part("transformer", "PositionWiseFeedForward", 8, 16, 0.0), STEPS),
    Case("SaitsEmbedding", part("saits", "SaitsEmbedding", 8, 6, True), STEPS),
    Case("BackboneSAITS", part("saits", "BackboneSAITS", 12, 8, 2, 8, 2, 4, 4, 16, 0.0, 0.0), WHOLE, call=with_mask),
    Case("TemporalDecay", part("grud", "TemporalDecay", 8, 6), STEPS),
    Case("FeatureRegression", part("brits", "FeatureRegression", 8), STEPS),
    Case("BackboneDLinear", part("dlinear", "BackboneDLinear", 12, 8, False, 8), beside((12, 8), (12, 8))),
    Case("AutoCorrelation", part("autoformer", "AutoCorrelation", 1, 0.0), HEADS, "declared", SPECTRUM),
    Case("SeasonalLayerNorm", part("autoformer", "SeasonalLayerNorm", 8), STEPS),
    Case("MovingAvgBlock", part("autoformer", "MovingAvgBlock", 5, 1), STEPS, "declared", ENDS),
    Case("SeriesDecompositionBlock", part("autoformer", "SeriesDecompositionBlock", 5), STEPS, "declared", ENDS),
    Case("AutoformerEncoder", part("autoformer", "AutoformerEncoder", 1, 8, 2, 16, 1, 5, 0.0), STEPS,
         "declared", SPECTRUM),
    Case("ProbAttention", part("informer", "ProbAttention", False, 5, 0.0), HEADS, "refused",
         "samples the queries of the padded batch into a plain tensor; use ScaledDotProductAttention"),
    Case("ConvLayer", part("informer", "ConvLayer", 8), STEPS),
    Case("RevIN", part("revin", "RevIN", 8), STEPS),
    Case("BackboneTCN", part("tcn", "BackboneTCN", 8, [8, 6], 3, 0.0), ragged((8, None))),
    Case("BackboneTimesNet", part("timesnet", "BackboneTimesNet", 1, 12, 0, 2, 8, 16, 2), WHOLE),
    Case("BackboneSegRNN", part("segrnn", "BackboneSegRNN", 12, 8, 12, 6, 8, 0.0), WHOLE),
    Case("BackboneFreTS", part("frets", "BackboneFreTS", 12, 8, 6, 12, 8), WHOLE),
    Case("TideEncoder", part("tide", "TideEncoder", 12, 8, 1, 96, 8, 0.0), beside((96,))),
    Case("ResBlock", part("tide", "ResBlock", 8, 16, 8, 0.0), STEPS),
    Case("BackboneSCINet", part("scinet", "BackboneSCINet", 12, 16, 8, 1, 1, 2, 1, 1, 3, 0.0), beside((16, 8))),
    Case("InceptionBlockV1", part("inception", "InceptionBlockV1", 2, 3, 2), ragged((2, None, 6))),
    Case("NonstationaryTransformerEncoder",
         part("nonstationary_transformer", "NonstationaryTransformerEncoder", 1, 8, 2, 4, 4, 16, 0.0, 0.0), STEPS,
         "declared", "its attention and its layer order steps and heads differently, so padding gets mixed in",
         call=lambda m, x: m(x, tau=torch.ones(len(x), 1, dtype=x.dtype), delta=None)),
    Case("BackboneTEFN", part("tefn", "BackboneTEFN", 12, 8, 0, 2), WHOLE),
    Case("KoopaMLP", part("koopa", "MLP", 8, 6, 16, 2, 0.0), STEPS),
    Case("MSE", part("loss", "MSE"), PAIRS),
    Case("MAE", part("loss", "MAE"), PAIRS),
    Case("RMSE", part("loss", "RMSE"), PAIRS),
    Case("MRE", part("loss", "MRE"), PAIRS),
]  # fmt: skip
