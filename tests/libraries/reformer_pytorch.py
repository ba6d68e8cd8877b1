"""reformer-pytorch: attention by hashing, beside rows that are masked."""

from ._case import Case, beside, load, ragged

LIBRARY = "reformer-pytorch"
CASES = [
    Case(
        "LSHSelfAttention (full attention)",
        lambda: load("reformer_pytorch").LSHSelfAttention(dim=16, heads=2, bucket_size=4, full_attn_thres=16),
        ragged((None, 16)),
    ),
    Case(
        "LSHSelfAttention",
        lambda: load("reformer_pytorch").LSHSelfAttention(dim=16, heads=2, bucket_size=4, n_hashes=2),
        beside((16, 16)),
    ),
]
