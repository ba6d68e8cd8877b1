"""One call of a module on flat tokens: what it is told beside them, and what is in force while it runs."""

from collections.abc import Callable
from typing import Any

from . import transformers
from .attention import Within
from .tokens import FlatTokens

Forward = Callable[..., Any]


def run(module: Any, forward: Forward, args: Any, kwargs: Any, tokens: FlatTokens) -> Any:
    """What the module makes of flat tokens, plain."""
    kwargs = {**kwargs, **transformers.added(module, type(module).flat_of.forward, kwargs, tokens)}
    if kwargs.get("labels") is not None and transformers.is_shifted(module):
        kwargs["labels"] = transformers.without_prediction_over_borders(kwargs["labels"], tokens.cu_seqlens)
    hooks = [
        part.register_forward_pre_hook(lambda _, given: transformers.first_tokens(given, tokens))
        for part in transformers.poolers(module)
    ]
    try:
        with Within(tokens):
            return forward(module, *args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
