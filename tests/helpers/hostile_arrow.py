"""Columns as the Arrow C data interface has them, and ways in which one can be wrong.

``python -m tests.helpers.hostile_arrow SEED COUNT`` reads them.  It runs in a process of its own, since a
column that is wrong ends the process of a reader that trusts it.
"""

import ctypes
import random
import sys
from collections import Counter
from collections.abc import Callable
from ctypes import POINTER
from typing import Any, NamedTuple

import torch

import masked_tensor as mt
from masked_tensor.api.containers.arrow import abi, formats

KINDS = [*formats.DTYPES, formats.BITS, formats.NULL, formats.FIXED, *formats.OFFSETS, formats.RECORD, "dictionary"]
HUGE = 2**62
RELEASED = Counter[int]()


class Column(NamedTuple):
    """Both structures, those below them, and what was written: values at most, None where a null is."""

    schema: Any
    array: Any
    below: list["Column"]
    values: list[Any]


def _released(kind: Any) -> Any:
    def release(pointer: Any) -> None:
        RELEASED[ctypes.addressof(pointer.contents)] += 1
        pointer.contents.release = dict(kind._fields_)["release"]()

    return dict(kind._fields_)["release"](release)


RELEASE = {kind: _released(kind) for kind in (abi.Schema, abi.Array, abi.Stream)}
KEPT: list[Any] = []  # ctypes keeps no memory that is only pointed at


def column(rng: random.Random, length: int, depth: int = 0, kinds: list[str] = KINDS) -> Column:
    """A column that is right, with an offset, nulls and children at random."""
    flat = [kind for kind in kinds if not kind.startswith("+") and kind != "dictionary"]
    kind = rng.choice(kinds if depth < 2 else flat)
    offset = rng.choice((0, 0, 1, 9))
    valid = [rng.random() < 0.7 for _ in range(length)]
    bitmap = _bits([False] * offset + valid)
    below: list[Column] = []
    dictionary = None
    if kind == formats.NULL:
        buffers, values, name = [], [None] * length, kind
        valid = [False] * length
    elif kind == formats.FIXED:
        size = rng.choice((0, 1, 3))
        below = [column(rng, (offset + length) * size, depth + 1)]
        rows = [below[0].values[size * (offset + i) : size * (offset + i + 1)] for i in range(length)]
        buffers, values, name = [bitmap], rows, f"{kind}{size}"
    elif kind in formats.OFFSETS:
        counts = [rng.choice((0, 1, 3)) for _ in range(offset + length)]
        ends = [0, *torch.tensor(counts, dtype=torch.int64).cumsum(0).tolist()]
        below = [column(rng, ends[-1], depth + 1)]
        rows = [below[0].values[ends[offset + i] : ends[offset + i + 1]] for i in range(length)]
        buffers, values, name = [bitmap, torch.tensor(ends, dtype=formats.OFFSETS[kind])], rows, kind
    elif kind == formats.RECORD:
        name = rng.choice(flat)
        below = [column(rng, offset + length, depth + 1, [name]) for _ in range(rng.choice((1, 2)))]
        rows = [[c.values[offset + i] for c in below] for i in range(length)]
        buffers, values, name = [bitmap], rows, kind
    elif kind == formats.BITS:
        bits = [rng.random() < 0.5 for _ in range(offset + length)]
        buffers, values, name = [bitmap, _bits(bits)], bits[offset:], kind
    else:
        words = column(rng, 3, 2) if kind == "dictionary" else None
        name = rng.choice(sorted(formats.INTEGERS)) if words else kind
        data = torch.tensor([rng.randrange(3) for _ in range(offset + length)], dtype=formats.DTYPES[name])
        buffers, values = [bitmap, data], data[offset:].tolist()
        if words:
            dictionary, values = words, [words.values[int(v)] for v in values]
    values = [v if there else None for v, there in zip(values, valid, strict=True)]
    return Column(*_structures(name, length, offset, buffers, below, dictionary), below, values)


def _bits(bits: list[bool]) -> torch.Tensor:
    whole = [*bits, *[False] * (-len(bits) % 8)]
    return torch.tensor(
        [sum(bit << i for i, bit in enumerate(whole[j : j + 8])) for j in range(0, len(whole), 8)]
    ).byte()


def _structures(name: str, length: int, offset: int, buffers: list[Any], below: list[Column], words: Any) -> Any:
    schema = abi.Schema(format=name.encode(), name=b"x", n_children=len(below), release=RELEASE[abi.Schema])
    array = abi.Array(length=length, null_count=-1, offset=offset, n_buffers=len(buffers), n_children=len(below))
    array.release = RELEASE[abi.Array]
    addresses = (ctypes.c_void_p * len(buffers))(*[b.data_ptr() or None for b in buffers])
    array.buffers = addresses
    if below:
        schema.children = (POINTER(abi.Schema) * len(below))(*[ctypes.pointer(c.schema) for c in below])
        array.children = (POINTER(abi.Array) * len(below))(*[ctypes.pointer(c.array) for c in below])
    if words:
        schema.dictionary, array.dictionary = ctypes.pointer(words.schema), ctypes.pointer(words.array)
    KEPT.append((name, buffers, below, words, addresses, schema, array))
    return schema, array


def _set(which: str, field: str, value: Any) -> Callable[[Column], bool]:
    def change(c: Column) -> bool:
        setattr(getattr(c, which), field, value)
        return True

    return change


def _shorter(c: Column) -> bool:
    if not c.below or not c.array.length or c.schema.format == b"+w:0":
        return False
    c.below[0].array.length -= 1
    return True


def _offsets(value: int, place: int) -> Callable[[Column], bool]:
    def change(c: Column) -> bool:
        kind = formats.OFFSETS.get(c.schema.format.decode())
        if kind is None or not c.array.length:
            return False
        width = kind.itemsize
        position = c.array.offset if place == 0 else c.array.offset + c.array.length
        whole = ctypes.c_int32 if width == 4 else ctypes.c_int64
        whole.from_address(c.array.buffers[1] + position * width).value = value
        return True

    return change


def _buffer_gone(c: Column) -> bool:
    if c.array.n_buffers < 2 or not c.array.length:
        return False
    c.array.buffers[1] = None
    return True


def _child_gone(which: str) -> Callable[[Column], bool]:
    def change(c: Column) -> bool:
        if not c.below:
            return False
        getattr(c, which).children[0] = None
        return True

    return change


def _more(which: str, by: int) -> Callable[[Column], bool]:
    def change(c: Column) -> bool:
        getattr(c, which).n_children += by
        return True

    return change


def _code(value: int) -> Callable[[Column], bool]:
    def change(c: Column) -> bool:
        if not c.array.dictionary or not c.array.length or c.values[0] is None:
            return False
        ctypes.c_int8.from_address(c.array.buffers[1] + c.array.offset * _width(c)).value = value
        return True

    return change


def _width(c: Column) -> int:
    return formats.DTYPES[c.schema.format.decode()].itemsize


def _circle(c: Column) -> bool:
    if not c.below:
        return False
    c.schema.children[0] = ctypes.pointer(c.schema)
    c.array.children[0] = ctypes.pointer(c.array)
    return True


_NEVER = {kind: dict(kind._fields_)["release"]() for kind in (abi.Schema, abi.Array)}
WRONG: dict[str, Callable[[Column], bool]] = {
    "schema released": _set("schema", "release", _NEVER[abi.Schema]),
    "array released": _set("array", "release", _NEVER[abi.Array]),
    "no format": _set("schema", "format", None),
    "format of another": _set("schema", "format", b"+w:x"),
    "negative lists": _set("schema", "format", b"+w:-1"),
    "schema has more children": _more("schema", 1),
    "array has more children": _more("array", 1),
    "array has huge children": _more("array", HUGE),
    "both have negative children": lambda c: _more("schema", -3)(c) and _more("array", -3)(c),
    "both have huge children": lambda c: _more("schema", 2**40)(c) and _more("array", 2**40)(c),
    "schema's child is null": _child_gone("schema"),
    "array's child is null": _child_gone("array"),
    "its own child": _circle,
    "negative length": _set("array", "length", -1),
    "negative offset": _set("array", "offset", -1),
    "very negative offset": _set("array", "offset", -HUGE),
    "huge offset": _set("array", "offset", HUGE),
    "huge length": _set("array", "length", HUGE),
    "wrong nulls": _set("array", "null_count", 2**40),
    "negative nulls": _set("array", "null_count", -2),
    "negative buffers": _set("array", "n_buffers", -1),
    "short child": _shorter,
    "list begins before": _offsets(-3, 0),
    "list ends late": _offsets(2**30, 1),
    "list ends before": _offsets(-3, 1),
    "no values": _buffer_gone,
    "negative code": _code(-1),
    "code past the end": _code(3),
}
READ = (
    "short child",
    "list begins before",
    "list ends late",
    "list ends before",
    "no values",
    "negative code",
    "code past the end",
)
STRANGE: dict[str, Callable[[Column], bool]] = {  # what a reader may not be able to know: it must live, no more
    "far offset": _set("array", "offset", 2**34),
    "farther offset": _set("array", "offset", 2**40),
    "fewer buffers": _set("array", "n_buffers", 1),
    "no buffers": _set("array", "n_buffers", 0),
    "unknown format": _set("schema", "format", b"\xff\xfe"),
    "text": _set("schema", "format", b"u"),
    "union": _set("schema", "format", b"+ud:0,1"),
}


RELEASES = ("schema released", "array released")


class Once:
    """Hands out the structures of a column, as a producer would."""

    def __init__(self, c: Column) -> None:
        self.column = c

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return tuple(
            abi._new(ctypes.addressof(content), abi.NAMES[type(content)], None)
            for content in (self.column.schema, self.column.array)
        )


class Streamed:
    """The same, as a stream of one piece."""

    def __init__(self, c: Column) -> None:
        fields = dict(abi.Stream._fields_)
        pieces = [c.array]

        def get_schema(_: Any, into: Any) -> int:
            ctypes.memmove(into, ctypes.addressof(c.schema), ctypes.sizeof(abi.Schema))
            return 0

        def get_next(_: Any, into: Any) -> int:
            ctypes.memmove(into, ctypes.addressof(pieces.pop() if pieces else empty), ctypes.sizeof(abi.Array))
            return 0

        empty = abi.Array()

        self.stream = abi.Stream(
            get_schema=fields["get_schema"](get_schema),
            get_next=fields["get_next"](get_next),
            release=RELEASE[abi.Stream],
        )

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return abi._new(ctypes.addressof(self.stream), abi.NAMES[abi.Stream], None)


def nodes(c: Column) -> list[Column]:
    """A column and all below it."""
    return [c, *[n for child in c.below for n in nodes(child)]]


def _read(handed: Any) -> tuple[Exception | None, Any]:
    try:
        return None, mt.masked_tensor(handed).tolist()
    except (ValueError, TypeError, RuntimeError) as error:
        return error, None


def program(seed: int) -> str:
    """Reads one column, right or wrong in one way; the name of the way."""
    rng = random.Random(seed)
    RELEASED.clear()
    way = rng.choice(["right"] * 8 + [*WRONG, *STRANGE])
    for _ in range(30):
        KEPT.clear()
        c = column(rng, rng.choice((0, 1, 5, 17)))
        target = c if way in READ else rng.choice(nodes(c))  # entries that nobody asks for are not looked at
        changed = way == "right" or (WRONG | STRANGE)[way](target)
        if changed:
            break
    streamed = rng.random() < 0.3 and way not in RELEASES
    handed = Streamed(c) if streamed else Once(c)
    live = 3 if streamed else sum(bool(x.release) for x in (c.schema, c.array))
    said, got = _read(handed)
    if way == "right":
        assert said is None, (seed, said)
        assert same(got, c.values), (seed, c.schema.format, got, c.values)
        assert len(RELEASED) == live, (seed, RELEASED)
    elif way in WRONG and changed:
        assert isinstance(said, ValueError), (seed, way, c.schema.format, said, got)
    assert len(RELEASED) <= live, (seed, way, RELEASED)
    assert set(RELEASED.values()) <= {1}, (seed, way, RELEASED)
    return way if changed else "not possible"


def same(got: Any, written: Any) -> bool:
    """``got`` is ``written`` padded with None: a list that is null, or shorter than others, is a list of them."""
    if isinstance(got, list):
        written = written if isinstance(written, list) else []
        return all(same(g, w) for g, w in zip(got, [*written, *[None] * len(got)], strict=False)) and len(
            written
        ) <= len(got)
    return bool(got == written) or (got is None and written == [])


def main(first: int, count: int) -> None:
    """Runs ``count`` columns and says how many there were of each way."""
    ways = Counter(program(seed) for seed in range(first, first + count))
    print(dict(sorted(ways.items())))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
