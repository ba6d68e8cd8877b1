"""pytorch-metric-learning: losses of embeddings, beside rows that are masked."""

from ._case import Case, beside, integers, kept, load

ROWS = beside((4,), integers(2), rows=8, masked=(1, 5))
LIBRARY = "pytorch-metric-learning"


def loss(name, **options):
    return lambda: getattr(load("pytorch_metric_learning.losses"), name)(**options)


def as_it_is(name, **options):
    return Case(name, loss(name, **options), ROWS)


NAMES = """ContrastiveLoss TripletMarginLoss NTXentLoss SupConLoss CircleLoss MultiSimilarityLoss LiftedStructureLoss
    GeneralizedLiftedStructureLoss AngularLoss NCALoss TupletMarginLoss IntraPairVarianceLoss"""
CLASSES = {"num_classes": 2, "embedding_size": 4}
OWN = ["NormalizedSoftmaxLoss", "ProxyNCALoss", "ProxyAnchorLoss"]
ROWWISE = "writes into a plain matrix of targets; pass the valid rows: `x[x.get_mask().all(1)].filled(0)`"
ROOM = {"within": "masked_factories()"}
CASES = [
    *map(as_it_is, NAMES.split()),
    *[as_it_is(name, **CLASSES) for name in OWN],
    Case("SoftTripleLoss", loss("SoftTripleLoss", **CLASSES), ROWS, **ROOM),
    *[Case(name, loss(name, **CLASSES), ROWS, "refused", ROWWISE) for name in ("ArcFaceLoss", "CosFaceLoss")],
    *[Case(f"{n} (valid rows)", loss(n, **CLASSES), ROWS, call=kept) for n in ("ArcFaceLoss", "CosFaceLoss")],
    Case("VICRegLoss", loss("VICRegLoss"), beside((4,), (4,), rows=8, masked=(1, 5)),
         call=lambda made, x, y: made(x, ref_emb=y)),
    Case("FastAPLoss", loss("FastAPLoss"), ROWS, **ROOM),
]  # fmt: skip
