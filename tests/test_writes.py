"""What a write does to the mask: a method that fills or changes a whole tensor keeps it, an assignment makes valid.

The law runs over every in-place overload of the table: strided, packed and sparse, on a tensor and through its views.
"""

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.errors import UnsupportedOpError

from .helpers import inplace_calls
from .helpers.inplace_calls import VIEWS, Call

NAN, INF = float("nan"), float("inf")
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    found = list(inplace_calls.calls())
    assert {call.name.partition(".")[0] for call in found} >= inplace_calls.ASSIGNS
    return found


def garbage(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Ones, and what no op may look at where they are masked."""
    under = {torch.float64: (NAN, INF, -1e30), torch.int64: (2**62, -(10**9), 0), torch.bool: (False,)}[dtype]
    return torch.where(mask, 1, torch.tensor(under).to(dtype)[torch.arange(mask.numel()).view(mask.shape) % len(under)])


def expected_mask(call: Call, mask: Tensor) -> Tensor:
    return mask | call.places() if call.assigns else mask


def random_mask(shape: Any) -> Tensor:
    return torch.rand(tuple(shape), generator=torch.Generator().manual_seed(torch.Size(shape).numel())) < 0.6


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("hard", [False, True])
def test_every_in_place_op(calls: list[Call], view: str, hard: bool, record_property: Record) -> None:
    """Its mask, that of its base and of another view, and the values: those of the op that is not in place."""
    wrong = []
    for call in calls:
        outer, seen = VIEWS[view]
        mask = random_mask(outer(call.shape))
        base = mt.as_masked_tensor(garbage(mask, call.dtype), mask)
        alone = seen(base, call.shape).clone()
        if hard:
            base.harden_mask()
        other, target = base.view(-1), seen(base, call.shape)
        assert call.run(target) is target
        call.run(alone)
        wanted = mask.clone()
        if not hard:
            seen(wanted, call.shape).copy_(expected_mask(call, seen(mask, call.shape)))
        if not (torch.equal(base.get_mask(), wanted) and torch.equal(other.get_mask(), wanted.view(-1))):
            wrong.append(f"{call.name}: {target.get_mask().int().tolist()}")
        elif not torch.equal(target.filled(0), torch.where(target.get_mask(), alone.filled(0), 0)):
            wrong.append(f"{call.name}: {target.tolist()} / {alone.tolist()}")
    assert not wrong, f"{len(wrong)} wrong: " + "\n".join(wrong)
    record_property("law of writes", {f"{view}, {'hard' if hard else 'soft'}": len(calls)})


@pytest.mark.parametrize("view", ["itself", "turned", "an item"])
def test_every_in_place_op_on_packed_tensors(calls: list[Call], view: str, record_property: Record) -> None:
    outer, seen = VIEWS[view]
    wrong, packed = [], 0
    for call in calls:
        shape = outer(call.shape)
        if len(shape) < 2:
            continue
        padded = mt.from_lengths(garbage(torch.ones(shape, dtype=torch.bool), call.dtype), [1, 3, 2][: shape[0]])
        base, mask = padded.packed(), padded.get_mask().clone(memory_format=torch.contiguous_format)
        target = seen(base, call.shape)
        call.run(target)
        packed += target.is_packed
        seen(mask, call.shape).copy_(expected_mask(call, seen(mask, call.shape)))
        if not (torch.equal(base.get_mask(), mask) and torch.equal(target.get_mask(), seen(mask, call.shape))):
            wrong.append(f"{call.name}: {base.get_mask().int().tolist()}")
    assert not wrong, f"{len(wrong)} wrong: " + "\n".join(wrong)
    assert packed or view != "itself"
    record_property("law of writes", {f"packed, {view}": len(calls), "still packed": packed})


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
def test_every_in_place_op_on_sparse_tensors(calls: list[Call], layout: torch.layout, record_property: Record) -> None:
    """The mask stays, or one error says that the op has no such rule; what is written at places is refused."""
    counts, wrong = Counter[str](), []
    for call in calls:
        if len(call.shape) != 2:
            continue
        mask = random_mask(call.shape)
        strided = mt.masked_tensor(garbage(mask, call.dtype), mask)
        x = strided.to_sparse() if layout is torch.sparse_coo else strided.to_sparse_csr()
        try:
            call.run(x)
        except UnsupportedOpError:
            counts["refused"] += 1
            continue
        counts["kept"] += 1
        if not torch.equal(x.to_dense().get_mask(), expected_mask(call, mask)):
            wrong.append(f"{call.name}: {x.to_dense().get_mask().int().tolist()}")
    assert not wrong, f"{len(wrong)} wrong: " + "\n".join(wrong)
    assert min(counts["kept"], counts["refused"]) > 0
    record_property("law of writes", {f"{layout}, {k}": n for k, n in counts.items()})


# ----------------------------------------------------------------------------------------------------------- assignment

MASK = torch.tensor([[True, False, True], [False, True, False], [False, False, True]])
KEYS: dict[str, Any] = {
    "an integer": 1,
    "an entry": (2, 0),
    "a slice": slice(1, None),
    "a new axis": (None, 1),
    "everything": ...,
    "a tensor": torch.tensor([0, 2]),
    "an integer in a tensor": torch.tensor(1),
    "integers in tensors": (torch.tensor(1), torch.tensor(2)),
    "a condition": torch.eye(3, dtype=torch.bool),
    "True": True,
    "False": False,
    "nothing": slice(3, None),
}
VALUES: dict[str, tuple[Any, bool]] = {
    "a number": (9, True),
    "a float": (9.5, True),
    "a bool": (True, True),
    "a 0-d tensor": (torch.tensor(9.0), True),
    "an entry": (torch.tensor([9.0]), True),
    "None": (None, False),
    "a valid scalar": (mt.masked_tensor(9.0, True), True),
    "a masked scalar": (mt.masked_tensor(9.0, False), False),
}


def assigned(x: Tensor, key: Any, value: Any) -> Tensor:
    x[key] = value
    return x


ROADS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "at once": assigned,
    "through a view": lambda x, key, value: (assigned(x.view(3, 3), key, value), x)[1],
    "tracked": lambda x, key, value: assigned(x.requires_grad_() * 1, key, value),
    "in inference mode": lambda x, key, value: torch.inference_mode()(assigned)(x, key, value),
    "by vmap": lambda x, key, value: torch.vmap(lambda x: assigned(x.clone(), key, value))(x[None])[0],
}


@pytest.mark.parametrize("road", ROADS)
def test_an_assignment_makes_valid(road: str) -> None:
    wrong = []
    for (name, key), (what, (value, valid)) in ((k, v) for k in KEYS.items() for v in VALUES.items()):
        if road == "by vmap" and name in ("a condition", "True", "False"):
            continue
        x, mask = mt.as_masked_tensor(torch.where(MASK, 1.0, NAN), MASK), MASK.clone()
        mask[key] = valid
        result = ROADS[road](x, key, value)
        expected = torch.where(mask, 1.0, 0.0)
        if valid:
            expected[key] = float(value)
        if not (torch.equal(result.get_mask(), mask) and torch.equal(result.detach().filled(0), expected)):
            wrong.append(f"x[{name}] = {what}: {result.tolist()}")
    assert not wrong, "\n".join(wrong)


def test_what_torch_cannot_assign_is_refused_as_by_torch() -> None:
    for key, value in ((0, [1.0, 2.0, 3.0]), (0, "one"), (0, 1j), (..., object())):
        x = mt.masked_tensor(torch.ones(3, 3), MASK)
        with pytest.raises((TypeError, RuntimeError)) as theirs:
            assigned(torch.ones(3, 3), key, value)
        with pytest.raises(theirs.type) as ours:
            assigned(x, key, value)
        assert str(ours.value) == str(theirs.value)
        assert torch.equal(x.get_mask(), MASK)


# ------------------------------------------------------------------------------------------------------------- compiled

PROGRAM: dict[str, Callable[[Any], Any]] = {
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3.0),
    "fill_ of a view": lambda x: x[0].fill_(3.0),
    "zero_ of a view": lambda x: x.t()[1:].zero_(),
    "normal_": lambda x: x.normal_(),
    "uniform_ of a view": lambda x: x[:, 1:].uniform_(),
    "copy_": lambda x: x.copy_(torch.ones(3)),
    "index_fill_": lambda x: x.index_fill_(0, torch.tensor([1]), 3.0),
    "fill_diagonal_": lambda x: x.fill_diagonal_(3.0),
    "a number": lambda x: assigned(x, 0, 9),
    "a 0-d tensor": lambda x: assigned(x, slice(1, None), torch.tensor(9.0)),
    "a number under a condition": lambda x: assigned(x, torch.eye(3, dtype=torch.bool), 9.0),
    "None": lambda x: assigned(x, 0, None),
}


def run_program(x: MaskedTensor) -> list[Tensor]:
    results = []
    for write in PROGRAM.values():
        y = x * 1
        write(y)
        results.append(y * 1)
    return results


def test_compiled_code_writes_as_eager_code_does() -> None:
    torch.compiler.reset()
    x = mt.as_masked_tensor(torch.where(MASK, 1.0, NAN), MASK)
    torch.manual_seed(0)
    eager = run_program(x)
    torch.manual_seed(0)
    compiled = torch.compile(run_program, backend="aot_eager", fullgraph=True)(x)
    for name, ours, expected in zip(PROGRAM, compiled, eager, strict=True):
        assert torch.equal(ours.get_mask(), expected.get_mask()), name
        assert torch.equal(ours.filled(0), expected.filled(0)), name


# ------------------------------------------------------------------------------------------------------ initialization

INITIALIZERS = [name for name, f in vars(nn.init).items() if name.endswith("_") and name[0] != "_" and callable(f)]


@pytest.mark.parametrize("name", INITIALIZERS)
def test_an_initializer_keeps_the_mask(name: str) -> None:
    shape = (4, 4, 3) if name == "dirac_" else (4, 3)
    given = {"constant_": {"val": 2.0}, "sparse_": {"sparsity": 0.3}}.get(name, {})
    initialize, mask = getattr(nn.init, name), random_mask(shape)
    torch.manual_seed(0)
    expected = initialize(torch.ones(shape), **given)
    base = mt.as_masked_tensor(torch.where(mask, 1.0, NAN), mask)
    for x in (base, base.view(shape), nn.Parameter(base.clone())):
        torch.manual_seed(0)
        assert initialize(tensor=x, **given) is x
        assert torch.equal(x.get_mask(), mask)
        assert torch.equal(x.detach().filled(7), torch.where(mask, expected, 7))


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(3, 4),
        lambda: nn.LayerNorm(3),
        lambda: nn.BatchNorm1d(3),
        lambda: nn.Conv1d(2, 3, 2),
        lambda: nn.Embedding(4, 3, padding_idx=1),
        lambda: nn.LSTM(2, 3),
        lambda: nn.MultiheadAttention(4, 2),
    ],
)
def test_modules_with_masked_parameters_are_reset_under_the_mask(make: Callable[[], nn.Module]) -> None:
    module = make()
    masks = {}
    for name, parameter in list(module.named_parameters()):
        masks[name] = random_mask(parameter.shape)
        masked: Any = nn.Parameter(mt.masked_tensor(parameter.detach(), masks[name]))  # type: ignore[arg-type]
        owner, _, last = name.rpartition(".")
        setattr(module.get_submodule(owner), last, masked)
    reset: Any = getattr(module, "reset_parameters", None) or module._reset_parameters
    reset()
    assert masks
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter.get_mask(), masks[name]), name  # type: ignore[attr-defined]


def test_torch_names_no_initializer_that_is_not_tried() -> None:
    documented = [n for n in INITIALIZERS if inspect.signature(getattr(nn.init, n)).parameters.get("tensor")]
    assert documented == INITIALIZERS
