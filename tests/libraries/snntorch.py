"""snntorch: spiking neurons, beside rows that are masked."""

from ._case import Case, beside, load

ROWS = beside((5,))
LIBRARY = "snntorch"
CASES = [
    Case("Leaky (membrane)", lambda: load("snntorch").Leaky(beta=0.9), ROWS, call=lambda m, x: m(x, 0 * x)[1]),
]
