"""Calls of overloads whose op has a form for packed or for sparse tensors, each tensor argument in every state.

The calls are those that torch's operator database and our own make of packed tensors: what reaches the table is kept.
Every tensor among the arguments, also in a list, is then given plain, masked, packed or sparse, one after the other.
"""

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

import masked_tensor as mt
from masked_tensor import MaskedTensor, packing
from masked_tensor.compat import schema
from masked_tensor.engine.boundary import packed as packed_boundary
from masked_tensor.engine.table import ENTRIES, Entry
from masked_tensor.errors import UnsupportedOpError
from masked_tensor.packing.grid import grid_of_mask
from masked_tensor.pair import Pair

from . import harness, sparse_cases
from .database import Sample, samples
from .harness import Masked, poisoned
from .packed_calls import CALLS
from .packed_cases import build, chosen, packed_case

NAN = float("nan")


def is_packed(value: Any) -> bool:
    return type(value) is MaskedTensor and value.is_packed


class Call(NamedTuple):
    """A call of an overload: plain tensors, and where one was packed the frame that it had."""

    entry: Entry
    leaves: list[Any]
    frames: list[Any]
    spec: Any

    @property
    def tensors(self) -> list[int]:
        """Which leaves are tensors."""
        return [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]

    def run(self, leaves: list[Any]) -> Any:
        """The result, or the error."""
        args, kwargs = tree_unflatten([x.clone() if type(x) is Tensor else x for x in leaves], self.spec)
        torch.manual_seed(1)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.entry.overload(*args, **kwargs)
        except Exception as error:  # which one it may be is what the law says
            return error


def calls(names: list[str]) -> list[Call]:
    """One call of each shape of arguments of each overload: ours, and those of these entries of the database."""
    found: dict[Any, Call] = {}
    ask = packed_boundary.run_packed_rule

    def keep(entry: Entry, args: Any, kwargs: Any, *rest: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        frames = [x._packed.frame if is_packed(x) else None for x in leaves]
        plain = [_filled(x) if type(x) is MaskedTensor else x for x in leaves]
        shapes = tuple(
            (x.dim(), f is None) if isinstance(x, Tensor) else None for x, f in zip(plain, frames, strict=True)
        )
        found.setdefault((entry.overload, shapes), Call(entry, plain, frames, spec))
        return ask(entry, args, kwargs, *rest)

    packed_boundary.run_packed_rule = keep
    try:
        for sample in (*[s for several in CALLS.values() for s in several], *_of_database(names)):
            case = packed_case(sample, "prefix", "all", (0, 1))
            if case is not None:
                args, kwargs = build(case, True, False)
                torch.manual_seed(1)
                try:
                    case.op(*args, **kwargs)
                except (RuntimeError, ValueError, IndexError, TypeError):  # of which the laws of packed tensors speak
                    continue
    finally:
        packed_boundary.run_packed_rule = ask
    twins = {(e.op, _signature(e)): e for e in ENTRIES.values() if e.kind == "inplace"}
    again = [(call, twins.get((call.entry.op, _signature(call.entry)))) for call in found.values()]
    return [*found.values(), *(call._replace(entry=e) for call, e in again if e not in (None, call.entry))]


def _signature(entry: Entry) -> tuple[str, ...]:
    return tuple(f"{a.name} {a.type}" for a in schema(entry.overload).arguments)


def _of_database(names: list[str]) -> Iterator[Sample]:
    for name in names:
        yield from chosen(list(samples(name, limit=12)), 1)


def _filled(x: MaskedTensor) -> Tensor:
    """As it is seen, no two entries equal."""
    if not x.is_floating_point():
        return x.filled(0)
    other = torch.rand(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
    return torch.where(x.get_mask(), x.filled(0), other).detach().contiguous()


def _random_mask(x: Tensor, share: float = 0.7) -> Tensor:
    return torch.rand(x.shape, generator=torch.Generator().manual_seed(x.numel() + x.dim())) < share


def masked(x: Tensor) -> MaskedTensor:
    """Strided, with NaN under the mask."""
    return mt.as_masked_tensor(poisoned(x.clone(), _random_mask(x), NAN), _random_mask(x))


def packed(x: Tensor, frame: Any, whole: bool) -> MaskedTensor | None:
    """On the rows of ``frame``, else of a grid of its first two dimensions; ``whole``: nothing stored is masked."""
    if x.numel() == 0 or x.layout is not torch.strided or (frame is None and x.dim() < 2):
        return None
    valid = torch.ones(x.shape, dtype=torch.bool) if whole else _random_mask(x)
    data = poisoned(x.clone(), valid, NAN)
    if frame is not None:
        return packed_boundary.wrap_packed(packing.pack_onto(Pair(data, valid), frame))
    grid = _random_mask(x[(..., *(0,) * (x.dim() - 2))])
    mask = valid & grid.reshape(*grid.shape, *(1,) * (x.dim() - 2))
    return packed_boundary.wrap_packed(packing.pack(Pair(poisoned(data, mask, NAN), mask), grid=grid_of_mask(grid)))


STATES = ("plain", "masked", "packed", "packed, scattered")


def packed_arguments(call: Call) -> Iterator[tuple[str, list[Any]]]:
    """As called, then each tensor in each other state, then all of them; a packed one is always among them."""
    own = ["plain" if f is None else "packed" for f in call.frames]
    plans = [{}] + [{i: state} for i in call.tensors for state in STATES if state != own[i]]
    plans += [dict.fromkeys(call.tensors, "masked") | {i: "packed"} for i in call.tensors]
    plans += [dict.fromkeys(call.tensors, "packed, scattered")]
    for plan in plans:
        leaves = list(call.leaves)
        for i in call.tensors:
            state = plan.get(i, own[i])
            if state == "masked":
                leaves[i] = masked(leaves[i])
            elif state != "plain":
                leaves[i] = packed(leaves[i], call.frames[i], state == "packed")
        if any(is_packed(x) for x in leaves) and not any(leaves[i] is None for i in call.tensors):
            yield ", ".join(f"argument {i} {state}" for i, state in plan.items()), leaves


def strided(leaves: list[Any]) -> list[Any]:
    """The packed ones as the padded ones that they stand for."""
    return [x.unpacked().contiguous() if is_packed(x) else x for x in leaves]


def sparse_arguments(call: Call) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Each tensor sparse, the others plain; each of those masked, or sparse, too: and the same call, strided."""
    for layout in ("coo", "csr"):
        for i in call.tensors:
            for j in call.tensors:
                for other in ("masked", "sparse") if i != j else ("plain",):
                    leaves, expected = list(call.leaves), list(call.leaves)
                    plan = {i: "sparse"} | ({} if i == j else {j: other})
                    fits = True
                    for at, state in plan.items():
                        x = call.leaves[at]
                        record = Masked(x, _random_mask(x))
                        expected[at] = mt.masked_tensor(*record.__dict__.values())
                        leaves[at] = masked(x)
                        if state == "sparse":
                            fits = fits and x.layout is torch.strided and sparse_cases.fits(x.shape, layout)
                            if fits:
                                leaves[at] = sparse_cases.stored(record, layout, torch.Generator().manual_seed(0))
                    if fits:
                        yield f"{layout}, {plan}", leaves, expected


def judge(call: Call, actual: Any, expected: Any, seen: Any = harness.seen) -> str:
    """How the law was kept: equal, refused, or both raise; raises AssertionError where it is broken."""
    if isinstance(expected, Exception):
        assert isinstance(actual, Exception), f"no error, the strided call raises {expected!r}"
        blunder = isinstance(actual, TypeError | AttributeError | AssertionError | NameError | KeyError)
        assert not blunder or isinstance(call.run(call.leaves), type(actual)), f"a blunder: {actual!r}"
        return "both raise"
    if isinstance(actual, UnsupportedOpError) and "to_dense()" in str(actual):
        return "refused"
    assert not isinstance(actual, Exception), f"{type(actual).__name__}: {actual}"
    drawn = call.entry.op.rule.__module__.rpartition(".")[2] in ("random", "like")
    found, wanted = tree_flatten(actual)[0], tree_flatten(expected)[0]
    if call.entry.op.name == "log_sigmoid_forward":  # the other result is scratch
        found, wanted = found[:1], wanted[:1]
    assert len(found) == len(wanted), f"{len(found)} results, not {len(wanted)}"
    for k, (a, e) in enumerate(zip(map(seen, found), map(seen, wanted), strict=True)):
        if drawn and isinstance(e, Masked):
            a, e = Masked(a.mask, a.mask), Masked(e.mask, e.mask)
        harness.assert_same(a, e, f"result {k}")
    return "equal"
