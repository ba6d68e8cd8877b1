"""Rules for sparse and for packed tensors, which work on the stored values only."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import shapes
from ..kernels.precision import rounds_noticeably
from ..layouts.validity import valid_outputs
from ..op import NoRule, Rule, StorageRule, Takes
from ..packing import Packed, dim_order, operands
from ..packing.per_token import over_last_dims
from ..packing.reduction import Segments, reduce_packed, segment_sums
from ..pair import Pair
from ..shared.names import names_arguments
from ..sparse.reduction import reduce
from ..sparse.slices import Slices, sum_slices
from .segments import SegmentsOfStorage

SegmentFunction = Callable[..., Tensor]  # (values, segments, **other arguments) -> one row for each result


@names_arguments
def sparse_rule(
    rule: Rule | None = None,
    *,
    stored: Sequence[str | int] = (),
    masked: Sequence[str | int] = (),
    free: Sequence[str | int] = (),
) -> Any:
    """Decorator that registers a function as the rule of an operator for sparse masked tensors.

    The function receives each sparse argument as a :class:`Pair` of a sparse tensor and its sparse mask, and returns a
    Pair. It is called if all arguments are as declared here; other calls raise UnsupportedOpError, which suggests
    ``to_dense()``. The function raises :class:`NoRule` for further calls that it does not support.

    Args:
        rule (callable, optional): The function, where the decorator is used without arguments.
        stored (sequence of str or int, optional): The arguments that must be sparse, by name or position. Default: the
            first tensor.
        masked (sequence of str or int, optional): The arguments that may be masked and must be strided.
        free (sequence of str or int, optional): The arguments that may be anything. All arguments that are not listed
            must be plain and strided.

    Returns:
        StorageRule: For ``register_rule(..., sparse=)``.

    Example:
        >>> from masked_tensor.extend import Pair, register_rule, sparse_rule
        >>> scale = torch.library.custom_op(
        ...     "doc_sparse::scale", lambda x, by: x * by,
        ...     mutates_args=(), schema="(Tensor x, float by) -> Tensor")
        >>> @sparse_rule
        ... def scale_sparse(x, by):
        ...     return Pair(x.data * by, x.mask)
        >>> @register_rule("doc_sparse::scale", sparse=scale_sparse)
        ... def scale_masked(x, by):
        ...     return Pair(scale(x.data, by), x.mask)
        >>> scale(mt.masked_tensor([1.0, None, 3.0]).to_sparse(), 2.0).to_dense().tolist()
        [2.0, None, 6.0]
    """
    if rule is None:
        return partial(sparse_rule, stored=stored, masked=masked, free=free)
    takes = Takes(tuple(stored), (), tuple(masked), tuple(free))
    return StorageRule(
        "a rule of its own", lambda _: rule, takes, "a rule of its own, at the cost of the stored entries"
    )


@names_arguments
def packed_rule(
    rule: Rule | None = None,
    *,
    stored: Sequence[str | int] = (),
    whole: Sequence[str | int] = (),
    masked: Sequence[str | int] = (),
    free: Sequence[str | int] = (),
) -> Any:
    """Decorator that registers a function as the rule of an operator for packed masked tensors.

    The function receives each packed argument as a :class:`Packed` record and other masked ones as a :class:`Pair`, and
    returns a Packed, a Pair or a plain tensor. It is called if all arguments are as declared here. For other calls, and
    if it raises :class:`NoRule`, the tensors are unpacked and the ordinary rule runs.

    Args:
        rule (callable, optional): The function, where the decorator is used without arguments.
        stored (sequence of str or int, optional): The arguments that must be packed, by name or position. Default
            without ``whole``: the first tensor.
        whole (sequence of str or int, optional): The arguments that must be packed, with all stored values valid.
        masked (sequence of str or int, optional): The arguments that may be masked and must not be packed.
        free (sequence of str or int, optional): The arguments that may be anything. All arguments that are not listed
            must be plain.

    Returns:
        StorageRule: For ``register_rule(..., packed=)``.

    Example:
        >>> from masked_tensor.extend import Pair, pack_like, packed_rule, register_rule
        >>> scale = torch.library.custom_op(
        ...     "doc_packed::scale", lambda x, by: x * by,
        ...     mutates_args=(), schema="(Tensor x, float by) -> Tensor")
        >>> @packed_rule(whole=("x",))
        ... def scale_packed(x, by):
        ...     return pack_like(scale(x.values, by), x)
        >>> @register_rule("doc_packed::scale", packed=scale_packed)
        ... def scale_masked(x, by):
        ...     return Pair(scale(x.data, by), x.mask)
        >>> scale(mt.from_lengths(torch.ones(2, 2), [2, 1]).packed(), 2.0)
        masked_tensor([[2.0000, 2.0000],
                       [2.0000,     --]], valid=3/4)
    """
    if rule is None:
        return partial(packed_rule, stored=stored, whole=whole, masked=masked, free=free)
    takes = Takes(tuple(stored), tuple(whole), tuple(masked), tuple(free))
    return StorageRule("a rule of its own", lambda _, op: rule, takes)


@names_arguments
def pack_like(result: Any, like: Packed) -> Any:
    """The result of an operation on the values of a packed argument, as a packed tensor with the same padding.

    If the shape of ``result`` is not that of ``like.values``, it raises :class:`NoRule`, so that the tensors are
    unpacked.

    Args:
        result (Tensor or Pair): The shape of ``like.values``, any dtype; a Pair if some entries are masked, or a tuple
            of these.
        like (Packed): The packed argument.

    Returns:
        Packed: ``result`` with the padding of ``like``, or a tuple of these.

    Example:
        >>> from masked_tensor.extend import pack_like
        >>> inside = mt.from_lengths(torch.ones(2, 3), [3, 1]).packed()._packed
        >>> pack_like(inside.values * 2, inside).values
        tensor([2., 2., 2., 2.])
    """
    return operands.pack_like(result, like)


@names_arguments
def packed_features(dims: int = 1) -> StorageRule:
    """The packed rule of an operator that works on the last dimensions, such as a linear layer or a norm.

    The operator runs on the stored values ``(N, ...)``; if some of them are masked, the strided rule does. The first
    argument is packed, the others are plain. The result has as many dimensions as the argument; the last ones may have
    another size.

    Args:
        dims (int, optional): The number of dimensions at the end that the operator works on. Default: 1.

    Returns:
        StorageRule: For ``register_rule(..., packed=)``.

    Example:
        >>> from masked_tensor.extend import Pair, packed_features, register_rule
        >>> unit = torch.library.custom_op(
        ...     "doc_features::unit", lambda x: x / x.norm(dim=-1, keepdim=True),
        ...     mutates_args=(), schema="(Tensor x) -> Tensor")
        >>> @register_rule("doc_features::unit", packed=packed_features())
        ... def unit_masked(x):
        ...     norm = mt.masked_tensor(x.data, x.mask).norm(dim=-1, keepdim=True)
        ...     return Pair(x.data / norm.filled(1.0), x.mask)
        >>> unit(mt.from_lengths(torch.ones(2, 2, 4), [2, 1]).packed()).is_packed
        True
    """
    return over_last_dims(lambda *_: dims)


@names_arguments
def sparse_reduction(function: SegmentFunction) -> StorageRule:
    """The sparse rule of a reduction, made from a function of segments.

    The arguments that the operator's rule names ``dim`` and ``keepdim`` define the reduction; without ``dim``, all
    entries are reduced. Other arguments are passed to ``function`` by keyword, under their names in the operator's
    schema.

    Args:
        function (callable): ``function(values, segments, **others)`` receives the valid values, shape ``(N,)`` (float32
            for half precision), and their :class:`Segments`, and returns a tensor of shape ``(segments.number,)``.

    Returns:
        StorageRule: For ``register_rule(..., sparse=)``.

    Example:
        >>> from masked_tensor.extend import Pair, masks, register_rule
        >>> from masked_tensor.extend import sparse_reduction, zero_masked
        >>> energy = torch.library.custom_op(
        ...     "doc_reduce::energy", lambda x, dim: x.square().sum(dim),
        ...     mutates_args=(), schema="(Tensor x, int dim) -> Tensor")
        >>> def energy_of_segments(values, segments):
        ...     return segments.sum(values.square())
        >>> @register_rule("doc_reduce::energy", sparse=sparse_reduction(energy_of_segments))
        ... def energy_masked(x, dim):
        ...     return Pair(energy(zero_masked(x), dim), masks.reduce_validity(x.mask, dim))
        >>> energy(mt.masked_tensor([[1.0, None], [2.0, 3.0]]).to_sparse(), 1).to_dense().tolist()
        [1.0, 13.0]
    """

    def over_slices(values: Tensor, slices: Slices, **others: Any) -> Tensor:
        segments = SegmentsOfStorage(slices.number, slices.ids, slices.count, partial(sum_slices, s=slices))
        return function(values, segments, **others)

    def make(rule: Rule) -> Rule:
        signature = inspect.signature(rule)

        def reduce_slices(*args: Any, **kwargs: Any) -> Pair:
            x, dim, keepdim, others = _read_arguments(signature, args, kwargs)
            dims = shapes.canonical_dims(dim, x.data.dim())
            return valid_outputs(*reduce(over_slices, x.data, x.mask, dims, keepdim, **others))

        return reduce_slices

    return StorageRule("reduction", make, Takes(), "the valid stored values of each slice, one segment for each result")


@names_arguments
def packed_reduction(function: SegmentFunction) -> StorageRule:
    """The packed rule of a reduction, made from a function of segments.

    A reduction over time has a segment for each sequence. Over features, or over all dimensions, the operator runs on
    the stored values. Over time and features together, the tensor is unpacked. Arguments are read as in
    :func:`sparse_reduction`.

    Args:
        function (callable): ``function(values, segments, **others)`` receives the values of all tokens, shape ``(N,
            features...)`` (float32 for half precision), and their :class:`Segments`, and returns a tensor of shape
            ``(segments.number, features...)``.

    Returns:
        StorageRule: For ``register_rule(..., packed=)``.

    Example:
        >>> from masked_tensor.extend import Pair, masks, register_rule
        >>> from masked_tensor.extend import packed_reduction, zero_masked
        >>> energy = torch.library.custom_op(
        ...     "doc_time::energy", lambda x, dim: x.square().sum(dim),
        ...     mutates_args=(), schema="(Tensor x, int dim) -> Tensor")
        >>> def energy_of_segments(values, segments):
        ...     return segments.sum(values.square())
        >>> @register_rule("doc_time::energy", packed=packed_reduction(energy_of_segments))
        ... def energy_masked(x, dim):
        ...     return Pair(energy(zero_masked(x), dim), masks.reduce_validity(x.mask, dim))
        >>> energy(mt.from_lengths(torch.ones(2, 3), [3, 1]).packed(), 1).tolist()
        [3.0, 1.0]
    """

    def make(rule: Rule, op: Rule) -> Rule:
        signature = inspect.signature(rule)
        names = list(signature.parameters)
        before = names[1 : names.index("dim")] if "dim" in names else []

        def reduce_tokens(*args: Any, **kwargs: Any) -> Any:
            x, dim, keepdim, others = _read_arguments(signature, args, kwargs)
            dims = shapes.canonical_dims(dim, len(x.order))
            _expect_one_kind(x, dims if "dim" in names else ())
            segments = Segments(None, partial(_reduce_sequences, function, others))
            form = reduce_packed(1 + len(before), segments, keeps="keepdim" in names)
            named = {"dim": dim, **({"keepdim": keepdim} if "keepdim" in names else {})}
            named |= {name: value for name, value in others.items() if name not in before}
            return form.make(rule, op)(x, *(others[name] for name in before), **named)

        return reduce_tokens

    return StorageRule("reduction", make)


def _expect_one_kind(x: Packed, dims: Sequence[int]) -> None:
    """Raises NoRule unless the dimensions are features, or time, or all there are."""
    kinds = {dim_order.is_feature(x.order[d], x.first) for d in dims}
    if not dims or (len(dims) < len(x.order) and len(kinds) > 1):
        raise NoRule


def _reduce_sequences(
    function: SegmentFunction, others: dict[str, Any], values: Tensor, x: Packed, _: Tensor
) -> Tensor:
    """One segment for each sequence; ``values`` are those of the tokens of ``x``."""
    count = x.grid.lengths.reshape(-1, *(1,) * (values.dim() - 1))
    segments = SegmentsOfStorage(x.grid.shape[0], x.grid.batch, count, partial(segment_sums, x=x))
    half = rounds_noticeably(values.dtype)
    result = function(values.float() if half else values, segments, **others)
    return result.to(values.dtype) if half and result.dtype is torch.float32 else result


def _read_arguments(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any, bool, dict[str, Any]]:
    """The tensor, ``dim``, ``keepdim``, and the others by name."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    (_, x), *rest = bound.arguments.items()
    others = dict(rest)
    return x, others.pop("dim", None), others.pop("keepdim", False), others
