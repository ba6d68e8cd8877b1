"""A call of every in-place overload of the table, made from its schema, with plain arguments."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from masked_tensor.compat import schema
from masked_tensor.engine.table import ENTRIES, Entry

#: They name the places that they write, or copy a tensor: the places become as valid as what is written.
ASSIGNS = {
    *("copy_", "index_put_", "_index_put_impl_", "put_", "index_copy_", "index_fill_", "index_add_", "index_reduce_"),
    *("masked_scatter_", "scatter_", "scatter_add_", "scatter_reduce_", "fill_diagonal_", "tril_", "triu_"),
}
RANK = {"addmv_": 1, "baddbmm_": 3}  # of the target; of the others 2
ARGUMENTS: dict[str, Any] = {"reduce": "mean", "rounding_mode": "floor", "min": 0.5, "to": 4}
DTYPES = (torch.float64, torch.int64, torch.bool)


class Call(NamedTuple):
    """``entry.overload(target, *args, **kwargs)`` for a target of this shape and dtype."""

    entry: Entry
    shape: tuple[int, ...]
    dtype: torch.dtype
    args: list[Any]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """As in ``add_.Tensor``."""
        return self.entry.overload.name().removeprefix("aten::")

    @property
    def assigns(self) -> bool:
        """Whether it makes valid what it writes."""
        return self.name.partition(".")[0] in ASSIGNS

    def run(self, target: Tensor) -> Any:
        """The call, with the same random numbers each time."""
        torch.manual_seed(0)
        return self.entry.overload(target, *self.args, **self.kwargs)

    def places(self) -> Tensor:
        """Where it writes: what differs from a target of 77 (or of False, or of True) afterwards."""
        values = (False, True) if self.dtype is torch.bool else (77,)
        targets = [torch.full(self.shape, value, dtype=self.dtype) for value in values]
        return torch.stack([self.run(t.clone()) != t for t in targets]).any(0)


def _tensor(name: str, op: str, dtype: torch.dtype) -> Tensor:
    if name == "index":
        return torch.zeros(3, 3, dtype=torch.int64) if op.startswith("scatter") else torch.tensor([0, 2])
    if name == "mask":
        return torch.eye(3, dtype=torch.bool)
    shapes = {"value": (), "vec": (3,), "vec1": (3,), "vec2": (3,), "batch1": (3, 3, 3), "batch2": (3, 3, 3)}
    shapes |= {"values": (2, 3) if "index" in op else (3, 3), "source": (2,) if op == "put_" else (3, 3)}
    if op in ("index_add_", "index_copy_", "index_reduce_"):
        shapes["source"] = (3, 2)
    return torch.ones(shapes.get(name, (3, 3)), dtype=dtype)


def _argument(kind: str, name: str, op: str, dtype: torch.dtype) -> Any:
    if kind == "Tensor":
        return _tensor(name, op, dtype)
    if kind == "List[Optional[Tensor]]":
        return [torch.tensor([0, 2])]
    if name == "reduce" and op != "index_reduce_":
        return "sum" if op == "scatter_reduce_" else "add"
    return {"float": 0.5, "bool": True}.get(kind) or ARGUMENTS.get(name, 1)


def _made(entry: Entry, dtype: torch.dtype) -> Call:
    op = schema(entry.overload).name.removeprefix("aten::")
    args, kwargs = [], {}
    for a in schema(entry.overload).arguments[1:]:
        kind, number = str(a.type), "Optional[number]" in str(a.type)
        if op == "clamp_" and a.name == "min":
            args.append(0.5 if number else torch.full((3, 3), 0.5, dtype=dtype))
        elif not a.has_default_value():
            value = _argument(kind, a.name, op, dtype)
            if a.kwarg_only:
                kwargs[a.name] = value
            else:
                args.append(value)
    return Call(entry, (3,) * RANK.get(op, 2), dtype, args, kwargs)


def calls() -> Iterator[Call]:
    """One of each in-place overload that writes values, in the first dtype that torch has it for."""
    for overload, entry in ENTRIES.items():
        if overload._overloadname == "dimname":  # named tensors, which end with torch 2.11
            continue
        if entry.kind == "inplace" and overload.namespace == "aten" and not (entry.view or entry.op.detaches):
            for dtype in DTYPES:
                call = _made(entry, dtype)
                try:
                    call.run(torch.ones(call.shape, dtype=dtype))
                except (RuntimeError, NotImplementedError):
                    continue
                yield call
                break
            else:
                raise AssertionError(f"no call of {overload.name()} is made")


#: A tensor of some shape and a view of it, of the shape that is asked for.
VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "itself": (lambda s: s, lambda x, s: x),
    "a part": (lambda s: [n + 1 for n in s], lambda x, s: x[(slice(1, None),) * len(s)]),
    "an item": (lambda s: (2, *s), lambda x, s: x[1]),
    "turned": (lambda s: s[::-1], lambda x, s: x.permute(*range(len(s))[::-1])),
    "of a flat one": (lambda s: [torch.Size(s).numel() + 2], lambda x, s: x[1:-1].view(s)),
}
