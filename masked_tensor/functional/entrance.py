"""The entrance of every functional form: (input, mask) becomes a Pair, the rule runs, a plain result comes out.

A MaskedTensor input brings its own mask, which is AND-ed with ``mask=``; its result is a MaskedTensor.  A plain input
gives a plain result, with a constant where nothing is valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from .. import errors, layouts, masks, shapes
from ..compat import OpOverload
from ..engine import table
from ..engine.boundary.enter_leave import enter, leave
from ..engine.tensor import MaskedTensor
from ..pair import Pair, Payload, moved
from ..select import select
from ..shared.too_few import Number as Number
from ..shared.too_few import TooFew, is_enough, of_nothing, representable

Dim = int | Sequence[int] | None
Mode = Literal["safe", "inf_as_zero", "none"]  # of softmax(); a checker may take softmax.py for the form


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """An entered input: ``x`` is a pair, or the tensor itself if nothing masks it."""

    x: Pair | Tensor
    masked: bool  #: the result is a MaskedTensor

    @property
    def data(self) -> Tensor:
        return self.x.data if type(self.x) is Pair else self.x

    @property
    def mask(self) -> Tensor | None:
        return self.x.mask if type(self.x) is Pair else None

    @property
    def is_sparse(self) -> bool:
        """What a form asks that has a rule of its own for slices of stored values: here alone the layout is looked at.

        The op's own sparse rule would not do: it masks what is not stored. In plain data that is a zero, and counts.
        """
        return layouts.is_sparse(self.data)

    def to(self, dtype: torch.dtype | None) -> "Input":
        """With the data in ``dtype``; None keeps it."""
        if dtype is None or dtype is self.data.dtype:
            return self
        if type(self.x) is Pair:
            return Input(Pair(layouts.to(self.x.data, dtype), self.x.mask, self.x.payload), self.masked)
        return Input(layouts.to(self.data, dtype), self.masked)


def enter_input(input: Any, mask: Any = None, name: str = "input") -> Input:
    """Checks ``input`` and ``mask`` against each other and pairs them.

    A sparse input keeps the mask in the layout it was given; a strided input gets a strided one of its own shape, to
    which a wider mask expands it first.
    """
    if not isinstance(input, Tensor):
        make = "masked_invalid" if type(input).__module__.partition(".")[0] == "pandas" else "masked_tensor"
        raise TypeError(f"{name} must be a tensor, got {type(input).__name__}; use {make}({name})")
    own = enter(input, torch.is_grad_enabled())
    data = own.data if type(own) is Pair else own
    if mask is None:
        return Input(own, type(own) is Pair)
    mask = check_mask(mask, data, name)
    if layouts.is_sparse(data):
        if type(own) is Pair:
            return Input(Pair(data, layouts.restrict(own.mask, mask)), True)
        return Input(Pair(data, mask), False)
    if not shapes.can_expand(mask.shape, data.shape):
        data = data.expand(shapes.broadcast_two(data.shape, mask.shape))
    mask = masks.expand_to(layouts.dense_mask(mask), data.shape)
    if type(own) is Pair:
        return Input(Pair(data, masks.logical_and(masks.expand_to(own.mask, data.shape), mask)), True)
    return Input(Pair(data, mask), False)


def check_mask(mask: Any, data: Tensor, name: str = "input") -> Tensor:
    """``mask`` as a bool tensor that broadcasts with ``data``, to it if that is sparse.

    Integers are read as ``mask != 0``; floats may be additive, where 0 is valid, and are refused.
    """
    said = {"target": "target_mask", "key": "key_mask"}.get(name, "mask")
    if not isinstance(mask, Tensor) or type(mask) is MaskedTensor:
        way_out = "mask.filled(False)" if isinstance(mask, Tensor) else "torch.as_tensor(mask)"
        raise TypeError(f"{said} must be a plain tensor or None, got {type(mask).__name__}; use {way_out}")
    if mask.dtype is not torch.bool and (mask.is_floating_point() or mask.is_complex()):
        raise errors.mask_of_floats(said, mask)
    if mask.device != data.device:
        raise ValueError(
            f"{said} and {name} must be on one device, got {said} on {mask.device}, {name} on {data.device}"
        )
    if not shapes.can_expand(mask.shape, data.shape):
        leads = 0 < mask.dim() < data.dim() and mask.shape == data.shape[: mask.dim()]  # (B,) of (B, 1): not (B, B)
        if leads or layouts.is_sparse(data) or not shapes.can_broadcast(mask.shape, data.shape):
            hint = f"; use mask[..., {', '.join(['None'] * (data.dim() - mask.dim()))}]" if leads else ""
            raise ValueError(
                f"{said} must broadcast to {name}'s shape {tuple(data.shape)}, got a mask of shape {tuple(mask.shape)}"
                + hint
            )
    return mask if mask.dtype is torch.bool else layouts.nonzero(mask)


def run_op(op: OpOverload, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The op itself on plain tensors; its rule as soon as one argument is a pair."""
    if type(x) is not Pair and not any(type(a) is Pair for a in (*args, *kwargs.values())):
        return op(x, *args, **kwargs)
    entry = table.ENTRIES.get(op)
    if entry is None:
        raise errors.unsupported(op.name(), ["input"])
    return entry.rule(x, *args, **kwargs)


def check_ordered(name: str, x: Input, boolean: bool = False) -> Input:
    """``x`` itself; raises if its dtype has no order, or is bool, which torch refuses where not ``boolean``."""
    dtype = x.data.dtype
    if dtype.is_complex or (dtype is torch.bool and not boolean):
        reason = "complex numbers have no order" if dtype.is_complex else "bool input is not supported"
        raise RuntimeError(f"{name}(): {reason}, got {dtype}")
    return x


def too_few(
    name: str,
    dtype: torch.dtype,
    masked: bool,
    fill_value: Number | None,
    min_count: int | None = None,
    like: str | None = None,
) -> TooFew:
    """What ``name`` gives where too few elements are valid; of nothing what ``like`` gives, if that is said.

    With ``min_count`` it is NaN in a plain result, unless another value is given: the identity could not be told from a
    result.  Raises if results of ``dtype`` cannot be NaN.
    """
    if not (masked or fill_value is not None or min_count is None or min_count <= 0):
        if not (dtype.is_floating_point or dtype.is_complex):
            raise ValueError(
                f"{name}(): with min_count, a result of too few valid elements is NaN, which {dtype} does not have; "
                "say what it is by fill_value=, or give a masked tensor, whose result is masked there"
            )
        fill_value = float("nan")
    return TooFew(of_nothing(like or name), fill_value, min_count)


def as_reduced(result: Pair | Tensor, x: Input, dims: Sequence[int], keepdim: bool, few: TooFew) -> Tensor:
    """What the caller gets of a reduction of ``x``."""
    valid = None
    if few.min_count is not None or (few.fill_value is not None and 0 in [x.data.shape[d] for d in dims]):
        mask = x.mask if x.mask is not None else masks.full(x.data.shape, x.data.device)
        valid = is_enough(masks.count(mask, dims, keepdim), few.min_count)
    return as_result(result, x.masked, few.empty, few.fill_value, valid)


def as_result(
    result: Pair | Tensor, masked: bool, empty: Number, fill_value: Number | None = None, valid: Tensor | None = None
) -> Tensor:
    """What the caller gets: a MaskedTensor, or plain data, ``fill_value`` (else ``empty``) where nothing is valid."""
    if type(result) is not Pair:
        if valid is None:
            return leave(Pair(result, masks.full(result.shape, result.device), Payload.ZERO)) if masked else result
        result = Pair(result, masks.full(result.shape, result.device))
    if masked and fill_value is None and valid is None:
        return leave(result)
    check_fill(fill_value, result.data.dtype)
    identity: Any = representable(empty, result.data.dtype)
    data, mask = result.data, result.mask
    if valid is not None:  # with min_count=0 it shows slices of which the mask shows nothing
        data, mask = select(data, mask, identity), valid
    if masked and fill_value is None:
        return leave(Pair(data, mask))
    data = select(data, mask, identity if fill_value is None else fill_value)
    return leave(Pair(data, masks.full(data.shape, data.device), Payload.ZERO)) if masked else data


def check_fill(value: Number | None, dtype: torch.dtype) -> None:
    """Raises for a fill that a result of ``dtype`` would round or wrap."""
    if value is None or isinstance(value, bool | complex) or dtype.is_floating_point or dtype.is_complex:
        return
    whole = not isinstance(value, float) or value.is_integer()
    fits = dtype is torch.bool or torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max
    if not (whole and fits):
        raise ValueError(f"fill_value {value} does not fit a result of {dtype}")


def with_gaps(name: str, result: Pair, x: Input, fill_value: Number | None) -> Tensor:
    """What the caller gets of a series in which some entries stay masked: in a plain one they are NaN, or the fill."""
    dtype = result.data.dtype
    if not x.masked and fill_value is None and type(x.x) is Pair and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"{name}: what stays masked is NaN in a plain result, which {dtype} does not have; say what it is by "
            "fill_value=, or give a masked tensor"
        )
    return as_result(result, x.masked, of_nothing(name), fill_value)


def restore_dims(result: Any, shape: Sequence[int]) -> Any:
    """``result`` in ``shape``: the reduced dimensions put back by ``keepdim``."""
    return moved(result, torch.reshape, tuple(shape))


def refuse_sparse(name: str, x: Input) -> None:
    """Raises for a sparse input of a function that has no sparse rule."""
    if x.is_sparse:
        raise errors.no_sparse_functional_rule(name, x.data)


def as_pair(x: Input) -> Pair:
    """``x`` as a pair, also where nothing masks it."""
    return x.x if type(x.x) is Pair else Pair(x.data, masks.full(x.data.shape, x.data.device), Payload.ZERO)


def result_in_pattern(x: Input, data: Tensor) -> Tensor:
    """What the caller gets of a function that keeps the pattern of its sparse input, and a MaskedTensor's validity."""
    return leave(Pair(data, as_pair(x).mask)) if x.masked else data
