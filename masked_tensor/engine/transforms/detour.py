"""Above ``torch.func``: ops without masked tensors go torch's way, the others to their rules, with all levels in place.

``torch.func`` catches every op before a subclass can see it.  torch's Python dispatcher is asked before that; it is on
only while a transform runs, and there is none until the first masked tensor of the process is made.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch

from ... import errors
from ...compat import RUNNING, OpOverload
from ...pair import Pair
from ...patches.transforms import PythonDispatcherOff
from ...rules.foreach import LOOPS
from .. import alias_family, table
from ..alias_members import write
from ..boundary.enter_leave import enter
from ..dispatch import make_kernel, masked_arguments, run_op
from ..table import Entry
from ..tensor import MaskedTensor, pair_of
from ..torch_keys import autocast_key, call_at, foreach_loop, is_composite
from ..writes.recorded import check_writable
from .each import run_each, top_is_vmap
from .levels import enter_level, is_inside, refresh

KERNELS: dict[OpOverload, Callable[..., Any]] = {}  #: what an op with a masked tensor is handed to


def detour(op: OpOverload, otherwise: Any) -> Callable[..., Any]:
    """What the Python dispatcher calls in place of ``torch.func``."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if not RUNNING.levels:  # another use of the Python dispatcher
            return otherwise(*args, **kwargs) if callable(otherwise) else call_at(op, otherwise)(*args, **kwargs)
        if not (_any_masked(args) or (kwargs and _any_masked(kwargs.values()))):
            with PythonDispatcherOff():
                return op(*args, **kwargs)
        return _run_masked(op, args, kwargs)

    return run


def _any_masked(values: Iterable[Any]) -> bool:
    for v in values:
        kind = type(v)
        if kind is MaskedTensor or ((kind is list or kind is tuple) and _any_masked(v)):
            return True
    return False


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
            return op.decompose(*args, **kwargs)
        else:
            raise errors.unsupported(op.name(), masked_arguments(op, args, kwargs))
        KERNELS[op] = kernel
    with PythonDispatcherOff():
        return kernel(*args, **kwargs)


def _run_inplace(entry: Entry, target: Any, *args: Any, **kwargs: Any) -> Any:
    """``target.op_(...)``: the transforms record what is written into the data, and autograd nothing."""
    if type(target) is not MaskedTensor or entry.view or entry.op.detaches or target._packed is not None:
        return run_op(entry, (target, *args), kwargs, torch.is_grad_enabled())
    if not is_inside(pair_of(target)):
        raise errors.write_outside_transform(entry.overload.name())
    old = enter_level(target)
    old = Pair(old.data.clone(), old.mask, old.payload)  # what the rule saves for backward stays
    new = entry.rule(old, *(enter(a, True) for a in args), **{k: enter(v, True) for k, v in kwargs.items()})
    if new is not old:
        if target._family is not None:
            new = alias_family.keep_hard(pair_of(target), target._family, new)
        check_writable(target, new.data.shape, new.data.dtype, None)
        write(target, new)
    return target
