"""pykan: layers of splines, beside rows that are masked."""

from ._case import Case, beside, load

LIBRARY = "pykan"


def layer():
    made = load("kan.KANLayer").KANLayer(in_dim=4, out_dim=3, num=3, k=3).double()
    made.grid.requires_grad_(False)
    return made


CASES = [
    Case("KANLayer", layer, beside((4,))),
    Case("extend_grid, B_batch", lambda: lambda x: load("kan.spline").B_batch(
        x, load("torch").linspace(-2, 2, 8, dtype=x.dtype).expand(4, -1), k=3), beside((4,))),
]  # fmt: skip
