"""lightly: losses of two views of images, of which one pair is masked on both sides, or on one."""

from functools import partial

from ._case import Case, Input, beside, kept, load, plain

PAIRS, ONE = beside((8,), (8,)), beside((8,), plain(Input((8,))))
MANY = beside((8,), (8,), rows=7)
LIBRARY = "lightly"


def loss(name, *args, **options):
    return lambda: getattr(load("lightly.loss"), name)(*args, **options)


def tico(made, *given):
    """Without what is carried over from batch to batch."""
    return made(*given, update_covariance_matrix=False)


SIZE = "divides by the number of rows; pass only the valid ones: `x[x.get_mask().all(1)].filled(0)`"
EXACT = ("NegativeCosineSimilarity", "NTXentLoss", "DCLLoss", "MACLLoss")
COUNTS = ("DCLWLoss", "BarlowTwinsLoss", "VICRegLoss")
CASES = [
    *[Case(f"{name} (both sides masked)", loss(name), MANY) for name in EXACT],
    *[Case(f"{name} (both sides masked)", loss(name), MANY, "declared", SIZE) for name in COUNTS],
    *[Case(f"{name} (valid rows)", loss(name), MANY, call=kept) for name in COUNTS],
    Case("TiCoLoss (both sides masked)", loss("TiCoLoss"), MANY, "declared", SIZE, call=tico),
    Case("TiCoLoss (valid rows)", loss("TiCoLoss"), MANY, call=lambda made, *given: kept(partial(tico, made), *given)),
    Case("NegativeCosineSimilarity (one side masked)", loss("NegativeCosineSimilarity"), ONE),
    Case("KoLeoLoss", loss("KoLeoLoss"), beside((8,), rows=7)),
    Case("DirectCLRLoss", loss("DirectCLRLoss", 4), MANY),
]  # fmt: skip
