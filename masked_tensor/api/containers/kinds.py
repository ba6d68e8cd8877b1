"""What other libraries call missing: each container as a pair, without importing the library that it is of.

They are known by what they offer, not by their class: pandas by ``iloc`` and its dtypes, xarray by ``dims`` and
``coords``, numpy.ma by its mask, astropy by ``unmasked``, all that is arrow by the Arrow C data interface.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.masked import MaskedTensor as TorchMasked
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from ... import layouts, masks
from ...pair import Pair, plain_pair
from . import ragged, sources, tables
from .arrow import reading

Taker = Callable[[Any], Pair]


def pair(data: Any, take: Taker, dtype: torch.dtype | None = None) -> Pair | None:
    """The pair of a container, or None if ``data`` is none; ``take`` makes a pair of a numpy array."""
    sources.refuse_source(data)
    if isinstance(data, PackedSequence):
        padded, lengths = pad_packed_sequence(data, batch_first=True)
        mask = masks.lengths_to_mask(lengths, padded.shape[1]).to(padded.device)
        return Pair(padded, ragged.per_step(mask, padded))
    if hasattr(data, "to_value") and hasattr(data, "unit"):
        raise TypeError(
            f"a tensor has no unit, and data is in {data.unit!s}; give data.value, or data.to_value(unit) to choose one"
        )
    if hasattr(data, "unmasked") and hasattr(data, "mask"):  # astropy
        return _invert_mask(take(data.unmasked), data.mask)
    if hasattr(data, "_mask") and hasattr(data, "filled") and hasattr(data, "fill_value"):  # numpy.ma
        return _invert_mask(take(data.data), getattr(data, "mask", False))
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "dtype"):
        return _pandas_column(data, take, dtype)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _pandas_frame(data, take, dtype)
    if hasattr(data, "dims") and hasattr(data, "coords") and hasattr(data, "values"):  # xarray
        inner = data.data
        column = type(inner).__module__.partition(".")[0] == "pandas"
        return _pandas_column(inner, take, dtype) if column else take(data.values)
    return reading.read(data, dtype) if reading.speaks_arrow(data) else None


def table(data: Any, take: Callable[..., Pair], dtype: torch.dtype) -> tuple[Pair, list[str]]:
    """The pair of anything that is no tensor, and the names of its columns, if it is a table of which they have any."""
    frame = hasattr(data, "iloc") and hasattr(data, "columns")
    if frame or not reading.speaks_arrow(data):
        return take(data, dtype=dtype), [str(name) for name in data.columns] if frame else []
    sources.refuse_source(data)
    return reading.read_named(data, dtype)


def read_nested(data: Tensor) -> Pair:
    """A nested tensor of either layout: as long as the longest component along every dimension."""
    parts = data.unbind()
    if not parts:
        raise ValueError("a nested tensor without components has no shape")
    return ragged.pad_and_stack([plain_pair(p) for p in parts], whole=True)


def torch_masked(data: TorchMasked) -> Pair:
    """A ``torch.masked.MaskedTensor``: its data and mask, in its layout."""
    values, mask = data.get_data(), layouts.copy_mask(data.get_mask())
    return layouts.pair_on_pattern(values, mask) if layouts.is_sparse(values) else Pair(values, mask)


def _invert_mask(values: Pair, missing: Any) -> Pair:
    """numpy's masks are True where something is hidden."""
    shown = ~torch.tensor(missing, device=values.data.device)
    return Pair(values.data, masks.logical_and(masks.expand_to(shown, values.data.shape), values.mask))


def _pandas_frame(frame: Any, take: Taker, dtype: torch.dtype | None) -> Pair:
    columns = []
    for i, name in enumerate(frame.columns):
        try:
            columns.append(_pandas_column(frame.iloc[:, i], take, dtype))
        except TypeError as reason:
            raise TypeError(f"column {name!r} of the table: {reason}") from reason
    return tables.stack_columns(list(frame.columns), columns)


def _pandas_column(column: Any, take: Taker, dtype: torch.dtype | None) -> Pair:
    """A Series, an Index or an extension array.  NaN is missing only where the dtype is a nullable one."""
    kind = column.dtype
    if hasattr(kind, "pyarrow_dtype"):
        return reading.read(getattr(column, "array", column).__arrow_array__(), dtype)
    if hasattr(kind, "numpy_dtype"):
        values = column.to_numpy(dtype=kind.numpy_dtype, na_value=kind.numpy_dtype.type(0))
        return _invert_mask(take(values), column.isna().__array__())
    return take(column.to_numpy())
