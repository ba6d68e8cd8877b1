"""speechbrain: layers of padded speech."""

from ._case import Case, load, ragged

STEPS = ragged((None, 8))
LIBRARY = "speechbrain"


def layer(path, name, *args, **options):
    return lambda: getattr(load(f"speechbrain.{path}"), name)(*args, **options)


CASES = [
    Case("LSTM", layer("nnet.RNN", "LSTM", 8, input_size=8), STEPS),
    Case("GRU (bidirectional)", layer("nnet.RNN", "GRU", 8, input_size=8, bidirectional=True), STEPS),
    Case("RNN", layer("nnet.RNN", "RNN", 8, input_size=8), STEPS),
    Case("LiGRU", layer("nnet.RNN", "LiGRU", 8, input_shape=(1, 12, 8), normalization="layernorm"), STEPS),
    Case("Linear", layer("nnet.linear", "Linear", 4, input_size=8), STEPS),
    Case("Conv1d", layer("nnet.CNN", "Conv1d", 4, 3, input_shape=(1, 12, 8), padding_mode="constant"), STEPS),
    Case("Conv1d (causal)", layer("nnet.CNN", "Conv1d", 4, 3, input_shape=(1, 12, 8), padding="causal"), STEPS),
    Case("BatchNorm1d", layer("nnet.normalization", "BatchNorm1d", input_size=8), STEPS),
    Case("LayerNorm", layer("nnet.normalization", "LayerNorm", input_size=8), STEPS),
    Case("InstanceNorm1d", layer("nnet.normalization", "InstanceNorm1d", input_size=8), STEPS),
    Case("PositionalwiseFeedForward", layer("nnet.attention", "PositionalwiseFeedForward", 16, input_size=8), STEPS),
    Case("MultiheadAttention", layer("nnet.attention", "MultiheadAttention", 2, 8),
         ragged((None, 8), (None, 8), (None, 8))),
    Case("TransformerEncoder", layer("lobes.models.transformer.Transformer", "TransformerEncoder", 1, 2, 16, d_model=8,
                                     dropout=0.0), STEPS),
    Case("AttentionPooling", layer("nnet.pooling", "AttentionPooling", 8), STEPS),
    Case("StatisticsPooling", layer("nnet.pooling", "StatisticsPooling"), STEPS, "declared",
         "adds random noise to its means, which depends on the batch; use `x.mean(1)`, `x.std(1)`"),
]  # fmt: skip
