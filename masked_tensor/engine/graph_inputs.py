"""Writes into the inputs of a graph that is being compiled.

A graph may change the data of its input, but not its mask, which others share, nor what is promised of its masked-out
data. Whether a write leaves the mask as it is cannot be told while compiling, where two masks are two inputs: an
optimizer writes gradients into parameters that are masked in the same places.  So the graph asks when it runs, in an op
of its own, on whose result the write depends: nothing that depends on a result is left out of a graph.
"""

from typing import Any

import torch
from torch import Tensor

from .. import masks
from ..compat import is_functional_tensor
from ..errors import UnsupportedOpError
from ..kernels.attention.graph_library import LIBRARY
from ..pair import Pair, Payload
from ..select import select
from .packed_pair import UNPACKED_COPY

LIBRARY.define("unchanged(Tensor old, Tensor new) -> Tensor")


def _check_unchanged(old: Tensor, new: Tensor) -> Tensor:
    """The bytes of a mask, ``old``, which those of the mask that it would become, ``new``, must equal."""
    torch._assert_async(  # a GPU raises when it gets there: the host does not wait
        (old == new).all(),
        "a compiled function cannot change the validity of its input in place: assign to a clone (x = x.clone()) and "
        "return that",
    )
    return old.clone()


LIBRARY.impl("unchanged", _check_unchanged, "CompositeExplicitAutograd")
torch.library.register_fake("masked_tensor::unchanged", lambda old, new: torch.empty_like(old), lib=LIBRARY)


def kind_of(x: Any) -> Any:
    """What kind of input of the graph ``x`` is or belongs to, as ``_graph_input`` says; False if it is none."""
    return x._graph_input or (x._alias.family is not None and x._alias.family.graph_input)


def check_not_input(x: Any) -> None:
    """Raises if a write to ``x``, recorded by autograd, is one to an input: who reads it later would not know of it."""
    if kind_of(x):
        raise UnsupportedOpError(
            "a compiled function cannot write into its input in place where autograd records it: assign to a clone "
            "(x = x.clone()) and return that, or write under torch.no_grad()"
        )


def check_may_set_hardness(x: Any) -> None:
    """Raises if ``x`` is an input: a graph returns data and masks, so that nobody outside would know."""
    if kind_of(x):
        raise UnsupportedOpError(
            "a compiled function cannot harden or soften the mask of its input: do it outside of the compiled "
            "function, or to a clone (x = x.clone())"
        )


def packed_input_error() -> UnsupportedOpError:
    """A write into a packed input would be lost: the graph has its values, which are never written, or a copy."""
    return UnsupportedOpError(
        "a compiled function cannot write into a packed input in place: assign to a clone (x = x.clone()) and return "
        "that, or call it with x.unpacked()"
    )


def write_input(pair: Pair, new: Pair, into: Any) -> Pair:
    """What is written into the input that is ``pair`` in order to write ``new``; ``into``: what kind of input it is."""
    if into is UNPACKED_COPY:
        raise packed_input_error()
    # The graph's own code is asked.  What it wrote is copied into the input once more by the tracer, whose masks are
    # computed anew from their bytes.
    if is_functional_tensor(pair.data) and not masks.same_memory(masks.expand_to(new.mask, pair.data.shape), pair.mask):
        old, wanted = torch.broadcast_tensors(masks.compact(pair.mask), masks.compact(new.mask))
        small = torch.ops.masked_tensor.unchanged(old.to(torch.uint8), wanted.to(torch.uint8))
        mask = masks.expand_to(masks.from_bytes(small), pair.data.shape)
        return Pair(torch.where(mask, new.data, pair.data), pair.mask, pair.payload)
    zero = pair.payload is Payload.ZERO and new.payload is not Payload.ZERO
    return Pair(select(new.data, pair.mask, 0) if zero else new.data, pair.mask, pair.payload)
