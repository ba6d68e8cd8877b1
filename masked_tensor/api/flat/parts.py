"""Parts of a model that see each sequence apart: submodules that compute attention without calling a function for it.

Such a part is run on a plain padded batch, with the model's own masks and biases cut to each sequence, while all else
stays flat.  Which submodules these are, and which dimensions of their arguments are tokens, two runs over two numbers
of tokens show.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...compat import tree_flatten, tree_unflatten
from .attention import ATTENTION, Flat, Within, mode_in_force
from .classes import heir, put, take_back
from .layout import Layout, layout_of
from .multi_head import MULTI_HEAD, attend_by_heads
from .tokens import FlatTokens

MASKS = ("attention_mask", "attn_mask", "mask")
OVER_PAIRS = (F.softmax, torch.softmax, Tensor.softmax)
OVER_TIME = (F.conv1d, torch.conv1d)
Key = tuple[str, int]  #: the name of an argument, and which of the tensors in it


@dataclass
class Roles:
    """Which dimensions of a part's arguments, by name, and of its outputs are tokens."""

    arguments: dict[Key, frozenset[int]] = field(default_factory=dict)
    outputs: dict[Key, frozenset[int]] = field(default_factory=dict)
    hiding: set[Key] = field(default_factory=set)  #: boolean masks whose True says that a pair does not count
    counting: set[Key] = field(default_factory=set)  #: floating-point masks that are 1 where a pair counts
    attends: bool = False  #: which is what needs a mask; causal convolutions and recurrences do not

    def beside(self, other: "Roles | None") -> "Roles":
        """With those of other calls, for arguments that these did not have."""
        if other is None:
            return self
        return Roles(
            {**other.arguments, **self.arguments}, {**other.outputs, **self.outputs}, other.hiding | self.hiding,
            other.counting | self.counting, self.attends,
        )  # fmt: skip

    def see(self, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str], out: Any, number: int) -> None:
        """One more call, with ``number`` tokens: what is a dimension of tokens is one in every call."""
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for known, values in ((self.arguments, given), (self.outputs, {"": out})):
            for name, value in values.items():
                for i, x in enumerate(tree_flatten(value)[0]):
                    if isinstance(x, Tensor):
                        dims = frozenset(d for d, n in enumerate(x.shape) if n == number)
                        known[name, i] = known.get((name, i), dims) & dims
                        if {x.dim() - 1, x.dim() - 2} <= dims:
                            self._see_pairs((name, i), x.diagonal(dim1=-2, dim2=-1))

    def _see_pairs(self, key: Key, themselves: Tensor) -> None:
        """What is said of a step and itself, which always sees itself."""
        if themselves.dtype is torch.bool and not bool(themselves.any()):
            self.hiding.add(key)
        if themselves.is_floating_point() and bool((themselves == 1).all()):
            self.counting.add(key)


# ------------------------------------------------------------------------------------------------------ what runs apart


def make_apart(part: nn.Module, roles: Roles) -> None:
    """From now on a part runs on a padded batch, while a model around it is flat in this way."""
    put(part, _apart_class)
    part.__dict__["flat_apart"] = roles.beside(part.__dict__.get("flat_apart"))


def has_any(module: nn.Module) -> bool:
    """Whether it has such parts, for calls of another kind."""
    return any("flat_apart" in part.__dict__ for part in module.modules())


def are_masked(module: nn.Module) -> bool:
    """Whether all such parts that attend take a mask by name, which hides the padding from them."""
    return all(
        not part.__dict__["flat_apart"].attends or any(name in MASKS for name in names_of(type(part).forward))
        for part in module.modules()
        if "flat_apart" in part.__dict__
    )


def restore(module: nn.Module) -> None:
    """All parts of a module are as they were."""
    for part in module.modules():
        if part.__dict__.pop("flat_apart", None) is not None:
            take_back(part)


@cache
def _apart_class(kind: Any) -> Any:
    @wraps(kind.forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        mode, roles = mode_in_force(), self.__dict__.get("flat_apart")
        if roles is None or mode is None or not mode.apart or mode.inside:
            return kind.forward(self, *args, **kwargs)
        layout = layout_of(mode.tokens)
        args, kwargs = _entered(self, kind.forward, roles, mode, args, kwargs)
        mode.inside = True
        try:
            out = kind.forward(self, *args, **kwargs)
        finally:
            mode.inside = False
        return _each(out, "", lambda x, key: layout.unpad(x) if roles.outputs.get(key, frozenset()) >= {1} else x)

    return heir(kind, _apart_class, forward=forward)


def _entered(
    part: nn.Module, forward: Any, roles: Roles, mode: Flat, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a part, padded; a mask where it takes one and was given none."""
    names, layout = names_of(forward), layout_of(mode.tokens)

    def enter(x: Tensor, key: Key) -> Tensor:
        known = roles.arguments.get(key, frozenset())
        dims = frozenset(d for d in known if d < x.dim() and x.shape[d] == layout.number)
        return _padded(x, dims, layout, roles, key)

    given = {**dict(zip(names, args, strict=False)), **kwargs}
    entered = {name: _each(value, name, enter) for name, value in given.items()}
    if is_embedding(part) and mode.counted:
        entered["position_ids"] = None  # it counts them
    mask = next((name for name in MASKS if name in names and roles.attends), None)
    if mask is not None and entered.get(mask) is None:
        dtype = next((p.dtype for p in part.parameters() if p.is_floating_point()), torch.get_default_dtype())
        entered[mask] = layout.mask(dtype, bool(getattr(part, "is_causal", False)))
    number = min(len(args), len(names))
    first = tuple(entered.pop(name) for name in names[:number])
    return (*first, *args[number:]), entered


def _padded(x: Tensor, dims: frozenset[int], layout: Layout, roles: Roles, key: Key) -> Tensor:
    """An argument for the padded batch, by its dimensions of tokens."""
    last = x.dim() - 1
    if 1 in dims and x.shape[0] == 1 and (x.dim() != 3 or x.is_floating_point() or last not in dims):
        return layout.pad(x)
    if x.dim() in (3, 4) and (x.dim() == 3 or x.shape[0] == 1):
        if last in dims and last - 1 in dims:
            if not (x.is_floating_point() or x.dtype is torch.bool) and x.dim() == 3:  # distances
                return x[:, : layout.time, : layout.time]
            if key in roles.hiding:
                return ~layout.pairs(~x)
            return layout.pairs(x, 0 if key in roles.counting else None)
        if last in dims and x.shape[-2] == 1:
            return layout.keys(x)
    if x.dim() == 4 and dims == {2} and x.shape[0] == 1:
        return layout.pad(x.transpose(1, 2)).transpose(1, 2)
    for d in dims if x.dim() == 2 else ():  # a table of places
        x = x.narrow(d, 0, layout.time)
    return x


def _each(value: Any, name: str, change: Callable[[Tensor, Key], Tensor]) -> Any:
    leaves, spec = tree_flatten(value)
    return tree_unflatten([change(x, (name, i)) if isinstance(x, Tensor) else x for i, x in enumerate(leaves)], spec)


@cache
def names_of(forward: Any) -> list[str]:
    """The names of a forward's arguments, without the module."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in inspect.signature(forward).parameters.items() if p.kind in kinds][1:]


# ------------------------------------------------------------------------------------------------------ how it is found


class Watching(Flat):
    """Sees which submodules join steps, and whether they attend; what they compute does not count."""

    joining: dict[nn.Module, bool]
    stack: list[nn.Module]

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call; what joins steps belongs to the innermost submodule with parameters that is no op itself."""
        if function is ATTENTION or function in OVER_PAIRS or function in OVER_TIME:
            given = (*args, *(kwargs or {}).values())
            within = [p for p in self.stack if not isinstance(p, nn.Conv1d) and next(p.parameters(), None) is not None]
            if within and self._joins(function, given[0]):
                attends = function not in OVER_TIME
                self.joining[within[-1]] = self.joining.get(within[-1], False) or attends
            return function(*args, **(kwargs or {}))
        if function is MULTI_HEAD:
            return attend_by_heads(self, *args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def _joins(self, function: Any, x: Tensor) -> bool:
        number = self.index.shape[0]
        if x.dim() < 3:
            return False
        if function in OVER_TIME:
            return x.shape[-1] >= number
        return x.shape[-2] == number and (function is ATTENTION or x.shape[-1] == number)


def watching(tokens: FlatTokens, joining: dict[nn.Module, bool], stack: list[nn.Module]) -> Within:
    """What is in force while a module is watched."""
    within = Within(tokens, apart=True)
    mode = within.mode
    within.mode = new = Watching(mode.index, mode.lengths, mode.places, mode.grid)
    new.tokens, new.apart, new.inside = tokens, True, True  # parts that are known from other calls also run flat
    new.joining, new.stack = joining, stack
    return within


@contextmanager
def watched(module: nn.Module, stack: list[nn.Module], seen: dict[nn.Module, Roles], number: int) -> Iterator[None]:
    """While it runs, every submodule says what it is called with, over ``number`` tokens."""

    def enter(part: nn.Module, args: Any) -> None:
        stack.append(part)

    def leave(part: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
        stack.pop()
        if out is not None:
            names = names_of(type(part).forward)
            seen.setdefault(part, Roles()).see(args, kwargs, names, out, number)

    handles: list[Any] = []
    for part in module.modules():
        if part is not module:
            handles.append(part.register_forward_pre_hook(enter))
            handles.append(part.register_forward_hook(leave, with_kwargs=True, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def is_embedding(part: nn.Module) -> bool:
    """Whether a part makes states of tokens, and may count their positions."""
    return type(part).__name__.endswith("Embeddings") and "input_ids" in names_of(type(part).forward)


def outermost(module: nn.Module, joining: dict[nn.Module, bool]) -> list[nn.Module]:
    """Those that do not lie within another of them, and beside them what makes states of tokens."""
    if not joining:
        return []
    chosen = set(joining) | {part for part in module.modules() if part is not module and is_embedding(part)}
    inner = {part for whole in chosen for part in whole.modules() if part is not whole}
    return [part for part in module.modules() if part in chosen and part not in inner]
