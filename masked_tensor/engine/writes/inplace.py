"""Calls that write: in place, or into ``out=``.

A masked target takes data and validity; a plain one has no place for a mask.
"""

from typing import Any

import torch
from torch import Tensor

from ... import errors, layouts, masks
from ...compat import in_transform, schema, tree_leaves
from ...op import NoRule
from ...packing import Packed
from ...packing.grid import same_places
from ...pair import Pair, plain_pair
from ...settings import current
from ..alias_records import history_of
from ..aliases import detach
from ..boundary import packed as packed_boundary
from ..boundary import packing_report as report
from ..boundary.enter_leave import enter
from ..boundary.sparse import run_sparse_rule, sparse_error
from ..table import Entry
from ..tensor import STRIDED, MaskedTensor, pair_of, set_pair
from . import packed_views
from .recorded import change_geometry, check_writable, write_recorded


def run_inplace(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """``x.op_(...)``."""
    target = args[0]
    if type(target) is not MaskedTensor:
        return _write_plain(entry, args, kwargs, recording)
    if entry.op.detaches:
        return detach(target, packed_views.is_view(target))
    if target._packed is not None or target._view is not None:
        packed_views.check_seen(target)
        if target._packed is not None and packed_views.can_replace(target, recording, args):
            try:
                return _write_packed(entry, args, kwargs, recording)
            except NoRule:
                report.report_unpack(entry, args, kwargs)
        return packed_views.write_unpacked(target, run_inplace, entry, args, kwargs, recording)
    old = enter(target, recording)
    if old.data.layout is not STRIDED:
        return _write_sparse(target, entry, args, kwargs, recording)
    if entry.op.same and _is_expanded_alike(target, args[1:]):
        return _write_once(entry, args, kwargs, recording)
    if entry.view:
        return change_geometry(
            target, entry.rule(old, *args[1:], **kwargs), schema(entry.overload).name.rpartition("::")[2]
        )
    rest = [enter(a, recording) for a in args[1:]]
    if layouts.any_sparse(rest):
        raise sparse_error(entry.overload, rest, {}, "what is written into is strided") or AssertionError
    if recording and (old.data.requires_grad or _any_tracked(rest)):
        old = Pair(old.data.clone(), old.mask, old.payload)  # the rule may save it for backward, and it is overwritten
    if kwargs:
        kwargs = {k: enter(v, recording) for k, v in kwargs.items()}
    new = entry.rule(old, *rest, **kwargs)
    if new.data.dtype is not old.data.dtype and new.data.shape == old.data.shape:
        _refuse_as_torch(entry, args, kwargs, new.data.dtype)
    return target if new is old else write_recorded(target, new)  # dropout in evaluation writes nothing


def _any_tracked(entered: list[Any]) -> bool:
    """Whether autograd records one of these arguments, which were entered."""
    for a in entered:  # on every op's way: a generator costs three times as much
        data = a.data if type(a) is Pair else a
        if isinstance(data, Tensor) and data.requires_grad:
            return True
    return False


@torch.no_grad()
def _refuse_as_torch(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> None:
    """Raises what torch raises where its op gives a dtype that the target cannot hold: run on nothing, as the dtypes.

    A rule computes the op that is not in place, of which torch's own asks less.
    """
    if (
        not kwargs
        and torch.can_cast(dtype, args[0].dtype)
        and all(isinstance(a, Tensor | int | float | complex) for a in args)
    ):
        entry.overload(*(torch.empty((0,) * a.dim(), dtype=a.dtype) if isinstance(a, Tensor) else a for a in args))


def _is_expanded_alike(target: MaskedTensor, rest: tuple[Any, ...]) -> bool:
    """Whether several entries lie in one place of memory, and what is written is the same for them."""
    shared = _shared(target)
    sources = [a for a in rest if isinstance(a, Tensor) and a.dim()]
    return bool(shared) and all(a.shape == target.shape and not any(a.stride(d) for d in shared) for a in sources)


def _write_once(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """``x.fill_(value)`` where several entries lie in one place of memory: each place is written once.

    A place is written if one of its entries is valid.  Where the validity changes there is one for each place from now
    on: that of a place is valid if all of its entries are.
    """
    target, once = args[0], list(args)
    for k, a in enumerate(args):
        for dim in _shared(target) if isinstance(a, Tensor) and a.dim() else ():
            once[k] = once[k].narrow(dim, 0, 1)
    pair, family = pair_of(once[0]), target._alias.family
    reduce = masks.all if any(type(a) is MaskedTensor for a in args[1:]) else masks.any
    mask = masks.forget_facts(reduce(pair_of(target).mask, _shared(target), True))  # it is not the old one of all
    set_pair(once[0], Pair(pair.data, mask, pair.payload))
    root = family.root
    if family.buffer is None and _shared(root.data):
        mask = masks.all(root.mask, _shared(root.data), True)
        family.root = Pair(root.data, mask.expand(root.data.shape), root.payload)
    try:
        run_inplace(entry, tuple(once), kwargs, recording)
    finally:
        if family.buffer is None:
            family.root = root
    return target


def _shared(x: Tensor) -> list[int]:
    """The dimensions along which the entries lie in one place of memory."""
    return [dim for dim, (stride, size) in enumerate(zip(x.stride(), x.shape, strict=True)) if stride == 0 and size > 1]


def _write_packed(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """An in-place op on a packed tensor of which nobody sees a part: within its tokens, it takes a new record."""
    target = args[0]
    new = None if entry.view else packed_boundary.run_packed_rule(entry, args, kwargs, recording)
    if new is target:
        return target
    if type(new) is not Packed or new.shape != tuple(target.shape):
        raise NoRule
    if not (entry.op.replaces or same_places(new.grid, target._packed.grid)):
        raise NoRule
    check_writable(target, target.shape, new.values.dtype, None)
    if not packed_views.replace_in_aliases(target, packed_boundary.without_history(new, target.dtype)):
        packed_boundary.rebind(target, new)
    return target


def _write_plain(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """A plain target takes a 0-d operand as the number it holds (``t[i] = loss``); a mask it cannot hold."""

    if entry.op.conditions is not None and not current().strict:
        given = args[1]
        entered = enter(given, False) if isinstance(given, Tensor) else [enter(k, False) for k in given]
        keys = entry.op.conditions(entered)
        args = args if keys is None else (args[0], keys, *args[2:])

    def number(value: Any) -> Any:
        pair = enter(value, recording)
        if type(pair) is not Pair:
            if isinstance(value, list | tuple) and any(type(v) is MaskedTensor for v in value):
                raise errors.plain_target(entry.overload.name())
            return value
        if (
            current().strict
            or pair.data.dim() != 0
            or type(pair.mask) is not Tensor
            or pair.mask.is_meta
            or in_transform()
        ):
            raise errors.plain_target(entry.overload.name())
        if not pair.mask:
            raise errors.masked_scalar(entry.overload.name())
        return pair.data

    return entry.overload(*(number(a) for a in args), **{k: number(v) for k, v in kwargs.items()})


def _write_sparse(
    target: MaskedTensor, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool
) -> MaskedTensor:
    """An in-place op on sparse data: untracked, and within the pattern (autograd's gradient adds are of this kind)."""
    if recording and any(isinstance(a, Tensor) and a.requires_grad for a in args):
        raise RuntimeError(
            f"{entry.overload.name()} on a sparse masked tensor that autograd tracks: use x = op(x, ...)"
        )
    new = run_sparse_rule(entry, [enter(a, False) for a in args], {k: enter(v, False) for k, v in kwargs.items()})
    old = target._pair
    target._pair = layouts.both_valid(old, new)  # while the data is written
    try:
        target._pair = layouts.overwrite(old, new)
    except Exception:
        target._pair = old
        raise
    return target


def run_out(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """``op(..., out=x)``."""
    arguments = schema(entry.overload).arguments
    named = dict(zip((a.name for a in arguments), args, strict=False)) | kwargs
    targets = [named.pop(name) for name in entry.outs]
    if any(type(t) is not MaskedTensor for t in targets):
        raise errors.plain_target(entry.overload.name())
    tensors = [t for t in tree_leaves(named) if isinstance(t, Tensor)]
    if recording and any(t.requires_grad for t in [*targets, *tensors]):
        name = schema(entry.overload).name.rpartition("::")[2]
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    sparse = sparse_error(entry.overload, (named, targets), {}, "out= would have to be stored anew")
    if sparse is not None:
        raise sparse
    if any(type(t) is MaskedTensor for t in tensors):
        positional = [enter(named.pop(a.name), False) for a in arguments if not a.kwarg_only and a.name in named]
        rest = {k: enter(v, False) for k, v in named.items()}
        result = entry.rule(*positional, **rest)
        results = result if isinstance(result, (list, tuple)) else (result,)
    else:
        results = _of_plain(entry, named, targets)
    said = named.get("dtype") is not None
    for target, new in zip(targets, results, strict=True):
        if said and new.data.dtype is not target.dtype:  # as in torch; without dtype= a result is cast
            raise RuntimeError(f"Expected out tensor to have dtype {new.data.dtype}, but got {target.dtype} instead")
        _check_out(target, new)
    for target, new in zip(targets, results, strict=True):
        packed_views.write_unpacked(target, write_recorded, target, new)
    return targets[0] if len(targets) == 1 else tuple(targets)


def _of_plain(entry: Entry, named: dict[str, Any], targets: list[MaskedTensor]) -> list[Pair]:
    """The results of plain arguments, for which a rule is not made: torch's own, valid everywhere."""
    # of the target's shape: torch.normal(mean, 1.0, out=) does not resize an empty one
    fresh = [torch.empty(target.shape, dtype=target.dtype, device=target.device) for target in targets]
    entry.overload(**named, **dict(zip(entry.outs, fresh, strict=True)))
    return [plain_pair(data) for data in fresh]


def _check_out(target: MaskedTensor, new: Pair) -> None:
    if target.shape != new.data.shape:
        raise RuntimeError(
            f"out has shape {list(target.shape)} but the result has shape {list(new.data.shape)}; a masked out= "
            "cannot be resized, pass one of the result's shape"
        )
    packed_views.check_seen(target)
    history = history_of(target)
    check_writable(target, new.data.shape, new.data.dtype, history.base() if history is not None else None)
