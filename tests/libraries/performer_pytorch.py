"""performer-pytorch: attention by random features."""

from ._case import Case, integers, load, ragged

STEPS = ragged((None, 16))
LIBRARY = "performer-pytorch"


def attention(name, **options):
    return lambda: getattr(load("performer_pytorch"), name)(dim=16, heads=2, dim_head=8, nb_features=8, **options)


CASES = [
    Case("SelfAttention", attention("SelfAttention"), STEPS),
    Case("SelfAttention (generalized)", attention("SelfAttention", generalized_attention=True), STEPS),
    Case(
        "Performer",
        lambda: load("performer_pytorch").Performer(dim=16, depth=1, heads=2, dim_head=8, nb_features=8),
        STEPS,
    ),
    Case(
        "PerformerLM",
        lambda: load("performer_pytorch").PerformerLM(
            num_tokens=50, max_seq_len=12, dim=16, depth=1, heads=2, dim_head=8, nb_features=8
        ),
        ragged(integers(50, None)),
    ),
]
