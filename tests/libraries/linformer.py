"""linformer: attention over a projection of the sequence."""

from ._case import Case, beside, load, ragged

LIBRARY = "linformer"
SIZES = {"dim": 16, "seq_len": 12, "k": 4, "heads": 2}
CASES = [
    Case("LinformerSelfAttention", lambda: load("linformer").LinformerSelfAttention(**SIZES), beside((12, 16))),
    Case("Linformer", lambda: load("linformer").Linformer(depth=1, **SIZES), beside((12, 16))),
    Case(
        "LinformerSelfAttention (padded)",
        lambda: load("linformer").LinformerSelfAttention(**SIZES),
        ragged((None, 16)),
    ),
]
