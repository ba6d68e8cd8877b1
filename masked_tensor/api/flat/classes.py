"""Classes that take the place of an object's own: the same by every name, with some members of their own."""

from collections.abc import Callable
from typing import Any

from torch import nn

from ...patches.places import COMPILED_MODULE


def heir(kind: Any, remade: Callable[[Any], Any], **members: Any) -> Any:
    """A subclass of ``kind`` under its name; ``remade(kind)`` makes an empty object of it for copies and pickles.

    ``flat_of`` is the class that it took the place of.
    """

    def reduce(self: Any, protocol: int) -> Any:
        return remade, (kind,), self.__dict__

    named = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind)(kind.__name__, (kind,), {**named, **members, "__reduce_ex__": reduce, "flat_of": kind})


def is_heir(x: Any) -> bool:
    """Whether the class of ``x`` took the place of its own; not whether it inherits from one that did."""
    return "flat_of" in vars(type(x))


def put(x: Any, made: Callable[[Any], Any]) -> None:
    """Gives ``x`` the class ``made(type(x))``, once."""
    if not hasattr(type(x), "flat_of"):
        x.__class__ = made(type(x))


def take_back(x: Any) -> None:
    """Gives ``x`` its own class again; one that was built on top of ours, as FSDP's, stays."""
    if is_heir(x):
        x.__class__ = type(x).flat_of


def wrapped_module(module: nn.Module) -> nn.Module | None:
    """What ``torch.compile``, DistributedDataParallel or DataParallel was given, where ``module`` is what they made."""
    if isinstance(module, (nn.parallel.DistributedDataParallel, nn.DataParallel)):
        inner: nn.Module = module.module
        return inner
    found: nn.Module | None = getattr(module, COMPILED_MODULE, None)
    return found
