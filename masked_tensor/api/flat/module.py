"""``flat``: a module that runs without padding when it is given a masked batch."""

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
    """Make a module run without padding: given a masked batch, it computes only the valid steps.

    The module is changed in place. The steps of all sequences enter it as one row ``(1, N, ...)``, attention is
    restricted to each sequence, and outputs with the token dimension are returned as packed masked tensors. Inside, all
    tensors are plain. This works for transformers of torch, of Hugging Face and of your own that call
    ``scaled_dot_product_attention``, and for modules that process each step by itself, such as embeddings, norms,
    feed-forward layers and heads.

    The first call runs two short sequences together and alone, in evaluation mode, and raises if the results differ.

    Plain inputs run as before, even with an ``attention_mask``: call Hugging Face models as
    ``model(**mt.from_attention_mask(batch))``. Plain tensors ``(B, T, ...)`` beside a masked batch are flattened with
    it; others are passed on. Integer ``labels`` have the shape of the batch, or one label per sequence.
    ``torch.compile`` works around the module and inside it.

    Args:
        module (torch.nn.Module): The module to change in place: its class is replaced by a subclass. Parameters and the
            keys of its state do not change.
        on (bool, optional): False undoes the change. Default: True.
        check (bool, optional): False skips the comparison at the first call. Results are then correct only if unmasked
            attention is the only op that mixes time steps. Default: True.

    Returns:
        torch.nn.Module: ``module``.

    Raises:
        TypeError: ``module`` is not a module, or ``on`` is not a bool.
        ValueError: At a call, a step is missing within a sequence of a batch that knows its lengths.
        ValueError: At a call, two inputs have different lengths, or integer ``labels`` another shape than the batch.
        ValueError: At a call, attention is called with a mask.
        UnsupportedOpError: At a call, the module mixes sequences.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        >>> model = mt.flat(model).eval()
        >>> x = mt.from_lengths(torch.randn(2, 5, 8), [5, 3])
        >>> y = model(x)
        >>> y.shape, y.is_packed, y.lengths()
        (torch.Size([2, 5, 8]), True, tensor([5, 3]))
        >>> alone = model(x.unpad()[1][None])  # a plain sequence, as before
        >>> torch.allclose(y.unpad()[1], alone[0], atol=1e-5)
        True

    See also:
        :func:`packed`, :func:`from_flat`.
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"mt.flat expects a torch.nn.Module, got {type(module).__name__}")
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
