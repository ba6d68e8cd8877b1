"""Reductions of segments: over the valid entries of each; masked where a segment has entries and none is valid.

An empty segment has no masked entries, so its result is the plain op's: ``initial``, or NaN for a mean.
The ends of the segments must be known: a masked entry among their lengths or offsets raises.
"""

from typing import Any

import torch
from torch import Tensor

from .. import errors, pair
from ..kernels.identity import identity
from ..kernels.precision import counts_in_float32
from ..op import Op
from ..pair import Pair
from ..select import fill_masked
from ..shared import strict_counts


def segment_reduce(
    x: Pair | Tensor,
    reduce: str,
    *,
    lengths: Pair | Tensor | None = None,
    indices: Pair | Tensor | None = None,
    offsets: Pair | Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Pair:
    """``torch.segment_reduce``: sum, mean, prod, max, min."""
    x = pair.as_pair(x)
    if strict_counts.KNOWN and reduce == "sum":
        strict_counts.refuse("segment_reduce", x)
    where: dict[str, Any] = {"axis": axis, "unsafe": unsafe}
    for name, extent in (("lengths", lengths), ("indices", indices), ("offsets", offsets)):
        where[name] = _host_lengths(extent, name)
    exact = x.data.dim() and counts_in_float32(x.data.shape[axis])
    n = torch.segment_reduce(x.mask.to(torch.float32 if exact else torch.float64), "sum", **where)
    where["unsafe"] = True  # the call above has checked them
    data = torch.segment_reduce(
        fill_masked(x, identity(reduce, x.data.dtype)),
        "sum" if reduce == "mean" else reduce,
        initial=initial,
        **where,
    )
    empty = _sizes(where["lengths"], where["offsets"], n.dim()) == 0
    if reduce == "mean":
        data = data / n.clamp(min=1).to(data.dtype)
        data = data if initial is not None else torch.where(empty, float("nan"), data)
    return Pair(data, (n > 0) | empty)


def _sizes(lengths: Tensor | None, offsets: Tensor | None, dims: int) -> Tensor:
    """The number of entries of each segment, with a dimension of size 1 for each that follows the segments'."""
    sizes: Any = offsets.diff(dim=-1) if offsets is not None else lengths
    result: Tensor = sizes.reshape(*sizes.shape, *(1,) * (dims - sizes.dim()))
    return result


def _host_lengths(extent: Pair | Tensor | None, name: str) -> Tensor | None:
    if type(extent) is not Pair:
        return extent
    if not bool(extent.mask.all()):  # the sizes depend on the values: this op reads them in any case
        raise errors.masked_scalar(f"segment_reduce at the {name}")
    return extent.data


OPS = [Op("segment_reduce", segment_reduce)]
