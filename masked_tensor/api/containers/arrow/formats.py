"""Arrow's names of types, and the dtypes of torch that hold the same numbers."""

import torch

DTYPES = {
    "c": torch.int8, "C": torch.uint8, "s": torch.int16, "S": torch.uint16, "i": torch.int32, "I": torch.uint32,
    "l": torch.int64, "L": torch.uint64, "e": torch.float16, "f": torch.float32, "g": torch.float64,
}  # fmt: skip
FORMATS = {dtype: name for name, dtype in DTYPES.items()} | {torch.bool: "b"}
#: The functions of nanoarrow and pyarrow that make a type, and what pyarrow calls it.
MAKERS = {name: str(dtype).removeprefix("torch.") for name, dtype in DTYPES.items()} | {"b": "bool_", "u": "string"}
NAMES = {made: name for name, made in MAKERS.items()} | {
    "halffloat": "e", "float": "f", "double": "g", "bool": "b", "null": "n", "large_string": "U", "string_view": "vu",
    "binary": "z", "large_binary": "Z", "binary_view": "vz",
}  # fmt: skip
BITS = "b"  #: booleans, eight to a byte
NULL = "n"  #: nothing but nulls
TEXT = "u"  #: texts, and where each begins
TEXTS = {"u": torch.int32, "U": torch.int64}  #: and the dtype of where each begins
FIXED = "+w:"  #: lists of one length, which follows
RECORD = "+s"  #: columns, each a child
OFFSETS = {"+l": torch.int32, "+L": torch.int64}  #: lists, and the dtype of where each begins
_OTHERS = (
    ("tuUvzZ", "text, bytes or times"),
    ("dw", "decimal or binary numbers"),
    ("+", "lists or records of a kind that is not read here"),
)


def unsupported_type(name: str) -> TypeError:
    """The error for a type that no tensor holds."""
    what = next((what for first, what in _OTHERS if name[:1] in first), "something else than numbers")
    return TypeError(f"an Arrow column of {what} (format {name!r}) cannot become a tensor; cast it to numbers first")
