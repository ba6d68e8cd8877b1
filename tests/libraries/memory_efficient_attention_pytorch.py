"""memory-efficient-attention-pytorch: attention in pieces, of padded steps."""

from ._case import Case, load, ragged

STEPS = ragged((None, 16))
LIBRARY = "memory-efficient-attention-pytorch"


def attention(**options):
    return lambda: load("memory_efficient_attention_pytorch").Attention(dim=16, dim_head=8, heads=2, **options)


CASES = [
    Case("Attention", attention(), STEPS),
    Case("Attention (causal)", attention(causal=True), STEPS),
    Case(
        "Attention (memory_efficient)",
        attention(memory_efficient=True, q_bucket_size=4, k_bucket_size=4),
        STEPS,
    ),
]
