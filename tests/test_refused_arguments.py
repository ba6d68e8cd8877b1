"""What torch refuses of plain tensors is refused of masked ones: another shape, a condition as positions, a number.

A rule of several ops broadcasts, pads and reshapes, and would take shapes that torch's kernel refuses.  A small run by
default; ``MASKED_TENSOR_REFUSED=6`` samples of each entry for the long one.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

import masked_tensor as mt

from .helpers import database
from .oracles import ORACLES

SAMPLES = int(os.environ.get("MASKED_TENSOR_REFUSED", "1"))
TAKEN = {
    ("nn.functional.multilabel_soft_margin_loss", "a slice"): "a score without dimensions is one of one class",
    ("nn.functional.scaled_dot_product_attention", "a slice"): "a mask of the keys alone is broadcast",
    ("native_group_norm", "transposed"): "the order of memory does not matter",
    ("_unsafe_masked_index", "a condition"): "the op of a gradient, which torch's compiler calls with positions",
    ("_unsafe_masked_index_put_accumulate", "a condition"): "the same",
}
# torch reads memory that is not there, of lengths that do not add up: the process may end.
CRASHES = ("_segment_reduce.lengths", "_segment_reduce.offsets")
NAMES = sorted(name for name in ORACLES if name in database.ENTRIES and name not in CRASHES)


def others(x: Any) -> Iterator[tuple[str, Any]]:
    """What may be given by mistake in place of ``x``."""
    if isinstance(x, torch.dtype):
        yield "of integers", torch.int32
    elif isinstance(x, int | float) and not isinstance(x, bool):
        yield "greater", x + 7
        yield "negative", -x - 9
    elif isinstance(x, str):
        yield "of no meaning", "nonsense"
    elif isinstance(x, Tensor):
        yield from _other_tensors(x)


def _other_tensors(x: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield "one dimension more", x.unsqueeze(0)
    if x.dim():
        yield "twice as long", torch.cat([x, x], 0)
        if x.shape[0]:
            yield "a slice", x[0]
        if x.shape[0] > 1:
            yield "shorter", x[:-1]
    if x.dim() > 1:
        yield "transposed", x.transpose(0, -1)
        if x.shape[-1] > 1:
            yield "narrower", x[..., :-1]
    if x.dtype is torch.int64:
        yield "a condition", x.bool()


def raises(op: Any, leaves: list[Any], spec: Any, masked: set[int]) -> Exception | None:
    """The error of the call; ``masked`` are the numbers of the arguments that are masked tensors, all of them valid."""
    given = [x.clone() if isinstance(x, Tensor) else x for x in leaves]
    given = [
        mt.as_masked_tensor(x, torch.ones(x.shape, dtype=torch.bool)) if k in masked else x for k, x in enumerate(given)
    ]
    args, kwargs = tree_unflatten(given, spec)
    try:
        op(*args, **kwargs)
    except Exception as error:
        return error
    return None


def taken(name: str) -> Iterator[str]:
    """The calls of an entry that torch refuses, and masked tensors do not."""
    for sample in database.samples(name, limit=SAMPLES, forms=True):
        leaves, spec = tree_flatten((sample.args, sample.kwargs))
        tensors = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
        if any(leaves[k].layout is not torch.strided for k in tensors):
            continue
        for k, leaf in enumerate(leaves):
            for how, other in others(leaf):
                call = [*leaves[:k], other, *leaves[k + 1 :]]
                error = raises(sample.op, call, spec, set())
                if error is None or (name, how) in TAKEN:
                    continue
                for masked in ({*tensors}, {k} & {*tensors}, {*tensors} - {k}):
                    if masked and raises(sample.op, call, spec, masked) is None:
                        yield f"{name}, argument {k} {how}: {error}"
                        break


@pytest.mark.filterwarnings("ignore")  # of torch, of broadcast losses and reductions of nothing
@pytest.mark.parametrize("part", range(4))
def test_what_torch_refuses_is_refused(part: int) -> None:
    found = [call for name in NAMES[part::4] for call in taken(name)]
    assert not found, "\n".join(found)
