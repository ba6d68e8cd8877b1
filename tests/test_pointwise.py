"""Elementwise ops beyond the generated laws: coverage by tag, payload promises, promotion, keywords, dtypes."""

import itertools
import math
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine import table
from masked_tensor.engine.tensor import pair_of
from masked_tensor.extend import Payload

from .helpers import database, harness
from .laws import laws
from .oracles import FAMILY

NAN, INF = math.nan, math.inf
MASK = torch.tensor([True, False, True])
FAMILIES = ("pointwise", "random")
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def wrapped(values: list[float], mask: torch.Tensor = MASK, **kwargs) -> MaskedTensor:
    return mt.as_masked_tensor(torch.tensor(values, **kwargs), mask)


def decomposes(overload: torch._ops.OpOverload) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeImplicitAutograd")


def test_every_op_that_torch_calls_pointwise_has_an_entry() -> None:
    names = {s.name.removeprefix("aten::") for s in torch._C._jit_get_all_schemas() if s.name.startswith("aten::")}
    missing = []
    for name in sorted(names):
        packet = getattr(torch.ops.aten, name, None)
        for overload in (getattr(packet, o) for o in packet.overloads()) if packet is not None else ():
            if torch.Tag.pointwise in overload.tags and overload not in table.ENTRIES and not decomposes(overload):
                missing.append(overload.name())
    assert missing == []


@pytest.mark.parametrize("name", sorted(n for n, family in FAMILY.items() if family in FAMILIES))
def test_zero_is_promised_only_where_it_is_kept(name: str) -> None:
    if name not in database.ENTRIES:
        pytest.skip("not an entry of the database")
    for sample in database.samples(name, limit=3):
        for which in ("all", "first"):
            outputs, _ = harness.run(harness.masked_case(sample, "random", which))
            for pair in (pair_of(o) for o in outputs if type(o) is MaskedTensor):
                if pair.payload is Payload.ZERO:
                    assert not (pair.data[~pair.mask] != 0).any()


def test_a_zero_dimensional_operand_does_not_promote_and_gets_the_sum_of_valid_gradients() -> None:
    x = wrapped([2.0, NAN, 3.0], dtype=torch.float16)
    w = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    y = x * w
    assert y.dtype is torch.float16
    y.sum().backward()
    assert w.grad.dtype is torch.float64
    assert w.grad.item() == 5.0


@pytest.mark.parametrize("payload", [NAN, INF, 1e30])
@pytest.mark.parametrize("op", [torch.mul, torch.div, torch.atan2, torch.hypot, torch.pow, torch.logaddexp])
def test_a_broadcast_plain_operand_never_sees_the_masked_out_data(op, payload: float) -> None:
    data = torch.tensor([[1.0, payload, 2.0], [3.0, 0.5, payload]], requires_grad=True)
    mask = torch.tensor([[True, False, True], [True, True, False]])
    w = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    op(mt.as_masked_tensor(data, mask), w).sum().backward()
    assert (data.grad[~mask] == 0).all()
    expected = torch.autograd.grad(
        sum(op(d, v) for d, v, m in zip(data.detach().flatten(), w.repeat(2), mask.flatten(), strict=True) if m), w
    )[0]
    torch.testing.assert_close(w.grad, expected)


def test_keywords() -> None:
    x, y = wrapped([1.0, 2.0, 3.5]), wrapped([2.0, 5.0, 2.0])
    assert torch.add(x, y, alpha=3).tolist() == [7.0, None, 9.5]
    assert torch.rsub(x, y, alpha=2).tolist() == [0.0, None, -5.0]
    assert torch.div(x, y, rounding_mode="floor").tolist() == [0.0, None, 1.0]
    assert torch.round(x * 1.26, decimals=1).tolist() == pytest.approx([1.3, None, 4.4])
    assert torch.clamp(x, max=y).tolist() == [1.0, None, 2.0]
    assert torch.clamp(x, min=2.0).tolist() == [2.0, None, 3.5]
    assert torch.nan_to_num(wrapped([NAN, NAN, INF]), 7.0, posinf=1.0).tolist() == [7.0, None, 1.0]
    assert torch.addcmul(x, y, y, value=0.5).tolist() == [3.0, None, 5.5]


def test_an_infinite_alpha_does_not_reach_a_masked_entry() -> None:
    x = mt.masked_tensor(torch.tensor([1.0, 2.0, 3.0]), MASK, requires_grad=True)
    total = torch.add(x, x.detach(), alpha=INF)
    assert pair_of(total).payload is Payload.ANY
    total.sum().backward()
    assert x.grad.filled(9.0).tolist() == [1.0, 9.0, 1.0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_low_precision(dtype: torch.dtype) -> None:
    x = wrapped([0.5, NAN, 2.0], dtype=dtype).requires_grad_()
    y = (x * 2 + 1).exp().log()
    assert y.dtype is dtype
    y.sum().backward()
    assert x.grad.dtype is dtype
    assert x.grad.filled(0).tolist() == pytest.approx([2.0, 0.0, 2.0], rel=0.1)


def test_complex_gradients() -> None:
    data = torch.tensor([1 + 2j, complex(NAN, 1), 3 - 1j], dtype=torch.complex128, requires_grad=True)

    def function(z: torch.Tensor) -> torch.Tensor:
        x = mt.as_masked_tensor(z, MASK)
        return ((x * x.conj()).sqrt() + x.exp() / x).filled(0)

    assert torch.autograd.gradcheck(lambda z: function(torch.where(MASK, z, NAN)), data.detach().requires_grad_())
    function(data).abs().sum().backward()
    assert data.grad[1] == 0
    assert data.grad.isfinite().all()


@pytest.mark.parametrize(
    "function",
    [
        *(torch.exp, torch.sqrt, torch.sigmoid, torch.tanh, torch.nn.functional.gelu, torch.nn.functional.logsigmoid),
        *(lambda x: x**3, lambda x: 1 / x, lambda x: x * x.log(), lambda x: torch.where(x > 1, x * x, x.log())),
    ],
)
def test_double_backward(function) -> None:
    data = torch.tensor([0.5, 7.0, 2.0], dtype=torch.float64, requires_grad=True)

    def masked(d: torch.Tensor) -> torch.Tensor:
        return function(mt.as_masked_tensor(torch.where(MASK, d, NAN), MASK)).filled(0)

    assert torch.autograd.gradgradcheck(masked, data)


def test_in_place_dunders() -> None:
    x, y = mt.masked_tensor([6, 5, 12], MASK), mt.masked_tensor([3, 3, 10], [True, True, False])
    for name, expected in {"iand": 2, "ior": 7, "ixor": 5, "iadd": 9, "isub": 3, "imul": 18, "ilshift": 48}.items():
        z = x.clone()
        result = getattr(z, f"__{name}__")(y)
        assert result is z
        assert z.tolist() == [expected, None, None]
    with pytest.raises(mt.MaskedWriteError, match="filled"):
        torch.ones(3).add_(wrapped([1.0, 2.0, 3.0]))


def test_where_with_numbers_and_in_a_chain() -> None:
    x = wrapped([1.0, NAN, -3.0]).requires_grad_()
    assert torch.where(x > 0, x, 0.0).tolist() == [1.0, None, 0.0]
    assert torch.where(x > 0, 1, 2).tolist() == [1, None, 2]
    plain = torch.tensor([True, True, False])
    assert torch.where(plain, x, torch.zeros(3)).tolist() == [1.0, None, 0.0]
    assert torch.where(~plain, x, torch.zeros(3)).tolist() == [0.0, 0.0, -3.0]
    torch.where(x > 0, x.log(), x.exp()).sum().backward()
    assert x.grad.filled(0).tolist() == pytest.approx([1.0, 0.0, math.exp(-3)])
    assert [i.tolist() for i in torch.where(x > 0)] == [[0]]


def test_masked_fill_keeps_padding_and_feeds_its_value() -> None:
    scores = mt.masked_tensor(torch.zeros(2, 2), torch.tensor([[True, True], [True, False]]))
    causal = torch.tensor([[False, True], [False, False]])
    value = torch.tensor(-1.0, requires_grad=True)
    filled = scores.masked_fill(causal | ~scores.get_mask(), value)
    assert filled.tolist() == [[0.0, -1.0], [0.0, None]]
    filled.sum().backward()
    assert value.grad.item() == 1.0


def test_empty_and_scalar_tensors() -> None:
    empty = mt.masked_tensor(torch.ones(0, 3), torch.ones(0, 3, dtype=torch.bool), requires_grad=True)
    (empty * torch.ones(3) / 2).exp().sum().backward()
    assert empty.grad.shape == (0, 3)
    unknown = mt.masked_tensor(2.0, False, requires_grad=True)
    with pytest.warns(mt.MaskedLossWarning):
        (unknown * 3).log().backward()
    assert unknown.grad.tolist() is None


def test_constant_dimensions_stay_constant() -> None:
    mask = (torch.arange(5) < 3).view(1, 5, 1).expand(2, 5, 4)
    x = mt.as_masked_tensor(torch.randn(2, 5, 4), mask)
    y = (x + 1).relu() * torch.randn(4) + x
    assert pair_of(y).mask.stride() == (0, 1, 0)


def test_in_inference_mode() -> None:
    with torch.inference_mode():
        x = wrapped([1.0, NAN, 4.0])
        assert (x.sqrt() + x * 2).tolist() == [3.0, None, 10.0]
        x.mul_(2)
        assert x.tolist() == [2.0, None, 8.0]


def test_polygamma_in_place() -> None:
    x = wrapped([1.0, 2.0, 3.0])
    expected = torch.polygamma(1, x).tolist()
    assert x.polygamma_(1).tolist() == expected


QUOTIENTS = {
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
}


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64])
@pytest.mark.parametrize("name", QUOTIENTS)
def test_an_integer_zero_under_a_masked_entry_of_either_side_divides_nothing(name, dtype):
    quotient, numbers, divisors = QUOTIENTS[name], torch.tensor([7, 0, 9], dtype=dtype), torch.tensor([2, 0, 4])
    valid = torch.tensor([True, False, True])
    expected = quotient(numbers[valid], divisors.to(dtype)[valid])
    for x, y in itertools.product((numbers, mt.masked_tensor(numbers, valid)), repeat=2):
        y = mt.masked_tensor(divisors.to(dtype), valid) if mt.is_masked_tensor(y) else divisors.to(dtype)
        if mt.is_masked_tensor(x) or mt.is_masked_tensor(y):
            result = quotient(x, y)
            assert result.dtype is expected.dtype
            assert result.get_mask().tolist() == valid.tolist()
            assert torch.equal(result.compressed(), expected)
    whole = mt.masked_tensor(numbers.clone(), valid)
    whole %= divisors.to(dtype)
    assert torch.equal(whole.compressed(), torch.remainder(numbers[valid], divisors.to(dtype)[valid]))


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_divisor_of_no_dimensions_does_not_promote(name):
    x = mt.masked_tensor(torch.tensor([7, 8], dtype=torch.int32), torch.tensor([True, False]))
    result = QUOTIENTS[name](x, torch.tensor(2))
    assert result.dtype is torch.int32
    assert result[0].item() == QUOTIENTS[name](torch.tensor(7), torch.tensor(2)).item()
    assert QUOTIENTS[name](x[:, None], torch.tensor([[2, 3]])).dtype is torch.int64


test_law = laws("pointwise")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_what_is_masked_of_integers_never_ends_the_process(dtype: torch.dtype) -> None:
    """The least integer over -1 is a floating point exception in plain torch; lcm divides by what gcd gave."""
    least, mask = torch.iinfo(dtype).min, torch.tensor([[True, False], [False, False]])
    x = mt.as_masked_tensor(torch.tensor([[6, least], [least, 7]], dtype=dtype), mask)
    y = mt.as_masked_tensor(torch.tensor([[4, 5], [-1, 0]], dtype=dtype), mask)
    for form in (x, x.packed()):
        other = y if form is x else y.packed()
        for op in (torch.lcm, torch.gcd, torch.remainder, torch.fmod, torch.floor_divide):
            result = op(form, other)
            assert result.get_mask().equal(mask)
            assert result[0, 0].item() == op(torch.tensor(6), torch.tensor(4)).item()
            assert op(form, torch.tensor(5, dtype=dtype))[0, 0].item() == op(torch.tensor(6), torch.tensor(5)).item()


@pytest.mark.parametrize("garbage", [0.0, torch.nan, torch.inf, 1e30])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_statistic_of_each_row_meets_its_row(garbage: float, dtype: torch.dtype) -> None:
    """As norms by hand: valid rows and their gradients are those of the rows alone, to the bit; masked ones get 0."""

    def scaled(x: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True)) * weight

    torch.manual_seed(0)
    valid = torch.tensor([[True, True, True], [True, False, False]])
    data = torch.randn(2, 3, 4, dtype=dtype).masked_fill(~valid[..., None], garbage)
    weight = torch.randn(4, dtype=dtype, requires_grad=True)
    leaf = mt.masked_tensor(data, valid[..., None]).requires_grad_()
    rows, direction = data[valid].requires_grad_(), torch.randn(4, 4, dtype=dtype)
    wide = torch.zeros(2, 3, 4, dtype=dtype).index_put((valid,), direction)
    for x in (leaf, leaf * 1):
        result = scaled(x)
        assert torch.equal(result.get_mask(), valid[..., None].expand(2, 3, 4))
        assert torch.equal(result.get_data()[valid], scaled(rows))
        found, of_weight = torch.autograd.grad(result, (leaf, weight), wide)
        (expected,) = torch.autograd.grad(scaled(rows), rows, direction)
        assert torch.equal(found.get_data()[valid], expected)
        assert not found.get_data()[~valid].any()
        assert of_weight.isfinite().all()
