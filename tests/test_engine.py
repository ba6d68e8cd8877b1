"""The table and the two doors: duplicates, derived twins, users' own rows, and the inner calls of typical ops."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine import table
from masked_tensor.engine.tensor import pair_of
from masked_tensor.errors import MaskedWriteError, UnsupportedOpError
from masked_tensor.op import Op
from masked_tensor.pair import Payload
from masked_tensor.rules import FAMILIES


def example(requires_grad: bool = False) -> MaskedTensor:
    mask = torch.tensor([[True, False], [True, True]])
    return mt.masked_tensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), mask, requires_grad=requires_grad)


def test_a_second_row_for_an_op_is_refused() -> None:
    with pytest.raises(ValueError, match=r"aten::mul.Tensor has two rules: 'mul' and 'mul'"):
        table.add(Op("mul", lambda x, y: x))


def test_a_row_for_no_op_is_refused() -> None:
    with pytest.raises(ValueError, match="no operator 'no_such_op' is registered"):
        table.add(Op("no_such_op", lambda x: x))


def test_an_optional_row_may_be_for_no_op() -> None:
    assert table.add(Op("no_such_op", lambda x: x, optional=True)) == []


def test_every_other_row_is_for_an_op() -> None:
    served = {entry.op for entry in table.ENTRIES.values()}
    for family in FAMILIES:
        for op in family.OPS:
            assert op in served or op.optional, op.name


def test_a_row_for_one_overload_outranks_the_general_row() -> None:
    assert table.ENTRIES[torch.ops.aten.max.other].op.name == "max.other"
    assert table.ENTRIES[torch.ops.aten.max.dim].op.name != "max.other"


def test_variants_follow_from_the_schema() -> None:
    aten = torch.ops.aten
    kinds = {o: table.ENTRIES[o].kind for o in (aten.mul.Tensor, aten.mul_.Tensor, aten.mul.out, aten.max.dim_max)}
    assert list(kinds.values()) == ["functional", "inplace", "out", "out"]
    assert table.ENTRIES[aten.max.dim_max].outs == ("max", "max_values")
    assert table.ENTRIES[aten.view.default].view
    assert not table.ENTRIES[aten.mul.Tensor].view


def test_every_family_states_its_law() -> None:
    for family in FAMILIES:
        assert family.OPS, f"{family.__name__} has no rows"
        for op in family.OPS:
            assert len(op.summary) > 20, f"the rule of {op.name} has no summary: give {op.rule.__module__} a docstring"


def test_users_add_rows_for_their_own_ops() -> None:
    library = torch.library.Library("test_engine", "FRAGMENT")
    library.define("double_plus(Tensor x, float y=1.0) -> Tensor")
    library.impl("double_plus", lambda x, y=1.0: x * 2 + y, "CompositeExplicitAutograd")
    x = example()
    with pytest.raises(UnsupportedOpError, match="test_engine::double_plus"):
        torch.ops.test_engine.double_plus(x)

    @mt.extend.register_rule("test_engine::double_plus")
    def double_plus(x, y=1.0):
        return mt.extend.Pair(x.data * 2 + y, x.mask)

    assert torch.ops.test_engine.double_plus(x, 3.0).tolist() == [[5.0, None], [9.0, 11.0]]
    with torch.inference_mode():
        assert torch.ops.test_engine.double_plus(x).tolist() == [[3.0, None], [7.0, 9.0]]
    x.requires_grad_()
    torch.ops.test_engine.double_plus(x).sum().backward()
    assert x.grad.tolist() == [[2.0, None], [2.0, 2.0]]
    with pytest.raises(ValueError, match="has two rules"):
        mt.extend.register_rule("test_engine::double_plus")(double_plus)


def test_both_ways_of_dispatch_give_the_same_result() -> None:
    x, w = example(), torch.tensor([2.0, float("nan")])
    eager = (x * w).sum(0)
    with torch.inference_mode():
        inference = (x * w).sum(0)
    for result in (eager, inference):
        assert result.get_mask().tolist() == [True, True]
        assert result[0] == 8


def test_a_plain_target_never_receives_a_mask() -> None:
    x, plain = example(), torch.zeros(2, 2)
    calls = [
        lambda: plain.add_(x),
        lambda: plain.copy_(x),
        lambda: torch.add(x, 1, out=plain),
        lambda: plain.__setitem__(slice(None), x),
        lambda: plain.__iadd__(x),
    ]
    for call in calls:
        with pytest.raises(MaskedWriteError, match="filled"):
            call()
    assert (plain == 0).all()


def test_errors_leave_arguments_as_they_were() -> None:
    x = example()
    before = x.clone()
    with pytest.raises(RuntimeError, match="result type"):
        x.long().add_(1.5)
    with pytest.raises(RuntimeError, match=r"must match the size|doesn't match|broadcast"):
        x.add_(torch.ones(3, 2, 2))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        example(requires_grad=True).mul_(2)
    assert x.tolist() == before.tolist()


def test_validity_has_an_owner() -> None:
    x = example()
    y = x.relu()
    assert mt.masks.same_memory(pair_of(x).mask, pair_of(y).mask)
    y[0].fill_(9)
    assert x.tolist() == [[1.0, None], [3.0, 4.0]]
    assert y.tolist() == [[9.0, None], [3.0, 4.0]]
    y[0] = 8
    assert x.tolist() == [[1.0, None], [3.0, 4.0]]
    assert y.tolist() == [[8.0, 8.0], [3.0, 4.0]]


def test_masked_out_data_is_known_where_an_op_says_so() -> None:
    x = example()
    wrapped = mt.as_masked_tensor(torch.ones(2, 2), x.get_mask())
    assert pair_of(x).payload is Payload.ZERO
    assert pair_of(wrapped).payload is Payload.ANY
    for y in (x.relu(), x * 2, -x, x.t(), x.view(-1), x.abs(), x[0]):
        assert pair_of(y).payload is Payload.ZERO
        assert (pair_of(y).data[~pair_of(y).mask] == 0).all()
    for y in (x + 1, x * torch.ones(2), x.exp(), x * float("inf"), x / 0, wrapped.relu()):
        assert pair_of(y).payload is Payload.ANY


class Calls(TorchDispatchMode):
    """Records the aten calls made on plain tensors inside the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if MaskedTensor not in types:
            self.names.append(func.name().removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (lambda x, y: x + y, ["add.Tensor"]),
        (lambda x, y: x * 2, ["mul.Tensor"]),
        (lambda x, y: x.relu(), ["relu"]),
        (lambda x, y: x.t(), ["t", "t"]),
    ],
)
def test_inner_calls_of_typical_ops(op, expected) -> None:
    # Deterministic where a clock is not: an op that begins to clone, compare or copy shows up here.
    x = example()
    y = x + 0
    with Calls() as calls:
        op(x, y)
    assert calls.names == expected


COMPOSED = {
    "einsum": lambda x: torch.einsum("btc,bsc->bts", x, x),
    "tensordot": lambda x: torch.tensordot(x, torch.ones(4, 2), 1),
    "multi_dot": lambda x: torch.linalg.multi_dot([x[0], torch.ones(4, 2), torch.ones(2, 2)]),
    "linear": lambda x: F.linear(x, torch.ones(2, 4)),
    "softmax": lambda x: x.softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "cdist": lambda x: torch.cdist(x, x),
}


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("name", COMPOSED)
def test_autocast_reaches_what_an_op_is_composed_of(name: str, mode: Any, enabled: bool) -> None:
    x = torch.randn(2, 3, 4)
    with mode(), torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        expected = COMPOSED[name](x)
        for given in (mt.from_lengths(x, [3, 1]), mt.from_lengths(x, [3, 1]).packed()):
            assert COMPOSED[name](given).dtype is expected.dtype
