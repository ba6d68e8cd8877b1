"""trl: what its losses are made of."""

from ._case import Case, integers, load, ragged

TOKENS = ragged((None, 9), integers(9, None))
LIBRARY = "trl"


def function(name, **options):
    return lambda: lambda *given: getattr(load("trl.trainer.utils"), name)(*given, **options)


def together(made, x):
    """The rows of a batch, padded by the function; a row alone is padded to what it is."""
    return made(list(x))


CASES = [
    Case("selective_log_softmax", function("selective_log_softmax"), TOKENS),
    Case("selective_log_softmax (temperature)", function("selective_log_softmax", temperature=0.7), TOKENS),
    Case("entropy_from_logits", function("entropy_from_logits"), ragged((None, 9))),
    Case("entropy_from_logits (chunks)", function("entropy_from_logits", chunk_size=5), ragged((None, 9))),
    Case("nanstd", function("nanstd", dim=1), ragged((None, 3))),
    Case(
        "pad",
        function("pad"),
        ragged((None, 3)),
        "refused",
        "writes into a plain tensor; write `mt.from_sequences(rows)`",
        call=together,
    ),
]
