"""One call of a module on flat tokens: what it receives beside them, and what is in force while it runs."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from ...patches.places import DYNAMO
from . import transformers
from .attention import Within

Forward = Callable[..., Any]


def run(module: Any, forward: Forward, args: Any, kwargs: Any, within: Within) -> Any:
    """What the module makes of flat tokens, plain."""
    told = (*transformers.wanted(module, forward, kwargs), transformers.asked(module, forward).shifted)
    mode, way = within.mode, module.__dict__["flat_way"]
    mode.counted = told[0] is not None
    position_ids = within.tokens.position_ids if told[0] is not None or told[2] else None
    if way.weights and DYNAMO in sys.modules:
        forward = torch.compiler.disable(forward)  # Dynamo would follow how weights over all tokens are computed
    with within:
        out = forward(module, *args, **with_what_it_wants(told, kwargs, position_ids))
    mode.be_clear(mode.same and mode.calls != len(mode.order))
    if mode.weights:
        way.weights = True
    return out


def with_what_it_wants(told: tuple[int | None, bool, bool], kwargs: dict[str, Any], position_ids: Any) -> Any:
    """The arguments with positions, without a cache, and with no label that the last token would predict."""
    first, cache, shifted = told
    kwargs = dict(kwargs)
    if first is not None:
        kwargs["position_ids"] = position_ids + first
    if cache:
        kwargs["use_cache"] = False
    if shifted and kwargs.get("labels") is not None:
        kwargs["labels"] = transformers.without_prediction_over_borders(kwargs["labels"], position_ids)
    return kwargs
