"""x-transformers: encoders and decoders of padded rows, with no mask given."""

from ._case import Case, integers, load, ragged

TOKENS, STEPS = ragged(integers(50, None)), ragged((None, 8))
SIZES = {"dim": 16, "depth": 2, "heads": 2, "attn_dim_head": 8}


def model(layers, **options):
    made = load("x_transformers")
    return lambda: load("x_transformers").TransformerWrapper(
        num_tokens=50, max_seq_len=16, attn_layers=getattr(made, layers)(**SIZES | options)
    )


def text(layers, **options):
    return lambda: model(layers, **options)()


def steps(layers, **options):
    return lambda: load("x_transformers").ContinuousTransformerWrapper(
        dim_in=8, dim_out=8, max_seq_len=16, attn_layers=getattr(load("x_transformers"), layers)(**SIZES | options)
    )


LIBRARY = "x-transformers"
CASES = [
    Case("Encoder", text("Encoder"), TOKENS),
    Case("Decoder", text("Decoder"), TOKENS),
    Case("Decoder (rotary_pos_emb)", text("Decoder", rotary_pos_emb=True), TOKENS),
    Case("Encoder (alibi_pos_bias)", text("Encoder", alibi_pos_bias=True), TOKENS),
    Case("Encoder (rel_pos_bias)", text("Encoder", rel_pos_bias=True), TOKENS),
    Case("Encoder (attn_num_mem_kv)", text("Encoder", attn_num_mem_kv=4), TOKENS),
    Case("Decoder (attn_pre_talking_heads)", text("Decoder", attn_pre_talking_heads=True), TOKENS),
    Case("Decoder (ff_glu, use_rmsnorm)", text("Decoder", ff_glu=True, use_rmsnorm=True), TOKENS),
    Case("Decoder (macaron)", text("Decoder", macaron=True), TOKENS),
    Case("Decoder (shift_tokens)", text("Decoder", shift_tokens=1), TOKENS),
    Case("Decoder (attn_qk_norm)", text("Decoder", attn_qk_norm=True), TOKENS),
    Case("ContinuousTransformerWrapper (Encoder)", steps("Encoder"), STEPS),
    Case("ContinuousTransformerWrapper (Decoder)", steps("Decoder"), STEPS),
]
