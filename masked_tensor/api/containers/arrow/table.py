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
    """Columns with names; whatever speaks the Arrow C data interface takes it: ``pa.table``, ``pl.DataFrame`` ...

    Args:
        columns (list of tuple): A name and a column of each, all of one length.

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
    """A table of ``x`` with column ``names``, null where it is masked, for pandas, polars and others that read Arrow.

    The result has Arrow's PyCapsule interface, by nanoarrow or pyarrow, of which one must be installed
    (``pip install nanoarrow``): ``pyarrow.table``, ``pyarrow.record_batch``, ``polars.DataFrame``,
    ``pandas.DataFrame.from_arrow`` and DuckDB take it. Without either,
    ``pandas.DataFrame(x.to_numpy_ma(), columns=names)`` has the columns back.

    Values stay where they are if the entries of a column lie together, as those of one dimension do, and those of
    ``masked_tensor(table)``: a write into ``x`` is then seen in the table. Others are copied once. The mask becomes one
    bit for each entry. What lies under it is handed out as it is, as Arrow allows: ``x.clear_masked()`` holds 0 there.

    Args:
        x (Tensor): Masked or plain, ``(N,)`` or ``(N, F)``, any real dtype that Arrow has; a tensor on another device,
            packed or sparse is copied.
        names (str or list of str, optional): The names of the columns. By default ``"0"``, ``"1"`` and so on.

    Returns:
        ArrowTable: With ``N`` rows.

    Raises:
        ValueError: ``x`` has another number of dimensions, or another number of columns than names, or two names are
            the same.
        TypeError: ``x`` is not a tensor, or Arrow has no type for its dtype, such as bfloat16 and complex ones.

    Example:
        >>> x = mt.masked_tensor([[1.0, 2.0], [None, 4.0]])
        >>> import pyarrow  # doctest: +SKIP
        >>> pyarrow.table(mt.to_arrow(x, ["a", "b"])).to_pydict()  # doctest: +SKIP
        {'a': [1.0, None], 'b': [2.0, 4.0]}

    References:
        https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"to_arrow() takes a tensor, got {type(x).__name__}; use masked_tensor(data)")
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
        raise ValueError(f"to_arrow() takes {columns} different names, one for each column, got {known}")
    return known


def _apart(data: Tensor) -> Sequence[Tensor]:
    """The columns ``(F, N)``, each in memory that lies together."""
    return data.contiguous().unbind() if data.stride(1) != 1 and len(data) else data.unbind()
