"""Arrow is read and written by nanoarrow, or by pyarrow where that alone is installed; neither is imported before.

A column is a :class:`Node` whichever library took it: entry ``i`` of a record is entry ``i`` of each of its columns.
"""

import ctypes
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import formats

with warnings.catch_warnings():  # what is read is not written into; torch says so once
    warnings.simplefilter("ignore")
    torch.frombuffer(b"0", dtype=torch.uint8)


@dataclass(frozen=True, slots=True)
class Node:
    """A column that was handed over: its type by Arrow's name, and the memory it is in."""

    format: str
    length: int
    offset: int
    nulls: int
    buffer: Callable[[int], Any]  #: by number; None where there is none
    names: tuple[str, ...] = ()  #: of a record's columns
    child: Callable[[int], "Node"] | None = None
    dictionary: Callable[[], "Node"] | None = None

    def view(self, number: int, dtype: torch.dtype, start: int, length: int) -> Tensor:
        """Elements ``start`` to ``start + length`` of a buffer, where they are."""
        memory = self.buffer(number) if length else None
        if memory is None:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(memory, dtype=dtype, offset=start * dtype.itemsize, count=length)

    def below(self, i: int = 0) -> "Node":
        """The values of a list, or a column of a record."""
        assert self.child is not None
        return self.child(i)


@cache
def library() -> Any:
    """The library, or None."""
    found = next((name for name in ("nanoarrow", "pyarrow") if find_spec(name) is not None), None)
    return None if found is None else import_module(found)


def required() -> Any:
    """The library, which a writer needs."""
    found = library()
    if found is None:
        raise ImportError("Arrow is written by nanoarrow, or by pyarrow: pip install nanoarrow")
    return found


def take_pieces(data: Any) -> tuple[Node, list[Node]]:
    """The pieces that a library hands over, and a column of their type, even if there are none."""
    lib = library()
    try:
        return _nanoarrow_pieces(lib, data) if lib.__name__ == "nanoarrow" else _pyarrow_pieces(lib, data)
    except Exception as reason:
        said = str(reason).strip().partition("\n")[0]
        raise RuntimeError(f"the arrow column cannot be read: {said}") from reason


# ---------------------------------------------------------------------------------------------------------- nanoarrow


def _nanoarrow_pieces(lib: Any, data: Any) -> tuple[Node, list[Node]]:
    if hasattr(data, "__arrow_c_array__"):
        array = lib.c_array(data)
        schema, arrays = array.schema, [array]
    else:
        with lib.c_array_stream(data) as stream:
            schema, arrays = stream.get_schema(), list(stream)
    empty = import_module("nanoarrow.c_array").CArrayView.from_schema(schema)
    return _of_nanoarrow(schema, empty), [_of_nanoarrow(schema, array.view()) for array in arrays]


def _of_nanoarrow(schema: Any, view: Any, above: Any = None) -> Node:
    """``above``: the offset and length of the record that the column is of."""
    name = schema.format
    start, length = (view.offset, view.length) if above is None else (view.offset + above[0], above[1])
    inside = (start, length) if name == formats.RECORD else None
    dictionary = schema.dictionary
    return Node(
        name,
        length,
        start,
        view.null_count,
        partial(_nanoarrow_buffer, view),
        tuple(child.name for child in schema.children) if inside else (),
        lambda i: _of_nanoarrow(schema.child(i), view.child(i), inside),
        None if dictionary is None else lambda: _of_nanoarrow(dictionary, view.dictionary),
    )


def _nanoarrow_buffer(view: Any, number: int) -> Any:
    memory = memoryview(view.buffer(number))
    return memory if memory.nbytes else None


# ------------------------------------------------------------------------------------------------------------ pyarrow


def _pyarrow_pieces(lib: Any, data: Any) -> tuple[Node, list[Node]]:
    column = lib.chunked_array([lib.array(data)] if hasattr(data, "__arrow_c_array__") else data)
    column.validate()
    pieces = [_of_pyarrow(lib, chunk) for chunk in column.chunks]
    return pieces[0] if pieces else _of_pyarrow(lib, lib.nulls(0, column.type)), pieces


def _of_pyarrow(lib: Any, array: Any) -> Node:
    name, kind = _format_of(lib, array.type), array.type
    if lib.types.is_dictionary(kind):
        return replace(_of_pyarrow(lib, array.indices), dictionary=lambda: _of_pyarrow(lib, array.dictionary))
    names: tuple[str, ...] = ()
    child: Callable[[int], Node] | None = None
    if name == formats.RECORD:
        names = tuple(kind.field(i).name for i in range(kind.num_fields))
        child = lambda i: _of_pyarrow(lib, array.field(i))  # noqa: E731 (as nanoarrow's)
    elif hasattr(array, "values"):
        child = lambda _: _of_pyarrow(lib, array.values)  # noqa: E731 (the same)
    buffer = partial(_pyarrow_buffer, array.buffers())
    return Node(name, len(array), array.offset, array.null_count, buffer, names, child)


def _pyarrow_buffer(buffers: list[Any], number: int) -> Any:
    memory = buffers[number]
    return memoryview(memory) if memory else None


def _format_of(lib: Any, kind: Any) -> str:
    name = str(kind)
    if name in formats.NAMES:
        return formats.NAMES[name]
    if lib.types.is_fixed_size_list(kind):
        return f"{formats.FIXED}{kind.list_size}"
    for known, test in ((formats.RECORD, "is_struct"), ("+l", "is_list"), ("+L", "is_large_list")):
        if getattr(lib.types, test)(kind):
            return known
    return {"time": "t", "date": "t", "dura": "t", "deci": "d"}.get(name[:4], "") + name


# ------------------------------------------------------------------------------------------------------------ writing


class Column(NamedTuple):
    """One column that is handed out, and all below it."""

    format: str
    length: int
    buffers: tuple[Tensor | None, ...]  #: the bits of what is there, None where all is; then what the format asks for
    nulls: int = 0
    children: tuple[tuple[str, "Column"], ...] = ()


def type_of(column: Column) -> Any:
    """Its type, as the library has it."""
    lib = required()
    below = [(name, type_of(child)) for name, child in column.children]
    if column.format == formats.RECORD:
        return lib.struct(dict(below) if lib.__name__ == "nanoarrow" else below)
    if column.format.startswith(formats.FIXED):
        size = int(column.format.removeprefix(formats.FIXED))
        return lib.fixed_size_list(below[0][1], size) if lib.__name__ == "nanoarrow" else lib.list_(below[0][1], size)
    if below:
        return lib.list_(below[0][1])
    return getattr(lib, formats.MAKERS[column.format])()


def array_of(column: Column) -> Any:
    """The library's own array; the memory stays where it is, and lives as long."""
    lib, kind = required(), type_of(column)
    below = [array_of(child) for _, child in column.children]
    buffers = [None if buffer is None else _memory(buffer) for buffer in column.buffers]
    if lib.__name__ == "nanoarrow":
        return lib.c_array_from_buffers(kind, column.length, buffers, column.nulls, children=below)
    held = [None if memory is None else lib.py_buffer(memory) for memory in buffers]
    return lib.Array.from_buffers(kind, column.length, held, column.nulls, children=below)


def schema_of(column: Column) -> Any:
    """A capsule of the type."""
    return type_of(column).__arrow_c_schema__()


def stream_of(column: Column) -> Any:
    """A capsule of a stream of one piece."""
    lib, array = required(), array_of(column)
    if lib.__name__ == "nanoarrow":
        return lib.c_array_stream(array).__arrow_c_stream__()
    return lib.RecordBatch.from_struct_array(array).__arrow_c_stream__()


def _memory(x: Tensor) -> Any:
    size = x.numel() * x.element_size()
    memory: Any = (ctypes.c_char * size).from_address(x.data_ptr() or 1) if size else b""
    if size:
        memory.kept = x
    return memory
