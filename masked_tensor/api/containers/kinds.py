"""What other libraries call missing: each container as values and validity, and no library is imported for it.

A container is known by its class, or by the name of its library and class. What is arrow is known by the Arrow C data
interface.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.masked import MaskedTensor as TorchMasked
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from ... import layouts, masks, settings
from ...pair import Pair, plain_pair
from . import ragged, sources, tables

Reader = Callable[[Any], tuple[Any, Any]]

_NUMBERS = tuple("?bhilqBHILQefdFD")  #: numpy's letters for the dtypes that torch has
_READERS: dict[type | str, Reader] = {}


def register_container(*kinds: type | str) -> Callable[[Reader], Reader]:
    """Decorator that registers a function as the reader of a container class, for everything that accepts data.

    The function receives the container and returns ``(values, valid)``: the values, as anything that
    :func:`~masked_tensor.masked_tensor` accepts, and a mask of the valid ones, or None if the values define it.
    Containers in a list are read as well. A reader also applies to derived classes. Registering a class again replaces
    its reader.

    Args:
        *kinds (type or str): Classes, or ``"library.Class"`` for a class of a library that need not be imported: the
            first part of its module path, and its name.

    Returns:
        callable: The decorator, which returns the function unchanged.

    Raises:
        TypeError: A kind is neither a class nor such a name.
        TypeError: A kind is a tensor class or a built-in class.

    Example:
        >>> from masked_tensor.extend import register_container
        >>> class Track:
        ...     def __init__(self, samples, muted):
        ...         self.samples, self.muted = samples, muted
        >>> @register_container(Track)
        ... def read_track(track):
        ...     return track.samples, [not muted for muted in track.muted]
        >>> mt.masked_tensor(Track([1.0, 2.0, 3.0], [False, True, False])).tolist()
        [1.0, None, 3.0]
    """
    for kind in kinds:
        own = isinstance(kind, type) and (issubclass(kind, Tensor) or kind in sources.OF_PYTHON)
        if own or not (isinstance(kind, type) or (isinstance(kind, str) and kind.count(".") == 1)):
            raise TypeError(
                f'a container is a class, or "library.Class", got {kind!r}; tensors and classes of Python itself '
                "are read already"
            )

    def register(reader: Reader) -> Reader:
        _READERS.update(dict.fromkeys(kinds, reader))
        return reader

    return register


def reader_of(data: object) -> Reader | None:
    """The reader of a container: that of its class, or of the nearest class that it is derived from."""
    return sources.of_class(type(data), _READERS)


def sparse_tensor(data: Any) -> Any:
    """A sparse matrix of scipy as the plain tensor that it is, whose other entries are 0; all else as it is."""
    return _scipy_sparse(data)[0] if reader_of(data) is _scipy_sparse else data


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


@register_container(PackedSequence)
def _packed_sequence(data: PackedSequence) -> tuple[Tensor, Tensor]:
    padded, lengths = pad_packed_sequence(data, batch_first=True)
    mask = masks.lengths_to_mask(lengths, padded.shape[1]).to(padded.device)
    return padded, ragged.per_step(mask, padded)


@register_container("numpy.MaskedArray")
def _numpy_ma(data: Any) -> tuple[Any, Any]:
    return data.data, ~torch.tensor(data.mask)


@register_container("astropy.Masked")
def _astropy(data: Any) -> tuple[Any, Any]:
    return data.unmasked, ~data.mask


@register_container("astropy.Quantity")
def _quantity(data: Any) -> tuple[Any, Any]:
    raise TypeError(
        f"data has the unit {data.unit!s}, which a tensor cannot keep; use data.value, or data.to_value(unit) "
        f"to convert it"
    )


_FORMATS = ("coo", "csr", "csc", "bsr")  # those of scipy's that torch has


@register_container(
    *(f"scipy.{form}_{kind}" for form in (*_FORMATS, "lil", "dok", "dia") for kind in ("array", "matrix"))
)
def _scipy_sparse(data: Any) -> tuple[Tensor, None]:
    """A sparse tensor of its layout, or CSR; what is stored twice is added up, as scipy does."""
    data = data.copy() if data.format in _FORMATS else data.tocsr()
    data.sum_duplicates()
    values = torch.from_numpy(data.data)
    if data.format == "coo":
        at = torch.stack([torch.from_numpy(i).long() for i in data.coords])
        return torch.sparse_coo_tensor(at, values, data.shape, is_coalesced=True, check_invariants=True), None
    plain, compressed = (torch.from_numpy(i) for i in (data.indices, data.indptr))
    make = getattr(torch, f"sparse_{data.format}_tensor")
    return make(compressed, plain, values, data.shape, check_invariants=True), None


@register_container("xarray.DataArray", "xarray.Variable")
def _xarray(data: Any) -> tuple[Any, Any]:
    return data.values if reader_of(data.data) is None else data.data, None


def whole_frame(data: Any) -> Any:
    """The array of a pandas frame whose columns are floats of one dtype, to be read; None of anything else."""
    if isinstance(data, Tensor) or reader_of(data) is not _pandas_frame:
        return None
    values = _one_array(data) if math.prod(data.shape) <= settings.FRAME else None
    kinds = set(data.dtypes) if values is None else {values.dtype}
    kind = kinds.pop() if len(kinds) == 1 else None
    floats = kind is not None and getattr(kind, "char", "") in ("e", "f", "d") and kind.isnative
    return None if not floats else data.to_numpy() if values is None else values


def _one_array(frame: Any) -> Any:
    """The array that a small frame is in memory, of which pandas makes no copy; None if there is no such array.

    Columns of several dtypes are put together anew whenever they are asked for.  To ask for the dtypes takes longer.
    """
    first, second = frame.to_numpy(), frame.to_numpy()
    same = first.size and first.__array_interface__["data"] == second.__array_interface__["data"]
    return first if same else None


@register_container("pandas.DataFrame", "modin.DataFrame")
def _pandas_frame(frame: Any) -> tuple[Any, Any]:
    kinds = set(frame.dtypes)
    if len(kinds) == 1:  # read at once: a column by itself takes a fifth of a millisecond
        (kind,) = kinds
        if getattr(kind, "char", "") in _NUMBERS:
            return frame.to_numpy().copy(order="C"), None
        if getattr(getattr(kind, "numpy_dtype", None), "char", "") in _NUMBERS and not hasattr(kind, "pyarrow_dtype"):
            values = frame.to_numpy(dtype=kind.numpy_dtype, na_value=kind.numpy_dtype.type(0))
            return values.copy(order="C"), ~frame.isna().to_numpy()
    return tables.Columns(list(frame.columns), [frame.iloc[:, i] for i in range(len(frame.columns))]), None


@register_container("pandas.Series", "pandas.Index", "pandas.ExtensionArray", "modin.Series")
def _pandas_column(column: Any) -> tuple[Any, Any]:
    """NaN is missing only where the dtype is a nullable one."""
    kind = column.dtype
    if hasattr(kind, "pyarrow_dtype"):
        return getattr(column, "array", column).__arrow_array__(), None
    if hasattr(kind, "numpy_dtype"):
        return column.to_numpy(dtype=kind.numpy_dtype, na_value=kind.numpy_dtype.type(0)), ~column.isna().__array__()
    return column.to_numpy(), None


def own_arrays(data: Any) -> tuple[Any, Any]:
    """A frame or a column of polars by its own arrays, where no library is installed that reads Arrow."""
    if type(data).__module__.partition(".")[0] != "polars":
        raise ImportError(f"{type(data).__name__} is read by nanoarrow, or by pyarrow: pip install nanoarrow")
    if hasattr(data, "columns"):
        return tables.Columns(list(data.columns), [data[name] for name in data.columns]), None
    if not data.dtype.is_numeric():
        return data.to_list(), None
    return data.fill_null(0).to_numpy(), ~data.is_null().to_numpy()


def has_nan_for_missing(data: object, pair: Pair) -> bool:
    """Whether a container whose only word for missing is NaN, as pandas' columns of numpy's floats, holds one."""
    if isinstance(data, Tensor) or not pair.data.is_floating_point():
        return False
    if reader_of(data) not in (_pandas_frame, _pandas_column):
        return False
    return bool((pair.data.isnan() & pair.mask).any())
