"""What a rule for packed or for sparse tensors is given: what an op declares of its arguments is compared here alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..compat import OpOverload, schema
from ..op import NoForm, Takes
from ..pair import Pair
from ..rows import Packed

PLAIN, MASKED, STORED, WHOLE, OTHER = range(5)  # the kinds of tensors; OTHER: plain, and not strided
_MEANT = {"stored": (STORED, WHOLE), "whole": (WHOLE,), "masked": (PLAIN, MASKED), "free": None}
#: of sparse data, where it is said to whoever calls
_SAID = {(STORED, WHOLE): "sparse", (PLAIN, MASKED): "strided", (PLAIN,): "plain and strided"}


class Argument(NamedTuple):
    """An argument of an overload that holds tensors, and of which kinds they may be."""

    place: int
    name: str
    kinds: tuple[int, ...]


def declared(takes: Takes | None, overload: OpOverload) -> tuple[Argument, ...]:
    """Every argument that may not be anything; ValueError for one that the operator does not have."""
    tensors = {k: a for k, a in enumerate(schema(overload).arguments) if "Tensor" in str(a.type) and not a.is_out}
    if takes is None:  # tensors that are given by keyword no rule brings to the others' rows
        return tuple(Argument(k, a.name, ()) for k, a in tensors.items() if a.kwarg_only)
    kinds: dict[int, tuple[int, ...] | None] = dict.fromkeys(tensors, (PLAIN,))
    if not (takes.stored or takes.whole):
        kinds[next(iter(tensors))] = _MEANT["stored"]
    places = {a.name: k for k, a in tensors.items()}
    for meant, said in _MEANT.items():
        for argument in getattr(takes, meant):
            place = places.get(argument, argument)
            if place not in tensors:
                raise ValueError(
                    f"{overload.name()} takes no tensor {argument!r}, which its form declares to be {meant}; it takes "
                    f"{', '.join(places)}"
                )
            kinds[place] = said
    return tuple(Argument(k, tensors[k].name, said) for k, said in kinds.items() if said is not None)


def check(arguments: Sequence[Argument], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises NoForm for a call of which an argument is not of a kind that it may be."""
    for place, name, kinds in arguments:
        value = args[place] if place < len(args) else kwargs.get(name)
        for v in value if type(value) is list or type(value) is tuple else (value,):
            if v is not None and _kind(v) not in kinds:
                raise NoForm(f"{name} must be {_SAID.get(kinds)}")


def _kind(value: Any) -> int:
    if type(value) is Packed:
        return WHOLE if value.inner is None else STORED
    if type(value) is Pair:
        return MASKED if value.data.layout is torch.strided else STORED
    return OTHER if isinstance(value, Tensor) and value.layout is not torch.strided else PLAIN
