"""sentence-transformers: sentences are pooled from the valid tokens, whatever attention mask is given."""

from inspect import BoundArguments
from typing import Any

from .. import MaskedTensor
from ..extend.libraries import replace
from .places import POOLING
from .wrapping import Function, call, data_of, with_masked


def _pool(forward: Function, given: BoundArguments) -> Any:
    features = given.arguments["features"]
    tokens = features["token_embeddings"]
    if type(tokens) is not MaskedTensor or "cu_seq_lens_q" in features:
        return call(forward, given)
    valid = tokens.get_mask().all(-1)
    told = features.get("attention_mask")
    if told is not None and told.shape == valid.shape:
        valid = valid & (data_of(told) != 0)
    given.arguments["features"] = {**features, "attention_mask": valid.long()}
    features["sentence_embedding"] = call(forward, given)["sentence_embedding"]
    return features


replace(POOLING, with_masked(_pool))
