"""linear-attention-transformer: attention in linear time."""

from ._case import Case, integers, load, ragged

STEPS = ragged((None, 16))
SIZES = {"dim": 16, "depth": 1, "heads": 2, "max_seq_len": 12}
LIBRARY = "linear-attention-transformer"
CASES = [
    Case(
        "LinearAttentionTransformer",
        lambda: load("linear_attention_transformer").LinearAttentionTransformer(**SIZES),
        STEPS,
    ),
    Case(
        "LinearAttentionTransformerLM",
        lambda: load("linear_attention_transformer").LinearAttentionTransformerLM(num_tokens=50, **SIZES),
        ragged(integers(50, None)),
    ),
]
