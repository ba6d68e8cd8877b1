"""What the Arrow C data interface lays down in memory: three structures, and the capsules they travel in."""

import contextlib
import ctypes
import itertools
import os
import threading
from collections.abc import Iterator
from ctypes import POINTER, PYFUNCTYPE, Structure, c_char, c_char_p, c_int, c_int64, c_void_p, py_object
from typing import Any


class Schema(Structure):
    """``ArrowSchema``: the type of a column, and of what it consists of."""


class Array(Structure):
    """``ArrowArray``: the values of a column, as addresses of buffers."""


class Stream(Structure):
    """``ArrowArrayStream``: a column in pieces, one after the other."""


Schema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(Schema))),
    ("dictionary", POINTER(Schema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Schema))),
    ("private_data", c_void_p),
]
Array._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(Array))),
    ("dictionary", POINTER(Array)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Array))),
    ("private_data", c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(Stream), POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(Stream))),
    ("private_data", c_void_p),
]
NULLABLE = 2  # a schema's flag: there may be nulls
NAMES: dict[type, bytes] = {Schema: b"arrow_schema", Array: b"arrow_array", Stream: b"arrow_array_stream"}

_get = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_get_raw = PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_new = PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))


@contextlib.contextmanager
def take_capsule(capsule: object, kind: type) -> Iterator[Any]:
    """The structure inside a capsule, released afterwards: whoever opens the capsule again finds it consumed."""
    content: Any = ctypes.cast(_get(capsule, NAMES[kind]), POINTER(kind)).contents
    try:
        yield content
    finally:
        if content.release:
            content.release(ctypes.pointer(content))


_BYTE = c_char * 1
_AT_ONCE = 1 << 9  # more than 1024 bytes of different places are not taken in one call


class _Probe(threading.local):
    pipe: tuple[int, int] | None = None  # where it is read, and where it is written


_PROBE = _Probe()


@contextlib.contextmanager
def probing() -> Iterator[None]:
    """One pipe for all that :func:`readable` asks inside: to open one costs more than to ask."""
    if _PROBE.pipe is not None or os.name != "posix":
        yield
        return
    pipe = _PROBE.pipe = os.pipe()
    try:
        yield
    finally:
        _PROBE.pipe = None
        for end in pipe:
            os.close(end)


def readable(*places: tuple[int, int]) -> bool:
    """Whether there is memory of ours at addresses, of so many bytes: the first and last are asked of the system.

    The interface does not say how large a buffer is, so this is all that can be known of one.
    """
    if any(address <= 0 or address + size >= 2**63 for address, size in places):
        return False
    ends = [_BYTE.from_address(end) for address, size in places if size for end in (address, address + size - 1)]
    if not ends or os.name != "posix":
        return True
    with probing():
        assert _PROBE.pipe is not None
        source, sink = _PROBE.pipe
        for start in range(0, len(ends), _AT_ONCE):
            some = ends[start : start + _AT_ONCE]
            try:
                written = os.writev(sink, some)  # an error, where reading it would end the process
            except OSError:
                return False
            if len(os.read(source, written)) < len(some):
                return False
    return True


def make_capsule(content: Any) -> Any:
    """A capsule around a structure."""
    address = ctypes.addressof(content)
    _LENT[address] = content
    return _new(address, NAMES[type(content)], _DESTROY[type(content)])


_LENT: dict[int, Any] = {}  # structures that lie in a capsule, by address
_OWNED: dict[int, Any] = {}  # by number: what a structure keeps alive until it is released, wherever it was moved to
_NUMBERS = itertools.count(1)


def keep_alive(content: Any, held: object) -> None:
    """Makes ``content`` keep ``held`` alive until it is released."""
    number = next(_NUMBERS)
    _OWNED[number] = held
    content.private_data = number
    content.release = _RELEASE[type(content)]


def make_stream(schema: Any, array: Any) -> Any:
    """A stream of one piece."""
    pieces = [array]

    def give(content: Any, into: Any) -> int:
        ctypes.memmove(into, ctypes.byref(content), ctypes.sizeof(content))
        content.release = _NOTHING[type(content)]  # it was moved
        return 0

    def get_schema(_: Any, into: Any) -> int:
        return give(schema, into)

    def get_next(_: Any, into: Any) -> int:
        return give(pieces.pop() if pieces else Array(), into)

    stream = Stream()
    kinds: dict[str, Any] = dict(Stream._fields_)  # type: ignore[arg-type]  # ctypes' field lists are wider than a dict's
    calls = kinds["get_schema"](get_schema), kinds["get_next"](get_next), kinds["get_last_error"](lambda _: None)
    stream.get_schema, stream.get_next, stream.get_last_error = calls
    keep_alive(stream, (schema, array, calls))
    return stream


def _release_stream(pointer: Any) -> None:
    content = pointer.contents
    for held in _OWNED.pop(content.private_data, ((), (), ()))[:2]:
        if held and held.release:  # nobody took it
            held.release(ctypes.pointer(held))
    content.release = _NOTHING[Stream]


def _releaser(kind: Any) -> Any:
    def release(pointer: Any) -> None:
        content = pointer.contents
        for i in range(content.n_children):
            child = content.children[i]
            if child.contents.release:
                child.contents.release(child)
        _OWNED.pop(content.private_data, None)
        content.release = _NOTHING[kind]

    return dict(kind._fields_)["release"](release)


def _destroyer(kind: Any) -> Any:
    def destroy(raw: int) -> None:
        content = _LENT.pop(_get_raw(raw, NAMES[kind]))
        if content.release:  # nobody took it
            content.release(ctypes.pointer(content))

    return PYFUNCTYPE(None, c_void_p)(destroy)


_NOTHING = {kind: dict(kind._fields_)["release"]() for kind in (Schema, Array, Stream)}  # type: ignore[arg-type]  # ctypes' field lists are wider than a dict's
_RELEASE: dict[type, Any] = {kind: _releaser(kind) for kind in (Schema, Array)}
_RELEASE[Stream] = ctypes.CFUNCTYPE(None, POINTER(Stream))(_release_stream)
_DESTROY = {kind: _destroyer(kind) for kind in (Schema, Array, Stream)}
