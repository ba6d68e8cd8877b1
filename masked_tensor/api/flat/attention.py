"""Attention while a module is flat: calls of torch's functions over N tokens stay within each sequence.

A torch function mode sees every call of torch while the module runs, by whatever name the module knows the function,
and again when a checkpoint runs a part of it during the backward pass.
"""

from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...compat import function_modes, tree_leaves
from ...engine.contexts.setting import Setting
from ...engine.tensor import MaskedTensor
from ...packing.flat_attention import attend_within
from ...packing.grid import Grid
from ...settings import Settings
from .compiled.nodes import attend_compiled
from .ends import READERS
from .multi_head import MULTI_HEAD, attend_by_heads
from .tokens import FlatTokens

ATTENTION = F.scaled_dot_product_attention


class OwnMaskError(ValueError):
    """Attention among flat tokens is called with a mask, or from other steps."""


class Flat(TorchFunctionMode):
    """Keeps attention among the tokens within each sequence; Dynamo can trace it.

    What is compiled knows the tokens by tensors alone: numbers of a mode would be compiled anew when they change.
    Eager code knows more, and reads the first and last steps of each sequence (``ends``): ``apart`` says whether
    attention of a model's own runs on padded sequences (``parts``), ``inside`` that it does now, ``counted`` that
    positions were not given by the caller, ``read`` that ends were read.
    """

    tokens: Any = None
    apart = inside = counted = read = False
    passes = False  #: whether what is called now is called from here

    def __init__(self, index: Tensor, lengths: Tensor, places: Tensor, grid: Grid | None = None) -> None:
        super().__init__()
        self.index, self.lengths = index, lengths  #: of the grid
        self.places = places  #: (B, T, 0): says the sizes
        self.grid = grid  #: None in what is compiled as a whole
        self.order: tuple[bool, ...] = ()  #: which calls are among the tokens, if their number does not say it
        self.calls = 0  #: how many there were
        self.same = False  #: whether one that is not had as many keys as there are tokens
        self.seen: list[tuple[bool, int]] | None = None  #: for the check: which calls were, and of how many keys
        self.weights = False  #: whether weights of attention were asked for, which Dynamo would compute over all tokens

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call, if it is not one of attention."""
        kwargs = kwargs or {}
        if self.tokens is not None and not torch.compiler.is_dynamo_compiling():
            if self.inside:
                return function(*args, **kwargs)
            found = READERS[function](self.tokens, *args, **kwargs) if function in READERS else None
            if found is not None:
                self.read = True
                return found
        if self.passes and (function is ATTENTION or function is MULTI_HEAD):
            return function(*args, **kwargs)
        if function is ATTENTION:
            return self.attend(*args, **kwargs)
        if function is MULTI_HEAD:
            self.weights = self.weights or kwargs.get("need_weights", True)
            return attend_by_heads(self, *args, **kwargs)
        if function is Tensor.unflatten:  # whose Python part Dynamo cannot follow by itself
            return args[0].unflatten(*args[1:], **kwargs)
        return function(*args, **kwargs)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
    ) -> Tensor:  # fmt: skip
        """torch's function; attention among the tokens is kept within each sequence, other attention is as it is."""
        if not self.holds(query, key, value):
            return ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if attn_mask is not None:
            raise OwnMaskError(MASK_OF_ITS_OWN)
        return self.within(query, key, value, dropout_p, is_causal, scale, enable_gqa)

    def holds(self, *given: Tensor) -> bool:
        """Whether these are ``(.., N, D)``, one row of the flat tokens."""
        number = self.index.shape[0]
        among = not [x for x in given if type(x) is MaskedTensor or x.dim() < 2 or x.shape[-2] != number]
        if self.seen is not None:
            self.seen.append((among, given[1].shape[-2]))
        return self._is_next_among(among) if self.order else among

    def _is_next_among(self, among: bool) -> bool:
        """That where what a module attends to beside its tokens has as many entries."""
        place, self.calls = self.calls, self.calls + 1
        if place >= len(self.order):  # a checkpoint runs it again
            self.be_clear(self.same and among)
            return among
        self.same = self.same or (among and not self.order[place])
        return among and self.order[place]

    def aside(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """What a function gives that knows this mode, and whose own calls it need not see."""
        if torch.compiler.is_dynamo_compiling():
            self.passes = True
            found = function(*args, **kwargs)
            self.passes = False
            return found
        if function_modes()[-1:] != [self]:
            return function(*args, **kwargs)
        self.__exit__(None, None, None)
        try:
            return function(*args, **kwargs)
        finally:
            self.__enter__()

    def be_clear(self, unclear: bool) -> None:
        """Raises if it is not known which call of attention is among the tokens."""
        if unclear:
            raise OwnMaskError(
                f"mt.flat: the batch has {self.index.shape[0]} tokens, as many as what the module attends to beside "
                "them has entries, and its calls of attention are not those of the check, which tell them apart (a "
                "layer that is left out, a checkpoint); call the module on the masked batch without mt.flat"
            )

    def within(
        self, query: Tensor, key: Tensor, value: Tensor, dropout: float, causal: bool, scale: float | None,
        grouped: bool, window: int | None = None, softcap: float | None = None, sinks: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """Attention within each sequence, ``(.., N, D)``."""
        options = (dropout, causal, scale, grouped, window, softcap, sinks)
        if self.grid is None or torch.compiler.is_dynamo_compiling():
            return attend_compiled(query, key, value, self.index, self.lengths, self.places, *options)
        return attend_within(self.grid, query, key, value, *options)


def order_for(number: int, order: tuple[bool, ...], others: tuple[int, ...], given: Any) -> tuple[bool, ...]:
    """Which calls are among ``number`` tokens, if what others attend to may have as many entries; else nothing."""
    if not order:
        return order
    plain = [x for x in tree_leaves(given) if isinstance(x, Tensor) and type(x) is not MaskedTensor]
    return order if number in (*others, *(n for x in plain for n in x.shape)) else ()


class Within(Setting):
    """In force while a module runs on flat tokens."""

    def __init__(self, tokens: FlatTokens, apart: bool = False) -> None:
        super().__init__()
        self.tokens, grid = tokens, tokens.grid
        self.mode: Flat = Flat(grid.index, grid.lengths, grid.index.new_empty((*grid.shape, 0)), grid)
        self.mode.tokens, self.mode.apart = tokens, apart

    def change(self, before: Settings) -> Settings:
        """These tokens, on top of ``before``."""
        return replace(before, flat=self.mode)


def mode_in_force() -> Flat | None:
    """The mode of the flat module that runs here, if one does: the innermost."""
    for mode in reversed(function_modes()):
        if isinstance(mode, Flat):
            return mode
    return None


#: What is said of an attention mask over flat tokens.  Its shape would be that of the check's own sequences.
MASK_OF_ITS_OWN = (
    "mt.flat: the module calls attention over its tokens with a mask of its own, which does not know where a sequence "
    "ends; pass is_causal=True in place of a causal mask, or call the module on the masked batch without mt.flat"
)
