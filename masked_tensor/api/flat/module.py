"""``flat``: a module that runs on plain tokens when it is given a masked batch."""

from functools import cache, wraps
from typing import Any, TypeVar

import torch
from torch import nn

from . import heads, parts, transformers
from .classes import heir, put, take_back, wrapped_module
from .compiled.traced import call_compiled
from .eager import call
from .verified import Way

Module = TypeVar("Module", bound=nn.Module)


def flat(module: Module, on: bool = True, *, check: bool = True) -> Module:
    """Make a module skip padding: given a masked batch, it runs on the steps that exist.

    It is changed in place. The steps of all sequences enter as one row ``(1, N, ...)``. Attention is kept within each
    sequence, and outputs that have the token dimension come back as packed masked tensors. No masked op runs inside. It
    serves transformers of torch, of Hugging Face and of your own that call ``scaled_dot_product_attention``, and
    modules that treat each step by itself: embeddings, norms, feed-forwards, heads.

    At the first call, two short sequences are run together and alone, in evaluation mode, and a module that does not
    keep them apart raises. Plain inputs run as before, also with an ``attention_mask``: call Hugging Face's models as
    ``model(**mt.from_attention_mask(batch))``. Plain tensors ``(B, T, ...)`` beside a masked batch are flattened with
    it, others are passed on. Integer ``labels=`` have the shape of the batch, or one label for each sequence.
    ``torch.compile`` works around it and inside of it.

    Args:
        module (torch.nn.Module): Is changed in place: its class is replaced by a subclass. Keys of its state and its
            parameters stay as they are.
        on (bool, optional): False undoes it.
        check (bool, optional): False leaves out the comparison. Results are then those of each sequence alone only if
            the module's one op over time is attention without a mask of its own.

    Returns:
        torch.nn.Module: ``module``.

    Raises:
        TypeError: ``module`` is not a module, or ``on`` is not a bool.
        ValueError: When it is called: a step that exists is missing, two inputs have different lengths, integer
            ``labels=`` have another shape than the batch, or attention is called with a mask.
        UnsupportedOpError: When it is called: it does not keep sequences apart.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> model = mt.flat(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False))
        >>> y = model(mt.from_lengths(torch.randn(2, 5, 8), [5, 3]))
        >>> y.shape, y.is_packed, y.lengths()
        (torch.Size([2, 5, 8]), True, tensor([5, 3]))
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"mt.flat takes a torch.nn.Module, got {type(module).__name__}")
    if not isinstance(on, bool):
        raise TypeError(
            f"mt.flat(module, on): the second argument turns flat off or on, got {type(on).__name__}; to run the model "
            "call mt.flat(model)(x)"
        )
    wrapped = wrapped_module(module)
    if wrapped is not None:
        flat(wrapped, on, check=check)
    elif on:
        heads.prepare(module)
        transformers.prepare(module)
        module.__dict__["flat_way"] = Way(check)
        put(module, _flat_class)
    elif module.__dict__.pop("flat_way", None) is not None:
        heads.restore(module)
        transformers.restore(module)
        parts.restore(module)
        take_back(module)
    return module


@cache
def _flat_class(kind: Any) -> Any:
    @wraps(kind.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "flat_way" not in self.__dict__:  # undone, beneath a class that was built on top
            return kind.forward(self, *args, **kwargs)
        if torch.compiler.is_dynamo_compiling():
            return call_compiled(self, kind.forward, args, kwargs)
        return call(self, kind.forward, args, kwargs)

    return heir(kind, _flat_class, forward=forward)


__all__ = ["flat"]
