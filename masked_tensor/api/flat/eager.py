"""The call of a flat module: what comes in as tokens, the check, what goes out packed."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ... import errors
from ...compat import tree_leaves, tree_map
from ...engine.tensor import MaskedTensor
from ...errors import UnsupportedOpError
from ...packing import Packed
from ...packing.grid import same_places
from ...rules.cross_entropy import IGNORED
from . import transformers
from .attention import Within, order_for
from .beside import OtherLengths, named_arguments, other_lengths, refuse_other_labels
from .call import run
from .tokens import FlatTokens, from_flat, gathered, stored_tokens, to_flat, tokens_of, whole_steps
from .verified import verified

Forward = Callable[..., Any]


def call(module: nn.Module, forward: Forward, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call of a flat module: as it was for plain inputs, and inside of another flat module."""
    given = (args, kwargs)
    first = _batch_of(given)
    if first is None:
        return forward(module, *args, **kwargs)
    if torch.compiler.is_exporting():
        raise errors.exporting()
    if transformers.has_choices(module):
        raise UnsupportedOpError(
            f"mt.flat: {type(module).__name__} has several sequences for each row; make the model inside it flat: "
            "mt.flat(model.base_model)"
        )
    tokens = to_flat(first)
    try:
        inside_args, inside_kwargs = _entered(given, first, tokens)
    except OtherLengths as error:
        raise ValueError(other_lengths(error, named_arguments(module, forward, args, kwargs), first, tokens)) from None
    found = verified(module, forward, inside_args, inside_kwargs, tokens)
    if found.refusal is not None:
        alone = len(args) == 1 and not kwargs and isinstance(args[0], Mapping)
        hint = "mt.flat was given one mapping; if it holds the arguments, write model(**batch). " if alone else ""
        raise UnsupportedOpError(hint + found.refusal)
    within = Within(tokens, found.apart)
    within.mode.order = order_for(tokens.grid.index.shape[0], found.order, found.others, given)
    out = run(module, forward, inside_args, inside_kwargs, within)
    return _left(out, tokens)


# ----------------------------------------------------------------------------------------------------- what comes in


def _batch_of(given: Any) -> MaskedTensor | None:
    """The first masked batch among the arguments: one that knows its lengths, if there is one."""
    found = [x for x in tree_leaves(given) if type(x) is MaskedTensor and x.dim() > 1]
    knowing = [x for x in found if x._packed is not None and x._packed.grid.complete and x._packed.inner is None]
    return next(iter(knowing or found), None)


def _entered(given: Any, first: MaskedTensor, tokens: FlatTokens) -> Any:
    args, kwargs = given
    batch = tokens.grid.shape
    kept = {name: value for name, value in kwargs.items() if not _says_the_same(name, value, tokens)}
    refuse_other_labels(kwargs.get("labels"), batch)

    def enter(x: Any) -> Any:
        if x is first:
            return tokens.values
        if _is_batch(x):
            return _flattened(x, tokens)
        if isinstance(x, Tensor) and type(x) is not MaskedTensor and x.dim() > 1 and tuple(x.shape[:2]) == batch:
            return gathered(tokens, x)
        return x

    masked = {name: value for name, value in kept.items() if name == "labels" and _is_batch(value)}
    labels = {name: _labels(value, tokens) for name, value in masked.items()}
    rest = {name: value for name, value in kept.items() if name not in labels}
    entered_args, entered_rest = tree_map(enter, (args, rest))
    return entered_args, {**entered_rest, **labels}


def _is_batch(x: Any) -> bool:
    return type(x) is MaskedTensor and x.dim() > 1


def _says_the_same(name: str, value: Any, tokens: FlatTokens) -> bool:
    """Whether an argument is an attention mask, plain or masked, that says what the mask of the batch says."""
    if name != "attention_mask" or not isinstance(value, Tensor):
        return False
    plain = value.filled(0) if type(value) is MaskedTensor else value
    if tuple(plain.shape) != tokens.grid.shape or not bool(((plain != 0) == tokens.grid.mask.to(plain.device)).all()):
        raise ValueError(
            "mt.flat: attention_mask says something else than the mask of the batch; leave attention_mask out"
        )
    return True


def _record(x: MaskedTensor) -> Packed:
    stored = stored_tokens(x)
    if not stored.is_plain_grid or stored.order[:2] != ((0,), (1,)):
        raise ValueError("mt.flat needs batches (B, T, ...), with the batch first and time second")
    return stored


def _flattened(x: MaskedTensor, tokens: FlatTokens) -> Tensor:
    """An input beside the batch as plain tokens ``(1, N, ...)``."""
    stored = _record(x)
    if stored.inner is not None:
        stored = whole_steps(x)  # raises where a step is missing, and names it
    if not same_places(stored.grid.on(tokens.grid.device), tokens.grid):
        raise OtherLengths(x, stored)
    return tokens_of(stored).values


def _labels(x: MaskedTensor, tokens: FlatTokens) -> Tensor:
    """Masked labels at the tokens; those that are missing do not count."""
    if x.is_floating_point():
        return _flattened(x, tokens)
    valid = x.mask
    if bool((valid.flatten(2).any(2) if valid.dim() > 2 else valid).logical_and(~tokens.grid.mask).any()):
        raise ValueError("mt.flat: a label is valid where the batch has no step; leave it out of the labels")
    return gathered(tokens, x.filled(IGNORED))


# ---------------------------------------------------------------------------------------------------- what goes out


def _left(out: Any, tokens: FlatTokens) -> Any:
    number = tokens.grid.index.shape[0]

    def leave(x: Any) -> Any:
        if isinstance(x, Tensor) and type(x) is not MaskedTensor and x.dim() > 1 and tuple(x.shape[:2]) == (1, number):
            return from_flat(x, tokens)
        return x

    return tree_map(leave, out)
