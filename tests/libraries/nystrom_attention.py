"""nystrom-attention: attention through landmarks."""

from ._case import Case, beside, load, ragged

LIBRARY = "nystrom-attention"
SIZES = {"dim": 16, "dim_head": 8, "heads": 2, "num_landmarks": 4}
CASES = [
    Case("NystromAttention", lambda: load("nystrom_attention").NystromAttention(**SIZES), beside((12, 16))),
    Case("Nystromformer", lambda: load("nystrom_attention").Nystromformer(depth=1, **SIZES), beside((12, 16))),
    Case(
        "NystromAttention (padded)",
        lambda: load("nystrom_attention").NystromAttention(**SIZES),
        ragged((None, 16)),
        "declared",
        "averages pieces of the padded length into landmarks; write `[model(row[None]) for row in x.unpad()]`",
    ),
]
