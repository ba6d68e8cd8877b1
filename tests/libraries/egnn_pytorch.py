"""egnn-pytorch: graphs of points, padded."""

from ._case import Case, load, ragged

POINTS = ragged((None, 6), (None, 3))
ALL = 'meaning(product="all")'
LIBRARY = "egnn-pytorch"
CASES = [
    Case("EGNN", lambda: load("egnn_pytorch").EGNN(dim=6), POINTS, within=ALL),
    Case("EGNN (soft_edges)", lambda: load("egnn_pytorch").EGNN(dim=6, soft_edges=True), POINTS, within=ALL),
    Case("EGNN (norm_coors)", lambda: load("egnn_pytorch").EGNN(dim=6, norm_coors=True), POINTS, within=ALL),
]
