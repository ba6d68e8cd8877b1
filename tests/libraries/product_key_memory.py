"""product-key-memory: a memory that padded steps read."""

from ._case import Case, load, ragged

LIBRARY = "product-key-memory"
CASES = [
    Case(
        "PKM", lambda: load("product_key_memory").PKM(16, heads=2, num_keys=4, topk=2, dim_head=8), ragged((None, 16))
    ),
]
