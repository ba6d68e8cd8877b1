"""Classes that take the place of an object's own: the same by every name, with some members of their own."""

from collections.abc import Callable
from typing import Any

from torch import nn

from ...patches.places import COMPILED_MODULE

Made = Callable[[Any], Any]  #: of a class its heir, the same one each time: a function of a module, for pickles


def heir(kind: Any, made: Made, **members: Any) -> Any:
    """A subclass of ``kind`` under its name, which ``made(kind)`` gives; ``flat_of`` is what it took the place of."""
    named = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    ours = {"__reduce_ex__": _reduce, "flat_of": kind, "made_by": staticmethod(made)}
    return type(kind)(kind.__name__, (kind,), {**named, **members, **ours})


def put(x: Any, made: Made) -> None:
    """Gives ``x`` the class ``made(type(x))``, once."""
    ours: list[Any] = [kind for kind in type(x).__mro__ if "flat_of" in vars(kind)]
    if not any(kind.made_by is made for kind in ours):
        x.__class__ = made(type(x))


def take_back(x: Any) -> None:
    """Gives ``x`` its own class again; one that was built on top of ours, as FSDP's, stays."""
    x.__class__ = _chain(type(x))[0]


def _chain(kind: Any) -> tuple[Any, tuple[Made, ...]]:
    """The class that was there first, and what was made of it."""
    made: list[Made] = []
    while "flat_of" in vars(kind):
        made.append(kind.made_by)
        kind = kind.flat_of
    return kind, tuple(reversed(made))


def _reduce(self: Any, protocol: int) -> Any:
    return _empty, _chain(type(self)), self.__dict__


def _empty(kind: Any, made: tuple[Made, ...]) -> Any:
    for make in made:
        kind = make(kind)
    return kind.__new__(kind)


def wrapped_module(module: nn.Module) -> nn.Module | None:
    """What ``torch.compile``, DistributedDataParallel or DataParallel was given, where ``module`` is what they made."""
    if isinstance(module, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        inner: nn.Module = module.module
        return inner
    found: nn.Module | None = getattr(module, COMPILED_MODULE, None)
    return found
