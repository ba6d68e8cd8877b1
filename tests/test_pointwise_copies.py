"""Casts, copies, likes, devices, questions and randomness beyond the generated laws."""

import math

import pytest
import torch
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import MaskedTensor, MaskedValueError
from masked_tensor.engine.tensor import pair_of
from masked_tensor.extend import Payload

NAN = math.nan
MASK = torch.tensor([True, False, True])


def example(requires_grad: bool = False) -> MaskedTensor:
    return mt.masked_tensor([1.0, 2.0, 3.0], MASK, requires_grad=requires_grad)


# --------------------------------------------------------------------------------------------------------------- casts


def test_a_cast_keeps_zeros_and_gradients() -> None:
    x = example(requires_grad=True)
    y = x.double()
    assert y.dtype is torch.float64
    assert pair_of(y).payload is Payload.ZERO
    (y * 2).sum().backward()
    assert x.grad.dtype is torch.float32
    assert x.grad.tolist() == [2.0, None, 2.0]
    assert x.to(torch.float32) is x
    assert x.type_as(y).dtype is torch.float64
    assert x.detach().int().tolist() == [1, None, 3]
    assert x.bool().tolist() == [True, None, True]


def test_autocast() -> None:
    layer = torch.nn.Linear(3, 2)
    x = mt.as_masked_tensor(torch.tensor([[1.0, 2.0, 3.0], [NAN, NAN, NAN]]), torch.tensor([[True], [False]]))
    with torch.autocast("cpu", torch.bfloat16):
        y = layer(x)
        loss = (y.float() ** 2).mean()
    assert y.dtype is torch.bfloat16
    loss.backward()
    assert layer.weight.grad.isfinite().all()
    assert layer.weight.grad.dtype is torch.float32


def test_data_and_mask_move_together() -> None:
    x = mt.as_masked_tensor(torch.ones(2, 3), torch.tensor([[True], [False]]))
    y = x.to("meta")
    pair = pair_of(y)
    assert y.device.type == pair.data.device.type == pair.mask.device.type == "meta"
    assert pair.mask.stride() == (1, 0)
    assert (y * 2 + y).exp().sum(0).shape == (3,)
    assert not x.is_pinned()
    assert x.cpu() is x


# ------------------------------------------------------------------------------------------------------ copies, likes


def test_clone_keeps_the_memory_format() -> None:
    x = mt.as_masked_tensor(torch.ones(2, 3, 4, 4), torch.ones(2, 1, 1, 1, dtype=torch.bool))
    y = x.clone(memory_format=torch.channels_last)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert y.contiguous(memory_format=torch.channels_last) is y or y.contiguous().shape == y.shape
    assert pair_of(y).mask.stride()[1:] == (0, 0, 0)


def test_likes_keep_the_mask() -> None:
    x = example()
    assert torch.zeros_like(x).tolist() == [0.0, None, 0.0]
    assert pair_of(torch.zeros_like(x)).payload is Payload.ZERO
    assert torch.full_like(x, 7, dtype=torch.int64).tolist() == [7, None, 7]
    assert torch.rand_like(x).count() == 2
    assert torch.empty_like(x, device="meta").device.type == "meta"


def test_a_copy_has_its_own_validity() -> None:
    x = example()
    y = x.clone()
    y[1] = 5.0
    assert y.tolist() == [1.0, 5.0, 3.0]
    assert x.tolist() == [1.0, None, 3.0]


# ----------------------------------------------------------------------------------------------------------- questions


def test_a_masked_entry_has_no_value() -> None:
    x = example()
    assert x[0].item() == 1.0
    assert bool(x[2]) is True
    for question in (lambda h: h.item(), bool, float, int, torch.is_nonzero, lambda h: [] if h else [1]):
        with pytest.raises(MaskedValueError, match="filled"):
            question(x[1])


def test_equality_of_whole_tensors() -> None:
    x = example()
    same = mt.as_masked_tensor(torch.tensor([1.0, NAN, 3.0]), MASK)
    assert torch.equal(x, same)
    assert torch.allclose(x, same)
    assert not torch.equal(x, torch.tensor([1.0, 2.0, 3.0]))
    assert not torch.equal(x, same + 1)
    assert not torch.equal(x, same[:2])
    assert torch.allclose(x, same + 1e-9)
    assert torch.isclose(x, torch.tensor([1.0, 2.0, 4.0])).tolist() == [True, None, False]
    assert torch.isclose(torch.tensor([1.0, 2.0, NAN]), same, equal_nan=True).tolist() == [True, None, False]
    torch.testing.assert_close(x, same)


def test_membership() -> None:
    x = mt.masked_tensor([1, 2, 3], MASK)
    assert torch.isin(x, torch.tensor([2, 3])).tolist() == [False, None, True]
    assert torch.isin(torch.tensor([1, 2, 3]), x).tolist() == [True, False, True]
    assert torch.isin(x, 1, invert=True).tolist() == [False, None, True]


# ---------------------------------------------------------------------------------------------------------- randomness


@pytest.mark.parametrize("op", [F.dropout, F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d])
def test_dropout_draws_what_the_plain_op_draws(op) -> None:
    data = torch.randn(4, 6, 5)
    mask = torch.rand(4, 6, 1) < 0.6
    x = mt.masked_tensor(data, mask, requires_grad=True)
    torch.manual_seed(7)
    expected = op(torch.where(mask, data, 0), 0.4, True)
    torch.manual_seed(7)
    y = op(x, 0.4, True)
    assert torch.equal(y.detach(), mt.masked_tensor(expected, mask))
    y.sum().backward()
    assert (x.grad.filled(0)[~mask.expand(4, 6, 5)] == 0).all()
    torch.manual_seed(7)
    z = op(x.detach(), 0.4, True, inplace=True)
    assert torch.equal(z, y.detach())


@pytest.mark.parametrize("op", [F.dropout, F.alpha_dropout, F.feature_alpha_dropout, F.dropout2d])
def test_dropout_of_an_empty_tensor_is_the_tensor(op) -> None:
    """As torch's: also a leaf with a gradient may be dropped from in place, since nothing is written."""
    x = mt.masked_tensor(torch.empty(0, 3, 2, 2), torch.empty(0, 1, 1, 1).bool(), requires_grad=True)
    for inplace in (False, True):
        y = op(x, 0.5, True, inplace=inplace)
        assert y is x
        assert x.is_leaf
        assert x._version == 0


def test_dropout_keeps_zeros_and_is_nothing_in_evaluation() -> None:
    x = example()
    assert pair_of(F.dropout(x, 0.5)).payload is Payload.ZERO
    assert F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 0.0) is x
    assert torch.nn.Dropout(0.5).eval()(x) is x
    out, kept = torch.native_dropout(x, 0.5, True)
    assert out.count() == kept.count() == 2


def test_compiled_dropout() -> None:
    x = mt.masked_tensor(torch.ones(64), torch.arange(64) < 40)
    y = torch.compile(lambda v: F.dropout(v, 0.5) + 1, fullgraph=True, backend="aot_eager")(x)
    assert y.count() == 40


def test_no_random_number_depends_on_the_masked_out_data() -> None:
    mask = torch.rand(50) < 0.5
    valid = torch.rand(50)
    draws = {
        "bernoulli": torch.bernoulli,
        "poisson": torch.poisson,
        "normal": lambda x: torch.normal(0.0, x),
        "rrelu": lambda x: F.rrelu(x - 0.5, training=True),
        "multinomial": lambda x: torch.multinomial(x, 5),
        "uniform": lambda x: x.clone().uniform_(),
        "exponential": lambda x: x.clone().exponential_(),
    }
    for name, draw in draws.items():
        results = []
        for payload in (NAN, math.inf, -1.0, 1e30):
            torch.manual_seed(3)
            drawn = draw(mt.as_masked_tensor(torch.where(mask, valid, payload), mask))
            results.append(torch.cat([drawn.compressed(), torch.rand(1)]))  # the generator ends where it ended before
        for result in results[1:]:
            assert torch.equal(result, results[0]), name


def test_refills_change_values_not_validity() -> None:
    x = example()
    for refill in ("uniform_", "normal_", "exponential_", "cauchy_", "log_normal_", "random_"):
        getattr(x, refill)()
        assert x.count() == 2
        assert pair_of(x).payload is Payload.ANY
    torch.nn.init.normal_(x, 5.0, 0.1)
    assert (x > 4).all()
    assert x.bernoulli_(1.0).tolist() == [1.0, None, 1.0]
    assert x.geometric_(0.5).count() == 2


def test_multinomial_draws_valid_categories() -> None:
    weights = mt.masked_tensor(
        torch.tensor([[1.0, 1e30, 1.0], [1.0, 1.0, 1.0]]), torch.tensor([[1, 0, 1], [0, 0, 0]]) > 0
    )
    drawn = torch.multinomial(weights, 2)
    assert sorted(drawn[0].tolist()) == [0, 2]
    assert drawn[1].tolist() == [None, None]
