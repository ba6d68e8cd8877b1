"""conformer: convolutions and attention over speech."""

from ._case import Case, load, ragged

STEPS = ragged((None, 16))
SIZES = {"dim": 16, "dim_head": 8, "heads": 2}
LIBRARY = "conformer"
CASES = [
    Case("ConformerBlock", lambda: load("conformer").ConformerBlock(**SIZES, conv_kernel_size=3), STEPS),
    Case("Conformer", lambda: load("conformer").Conformer(depth=2, **SIZES, conv_kernel_size=3), STEPS),
    Case("ConformerConvModule", lambda: load("conformer").ConformerConvModule(16, kernel_size=5), STEPS),
    Case("ConformerConvModule (causal)", lambda: load("conformer").ConformerConvModule(16, causal=True), STEPS),
    Case("Attention", lambda: load("conformer.conformer").Attention(**SIZES), STEPS),
    Case("FeedForward", lambda: load("conformer.conformer").FeedForward(16), STEPS),
]
