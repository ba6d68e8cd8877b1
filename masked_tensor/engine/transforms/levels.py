"""A masked tensor at a level of ``torch.func``: outermost, around data and a mask that the transforms have wrapped.

torch wraps whole tensors, so that its own formulas would differentiate a masked tensor before a rule could see it.
Here the wrappers are put around the data inside, and around the mask where it differs between the entries of a
``vmap``.  A rule then runs on plain tensors, and each of its ops goes through the transforms like any other.
"""

from typing import Any

import torch
from torch import Tensor

from ...compat import RUNNING, is_wrapped
from ...pair import Pair
from ..alias_records import UNALIASED
from ..boundary.enter_leave import enter, leave
from ..tensor import MaskedTensor, pair_of, wrap
from ..torch_keys import below_transforms, engine_is_skipped, skip_engine


def begin_level(level: int) -> None:
    """From here on this thread's ops with masked tensors are handed to the engine before ``torch.func`` has them."""
    RUNNING.levels = (*RUNNING.levels, (level, engine_is_skipped()))
    skip_engine(False)


def end_level(level: int) -> None:
    """Takes back ``begin_level``, unless an interrupt kept it from being called, and what an interrupt left behind."""
    for at in reversed(range(len(RUNNING.levels))):  # a transform that runs below others counts from 1 again
        begun, was_skipped = RUNNING.levels[at]
        if begun == level:
            RUNNING.levels = RUNNING.levels[:at]
            skip_engine(was_skipped or not at)
            return


def is_inside(pair: Pair) -> bool:
    """Whether a transform that still runs, or did, has wrapped the data or the mask."""
    return is_wrapped(pair.data) or is_wrapped(pair.mask)


def enter_level(x: MaskedTensor) -> Pair:
    """The pair inside ``x``; what was made outside of the transforms is read outside of them."""
    if x._packed is None and is_inside(x._pair):
        return pair_of(x)
    if x._packed is None and x._alias is UNALIASED and not x._tracks:
        return x._pair  # nothing to read anew, and nothing that autograd knows
    with below_transforms():
        pair: Pair = enter(x, torch.is_grad_enabled())
    return pair


def leave_level(pair: Pair) -> MaskedTensor:
    """A masked tensor around ``pair``, of the transforms that still run; outside of them one that autograd knows."""
    if is_inside(pair):
        return wrap(pair)
    with below_transforms():
        result: MaskedTensor = leave(pair)
    return result


def refresh(x: Any) -> None:
    """Reads what was written to ``x`` below the transforms, where it was written."""
    if (
        type(x) is MaskedTensor
        and x._alias.family is not None
        and x._alias.version_seen != x._alias.family.version
        and not is_inside(x._pair)
    ):
        with below_transforms():
            pair_of(x)


def map_pair(x: MaskedTensor, data: Any, mask: Any) -> MaskedTensor:
    """``x`` with what two functions make of its data and its mask, at the level that they lead to."""
    pair = enter_level(x)
    return leave_level(Pair(data(pair.data), mask(pair.mask), pair.payload))


def is_masked(x: Any) -> bool:
    """Whether ``x`` is a masked tensor."""
    return type(x) is MaskedTensor


def data_of(x: Any) -> Tensor:
    """The data of a masked tensor; anything else as it is."""
    data: Tensor = pair_of(x).data if type(x) is MaskedTensor else x
    return data
