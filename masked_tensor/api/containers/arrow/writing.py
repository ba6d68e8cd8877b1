"""A masked tensor becomes an arrow column: values copied, masked entries as nulls.

One dimension is a column of numbers, more are lists of fixed length: ``pa.array(x)``, ``pl.from_arrow(x)``.
"""

from typing import Any

import torch

from .... import masks
from ....engine.tensor import MaskedTensor, add_members, pair_of
from ....pair import Pair
from ....select import zero_masked
from ...leave import convert
from .exported import fixed_lists, numbers
from .library import Column, array_of, schema_of


def arrow_c_schema(x: MaskedTensor) -> Any:
    """The arrow type of ``x``: numbers of its dtype, in lists of fixed length for every dimension after the first."""
    nothing = Pair(torch.zeros(0, dtype=x.dtype), masks.full((0,), torch.device("cpu")))
    return schema_of(_column(nothing, list(x.shape)))


def arrow_c_array(x: MaskedTensor, requested_schema: object = None) -> tuple[Any, Any]:
    """``x`` for whoever speaks the Arrow C data interface, as two capsules: type, and values with nulls where masked.

    Values are copied, in their own dtype.  A requested schema is not followed, as the interface allows.  Raises
    TypeError for a 0-d tensor and for a dtype that arrow does not have.
    """
    if x.dim() == 0:
        raise TypeError("a 0-d masked tensor is not an Arrow column; use x.reshape(1), or x.tolist() for its value")
    pair = pair_of(convert.dense(x))
    pair = Pair(pair.data.detach().cpu(), pair.mask.cpu(), pair.payload)
    column = _column(Pair(zero_masked(pair).flatten(), pair.mask.flatten()), list(x.shape))
    schema, array = array_of(column).__arrow_c_array__()
    return schema, array


def _column(pair: Pair, sizes: list[int]) -> Column:
    """The numbers at the bottom; above them lists, none of which is missing."""
    if len(sizes) < 2:
        return numbers(pair.data, pair.mask)
    return fixed_lists(sizes[1], sizes[0], _column(pair, [sizes[0] * sizes[1], *sizes[2:]]))


add_members(__arrow_c_array__=arrow_c_array, __arrow_c_schema__=arrow_c_schema)
