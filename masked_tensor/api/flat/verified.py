"""Whether a module was verified: once for each kind of call, with its own inputs or with drawn tokens."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

import torch
from torch import Tensor, nn

from ...compat import tree_leaves, tree_map
from ...engine.dynamo import trace_as_constant
from ...packing.grid import grid_of_lengths
from . import transformers
from .beside import of_other_steps
from .check import Found, not_compiled, what_differs
from .compiled.described import described, is_description
from .samples import SHORT
from .tokens import FlatTokens

#: Of a call: where positions begin or None, whether a cache must be refused, whether labels are shifted; what
#: was found of its calls of attention; what is wrong.
Told = tuple[int | None, bool, bool, tuple[bool, ...], tuple[int, ...], str | None]


WEIGHTS = (
    "mt.flat: the module calls torch.nn.functional.multi_head_attention_forward for weights, which compiled code "
    "computes over the tokens of all sequences; pass need_weights=False, or do not compile it"
)


@dataclass
class Way:
    """How a module is flat: whether it is verified, and what was found for each kind of call."""

    check: bool
    found: dict[Any, Found] = field(default_factory=dict)
    asked: Any = None  #: what its model may be told, which does not change (``transformers.asked``)
    weights: bool = False  #: whether it asks ``F.multi_head_attention_forward`` for weights, beside torch's own modules


def verified(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any, tokens: FlatTokens) -> Found:
    """What is wrong with a module, and how it runs; it is compared at the first call of a kind."""
    way: Way = module.__dict__["flat_way"]
    if not way.check:
        return Found()
    key = (_kind_of_call(args, kwargs), of_other_steps(kwargs.get("labels"), tokens))
    if key not in way.found:
        if not tokens.grid.index.shape[0]:  # compared by whoever asks first: ranks must not disagree
            args, kwargs, tokens = drawn(*described((args, kwargs), tokens.values))
        found = what_differs(module, forward, args, kwargs, tokens)
        if found.fails:  # on these arguments: others of their kind may be right
            return found
        way.found[key] = found
    return way.found[key]


def _kind_of_call(args: Any, kwargs: Any) -> Any:
    def kind(x: Any) -> Any:
        return (x.dtype, x.dim()) if isinstance(x, Tensor) else x if isinstance(x, (bool, str, type(None))) else type(x)

    return tuple(map(kind, tree_leaves(args))), tuple(
        (name, *map(kind, tree_leaves(value))) for name, value in sorted(kwargs.items())
    )


# ------------------------------------------------------------------------------------------------- without their values


def drawn(args: Any, kwargs: Any) -> tuple[Any, Any, FlatTokens]:
    """Arguments that were described, with tokens of two sequences; values are drawn where they are compared."""
    made: list[Tensor] = []

    def draw(x: Any) -> Any:
        if not is_description(x):
            return x
        what, dtype, device, sizes = x
        new = torch.zeros((*sizes,) if what == "other" else (1, sum(SHORT), *sizes), dtype=dtype, device=device)
        if what == "batch":
            made.append(new)
        return new

    inside = tuple(tree_map(draw, given, is_leaf=is_description) for given in (args, kwargs))
    grid = grid_of_lengths(SHORT, "right", made[0].device)
    return *inside, FlatTokens(made[0], grid)


def told(module: nn.Module, args: Any, kwargs: Any) -> Told:
    """What compiled code is told of a call that was described; it is verified while Dynamo looks at it.

    In a thread of its own, to which nothing of what is being compiled belongs.
    """
    found: list[Any] = []

    def look() -> None:
        try:
            kind: Any = type(module)
            forward = kind.flat_of.forward
            inside_args, inside_kwargs, tokens = drawn(args, kwargs)
            way = verified(module, forward, inside_args, inside_kwargs, tokens)
            refusal = way.refusal or not_compiled(module, way)
            if module.__dict__["flat_way"].weights:
                refusal = refusal or WEIGHTS
            wants = transformers.wanted(module, forward, inside_kwargs)
            found.append((*wants, transformers.asked(module, forward).shifted, way.order, way.others, refusal))
        except Exception as error:
            found.append(error)

    thread = Thread(target=look)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        raise found[0]
    result: Told = found[0]
    return result


trace_as_constant(told)
