"""torchtuples and pycox: networks for tables, and losses of survival, beside rows that are masked."""

from ._case import Case, beside, load

ROWS = beside((5,))
LIBRARY = "torchtuples"
CASES = [
    Case("MLPVanilla", lambda: load("torchtuples.practical").MLPVanilla(5, [8], 2, dropout=0.0), ROWS),
    Case("MLPVanilla (training)", lambda: load("torchtuples.practical").MLPVanilla(5, [8], 2, dropout=0.0), ROWS,
         train=True),
]  # fmt: skip
