"""g-mlp-pytorch: gates over positions."""

from ._case import Case, beside, images, integers, load

LIBRARY = "g-mlp-pytorch"
CASES = [
    Case(
        "gMLP",
        lambda: load("g_mlp_pytorch").gMLP(num_tokens=50, dim=16, depth=2, seq_len=12),
        beside(integers(50, 12)),
    ),
    Case(
        "gMLPVision",
        lambda: load("g_mlp_pytorch").gMLPVision(image_size=16, patch_size=4, num_classes=5, dim=16, depth=2),
        images(3, 16, 16),
    ),
    Case("gMLPBlock", lambda: load("g_mlp_pytorch").g_mlp_pytorch.gMLPBlock(dim=16, dim_ff=32, seq_len=12),
         beside((12, 16))),
]  # fmt: skip
