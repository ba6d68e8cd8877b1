"""The two ways in which ops reach the table.

1. The autograd key (normal case): one kernel per overload at ``AutogradPrivateUse3``, above autograd.
2. The safety net, ``__torch_dispatch__``: inference mode, autograd's own gradient adds, functorch and tracing.

Both look up the same entry and do the same three things: enter, rule, leave.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, is_grad_enabled, is_inference_mode_enabled

from .. import errors, layouts
from ..compat import OpOverload, in_transform, is_readable_memory, mode_is_active, schema, tree_leaves
from ..op import NoRule, Op, StorageRule
from ..packing.kinds import elementwise as packed_elementwise
from ..pair import Pair
from ..rules.foreach import LOOPS
from ..rules.matmul import AT_ONCE
from ..sparse.rules import on_values
from . import table
from .alias_records import UNALIASED
from .aliases import copy_hardness
from .boundary import lengths, vmap
from .boundary import packed as packed_boundary
from .boundary import packing_report as report
from .boundary.enter_leave import enter, enter_each, enter_masked, leave, record_closed, watch_grad_fn
from .boundary.packed import SEQUENCES
from .boundary.sparse import run_sparse_rule, sparse_error
from .compiled import cache_key
from .rule_checks import check_results, refuse_masked
from .table import Entry
from .tensor import STRIDED, MaskedTensor, add_members, wrap
from .torch_keys import (
    DISPATCH_KEY,
    as_autocast,
    below_autograd,
    find_op,
    foreach_loop,
    in_autocast_block,
    is_composite,
    is_factory,
    library,
    register,
    unregister,
)
from .writes import asynchronous, inplace, packed_views, views


def run_op(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool, padded: bool = False) -> Any:
    """Runs one op: enter, rule, leave.  ``padded``: not by a packed rule."""
    if entry.kind != "functional":
        if entry.kind == "inplace":
            return inplace.run_inplace(entry, args, kwargs, recording)
        if entry.kind == "out":
            return inplace.run_out(entry, args, kwargs, recording)
        return asynchronous.receive(entry, args, kwargs)
    if not padded and (packed_boundary.any_packed(args) or (kwargs and packed_boundary.any_packed(kwargs.values()))):
        try:
            return _run_packed(entry, args, kwargs, recording)
        except NoRule:
            report.report_unpack(entry, args, kwargs)
            packed_views.unpack_before_write(entry, args)
            result = run_op(entry, args, kwargs, recording, True)
            return result if result is args[0] else _keep_lengths(entry, args, kwargs, result)
    if entry.view and type(args[0]) is MaskedTensor:
        return views.run_view(entry, args, kwargs, recording)
    pairs = [enter(a, recording) for a in args]
    if kwargs:
        kwargs = {k: enter(v, recording) for k, v in kwargs.items()}
    result = run_sparse_rule(entry, pairs, kwargs) if layouts.any_sparse(pairs) else entry.rule(*pairs, **kwargs)
    if result is pairs[0]:  # nothing to do: the tensor itself, as in torch
        return args[0]
    result = leave(result)
    if entry.op.copies:
        copy_hardness(args[0], result)
    return result


def _keep_lengths(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
    """The result of an op that unpacked its arguments, with their lengths."""
    kept = lengths.keep_of_op(entry, args, kwargs, result)
    if kept is not result and entry.op.copies:
        copy_hardness(args[0], kept)
    if kept is not result and entry.view:
        packed_views.add_view(kept, args[0], entry, args[1:], kwargs)
    return kept


def _run_packed(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """As below, by the op's packed rule: a packed tensor and its views share no memory until one is written."""
    for a in args:
        if recording and type(a) is MaskedTensor and (a._tracks or (a._alias.history is not None and a.requires_grad)):
            watch_grad_fn(a)
    result = packed_boundary.run_packed_rule(entry, args, kwargs, recording)
    if result is args[0]:
        return result
    result = leave(result)
    if entry.op.copies:
        copy_hardness(args[0], result)
    if entry.view:
        packed_views.add_view(result, args[0], entry, args[1:], kwargs)
    return result


def make_kernel(entry: Entry) -> Callable[..., Any]:
    """What a call of the entry's overload is handed to."""
    if entry.kind == "functional" and not entry.view:
        return _make_copying_kernel(entry) if entry.op.copies else _make_fast_kernel(entry)
    if entry.kind == "functional" and entry.view and entry.single and not entry.op.copies:
        return _make_view_kernel(entry)

    run = inplace.run_inplace if entry.kind == "inplace" else run_op

    def kernel(*args: Any, **kwargs: Any) -> Any:
        return run(entry, args, kwargs, is_grad_enabled())

    return kernel


def _make_view_kernel(entry: Entry) -> Callable[..., Any]:
    """The kernel of a view whose only tensor is what it is a view of: as in ``run_op``, without its calls."""

    def view(*args: Any, **kwargs: Any) -> Any:
        recording = is_grad_enabled()
        if type(args[0]) is MaskedTensor and args[0]._packed is None:
            return views.run_view(entry, args, kwargs, recording)
        return run_op(entry, args, kwargs, recording)

    return view


def _make_fast_kernel(entry: Entry) -> Callable[..., Any]:
    """The kernel of most ops: as in ``run_op``, without its calls."""
    rule, closed = entry.rule, entry.op.closed
    tensors = [a for a in schema(entry.overload).arguments if "Tensor" in str(a.type)]
    named_tensors = any(a.kwarg_only for a in tensors)
    lists = SEQUENCES if any("List" in str(a.type) for a in tensors) else ()

    def functional(*args: Any, **kwargs: Any) -> Any:
        recording = is_grad_enabled()
        pairs: list[Any] = []
        for a in args:
            kind = type(a)
            if kind is MaskedTensor:
                if a._packed is not None:
                    return run_op(entry, args, kwargs, recording)
                if a._alias is UNALIASED:
                    if not (recording and a._tracks):
                        a = a._pair
                    elif closed is None or kwargs or (found := closed(a._pair, *args[1:])) is None:
                        a = enter_masked(a, True)
                    else:
                        return record_closed(enter_masked(a, True).data, *found)
                elif a._steps is not None:  # what was packed with its lengths, and written
                    return run_op(entry, lengths.pack_arguments(args), kwargs, recording)
                else:
                    a = enter_masked(a, recording)
                if a.data.layout is not STRIDED:
                    return run_op(entry, args, kwargs, recording)
            elif kind in lists:
                a = enter_each(a, recording)
                if a is None or layouts.any_sparse(a):
                    return run_op(entry, args, kwargs, recording)
            pairs.append(a)
        if kwargs and named_tensors:
            kwargs = {k: enter(v, recording) for k, v in kwargs.items()}
        result = rule(*pairs, **kwargs) if kwargs else rule(*pairs)
        if result is pairs[0]:  # a rule's way to say: the tensor itself
            return args[0]
        return wrap(result) if type(result) is Pair and not result.data.requires_grad else leave(result)

    return functional


def _make_copying_kernel(entry: Entry) -> Callable[..., Any]:
    """The kernel of a copy, whose mask is as hard as that of its argument."""
    functional = _make_fast_kernel(entry)

    def copying(*args: Any, **kwargs: Any) -> Any:
        result = functional(*args, **kwargs)
        if result is not args[0]:
            copy_hardness(args[0], result)
        return result

    return copying


def _make_kernel_at_once(op: OpOverload, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an op that torch takes apart: the rule for strided tensors, where it serves and nobody traces."""

    def at_once(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for a in args for t in (a if isinstance(a, list | tuple) else (a,)) if isinstance(t, Tensor)]
        if not mode_is_active() and not in_transform() and all(map(_is_usual, tensors)):
            recording = is_grad_enabled()
            try:
                return leave(rule(op, *(enter(a, recording) for a in args), **kwargs))
            except NoRule:
                pass
        return op.decompose(*args, **kwargs)

    return at_once


def _is_usual(x: Tensor) -> bool:
    """Whether it is plain memory, or a masked tensor of such."""
    if type(x) is not MaskedTensor:
        return is_readable_memory(x)
    return x._packed is None and is_readable_memory(x._pair.data)


def torch_dispatch(
    cls: type, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """``__torch_dispatch__``: the same table, below autograd."""
    kwargs = kwargs or {}
    entry = table.ENTRIES.get(func)
    recording = is_grad_enabled()
    if entry is not None and not recording and not is_inference_mode_enabled():
        return run_op(entry, args, kwargs, recording=False)  # the engine's own calls: no context to enter
    if func is torch.ops.prim.layout.default:  # a wrapper around a compressed layout asks for it
        return args[0]._pair.data.layout
    if recording and entry is not None:
        _check_gradient(entry, args)
    if in_autocast_block() and is_inference_mode_enabled():
        with as_autocast(func, next(a for a in tree_leaves((args, kwargs)) if type(a) is MaskedTensor)):
            return _run_below_autograd(entry, func, args, kwargs)
    return _run_below_autograd(entry, func, args, kwargs)


def _run_below_autograd(entry: Entry | None, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An op below autograd, which records nothing of it."""
    with torch.no_grad():
        if entry is not None:
            if entry.view and is_inference_mode_enabled() and not args[0].is_inference():
                with torch.inference_mode(False), torch.no_grad():  # a view of a normal tensor is a normal tensor
                    return run_op(entry, args, kwargs, recording=False)
            return run_op(entry, args, kwargs, recording=False)
        if func.name() in LOOPS:
            return foreach_loop(func)(*args, **kwargs)
        if is_composite(func):
            return func.decompose(*args, **kwargs)
    raise sparse_error(func, args, kwargs) or errors.unsupported(func.name(), masked_arguments(func, args, kwargs))


def _check_gradient(entry: Entry, args: tuple[Any, ...]) -> None:
    """Refuses gradients that nobody would make by our rules, while gradients are recorded."""
    for x in args:
        if type(x) is MaskedTensor:
            break
    else:
        return
    if x.is_meta or x.is_inference() or (x._packed is None and type(x._pair.data) is not Tensor):
        return
    if x._tracks if x._alias.history is None else x.requires_grad:
        watch_grad_fn(x)  # such as the root of a backward pass, of which autograd makes ones
    elif below_autograd() and not is_factory(entry.overload):
        raise errors.below_autograd(entry.overload.name(), args)


def masked_arguments(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of the arguments that are, or hold, masked tensors."""
    named = dict(zip((a.name for a in schema(func).arguments), args, strict=False)) | kwargs
    return [name for name, value in named.items() if any(type(v) is MaskedTensor for v in tree_leaves(value))]


def register_kernel(entry: Entry, owner: str = "") -> None:
    """Registers the entry's kernel above autograd; those of an ``owner`` stand in a library of their own."""
    register(entry.overload.name(), make_kernel(entry), DISPATCH_KEY, owner)


def register_rule(
    name: str,
    *,
    elementwise: bool = False,
    sparse: StorageRule | None = None,
    packed: StorageRule | tuple[StorageRule, ...] = (),
    masked: Sequence[str] | None = None,
    batched: bool = False,
    **params: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that registers a function as the rule of an operator, which defines it for masked tensors.

    The function receives the operator's arguments, each masked tensor as a :class:`Pair`, and returns a Pair or a tuple
    of them. Autograd records its operations on plain tensors; :class:`Pair` states its obligations for gradients. The
    in-place operator (``scale_``) and the ``out=`` overloads follow from the operator's schema.

    Args:
        name (str): ``"namespace::op"`` for all overloads, or ``"namespace::op.overload"``.
        elementwise (bool, optional): Whether each entry of the result depends only on the entries at its position. The
            rule then applies to sparse and packed tensors as well. Default: False.
        sparse (StorageRule, optional): The rule for sparse masked tensors, such as
            :func:`~masked_tensor.extend.sparse_rule` returns. Without one, they raise UnsupportedOpError.
        packed (StorageRule or tuple of StorageRule, optional): The rule for packed masked tensors, such as
            :func:`~masked_tensor.extend.packed_rule` returns, or several in order of preference. Without one, they are
            unpacked.
        masked (sequence of str, optional): The parameters that may be masked; others raise UnsupportedOpError if they
            are. Default: all.
        batched (bool, optional): Whether ``vmap`` must call the operator once for each entry, because its rule means
            more than those of the operators that it is composed of. Default: False.
        **params (Any): Keyword arguments for the function.

    Returns:
        callable: The decorator, which returns the function unchanged.

    Raises:
        ValueError: The operator does not exist.
        ValueError: The operator already has a rule.
        ValueError: ``masked`` names a parameter that the function does not have.

    Example:
        >>> from masked_tensor.extend import Pair, register_rule
        >>> scale = torch.library.custom_op(
        ...     "doc_example::scale", lambda x, by: x * by,
        ...     mutates_args=(), schema="(Tensor x, float by) -> Tensor")
        >>> @register_rule("doc_example::scale", elementwise=True)
        ... def scale_masked(x, by):
        ...     return Pair(scale(x.data, by), x.mask)
        >>> scale(mt.masked_tensor([1.0, None]), 3.0).tolist()
        [3.0, None]
    """
    if elementwise:
        sparse, packed = sparse or on_values, packed or packed_elementwise

    def add_rule(rule: Callable[..., Any]) -> Callable[..., Any]:
        checked = check_results(name, rule if masked is None else refuse_masked(name, rule, masked))
        op = Op(name, checked, params, sparse=sparse, packed=packed, batched=batched)
        entries = table.add(op)
        unregister(name)
        for entry in entries:
            register_kernel(entry, name)
            vmap.follow(entry)
        cache_key.add_rule(op)
        return rule

    return add_rule


for _entry in table.ENTRIES.values():
    register_kernel(_entry)
for _name in LOOPS:
    register(_name, foreach_loop(find_op(_name)), DISPATCH_KEY)
for _name, _rule in AT_ONCE.items():
    register(_name, _make_kernel_at_once(find_op(_name), _rule), DISPATCH_KEY)
library("_").fallback(torch.library.fallthrough_kernel, DISPATCH_KEY)  # else to ``__torch_dispatch__``
add_members(__torch_dispatch__=classmethod(torch_dispatch))
