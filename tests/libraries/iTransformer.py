"""iTransformer: attention over the variables of a series, beside series that are masked."""

from ._case import Case, beside, load

SIZES = {"num_variates": 3, "lookback_len": 12, "dim": 16, "depth": 1, "heads": 2, "dim_head": 8}
LIBRARY = "iTransformer"
CASES = [
    Case(
        "iTransformer",
        lambda: load("iTransformer").iTransformer(pred_length=4, use_reversible_instance_norm=False, **SIZES),
        beside((12, 3), rows=3),
    ),
    Case("RevIN", lambda: load("iTransformer.revin").RevIN(3), beside((3, 12), rows=3)),
]
