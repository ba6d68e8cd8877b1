"""sentence-transformers: poolings of padded tokens, without an attention mask."""

from ._case import Case, load, ragged

TOKENS = ragged((None, 4))
MODULES = "sentence_transformers.sentence_transformer.modules"


def pooling(mode):
    return lambda: load(f"{MODULES}.pooling").Pooling(4, mode)


def pooled(made, x):
    return made({"token_embeddings": x})["sentence_embedding"]


LIBRARY = "sentence-transformers"
CASES = [
    Case(f"Pooling ({mode})", pooling(mode), TOKENS, call=pooled)
    for mode in ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
]
