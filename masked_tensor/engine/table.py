"""The table: every family's ops merged, duplicates refused, overloads and variants spelled out.

An op names an operator; from its schema follow the functional overloads, the in-place variant (``add_`` for ``add``),
the ``out=`` variants, and whether the result is a view of an argument.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import torch

from ..compat import OpOverload, OpOverloadPacket, schema
from ..op import Op
from ..rules import FAMILIES
from .rule_checks import restrict
from .torch_keys import has_kernel

Kind = Literal["functional", "inplace", "out", "arriving"]


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One overload of one operator, ready to be called."""

    overload: OpOverload
    op: Op
    kind: Kind
    rule: Callable[..., Any]  #: called with pairs, without ``out=`` arguments
    view: bool  #: results alias the first argument; of an in-place variant: it changes the geometry alone
    single: bool  #: no argument but the first can be a tensor
    outs: tuple[str, ...]  #: names of the ``out=`` arguments
    sparse: Callable[..., Any] | None  #: the rule for pairs with sparse data
    packed: tuple[Callable[..., Any], ...]  #: the rules for packed tensors, each for what those before it do not serve


ENTRIES: dict[OpOverload, Entry] = {}


def add(op: Op) -> list[Entry]:
    """Spells out one op into ``ENTRIES`` and returns what is new.  An op for one overload outranks a general one."""
    fresh = []
    found = False
    for entry in _spell_out(op):
        found = True
        known = ENTRIES.get(entry.overload)
        if known is not None and known.op is not op:
            ranks = ("." in op.name, "." in known.op.name)
            if ranks[0] == ranks[1]:
                raise ValueError(f"{entry.overload.name()} has two rules: {known.op.name!r} and {op.name!r}")
            if ranks[1]:
                continue
        ENTRIES[entry.overload] = entry
        fresh.append(entry)
    if not found and not op.optional:
        raise ValueError(f"no operator {op.name!r} is registered with the dispatcher")
    return fresh


@cache
def view_named(name: str) -> OpOverload:
    """The overload of that name, if what it returns is a view: of a pickle, which may name whatever it wants."""
    return next(e.overload for e in ENTRIES.values() if e.view and e.overload.name() == name)


def _spell_out(op: Op) -> Iterator[Entry]:
    namespace, _, name = op.name.rpartition("::")
    name, _, only = name.partition(".")
    writes = name.endswith("_") and not name.endswith("__")  # an op for ``name_`` does its own writing
    library = getattr(torch.ops, namespace or "aten")
    packets = [getattr(library, n) for n in (name, _inplace_name(name)) if hasattr(library, n)]
    kinds = {overload: _kind(overload) for packet in packets for overload in _overloads(packet)}
    functional = [overload for overload, kind in kinds.items() if kind == "functional"]
    for overload, kind in kinds.items():
        kind = ("arriving" if op.arrives else "functional") if writes else kind
        base = overload if kind in ("functional", "arriving") else _functional_form(overload, functional)
        if only and ((base or overload).name().partition(".")[2] or "default") != only:
            continue
        if op.generic and base is None:
            continue  # nothing to call on the data
        target = _binding(base) if op.binding else base
        first = (target,) if op.generic else ()
        rule = partial(op.rule, *first, **op.params) if first or op.params else op.rule
        shares = _is_view(base or overload) or op.shares
        view = shares and (kind == "functional" or not op.detaches)  # detach_ keeps the geometry
        fits = kind == "functional" or (kind == "inplace" and not view)
        sparse = None
        if fits and op.sparse is not None:
            sparse = restrict(op.sparse.make(rule), op.sparse.takes, overload, rule)
        rules = op.packed_rules if kind != "out" and target is not None else ()
        packed = tuple(restrict(r.make(rule, target), r.takes, overload, rule) for r in rules)
        single = not any("Tensor" in str(a.type) for a in schema(overload).arguments[1:])
        yield Entry(overload, op, kind, rule, view, single, _outs(overload), sparse, packed)


def _binding(overload: OpOverload | None) -> Any:
    return overload and getattr(torch, schema(overload).name.removeprefix("aten::"), overload)


def _inplace_name(name: str) -> str:
    return f"__i{name[2:]}" if name.startswith("__") else f"{name.removesuffix('_functional')}_"


def _overloads(packet: OpOverloadPacket) -> Iterator[OpOverload]:
    for name in packet.overloads():
        overload = getattr(packet, name)
        text = str(schema(overload))
        if "Dimname" not in text and "Tensor" in text.split("->")[0] and has_kernel(overload):
            yield overload


def _kind(overload: OpOverload) -> Kind:
    if _outs(overload):
        return "out"
    first = schema(overload).arguments[0].alias_info  # batch_norm's overloads write their buffers, not their input
    return "inplace" if first is not None and first.is_write else "functional"


def _outs(overload: OpOverload) -> tuple[str, ...]:
    return tuple(a.name for a in schema(overload).arguments if a.is_out)


def _is_view(overload: OpOverload) -> bool:
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema(overload).returns)


def _functional_form(overload: OpOverload, candidates: list[OpOverload]) -> OpOverload | None:
    wanted = _signature(overload)
    return next((c for c in candidates if _signature(c) == wanted), None)


def _signature(overload: OpOverload) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in schema(overload).arguments if not a.is_out]


for _family in FAMILIES:
    for _op in _family.OPS:
        add(_op)
