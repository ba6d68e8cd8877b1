"""Arguments that no call can mean, and what is wrong with what a call does with one."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor.extend import NoRule

NAN = float("nan")

#: What is given in the place of an argument: name, and a maker, as some are written into.
HOSTILE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a text": lambda: "text",
    "NaN": lambda: NAN,
    "a float": lambda: 1.5,
    "negative": lambda: -7,
    "huge": lambda: 2**70,
    "True": lambda: True,
    "complex": lambda: 1j,
    "no items": list,
    "lists": lambda: [[1.0, 2.0], [3.0]],
    "texts": lambda: ["a", "b"],
    "a dict": lambda: {"a": 1},
    "a module": lambda: math,
    "a function": lambda: len,
    "an object": object,
    "a set": lambda: {1},
    "floats": lambda: torch.ones(2, 3),
    "integers": lambda: torch.ones(5, 7, dtype=torch.int64),
    "bools": lambda: torch.zeros(3, dtype=torch.bool),
    "0-d": lambda: torch.tensor(1.0),
    "nothing": lambda: torch.zeros(0),
    "a masked one": lambda: mt.masked_tensor([[None, 2.0]]),
    "a sparse one": lambda: torch.eye(3).to_sparse(),
    "an array": lambda: np.ones((2, 2), "i4"),
    "numpy's float": lambda: np.float32(0.5),
    "numpy's integer": lambda: np.int64(1),
    "a dtype": lambda: torch.int8,
}

#: Words of Python itself about something inside.
INTERNAL = re.compile(
    r"has no len\(\)|index out of range$|object is not (iterable|subscriptable|callable)|has no attribute|"
    r"not supported between|unsupported operand|bad operand|to unpack|unhashable|not a mapping|"
    r"unexpected keyword argument '_|object does not support|takes \d+ positional|indices must be integers|"
    r"^argument of type|can only concatenate|concatenate|reduce\(\) of empty|arg is an empty|is not in (list|tuple)|"
    r"isinstance\(\)"
)
#: What a call may raise; a KeyError, too, if it is a sentence.
ALLOWED = (
    NoRule,
    AssertionError,
    OSError,
    OverflowError,
    TypeError,
    ValueError,
    IndexError,
    RuntimeError,
    NotImplementedError,
)


def picture(value: Any) -> Any:
    """What an argument is, to be compared."""
    if isinstance(value, Tensor):
        return value.shape, value.dtype, str(value)
    if isinstance(value, list | tuple):
        return [picture(v) for v in value]
    return repr(value)


def fault(call: Callable[[], object], arguments: dict[str, Any], written: Callable[[str], bool]) -> str | None:
    """What is wrong with what a call does; None if nothing is.  ``written`` says which arguments it may write into."""
    before = {key: picture(value) for key, value in arguments.items()}
    try:
        call()
    except Exception as error:
        sentence = isinstance(error, ALLOWED) or (isinstance(error, KeyError) and " " in str(error))
        if not sentence or INTERNAL.search(str(error)):
            return f"{type(error).__name__}: {error}"
    changed = [key for key, value in arguments.items() if picture(value) != before[key] and not written(key)]
    return f"{changed[0]} was written into" if changed else None
