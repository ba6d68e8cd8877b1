"""axial-positional-embedding: positions of padded steps."""

from ._case import Case, load, ragged

LIBRARY = "axial-positional-embedding"
CASES = [
    Case(
        "AxialPositionalEmbedding",
        lambda: load("axial_positional_embedding").AxialPositionalEmbedding(8, axial_shape=(4, 4)),
        ragged((None, 8)),
        "declared",
        "returns a table of positions in the shape of its input; write `x + embedding(x)`",
    ),
    Case(
        "AxialPositionalEmbedding (added)",
        lambda: load("axial_positional_embedding").AxialPositionalEmbedding(8, axial_shape=(4, 4)),
        ragged((None, 8)),
        call=lambda m, x: x + m(x),
    ),
]
