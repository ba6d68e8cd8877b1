"""What an arrow column says about itself is checked before its memory is read.

The interface hands over addresses and counts.  Each structure must still be there (a consumer that took it sets
``release`` to null), counts must not be negative, and schema and array must have the same children.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from . import formats
from .abi import Array, Schema, readable

DEEPEST = 64  #: as many dimensions as a tensor has
LONGEST = 2**47  #: bytes that an address can reach; no column has more entries


def expect(holds: object, said: str) -> None:
    """Raises unless ``holds``."""
    if not holds:
        raise ValueError(f"the arrow column cannot be read: {said}")


def check_schema(schema: Any, depth: int = 0) -> None:
    """Raises unless a schema is there, with what its format asks for."""
    expect(depth < DEEPEST, f"its lists and records are nested more than {DEEPEST} deep")
    expect(schema.release, "its schema was consumed (released) before; ask for a new one")
    expect(schema.format is not None, "its schema names no format")
    name = schema.format.decode(errors="replace")
    count = schema.n_children
    if name in formats.OFFSETS or name.startswith(formats.FIXED):
        expect(count == 1, f"a list has 1 child, its schema has {count}")
    if name.startswith(formats.FIXED):
        size = name.removeprefix(formats.FIXED)
        expect(size.isdecimal() and int(size) <= LONGEST, f"the length of its lists is no count, got format {name!r}")
    for child in children(schema, Schema):
        check_schema(child, depth + 1)
    if schema.dictionary:
        expect(name in formats.INTEGERS, f"its codes must be integers, got format {name!r}")
        check_schema(_at(schema.dictionary, Schema), depth + 1)


def check_array(schema: Any, array: Any) -> None:
    """Raises unless an array is there, and fits its (checked) schema."""
    expect(array.release, "its array was consumed (released) before; ask for a new one")
    for count in ("length", "offset", "n_buffers"):
        expect(getattr(array, count) >= 0, f"its {count} is {getattr(array, count)}")
    expect(array.offset + array.length <= LONGEST, f"it begins at {array.offset} and has {array.length} entries")
    expect(-1 <= array.null_count <= array.length, f"{array.null_count} nulls among {array.length} entries")
    expect(
        schema.n_children == array.n_children,
        f"its schema has {schema.n_children} children, its array {array.n_children}",
    )
    pairs = zip(children(schema, Schema), children(array, Array), strict=True)
    for kind, child in pairs:
        check_array(kind, child)
    expect(bool(schema.dictionary) == bool(array.dictionary), "its schema or its array has a dictionary, and not both")
    if schema.dictionary:
        check_array(schema.dictionary.contents, _at(array.dictionary, Array))


def children(content: Any, kind: Any) -> list[Any]:
    """The structures that a structure consists of."""
    count = content.n_children
    expect(0 <= count <= LONGEST, f"it has {count} children")
    if not count:
        return []
    start = _address(content.children)
    expect(readable((start, ctypes.sizeof(ctypes.c_void_p) * count)), f"its {count} children are not there")
    places = [place or 0 for place in (ctypes.c_void_p * count).from_address(start)]
    expect(readable(*((place, ctypes.sizeof(kind)) for place in places)), "one of its children is not there")
    return [kind.from_address(place) for place in places]


def pick_children(content: Any, at: Sequence[int], count: int) -> Any:
    """A schema or an array with these of its ``count`` children alone; it lives as long as the whole one."""
    kind: Any = type(content)
    expect(content.release, "its array was consumed (released) before; ask for a new one")
    found = children(content, kind)
    expect(len(found) == count, f"its schema has {count} children, its array {len(found)}")
    some = kind()
    ctypes.memmove(ctypes.byref(some), ctypes.byref(content), ctypes.sizeof(kind))
    some.children = (ctypes.POINTER(kind) * len(at))(*(ctypes.pointer(found[i]) for i in at))
    some.n_children = len(at)
    return some


def _at(pointer: Any, kind: Any) -> Any:
    expect(readable((_address(pointer), ctypes.sizeof(kind))), "one of its children is not there")
    return pointer.contents


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0
