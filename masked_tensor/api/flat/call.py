"""One call of a module on flat tokens: what it is told beside them, and what is in force while it runs."""

from collections.abc import Callable
from typing import Any

from . import transformers
from .attention import Within
from .tokens import FlatTokens
from .wants import with_what_it_wants

Forward = Callable[..., Any]


def run(module: Any, forward: Forward, args: Any, kwargs: Any, tokens: FlatTokens) -> Any:
    """What the module makes of flat tokens, plain."""
    told = (*transformers.wanted(module, forward, kwargs), transformers.is_shifted(module))
    position_ids = tokens.position_ids if told[0] is not None or told[2] else None
    within = Within(tokens)
    with within:
        out = forward(module, *args, **with_what_it_wants(told, kwargs, position_ids))
    if within.mode.weights:
        module.__dict__["flat_way"].weights = True
    return out
