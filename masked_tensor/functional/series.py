"""Time series with gaps, under pandas' names: filling forward and backward, interpolating, rolling windows.

The input is a masked tensor, or a plain one with ``mask=``; the result is a masked tensor, as some gaps remain.
"""

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from .. import errors, masks, shapes
from ..engine.boundary.enter_leave import leave
from ..pair import Pair
from ..select import guard
from ..shared import gaps
from .entrance import as_pair, enter_input, refuse_sparse

Area = Literal["inside", "outside"]
Direction = Literal["forward", "backward", "both"]
Method = Literal["linear", "nearest"]


def ffill(
    input: Tensor, dim: int = 0, *, limit: int | None = None, limit_area: Area | None = None, mask: Tensor | None = None
) -> Any:
    """Every hole takes the value of the last valid entry before it along ``dim``, as in ``pandas.DataFrame.ffill``.

    ``limit`` is the number of steps that a value is carried at most; ``limit_area="inside"`` fills only between valid
    entries, ``"outside"`` only beyond the last.  A masked tensor of the same shape and dtype; gradients flow to the
    entry that was carried.

    >>> mt.ffill(mt.masked_tensor([None, 1.0, None, None, 5.0]), limit=1)
    masked_tensor([--, 1.0000, 1.0000, --, 5.0000], valid=3/5)
    """
    return _carry("ffill", input, dim, limit, limit_area, mask, gaps.before)


def bfill(
    input: Tensor, dim: int = 0, *, limit: int | None = None, limit_area: Area | None = None, mask: Tensor | None = None
) -> Any:
    """Every hole takes the value of the next valid entry after it.  Arguments as :func:`ffill`.

    >>> mt.bfill(mt.masked_tensor([None, 1.0, None, None, 5.0]))
    masked_tensor([1.0000, 1.0000, 5.0000, 5.0000, 5.0000], valid=5/5)
    """
    return _carry("bfill", input, dim, limit, limit_area, mask, gaps.after)


def interpolate(
    input: Tensor,
    dim: int = 0,
    *,
    method: Method = "linear",
    index: Tensor | None = None,
    limit: int | None = None,
    limit_direction: Direction = "forward",
    limit_area: Area | None = None,
    mask: Tensor | None = None,
) -> Any:
    """Every hole takes a value between those of the valid entries around it, as in ``pandas.DataFrame.interpolate``.

    ``method="linear"`` weighs the two by their distance and goes on with the last one beyond it, ``"nearest"`` takes
    the nearer one, between valid entries alone.  ``index`` ``(T,)`` says where the entries lie, such as times, rising;
    without it they are one step apart.  ``limit`` and ``limit_area`` as in :func:`ffill`, counted in
    ``limit_direction``, beyond which edge holes are filled, too.  Floating point or complex; gradients flow to both
    neighbours.

    >>> mt.interpolate(mt.masked_tensor([None, 1.0, None, None, 4.0, None]))
    masked_tensor([--, 1.0000, 2.0000, 3.0000, 4.0000, 4.0000], valid=5/6)
    """
    _check_choice("method", method, Method)
    _check_choice("limit_direction", limit_direction, Direction)
    x, dim = _enter_series("interpolate", input, dim, limit, limit_area, mask)
    if not (x.data.is_floating_point() or x.data.is_complex()):
        raise errors.not_inexact("interpolate", x.data.dtype)
    size = x.data.shape[dim]
    if index is not None and tuple(index.shape) != (size,):
        raise ValueError(f"index must have one place per entry along dim, {(size,)}, got {tuple(index.shape)}")
    places = torch.arange(size, device=x.data.device) if index is None else index
    places = places.to(x.data.real.dtype if x.data.is_complex() else x.data.dtype)
    if method == "linear":
        data = gaps.interpolate_line(x, dim, places)
    else:
        data = gaps.gather_clamped(x, dim, gaps.nearest(gaps.narrow_constant(x.mask, dim), dim, places))
        limit_area = "inside" if limit_area is None else limit_area
    forward, backward = limit_direction != "backward", limit_direction != "forward"
    valid = gaps.fillable(gaps.narrow_constant(x.mask, dim), dim, limit, limit_area, forward=forward, backward=backward)
    return _fill_gaps(x, data, valid)


def _carry(name: str, input: Tensor, dim: int, limit: Any, area: Any, mask: Any, source: Any) -> Any:
    x, dim = _enter_series(name, input, dim, limit, area, mask)
    forward = source is gaps.before
    mask = gaps.narrow_constant(x.mask, dim)
    valid = gaps.fillable(mask, dim, limit, area, forward=forward, backward=not forward)
    return _fill_gaps(x, gaps.gather_clamped(x, dim, source(mask, dim)), valid)


def _fill_gaps(x: Pair, data: Tensor, valid: Tensor) -> Any:
    """``x`` where it is valid, else ``data``, of which nothing comes back where the result is a hole."""
    valid = masks.expand_to(valid, x.data.shape)
    return leave(Pair(torch.where(x.mask, guard(x.data, x.mask), guard(data, valid & ~x.mask)), valid))


def _enter_series(name: str, input: Tensor, dim: int, limit: Any, area: Any, mask: Any) -> tuple[Pair, int]:
    given = enter_input(input, mask)
    refuse_sparse(name, given)
    if limit is not None and limit < 1:
        raise ValueError(f"{name}: limit must be a positive number of steps, got {limit}")
    if area is not None:
        _check_choice("limit_area", area, Area)
    if given.data.dim() == 0:
        raise ValueError(f"{name} needs a dimension to go along, got a 0-d tensor")
    (dim,) = shapes.canonical_dims(dim, given.data.dim())
    x = as_pair(given)
    return Pair(x.data, masks.expand_to(x.mask, x.data.shape), x.payload), dim


def _check_choice(name: str, value: str, choices: Any) -> None:
    if value not in get_args(choices):
        raise ValueError(f"{name} must be one of {get_args(choices)}, got {value!r}")
