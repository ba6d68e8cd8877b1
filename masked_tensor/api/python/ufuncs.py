"""``x + array``, ``array + x``, ``numpy.exp(x)``: a numpy ufunc of a masked tensor is torch's function of that name.

Without this numpy would ask for an array, which cannot hold the mask.  A numpy array takes part as a tensor; numpy.ma's
own operators ask for more and raise TypeError: ``masked_tensor(array)`` first.
"""

from typing import Any

import torch
from torch import Tensor

from ...engine.tensor import MaskedTensor
from ..containers import accepted_inputs

NAMES = {  # where torch has another name for it
    "conjugate": "conj", "degrees": "rad2deg", "equal": "eq", "fabs": "abs", "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift", "power": "pow", "radians": "deg2rad",
    "right_shift": "bitwise_right_shift", "rint": "round",
}  # fmt: skip


def array_ufunc(x: MaskedTensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``ufunc(*inputs)`` by torch; NotImplemented, hence numpy's TypeError, where torch has no such function."""
    function = getattr(torch, NAMES.get(ufunc.__name__, ufunc.__name__), None)
    if method != "__call__" or kwargs or function is None:
        return NotImplemented
    return function(*map(_operand, inputs))


def array_function(x: MaskedTensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """``numpy.concatenate((x, y))`` and the like: of arrays, if nothing is masked out.

    ``numpy.mean(x)`` and some others call the method of that name with numpy's keywords, which torch's do not take.
    """
    try:
        return function._implementation(*args, **kwargs)
    except TypeError as reason:
        name = function.__name__
        ours = f"x.{name}() or " if hasattr(x, name) else ""
        raise TypeError(f"numpy.{name}() does not take a masked tensor; use {ours}x.to_numpy_ma()") from reason


def _operand(value: Any) -> Any:
    """Arrays as tensors; numbers, numpy's too, as Python's: they have no say in the dtype."""
    if isinstance(value, Tensor) or not hasattr(value, "dtype"):
        return value
    return accepted_inputs.pair_of_input(value).data if value.ndim else value.item()
