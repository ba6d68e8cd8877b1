"""geomloss: distances of padded point clouds."""

from ._case import Case, load, ragged

CLOUDS = ragged((None, 2), (None, 2))
LIBRARY = "geomloss"
COUNTS = "weights points by the padded size; pass one pair at a time, or weights of 0 for padding"
CASES = [
    Case(
        f"SamplesLoss ({name})",
        lambda name=name: load("geomloss").SamplesLoss(name, blur=0.5, backend="tensorized"),
        CLOUDS,
        "declared",
        COUNTS,
    )
    for name in ("gaussian", "energy")
]
