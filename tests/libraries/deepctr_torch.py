"""deepctr-torch: layers of recommenders, beside rows that are masked."""

from ._case import Case, beside, load, ragged

FIELDS, PADDED = beside((3, 8)), ragged((None, 8))
LIBRARY = "deepctr-torch"


def layer(name, *args, **options):
    return lambda: getattr(load("deepctr_torch.layers"), name)(*args, **options)


CASES = [
    Case("FM", layer("FM"), FIELDS),
    Case("BiInteractionPooling", layer("BiInteractionPooling"), FIELDS),
    Case("FM (padded)", layer("FM"), PADDED),
    Case("BiInteractionPooling (padded)", layer("BiInteractionPooling"), PADDED),
    Case("InteractingLayer (padded)", layer("InteractingLayer", 8, 2), PADDED),
    Case("SENETLayer", layer("SENETLayer", 3), FIELDS),
    Case("InteractingLayer", layer("InteractingLayer", 8, 2), FIELDS),
    Case("CrossNet", layer("CrossNet", 8), beside((8,))),
    Case("DNN", layer("DNN", 8, [8, 4]), beside((8,))),
    Case("CIN", layer("CIN", 3, (4, 4)), FIELDS),
]
