"""What a call of numpy.ma is in torch, by name, with numpy's names of arguments; and the differences that are meant."""

from collections.abc import Callable
from typing import Any

import torch

import masked_tensor as mt

UNARY: dict[str, Callable[..., Any]] = {
    name: getattr(torch, name)
    for name in (
        *("exp", "sin", "cos", "arctan", "arcsinh", "sinh", "cosh", "tanh", "absolute", "negative", "floor", "ceil"),
        *("logical_not", "sqrt", "log", "log2", "log10", "tan", "arcsin", "arccos", "arccosh", "arctanh", "angle"),
    )
} | {"abs": torch.abs, "fabs": torch.abs}


def binary(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of two operands, of which one may be a number or a list."""

    def call(a: Any, b: Any) -> Any:
        return function(a if isinstance(a, torch.Tensor) else torch.as_tensor(a), torch.as_tensor(b))

    return call


NAMES = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater_equal": "ge", "greater": "gt"}
BINARY: dict[str, Callable[..., Any]] = {
    name: binary(getattr(torch, NAMES.get(name, name)))
    for name in (
        *("add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "remainder", "fmod", "arctan2"),
        *("hypot", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("maximum", "minimum", *NAMES),
    )
}


def over(function: Callable[..., Any], flat: bool = True) -> Callable[..., Any]:
    """A reduction with numpy's ``axis`` and ``keepdims``; without an axis, of all elements."""

    def call(self: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if axis is not None:
            return function(self, axis, keepdims) if flat else function(self, axis)
        if flat and not keepdims:
            return function(self.reshape(-1), 0, False)
        return function(self, tuple(range(self.dim())), keepdims) if flat else function(self.reshape(-1), 0)

    return call


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """``var`` or ``std``, whose correction numpy calls ``ddof``."""

    def call(self: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Any:
        return function(self, axis, correction=ddof, keepdim=keepdims)

    return call


def written(self: Any, index: Any, value: Any) -> None:
    self[index] = value


def sort(self: Any, axis: int = -1) -> None:
    self.copy_(self.sort(axis).values)


def attribute(name: str) -> Callable[..., Any]:
    """The method of this name."""
    return lambda self, other: getattr(self, name)(other)


def averaged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A mean of integers is a float, as in numpy."""
    return lambda x, *a, **k: function(x if x.is_floating_point() or x.is_complex() else x.double(), *a, **k)


OPERATORS = [f"__{p}{n}__" for n in ("add", "sub", "mul", "truediv", "floordiv", "pow") for p in ("", "r", "i")]
ARRAY: dict[str, Callable[..., Any]] = {
    "sum": over(torch.sum),
    "mean": over(averaged(torch.mean)),
    "prod": over(torch.prod),
    "all": over(torch.all),
    "any": over(torch.any),
    "min": over(torch.amin),
    "max": over(torch.amax),
    "var": spread(averaged(torch.var)),
    "std": spread(averaged(torch.std)),
    "argmin": over(torch.argmin),
    "argmax": over(torch.argmax),
    "cumsum": over(torch.cumsum, flat=False),
    "cumprod": over(torch.cumprod, flat=False),
    "count": lambda self, axis=None: self.count() if axis is None else self.count(axis),
    "sort": sort,
    "compressed": lambda self: self.compressed(),
    "filled": lambda self, fill_value: self.filled(fill_value),
    "ravel": lambda self: self.ravel(),
    "reshape": lambda self, *shape: self.reshape(*shape),
    "transpose": lambda self, *axes: self.permute(*axes) if axes else self.permute(*reversed(range(self.dim()))),
    "swapaxes": lambda self, a, b: self.swapaxes(a, b),
    "diagonal": lambda self, offset=0, axis1=0, axis2=1: self.diagonal(offset, axis1, axis2),
    "squeeze": lambda self, axis=None: self.squeeze() if axis is None else self.squeeze(axis),
    "trace": lambda self: self.trace(),
    "copy": lambda self: self.clone(),
    "round": lambda self, decimals=0: self.round(decimals=decimals),
    "__getitem__": lambda self, index: self[index],
    "__setitem__": written,
    **{name: attribute(name) for name in OPERATORS},
    **{f"__{name}__": binary(getattr(torch, name)) for name in NAMES.values()},
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": lambda condition, x, y: torch.where(condition, torch.as_tensor(x), torch.as_tensor(y)),
    "concatenate": lambda arrays, axis=0: torch.cat([torch.as_tensor(x) for x in arrays], axis),
    "median": lambda a, axis=None, keepdims=False: torch.quantile(a.double(), 0.5, axis, keepdim=keepdims),
    "diag": lambda v, k=0: torch.diag(v, k),
    "expand_dims": lambda a, axis: torch.unsqueeze(a, axis),
    "outer": lambda a, b: torch.outer(a.flatten(), b.flatten()),
    "vstack": torch.vstack,
    "hstack": torch.hstack,
    "dstack": torch.dstack,
    "stack": lambda arrays, axis=0: torch.stack(arrays, axis),
    "column_stack": torch.column_stack,
    "atleast_1d": torch.atleast_1d,
    "atleast_2d": torch.atleast_2d,
    "average": lambda a, axis=None, weights=None: mt.average(a, axis, weights=weights),
    "repeat": lambda a, repeats, axis=None: torch.repeat_interleave(a, torch.as_tensor(repeats), axis),
    "diff": lambda a, n=1, axis=-1: torch.diff(a, n, axis),
    "clip": lambda a, a_min, a_max: torch.clip(a, a_min, a_max),
}


def interpolates(kwargs: dict[str, Any], a: Any, axis: int | None = None, keepdims: bool = False) -> bool:
    """Whether the NaNs of a median are those that torch.quantile gives of the valid entries alone."""
    axis, keepdims = kwargs.get("axis", axis), kwargs.get("keepdims", keepdims)
    rows = a.reshape(1, -1) if axis is None else a.movedim(axis, -1).flatten(0, -2)
    medians = [torch.quantile(row.compressed().double(), 0.5) for row in rows if row.count()]
    found = FUNCTIONS["median"](a, axis, keepdims).compressed()
    return torch.stack(medians).isnan().equal(found.isnan()) and bool(a.compressed().isinf().any())


def declared(name: str, detail: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Why a difference is meant, or nothing."""
    if name in ("all", "any") and args[0].numel() == 0:
        return "numpy masks all and any of nothing; here they are torch's own"
    if "div" in name and detail.startswith("valid"):
        return "numpy masks a quotient by a number next to 0; here it is the number it is"
    if name == "__getitem__" and isinstance(args[1], mt.MaskedTensor) and detail.startswith("shape"):
        return "numpy reads what lies under an index's mask; here a masked index selects nothing"
    if name == "median" and "nan" in detail and interpolates(kwargs, *args):
        return "torch interpolates between infinities, and its quantile is NaN"
    return ""
