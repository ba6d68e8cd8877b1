"""local-attention: attention in windows."""

from ._case import Case, integers, load, ragged

WHOLE = ragged((None, 8), (None, 8), (None, 8), lengths=(12, 8, 4))
STEPS = ragged((None, 8), (None, 8), (None, 8))
LIBRARY = "local-attention"


def attention(**options):
    return lambda: load("local_attention").LocalAttention(window_size=4, dim=8, autopad=True, **options)


CASES = [
    Case("LocalAttention", attention(), WHOLE, within='meaning(padding="tensor")'),
    Case(
        "LocalAttention (half a window)",
        attention(),
        STEPS,
        "declared",
        "fills the last window of an unpadded row with zeros, and attends to them; "
        "pad rows to a multiple of the window",
    ),
    Case("LocalAttention (causal)", attention(causal=True), STEPS),
    Case("LocalAttention (exact_windowsize)", attention(causal=True, exact_windowsize=True), STEPS),
    Case(
        "LocalMHA",
        lambda: load("local_attention").LocalMHA(dim=16, window_size=4, heads=2, dim_head=8, causal=True),
        ragged((None, 16)),
    ),
    Case(
        "LocalTransformer",
        lambda: load("local_attention").LocalTransformer(
            num_tokens=50, max_seq_len=16, dim=16, depth=1, heads=2, dim_head=8, local_attn_window_size=4
        ),
        ragged(integers(50, None)),
    ),
]
