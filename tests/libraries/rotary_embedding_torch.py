"""rotary-embedding-torch: positions by rotation."""

from ._case import Case, load, ragged


def rotary(**options):
    return lambda: load("rotary_embedding_torch").RotaryEmbedding(dim=8, **options)


def rotated(model, x):
    return model.rotate_queries_or_keys(x)


STEPS = ragged((2, None, 8))
LIBRARY = "rotary-embedding-torch"
CASES = [
    Case("RotaryEmbedding", rotary(), STEPS, call=rotated),
    Case("RotaryEmbedding (interpolate)", rotary(interpolate_factor=2.0), STEPS, call=rotated),
    Case(
        "RotaryEmbedding (use_xpos)",
        rotary(use_xpos=True),
        ragged((2, None, 8), (2, None, 8)),
        call=lambda model, q, k: model.rotate_queries_and_keys(q, k),
    ),
    Case(
        "apply_rotary_emb",
        rotary(),
        STEPS,
        call=lambda m, x: load("rotary_embedding_torch").apply_rotary_emb(
            m(load("torch").arange(x.shape[-2]).double()), x
        ),
    ),
]
