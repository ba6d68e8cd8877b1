"""Inputs beside the batch that do not fit it, and the messages about them."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from ...compat import tree_leaves
from ...engine.tensor import MaskedTensor
from ...packing import Packed
from ...packing.dim_order import GRID
from .tokens import FlatTokens


class OtherLengths(Exception):
    """A masked input has other steps than the batch; the call, which knows the names of both, says so."""

    def __init__(self, x: MaskedTensor, stored: Packed) -> None:
        super().__init__()
        self.x, self.grid = x, stored.grid


def other_lengths(error: OtherLengths, names: dict[str, Any], first: MaskedTensor, tokens: FlatTokens) -> str:
    sides = [_name_of(first, names), _name_of(error.x, names)]
    return (
        f"mt.flat: {sides[0]} and {sides[1]} have different lengths, {tokens.grid.sizes} and {error.grid.sizes} of "
        f"batches {tuple(tokens.grid.shape)} and {tuple(error.grid.shape)}; all masked inputs must have the same "
        "steps; of an encoder-decoder make the encoder flat, mt.flat(model.encoder)"
    )


def named_arguments(module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by the names that the module's own forward has for them."""
    try:
        named = inspect.signature(forward).bind_partial(module, *args).arguments
    except TypeError:  # which the call would say
        named = {f"argument {number}": x for number, x in enumerate(args)}
    return {**named, **kwargs}


def _name_of(x: MaskedTensor, names: dict[str, Any]) -> str:
    found = [name for name, value in names.items() if any(leaf is x for leaf in tree_leaves(value))]
    return found[0] if found else "an input"


def refuse_other_labels(labels: Any, batch: Sequence[int]) -> None:
    """Raises for classes of another shape than the batch; of labels that are numbers the check says what they are.

    Where they are as many as the tokens, a model would read them as the labels of the tokens. One label for each
    sequence, ``(B,)`` or ``(B, 1)``, is read as such.
    """
    if not isinstance(labels, Tensor) or labels.dim() < GRID or labels.is_floating_point():
        return
    if labels.shape[1] == 1 and type(labels) is not MaskedTensor:
        return
    if tuple(labels.shape[:GRID]) != tuple(batch):
        raise ValueError(
            f"mt.flat: labels of shape {tuple(labels.shape)} beside a batch of shape {tuple(batch)}; give labels of "
            "steps in the shape of the batch, and several classes for each sequence under another name than labels="
        )


def of_other_steps(labels: Any, tokens: FlatTokens) -> bool:
    """Whether labels are numbers ``(B, C)``, which are no labels of the tokens."""
    if not isinstance(labels, Tensor) or not labels.is_floating_point() or labels.dim() < GRID:
        return False
    return tuple(labels.shape[:GRID]) != (1, tokens.grid.index.shape[0])
