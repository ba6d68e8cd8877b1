"""A linear layer, then cross entropy."""

from typing import Any

import torch

from ..helpers.harness import Masked
from .cross_entropy import cross_entropy
from .loss import both
from .matmul import linear


def linear_cross_entropy(
    op: Any, x: Any, layer: Any, target: Any, linear_bias: Any = None, options: Any = None, **kwargs: Any
) -> Masked:
    """The loss of the layer's result, in torch's shapes of weights for results of more dimensions."""
    x, layer = both(x), both(layer)
    flat = Masked(layer.data.reshape(-1, layer.data.shape[-1]), layer.mask.reshape(-1, layer.mask.shape[-1]))
    bias = linear_bias if linear_bias is None else both(linear_bias)
    scores = linear(op, x, flat, bias and Masked(bias.data.reshape(-1), bias.mask.reshape(-1)))
    shape = (*x.data.shape[:-1], *layer.data.shape[:-1])
    return cross_entropy(op, Masked(scores.data.reshape(shape), scores.mask.reshape(shape)), target, **kwargs)


ORACLES = dict.fromkeys(
    (f"nn.functional.linear_cross_entropy.{name}" for name in ("chunked", "chunked_none")), linear_cross_entropy
)
XFAIL: dict[tuple[str, str], str] = {
    ("nn.functional.linear_cross_entropy.chunked_none", "gradient"): (
        "the weights of the classes get no gradient, as in torch's own chunked op (see test_loss)"
    ),
}
NOT_TRACED = "torch warns that some samples take another path, which Dynamo cannot trace"
ROUNDED = "torch's chunked ops round at other places than the layer and the loss do"
for _name, _since in (("chunked", "2.14"), ("chunked_none", "2.15")):
    _law, _reason = ("compiled", NOT_TRACED) if torch.__version__ < _since else ("autocast", ROUNDED)
    XFAIL[f"nn.functional.linear_cross_entropy.{_name}", _law] = _reason
