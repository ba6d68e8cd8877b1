"""One call of a module on flat tokens: what it is told beside them, and what is in force while it runs."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from ...patches.places import DYNAMO
from . import transformers
from .attention import Within
from .tokens import FlatTokens
from .wants import with_what_it_wants

Forward = Callable[..., Any]


def run(module: Any, forward: Forward, args: Any, kwargs: Any, tokens: FlatTokens) -> Any:
    """What the module makes of flat tokens, plain."""
    told = (*transformers.wanted(module, forward, kwargs), transformers.is_shifted(module))
    position_ids = tokens.position_ids if told[0] is not None or told[2] else None
    way = module.__dict__["flat_way"]
    if way.weights and DYNAMO in sys.modules:
        forward = torch.compiler.disable(forward)  # Dynamo would follow how weights over all tokens are computed
    within = Within(tokens)
    with within:
        out = forward(module, *args, **with_what_it_wants(told, kwargs, position_ids))
    if within.mode.weights:
        way.weights = True
    return out
