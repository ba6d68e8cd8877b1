"""tab-transformer-pytorch: attention over columns, beside rows that are masked."""

from ._case import Case, beside, integers, load

BOTH = beside(integers(3, 2), (4,))
SIZES = {"categories": (3, 3), "num_continuous": 4, "dim": 16, "depth": 1, "heads": 2, "dim_out": 2}
LIBRARY = "tab-transformer-pytorch"
CASES = [Case("FTTransformer", lambda: load("tab_transformer_pytorch").FTTransformer(**SIZES), BOTH)]
