"""A masked tensor becomes an arrow column: values copied, masked entries as nulls.

One dimension is a column of numbers, more are lists of fixed length: ``pa.array(x)``, ``pl.from_arrow(x)``.
"""

import ctypes
from ctypes import POINTER, c_void_p
from typing import Any

import torch
from torch import Tensor

from .... import errors, masks
from ....engine.tensor import MaskedTensor, add_members, pair_of
from ....pair import Pair
from ....select import zero_masked
from ... import convert
from . import formats
from .abi import NULLABLE, Array, Schema, keep_alive, make_capsule


def arrow_c_schema(x: MaskedTensor) -> Any:
    """The arrow type of ``x``: numbers of its dtype, in lists of fixed length for every dimension after the first."""
    return make_capsule(_schema(x.dtype, x.shape[1:]))


def arrow_c_array(x: MaskedTensor, requested_schema: object = None) -> tuple[Any, Any]:
    """``x`` for whoever speaks the Arrow C data interface, as two capsules: type, and values with nulls where masked.

    Values are copied, in their own dtype.  A requested schema is not followed, as the interface allows.  Raises
    TypeError for a 0-d tensor and for a dtype that arrow does not have.
    """
    if x.dim() == 0:
        raise TypeError("a 0-d masked tensor is no arrow column; use x.reshape(1), or x.tolist() for its value")
    pair = pair_of(convert.dense(x))
    pair = Pair(pair.data.detach().cpu(), pair.mask.cpu(), pair.payload)
    array = _array(zero_masked(pair).contiguous(), pair.mask, list(x.shape))
    return arrow_c_schema(x), make_capsule(array)


def _schema(dtype: torch.dtype, sizes: Any) -> Any:
    if dtype not in formats.FORMATS:
        way_out = "torch.view_as_real(x)" if dtype.is_complex else "x.float()"
        raise TypeError(f"arrow has no type for {errors.dtype_name(dtype)}; use {way_out}")
    name = (f"{formats.FIXED}{sizes[0]}" if len(sizes) else formats.FORMATS[dtype]).encode()
    schema = Schema(format=name, name=b"item", flags=NULLABLE)
    children = (POINTER(Schema) * 1)(ctypes.pointer(_schema(dtype, sizes[1:]))) if len(sizes) else None
    if children:
        schema.n_children, schema.children = 1, children
    keep_alive(schema, (name, children))
    return schema


def _array(data: Tensor, mask: Tensor, sizes: list[int]) -> Any:
    """The numbers at the bottom; above them lists, none of which is missing."""
    array = Array(length=sizes[0], null_count=0)
    if len(sizes) > 1:
        inner = _array(data, mask, [sizes[0] * sizes[1], *sizes[2:]])
        children = (POINTER(Array) * 1)(ctypes.pointer(inner))
        array.n_children, array.children = 1, children
        kept: list[Any] = [inner, children]
        addresses: list[int | None] = [None]
    else:
        values = _pack_bits(data.flatten()) if data.dtype is torch.bool else data
        nulls = mask.numel() - int(masks.count(mask))
        bitmap = _pack_bits(mask.flatten()) if nulls else None
        array.null_count = nulls
        kept = [values, bitmap]
        addresses = [None if bitmap is None else bitmap.data_ptr(), values.data_ptr()]
    buffers = (c_void_p * len(addresses))(*addresses)
    array.n_buffers, array.buffers = len(addresses), buffers
    keep_alive(array, [*kept, buffers])
    return array


def _pack_bits(bits: Tensor) -> Tensor:
    """Eight to a byte, the lowest bit first."""
    wide = torch.zeros(-(-bits.numel() // 8), 8, dtype=torch.uint8)
    wide.view(-1)[: bits.numel()] = bits
    return (wide << torch.arange(8, dtype=torch.uint8)).sum(1, dtype=torch.uint8)


add_members(__arrow_c_array__=arrow_c_array, __arrow_c_schema__=arrow_c_schema)
