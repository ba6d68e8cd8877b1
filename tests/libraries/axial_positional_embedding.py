"""axial-positional-embedding: positions of padded steps."""

from ._case import Case, load, ragged

LIBRARY = "axial-positional-embedding"
CASES = [
    Case(
        "AxialPositionalEmbedding",
        lambda: load("axial_positional_embedding").AxialPositionalEmbedding(8, axial_shape=(4, 4)),
        ragged((None, 8)),
        "declared",
        "a table of positions of the shape of its input; `x + embedding(x)` is right",
    ),
    Case(
        "AxialPositionalEmbedding (added)",
        lambda: load("axial_positional_embedding").AxialPositionalEmbedding(8, axial_shape=(4, 4)),
        ragged((None, 8)),
        call=lambda m, x: x + m(x),
    ),
]
