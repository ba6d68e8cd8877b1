"""How functions of other libraries that count the entries of a tensor in Python are replaced.

Nothing is imported: a function is replaced as soon as its module is imported, or at once.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..errors import MaskedSizeWarning
from ..patches import imports
from ..patches.places import Place, missing, rebind, wrap_when_imported

__all__ = ["Place", "replace", "when_each_imported"]

Function = Callable[..., Any]


def replace(places: Sequence[Place], make: Callable[[Function], Function], *, optional: bool = False) -> None:
    """Replace each function by ``make(function)``, even where it has already been imported by name.

    If a name no longer exists, a MaskedSizeWarning is issued when its module is imported.

    Args:
        places (sequence of Place): The functions, all of one library.
        make (callable): Receives a function, and returns its replacement.
        optional (bool, optional): Whether names may be missing without a warning. Default: False.

    Example:
        >>> import sys, types
        >>> from masked_tensor.extend.libraries import Place, replace
        >>> pool = types.ModuleType("pool_library")
        >>> pool.mean_of_rows = lambda x: x.sum(0) / len(x)
        >>> sys.modules["pool_library"] = pool
        >>> place = Place("pool_library", "", ("mean_of_rows",))
        >>> replace([place], lambda function: lambda x: x.mean(0))
        >>> pool.mean_of_rows(mt.masked_tensor([[1.0], [None]])).tolist()
        [1.0]
    """
    if not places:
        return
    listed = tuple(places)
    wrap_when_imported(listed, make)
    rebind(listed, listed[0].module.partition(".")[0])
    if not optional:
        for place in listed:
            imports.when_imported(place.module, partial(_tell_missing, place))


def when_each_imported(start: str, within: str, act: Callable[[Any], None]) -> None:
    """Call ``act`` on each module whose name starts with ``start`` and contains ``within``, now or when it is imported.

    Args:
        start (str): The start of the name, such as ``"transformers.models."``.
        within (str): A part of the name, such as ``".modeling_"``.
        act (callable): Receives the module.

    Example:
        >>> from masked_tensor.extend.libraries import when_each_imported
        >>> when_each_imported("torch.nn.utils.", "rnn", lambda module: print(module.__name__))
        torch.nn.utils.rnn
    """
    imports.when_each_imported(start, within, act)


def _tell_missing(place: Place, module: Any) -> None:
    for name in missing((place,)):
        warnings.warn(
            f"masked_tensor replaces {name}, which this version of {name.partition('.')[0]} lacks: where its code "
            "counts the entries of a masked tensor, masked entries may count",
            MaskedSizeWarning,
            stacklevel=2,
        )
