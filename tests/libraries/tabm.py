"""tabm: ensembles of perceptrons for tables, beside rows that are masked."""

from ._case import Case, beside, integers, load

ROWS, BOTH = beside((5,)), beside((5,), integers(3, 2))
SIZES = {"n_blocks": 2, "d_block": 8, "dropout": 0.0, "k": 3, "d_out": 2}
LIBRARY = "tabm"


def made(arch):
    return lambda: load("tabm").TabM.make(n_num_features=5, cat_cardinalities=[3, 3], arch_type=arch, **SIZES)


CASES = [
    Case("TabM", made("tabm"), BOTH),
    Case("TabM (tabm-mini)", made("tabm-mini"), BOTH),
    Case("TabM (tabm-packed)", made("tabm-packed"), BOTH),
    Case("LinearEnsemble", lambda: load("tabm").LinearEnsemble(5, 4, k=3), beside((3, 5))),
    Case("ElementwiseAffine", lambda: load("tabm").ElementwiseAffine((3, 5), bias=True, scaling_init="normal"),
         beside((3, 5))),
]  # fmt: skip
