"""Above ``torch.func``: ops with masked tensors go to their rules, with all levels in place.

``torch.func`` catches every op before a subclass can see it.  A masked tensor has a dispatch key that comes before
that; every op has a kernel there, from the first transform on that runs after the first masked tensor was made.  Plain
tensors do not have the key.  A thread in which no transform runs excludes it.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from ... import errors
from ...compat import RUNNING, OpOverload, is_wrapped, operator_names, tree_leaves
from ...pair import Pair
from ...rules.foreach import LOOPS
from .. import table
from ..aliases import keep_hard, write
from ..boundary.enter_leave import enter
from ..dispatch import make_kernel, masked_arguments, run_op
from ..table import Entry
from ..tensor import MaskedTensor, pair_of
from ..torch_keys import (
    ABOVE_TRANSFORMS,
    autocast_key,
    below_transforms,
    call_at,
    composed,
    find_op,
    foreach_loop,
    is_composite,
    library,
    not_caught,
    only_vmap_runs,
    skip_engine,
    transform_count,
    unregister,
)
from ..writes.recorded import check_writable
from .each import run_each, top_is_vmap
from .levels import enter_level, is_inside, refresh

KERNELS: dict[OpOverload, Callable[..., Any]] = {}  #: what an op with a masked tensor is handed to
_REGISTERED: set[str] = set()


def let_pass() -> None:
    """Has every op go torch's way, until ``register_kernels``."""
    unregister(ABOVE_TRANSFORMS)
    library("_", ABOVE_TRANSFORMS).fallback(torch.library.fallthrough_kernel, ABOVE_TRANSFORMS)


def register_kernels() -> None:
    """Gives every op its kernel above ``torch.func``; once, and again when the table has new ops."""
    _register(len(table.ENTRIES))


@cache
def _register(size: int) -> None:
    for full in operator_names():
        if full not in _REGISTERED:
            _REGISTERED.add(full)
            bare: Any = library(full).m  # torch checks nothing here that could be wrong
            bare.impl(full.partition("::")[2], ABOVE_TRANSFORMS, partial(_caught, full), False)


def _caught(name: str, *args: Any, **kwargs: Any) -> Any:
    op = find_op(name)
    if RUNNING.levels:
        if transform_count() < len(RUNNING.levels) and not RUNNING.below:  # torch.func has taken levels off before
            raise errors.operator_in_transform()
        return _run_masked(op, args, kwargs)
    skip_engine(True)  # a thread in which no transform has run so far
    return op(*args, **kwargs)


def _run_masked(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    for v in (*args, *kwargs.values()):
        for x in v if isinstance(v, (list, tuple)) else (v,):
            refresh(x)
    entry = table.ENTRIES.get(op)
    if entry is not None and entry.op.each and top_is_vmap():
        return run_each(op, args, kwargs)
    key = autocast_key(op, (*args, *kwargs.values()))
    if key is not None:
        return call_at(op, key)(*args, **kwargs)
    kernel = KERNELS.get(op)
    if kernel is None:
        if entry is not None:
            kernel = partial(_run_inplace, entry) if entry.kind == "inplace" else make_kernel(entry)
        elif op.name() in LOOPS:
            return foreach_loop(op)(*args, **kwargs)
        elif is_composite(op):
            return composed(op)(*args, **kwargs)
        else:
            raise errors.unsupported(op.name(), masked_arguments(op, args, kwargs))
        KERNELS[op] = kernel
    with not_caught():
        return kernel(*args, **kwargs)


def _is_inside(x: Any) -> bool:
    return isinstance(x, Tensor) and (is_inside(pair_of(x)) if type(x) is MaskedTensor else is_wrapped(x))


def _run_inplace(entry: Entry, target: Any, *args: Any, **kwargs: Any) -> Any:
    """``target.op_(...)``: the transforms record what is written into the data, and autograd nothing."""
    if type(target) is not MaskedTensor or entry.view or entry.op.detaches or target._packed is not None:
        return run_op(entry, (target, *args), kwargs, torch.is_grad_enabled())
    if not is_inside(pair_of(target)):
        if not only_vmap_runs() or any(map(_is_inside, tree_leaves((args, kwargs)))):
            raise errors.write_outside_transform(entry.overload.name())
        with below_transforms():  # the same write for each entry of the batch, as torch has it
            return run_op(entry, (target, *args), kwargs, torch.is_grad_enabled())
    old = enter_level(target)
    old = Pair(old.data.clone(), old.mask, old.payload)  # what the rule saves for backward stays
    new = entry.rule(old, *(enter(a, True) for a in args), **{k: enter(v, True) for k, v in kwargs.items()})
    if new is not old:
        new = keep_hard(target, new)
        check_writable(target, new.data.shape, new.data.dtype, None)
        write(target, new)
    return target
