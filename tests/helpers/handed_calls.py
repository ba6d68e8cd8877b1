"""Programs that are handed plain tensors and write into them: what they call, on which tensors, and what they do.

The calls are found in the class and in ``__all__``.  Arguments follow from the names of the parameters, so that a new
member or function is called, too.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributions, nn
from torch.nn.utils.rnn import PackedSequence

import masked_tensor as mt
from masked_tensor import MaskedTensor, functional

Parts = list[Tensor]
Give = Callable[[Any, Any, Any], Parts]  #: plain tensors that are handed out of ``x``, or of plain data and a mask

# -------------------------------------------------------------------------------------------------------------- tensors

DATA = torch.arange(1.0, 25.0).view(2, 3, 4)


def listed() -> Any:
    some = DATA[0].tolist()
    return mt.masked_tensor([[[1.0, None, 3.0, 4.0], *some[1:]], [[None, 2.0, None, None], [None] * 4, some[2]]])


#: Six kinds of masks, by how a tensor gets one.
KINDS: dict[str, Callable[[], Any]] = {
    "lists": listed,
    "lengths": lambda: mt.from_lengths(DATA, [3, 1]),
    "all valid": lambda: mt.masked_tensor(DATA),
    "expanded": lambda: mt.masked_tensor(DATA, torch.tensor([[True], [False], [True]])),
    "packed": lambda: mt.from_sequences([DATA[0], DATA[1, :2]], packed=True).unpacked(),
    "a product": lambda: mt.from_lengths(DATA, [3, 2]) * mt.masked_tensor(DATA, DATA[0, 0] > 1),
}
STORAGES: dict[str, Callable[[Any], Any]] = {
    "strided": lambda x: x,
    "packed": lambda x: x.packed(),
    "sparse": lambda x: x.to_sparse(),
}


class Holder(nn.Module):
    """Has the tensor as an attribute."""

    def __init__(self, x: Any) -> None:
        super().__init__()
        self.x = x


GLOBAL: list[Any] = [None]
#: How a compiled function comes by the tensor: ``take(x)`` says what it is given, ``find`` of that is the tensor.
PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "an input": (lambda x: x, lambda given: given),
    "a global": (lambda x: GLOBAL.__setitem__(0, x), lambda given: GLOBAL[0]),
    "of a module": (Holder, lambda given: given.x),
    "a result": (lambda x: x, lambda given: given * 1),
}

# ------------------------------------------------------------------------------------------------------- what is called

#: Arguments for parameters without a default, of an input ``(B, T, C)``.
GIVEN: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("other", "input2", "positive", "negative", "key"), lambda x: x * 0.5),
    "data": lambda x: [1.0, 2.0],
    "dim": lambda x: 1,
    "mask": lambda x: torch.arange(x.shape[-1]) > 0,
    "normalized_shape": lambda x: x.shape[-1:],
    "num_groups": lambda x: 1,
    "q": lambda x: 0.5,
    "running_mean": lambda x: None,
    "running_var": lambda x: None,
    "size": lambda x: 3,
    "source": lambda x: torch.arange(24.0),
    "target": lambda x: torch.ones(x.shape),
    "value": lambda x: 2.0,
    "var": lambda x: torch.ones(x.shape),
    "window": lambda x: 2,
}
_ROLLING = type(mt.rolling(DATA, 2, dim=1))
_CLASSES = {"target": lambda x: torch.zeros(x.shape[:1] + x.shape[2:], dtype=torch.int64)}
_ALONG = {"dim": lambda x: 1, "lengths": lambda x: "full"}
#: Arguments of single functions.
SPECIAL: dict[str, dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("ffill", "bfill", "interpolate", "shift"), _ALONG),
    "batch_norm": {"training": lambda x: True},
    "binary_cross_entropy": {"input": lambda x: x.sigmoid()},
    "corrcoef": {"input": lambda x: x[0]},
    "cosine_embedding_loss": {"input1": lambda x: x[0], "input2": lambda x: x[0], "target": lambda x: torch.ones(3)},
    "cov": {"input": lambda x: x[0]},
    "cross_entropy": _CLASSES,
    "lengths_to_mask": {"lengths": lambda x: torch.tensor([2, 0, 3])},
    "log_prob": {"distribution": lambda x: distributions.Normal(0.0, 1.0), "value": lambda x: x},
    "multi_margin_loss": {"input": lambda x: x[0], "target": lambda x: torch.zeros(3, dtype=torch.int64)},
    "multilabel_margin_loss": {"input": lambda x: x[0], "target": lambda x: torch.zeros(3, 4, dtype=torch.int64)},
    "nll_loss": _CLASSES,
    "scaled_dot_product_attention": {"value": lambda x: x * 2},
}

#: What takes part in no program, and why.
LEFT_OUT = {
    **dict.fromkeys(("get_data", "numpy", "storage", "new"), "shares memory by contract"),
    **dict.fromkeys(("masked_fill_", "masked_scatter_"), "gives its argument back"),
    "rolling": "gives an object, whose methods are called",
    **dict.fromkeys(("apply_", "map_", "map2_", "as_subclass", "data_ptr", "untyped_storage"), "refused"),
}


def members() -> dict[str, Give]:
    """What is asked of a masked tensor: members of the class, and functions that are no functional forms."""
    found: dict[str, Give] = {}
    for name, member in (*vars(MaskedTensor).items(), ("indices", torch.Tensor.indices)):
        if name.startswith("_") or name in LEFT_OUT:
            continue
        if isinstance(member, property):
            found[f"x.{name}"] = lambda x, data, mask, name=name: parts(getattr(x, name))
        elif callable(member):
            found[f"x.{name}()"] = _method(name, arguments(member)[1])
    for name in mt.__all__:
        if inspect.isfunction(getattr(mt, name)) and name not in functional.__all__ and name not in LEFT_OUT:
            found[f"{name}(x)"] = _function(getattr(mt, name))
    return found | _windows("x", lambda x, data, mask: mt.rolling(x, 2, dim=1, lengths="full"))


def forms() -> dict[str, Give]:
    """The functional forms, of plain data and a mask."""
    found = {f"{name}(data)": _form(getattr(mt, name)) for name in functional.__all__ if name not in LEFT_OUT}
    return found | _windows("data", lambda x, data, mask: mt.rolling(data, 2, dim=1, mask=mask, lengths="full"))


def _windows(of: str, make: Callable[..., Any]) -> dict[str, Give]:
    """The statistics of rolling windows."""
    names = [name for name in vars(_ROLLING) if not name.startswith("_")]
    given = {name: arguments(getattr(_ROLLING, name))[1] for name in names if callable(getattr(_ROLLING, name))}
    return {f"rolling({of}).{name}()": _statistic(name, make, given[name]) for name in given}


def _statistic(name: str, make: Callable[..., Any], given: dict[str, Any]) -> Give:
    return lambda *tensors: parts(getattr(make(*tensors), name)(**given))


def arguments(function: Any) -> tuple[Any, dict[str, Any]]:
    """The first argument, if it is not the tensor itself, and the others that have to be given."""
    try:
        first, *others = inspect.signature(function).parameters.values()
    except ValueError:  # torch's own
        return None, {}
    special = {name: make(DATA) for name, make in SPECIAL.get(function.__name__, {}).items()}
    needed = [p.name for p in others if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    given = {name: GIVEN[name](DATA) for name in needed if name in GIVEN and name not in special} | special
    return given.pop(first.name, None), given


def _method(name: str, given: dict[str, Any]) -> Give:
    return lambda x, data, mask: parts(getattr(x, name)(**given))


def _function(function: Any) -> Give:
    own, given = arguments(function)
    return lambda x, data, mask: parts(function(x if own is None else own, **given))


def _form(function: Any) -> Give:
    own, given = arguments(function)
    masks = "mask" in inspect.signature(function).parameters and "mask" not in given

    def give(x: Any, data: Any, mask: Any) -> Parts:
        first = data if own is None else own
        return parts(function(first, **given, mask=mask) if masks and own is None else function(first, **given))

    return give


def parts(result: Any) -> Parts:
    """The plain tensors in what was handed out."""
    if isinstance(result, PackedSequence):
        return [result.data, result.batch_sizes]
    if isinstance(result, list | tuple):
        return [part for one in result for part in parts(one)]
    if not isinstance(result, Tensor) or type(result) is MaskedTensor:
        return []
    return [result.values()] if result.is_nested else [result]


# --------------------------------------------------------------------------------------------------------- the programs

Write = Callable[[Tensor], Any]
WRITES: dict[str, Write] = {
    "fill": lambda t: t.fill_(1),
    "zero": lambda t: t.zero_(),
    "part": lambda t: t.view(-1)[:1].zero_(),
    "last": lambda t: t.__setitem__((..., slice(0, 1)) if t.dim() else ..., 1),
    "operator": lambda t: t.logical_not_() if t.dtype is torch.bool else t.add_(1),
    "out": lambda t: torch.logical_not(t, out=t),
}


def write(given: Parts, how: Write) -> None:
    for t in given:
        how(t._values() if t.layout is torch.sparse_coo else t)


Program = Callable[[Callable[[], Parts], Write], Parts]


def read(give: Callable[[], Parts], how: Write) -> Parts:
    return give()


def write_and_read(give: Callable[[], Parts], how: Write) -> Parts:
    first = give()
    write(first, how)
    return first


def read_again(give: Callable[[], Parts], how: Write) -> Parts:
    first = give()
    write(first, how)
    return first + give()


def two_at_once(give: Callable[[], Parts], how: Write) -> Parts:
    first, second = give(), give()
    write(first, how)
    return first + second


def break_between(give: Callable[[], Parts], how: Write) -> Parts:
    first = give()
    torch._dynamo.graph_break()
    write(first, how)
    torch._dynamo.graph_break()
    return first + give()


PROGRAMS: list[Program] = [read, write_and_read, read_again, two_at_once, break_between]


class Case(NamedTuple):
    """One program: what it is handed, of which tensor, from where, and how it writes."""

    call: str
    give: Give
    kind: str
    storage: str
    place: str
    program: Program
    how: str

    def __str__(self) -> str:
        return f"{self.call} of {self.kind}, {self.storage}, {self.place}: {self.program.__name__}, {self.how}"

    def tensors(self) -> tuple[Any, Any, Any]:
        """The masked tensor, and plain data and a mask for the functional forms."""
        x = STORAGES[self.storage](KINDS[self.kind]())
        mask = x.get_mask() if self.storage != "packed" else x.get_mask()[..., :1].clone()
        return x, DATA.to_sparse() if self.storage == "sparse" else DATA.clone(), mask

    def function(self) -> Callable[..., Parts]:
        """What is compiled."""
        find, give, program, how = PLACES[self.place][1], self.give, self.program, WRITES[self.how]

        def run(given: Any, data: Any, mask: Any) -> Parts:
            return program(lambda: give(find(given), data, mask), how)

        return run

    def run(self, compiled: Callable[..., Parts] | None = None) -> tuple[Parts, tuple[Any, Any, Any]]:
        """What comes out, and the tensors that were given."""
        x, data, mask = self.tensors()
        return (compiled or self.function())(PLACES[self.place][0](x), data, mask), (x, data, mask)


def check_own(handed: Parts, given: tuple[Any, Any, Any]) -> None:
    """What was handed out is dense memory of its own: a write into it reaches nothing else."""
    x, data, mask = given
    before = [x.filled(0), x.get_mask(), data.clone(), mask.clone()]
    for i, t in enumerate(handed):
        stored = t._values() if t.layout is torch.sparse_coo else t
        span = sum((size - 1) * stride for size, stride in zip(stored.shape, stored.stride(), strict=True)) + 1
        assert stored.numel() == 0 or span == stored.numel(), f"shape {tuple(t.shape)}, strides {stored.stride()}"
        others = [other.clone() for other in handed[i + 1 :]]
        write([t], WRITES["operator"])
        torch.testing.assert_close(handed[i + 1 :], others, equal_nan=True)
    torch.testing.assert_close([x.filled(0), x.get_mask(), data, mask], before)
    for t in handed:
        if t.layout is torch.sparse_coo:  # plain data share their pattern with plain results
            t._indices().zero_()
    torch.testing.assert_close([x.filled(0), x.get_mask()], before[:2])
