"""Attention while a module is flat: what torch's functions are asked for over N tokens is kept within each sequence.

A torch function mode sees every call of torch while the module runs, by whatever name the module knows the function,
and again when a checkpoint runs a part of it during the backward pass.
"""

import inspect
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ...engine.contexts.setting import Setting
from ...engine.tensor import MaskedTensor
from ...packing.flat_attention import attend_within
from ...settings import Settings, in_force
from .tokens import FlatTokens

ATTENTION, MULTI_HEAD = F.scaled_dot_product_attention, F.multi_head_attention_forward
_MULTI_HEAD = inspect.signature(MULTI_HEAD)


class OwnMaskError(ValueError):
    """Attention among flat tokens is called with a mask, or from other steps."""


class Flat(TorchFunctionMode):
    """Keeps attention among the tokens within each sequence."""

    def __init__(self, tokens: FlatTokens) -> None:
        super().__init__()
        self.tokens = tokens

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call, if it is not one of attention."""
        kwargs = kwargs or {}
        if function is ATTENTION:
            return attend(self.tokens, *args, **kwargs)
        if function is MULTI_HEAD:  # nobody gets weights (N, N), which would be mostly zeros
            given = _MULTI_HEAD.bind(*args, **kwargs).arguments
            return _multi_head(**{**given, "need_weights": False})
        return function(*args, **kwargs)


class Within(Setting):
    """In force while a module runs on flat tokens."""

    def __init__(self, tokens: FlatTokens) -> None:
        super().__init__()
        self.mode = Flat(tokens)

    def change(self, before: Settings) -> Settings:
        """These tokens, on top of ``before``."""
        return replace(before, flat=self.mode)


def attend(
    tokens: FlatTokens, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """torch's function; attention among the tokens is kept within each sequence, other attention is as it is."""
    if not is_among(tokens, query, key, value):
        return ATTENTION(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if attn_mask is not None:
        raise OwnMaskError(mask_of_its_own(attn_mask))
    return attend_within(
        tokens.grid, query, key, value, dropout=dropout_p, causal=is_causal, scale=scale, grouped=enable_gqa
    )


def _attend_here(*args: Any, **kwargs: Any) -> Tensor:
    return attend(in_force().flat.tokens, *args, **kwargs)


#: torch's own, with this attention: while a mode looks at a call it does not see what the call calls.
_multi_head = FunctionType(
    MULTI_HEAD.__code__, {**vars(F), ATTENTION.__name__: _attend_here}, argdefs=MULTI_HEAD.__defaults__
)


def is_among(tokens: FlatTokens, *given: Tensor) -> bool:
    """Whether these are ``(.., N, D)``, one row of the flat tokens."""
    number = tokens.grid.index.shape[0]
    return all(type(x) is not MaskedTensor and x.dim() > 1 and x.shape[-2] == number for x in given)


def mask_of_its_own(mask: Tensor) -> str:
    """What is said of an attention mask over flat tokens."""
    return (
        f"mt.flat: the module calls attention over its tokens with a mask of its own, of shape {tuple(mask.shape)}, "
        "which does not know where a sequence ends; pass is_causal=True in place of a causal mask, or call the module "
        "on the masked batch without mt.flat"
    )
