"""Tables of columns with names that are handed out through the Arrow C data interface."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from ....engine.boundary.enter_leave import enter
from ....engine.tensor import MaskedTensor
from ....masks import bits
from ....pair import as_pair
from ....shared.names import names_arguments
from ...leave import convert
from .exported import numbers, record
from .library import Column, array_of, schema_of, stream_of


class ArrowTable:
    """A table of named columns that any reader of the Arrow C data interface accepts, such as ``pyarrow.table``.

    Args:
        columns (list of tuple): The name and the column of each, all of the same length.

    Example:
        >>> from masked_tensor.extend import data
        >>> print(repr(data.ArrowTable([("name", data.texts(["a", "b"]))]))[:15])
        <2 rows of name
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Sequence[tuple[str, Column]]) -> None:
        self._columns = record(columns)

    def __arrow_c_schema__(self) -> Any:
        """The names and types of the columns, as a capsule."""
        return schema_of(self._columns)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        """Type and values, as two capsules; a requested schema is not followed, as the interface allows."""
        schema, array = array_of(self._columns).__arrow_c_array__()
        return schema, array

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """The same, as a stream of one piece."""
        return stream_of(self._columns)

    def __len__(self) -> int:
        """The number of rows."""
        return self._columns.length

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self._columns.children)
        return (
            f"<{len(self)} rows of {names}; give it to pyarrow.table, polars.DataFrame or pandas.DataFrame.from_arrow>"
        )


@names_arguments
def to_arrow(x: Tensor, names: str | Sequence[str] | None = None) -> ArrowTable:
    """An Arrow table of ``x`` with column ``names``, null where it is masked, for pandas, polars and others.

    The result implements Arrow's PyCapsule interface, which ``pyarrow.table``, ``pyarrow.record_batch``,
    ``polars.DataFrame``, ``pandas.DataFrame.from_arrow`` and DuckDB accept. It requires nanoarrow or pyarrow (``pip
    install nanoarrow``); without them, use ``pandas.DataFrame(x.to_numpy_ma(), columns=names)``.

    Contiguous columns, as in 1-D tensors and in ``masked_tensor(table)``, are not copied, so a write into ``x`` changes
    the table; others are copied once. The mask is converted to one bit per entry. Masked-out data are exported as they
    are, as Arrow allows; ``x.clear_masked()`` sets them to 0 first.

    Args:
        x (Tensor): Masked or plain, ``(N,)`` or ``(N, F)``, any real dtype that Arrow supports. A tensor that is
            packed, sparse or on another device is copied.
        names (str or list of str, optional): The names of the columns. Default: ``"0"``, ``"1"`` and so on.

    Returns:
        ArrowTable: A table with ``N`` rows.

    Raises:
        ValueError: ``x`` is not 1-D or 2-D.
        ValueError: ``names`` are not one for each column, or two are the same.
        TypeError: ``x`` is not a tensor, or Arrow does not support its dtype, such as bfloat16 or complex.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0], [None, 4.0]])
        >>> import pyarrow  # doctest: +SKIP
        >>> pyarrow.table(mt.to_arrow(x, ["a", "b"])).to_pydict()  # doctest: +SKIP
        {'a': [1.0, None], 'b': [2.0, 4.0]}

    See also:
        :func:`to_numpy_ma`.

    References:
        https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"to_arrow() expects a tensor, got {type(x).__name__}; use masked_tensor(data)")
    if x.dim() not in (1, 2):
        raise ValueError(
            f"to_arrow() makes columns of (N,) or (N, F), got {tuple(x.shape)}; use x.flatten(1), or "
            "pyarrow.array(x) for lists"
        )
    wide = convert.dense(x.detach()) if type(x) is MaskedTensor else x.detach().to_dense()
    pair = as_pair(enter(wide if wide.dim() == 2 else wide.unsqueeze(1), False))
    data, mask = pair.data.cpu().t(), pair.mask.cpu()
    known = _names(names, data.shape[0])
    valid = bits.transpose(mask) if mask.is_contiguous() and mask.shape[1] > 1 else mask.t()
    columns = [numbers(*column) for column in zip(_apart(data), valid, strict=True)]
    return ArrowTable(list(zip(known, columns, strict=True)))


def _names(names: str | Sequence[str] | None, columns: int) -> list[str]:
    known = [str(i) for i in range(columns)] if names is None else [names] if isinstance(names, str) else list(names)
    if len(known) != columns or len(set(known)) != columns:
        raise ValueError(f"to_arrow() needs {columns} different names, one for each column, got {known}")
    return known


def _apart(data: Tensor) -> Sequence[Tensor]:
    """The columns ``(F, N)``, each in memory that lies together."""
    return data.contiguous().unbind() if data.stride(1) != 1 and len(data) else data.unbind()
