"""What rules are given and what they return: the arguments that an op declares, and the results of users' rules."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from .. import errors
from ..compat import OpOverload, schema
from ..op import NoRule, Rule, Takes
from ..packing import Packed
from ..packing.missing import run_over_missing
from ..pair import Pair

PLAIN, MASKED, STORED, WHOLE, OTHER = range(5)  # the kinds of tensors; OTHER: plain, and not strided
_KINDS = {"stored": (STORED, WHOLE), "whole": (WHOLE,), "masked": (PLAIN, MASKED), "free": None}
_SAID = {(PLAIN,): "plain and strided", (PLAIN, MASKED): "strided", (STORED, WHOLE): "sparse"}


def restrict(rule: Rule, takes: Takes | None, overload: OpOverload, strided: Rule) -> Rule:
    """``rule``, which is asked for calls that ``takes`` allows and raises NoRule for the others.

    Where it takes whole packed tensors and some have masked entries, ``strided`` may have to serve the call.
    Raises ValueError for a declared argument that the operator does not have.
    """
    arguments = schema(overload).arguments
    kinds: dict[str, Any] = {a.name: (PLAIN,) for a in arguments if "Tensor" in str(a.type) and not a.is_out}
    if takes is None:  # but what is given by keyword nobody brings to the places of the others
        kinds = {a.name: () if a.kwarg_only else None for a in arguments if a.name in kinds}
    else:
        first = () if takes.stored or takes.whole else ((next(iter(kinds)), "stored"),)
        for name, kind in (*first, *((n, k) for k in _KINDS for n in getattr(takes, k))):
            name = arguments[name].name if isinstance(name, int) else name
            if name not in kinds:
                raise ValueError(
                    f"{overload.name()} has no tensor argument {name!r}, which its rule declares to be {kind}"
                )
            kinds[name] = _KINDS[kind]
    wanted = [(k, a.name, kinds[a.name]) for k, a in enumerate(arguments) if kinds.get(a.name) is not None]
    if [str(a.type) for a in arguments if a.name in kinds] == ["Tensor"] and (STORED, WHOLE) in kinds.values():
        return rule  # of the one tensor there is: if it were not stored, nobody would ask
    lead = None if takes is None else takes.within
    mixes = takes is not None and takes.mixes
    if isinstance(lead, str):
        lead = [a.name for a in arguments].index(lead)

    def restricted(*args: Any, **kwargs: Any) -> Any:
        missing = False
        for place, name, allowed in wanted:  # on the way of packed ops: no call but the rule's
            value = args[place] if place < len(args) else kwargs.get(name)
            for v in value if type(value) is list or type(value) is tuple else (value,):
                if type(v) is Packed:
                    kind = WHOLE if v.inner is None else STORED
                elif type(v) is Pair:
                    kind = MASKED if v.data.layout is torch.strided else STORED
                else:
                    kind = OTHER if isinstance(v, Tensor) and v.layout is not torch.strided else PLAIN
                if v is not None and kind not in allowed:
                    if type(v) is not Packed or WHOLE not in allowed:
                        raise NoRule(f"argument {name} must be {_SAID.get(allowed)}")
                    missing = True
        return run_over_missing(rule, strided, args, kwargs, lead, mixes) if missing else rule(*args, **kwargs)

    return restricted if wanted else rule


def refuse_masked(op: str, rule: Callable[..., Any], masked: Sequence[str]) -> Callable[..., Any]:
    """The rule of the operator ``op``, which raises UnsupportedOpError if another argument than ``masked`` is."""
    names = list(inspect.signature(rule).parameters)
    if unknown := [name for name in masked if name not in names]:
        raise ValueError(f"the rule of {op} has no parameter {unknown[0]!r}, which masked= names; it has {names}")

    @wraps(rule)
    def asked(*args: Any, **kwargs: Any) -> Any:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            for v in value if type(value) in (list, tuple) else (value,):
                if type(v) is Pair and name not in masked:
                    raise errors.must_be_plain(op, name)
        return rule(*args, **kwargs)

    return asked


def check_results(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of the operator ``name``; TypeError for a result that is no Pair, or has a mask that cannot be."""

    @wraps(rule)
    def looked_at(*args: Any, **kwargs: Any) -> Any:
        result = rule(*args, **kwargs)
        for part in result if type(result) in (tuple, list) else (result,):
            if isinstance(part, Tensor):
                raise _bad(name, "a plain tensor")
            if type(part) is Pair and (part.mask.dtype is not torch.bool or part.mask.shape != part.data.shape):
                mask = f"{errors.dtype_name(part.mask.dtype)} {tuple(part.mask.shape)}"
                raise _bad(name, f"data {tuple(part.data.shape)} with the mask {mask}")
        return result

    return looked_at


def _bad(op: str, returned: str) -> TypeError:
    return TypeError(
        f"the rule of {op} must return a Pair (or a tuple of them) whose mask is bool and has the data's shape, it "
        f"returned {returned}"
    )
