"""Softmax beyond the laws: the three modes, special values, large tensors, double backward."""

import itertools

import pytest
import torch
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.pair import Pair, Payload
from masked_tensor.rules.softmax import softmax

from .helpers.harness import Masked, assert_same
from .laws import laws
from .oracles.softmax import slices

INF, NAN = float("inf"), float("nan")
OPS = {"softmax": torch.softmax, "log_softmax": torch.log_softmax}
BAD = (NAN, INF, -INF, 1e30)


def poisoned(data: torch.Tensor, mask: torch.Tensor, value: float) -> torch.Tensor:
    return torch.where(mask, data, torch.tensor(value, dtype=data.dtype))


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize(("shape", "dim"), [((70, 50), 1), ((70, 50), 0), ((6, 40, 30), 1), ((3, 4, 5, 200), -1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large(name, shape, dim, dtype):
    """The fused loop, forward and backward, against one slice at a time; some slices have nothing valid."""
    torch.manual_seed(0)
    op = OPS[name]
    mask = torch.rand(shape) < 0.5
    mask.select(dim - 1 if dim > 0 else 1, 0).fill_(False)
    data, grad = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
    leaf = data.clone().requires_grad_()
    expected = slices(op, Masked(leaf, mask), dim, None)
    expected.data.backward(torch.where(mask, grad, 0))
    for value in BAD:
        x = mt.as_masked_tensor(poisoned(data, mask, value), mask).requires_grad_()
        out = op(x, dim)
        assert_same(out, expected, f"payload {value}")
        out.backward(mt.as_masked_tensor(poisoned(grad, mask, value), mask))
        assert_same(x.grad, Masked(leaf.grad, mask), f"gradient with payload {value}")
        assert (pair_of(x.grad).data[~mask] == 0).all()
        with torch.no_grad():
            assert_same(op(x, dim), expected, "untracked")
    if name == "softmax":
        assert pair_of(out).payload is Payload.ZERO
        assert (pair_of(out).data[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [0, 1])
def test_half_precision(dtype, dim):
    torch.manual_seed(0)
    data, mask = torch.randn(60, 50).to(dtype), torch.rand(60, 50) < 0.5
    out = torch.softmax(mt.as_masked_tensor(poisoned(data, mask, NAN), mask), dim)
    expected = slices(torch.softmax, Masked(data.float(), mask), dim, None).data
    assert out.dtype is dtype
    torch.testing.assert_close(pair_of(out).data.float(), expected, atol=4e-3, rtol=2e-2)


@pytest.mark.parametrize("layout", ["transposed", "sliced", "expanded"])
def test_strides(layout):
    torch.manual_seed(0)
    data = {
        "transposed": torch.randn(60, 80).T,
        "sliced": torch.randn(80, 120)[:, ::2],
        "expanded": torch.randn(1, 60).expand(80, 60),
    }[layout]
    mask = torch.rand(80, 60) < 0.5
    for op, dim in itertools.product(OPS.values(), (0, 1)):
        assert_same(op(mt.as_masked_tensor(data, mask), dim), slices(op, Masked(data, mask), dim, None), layout)


@pytest.mark.parametrize("name", OPS)
def test_broadcast_masks(name):
    """Key padding over (B, H, T, T), and padding constant along the slice, which stays compact."""
    torch.manual_seed(0)
    data, op = torch.randn(4, 3, 20, 20), OPS[name]
    keys, rows = (torch.rand(4, 1, 1, 20) < 0.5).expand(data.shape), (torch.rand(4, 1, 20, 1) < 0.5).expand(data.shape)
    for mask in (keys, rows):
        x = mt.as_masked_tensor(poisoned(data, mask, NAN), mask).requires_grad_()
        out = op(x, -1)
        assert_same(out, slices(op, Masked(data, mask), -1, None), "broadcast")
        assert pair_of(out).mask.stride() == mask.stride()
        out.filled(0).sum().backward()
        assert pair_of(x.grad).data.isfinite().all()


@pytest.mark.parametrize("size", [6, 6000])
def test_special_values_propagate(size):
    """A valid NaN makes its slice NaN, valid entries that are all -inf give NaN, and neither touches masked entries."""
    data = torch.randn(4, size, dtype=torch.float64)
    mask = torch.arange(size) % 3 != 0
    data[0, 1] = NAN
    data[1] = -INF
    data[2, 1] = INF
    data[3] = torch.where(mask, data[3], INF)
    mask = mask.repeat(4, 1)
    x = mt.as_masked_tensor(data, mask).requires_grad_()
    out = torch.softmax(x, 1)
    values = pair_of(out).data
    assert values[:3][mask[:3]].isnan().all()
    torch.testing.assert_close(values[3][mask[3]], torch.softmax(data[3][mask[3]], 0))
    assert (values[~mask] == 0).all()
    out.sum().backward()
    assert (pair_of(x.grad).data[~mask] == 0).all()


def test_inf_as_zero_is_torchs_safe_softmax():
    torch.manual_seed(0)
    for shape, dim in (((5, 7), 1), ((5, 7), 0), ((), 0), ((0, 3), 1), ((3, 0), 1)):
        data = torch.randn(shape, dtype=torch.float64)
        mask = torch.rand(shape) < 0.6
        if data.dim() and data.numel():
            data[..., 0] = -INF
            mask[..., -1] = False
        plain = torch.where(mask, data, -INF).requires_grad_()
        expected = torch.ops.aten._safe_softmax(plain, dim)
        leaf = data.clone().requires_grad_()
        out = softmax(Pair(leaf, mask), dim, mode="inf_as_zero").data
        torch.testing.assert_close(torch.where(mask, out, 0), expected)
        grad = torch.where(mask, torch.randn(shape, dtype=torch.float64), 0)
        expected.backward(grad)
        out.backward(grad)
        torch.testing.assert_close(leaf.grad, plain.grad)


def test_inf_as_zero_logarithm():
    data = torch.tensor([[-INF, -INF, 5.0], [0.0, 1.0, 5.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, False]])
    out = softmax(Pair(data, mask), 1, log=True, mode="inf_as_zero")
    torch.testing.assert_close(out.data[:, :2].exp(), torch.tensor([[0.0, 0.0], [0.2689, 0.7311]]), atol=1e-4, rtol=0)
    out.data.backward(mask.float())
    assert (data.grad[0] == 0).all()
    assert (data.grad[:, 2] == 0).all()


def test_mode_none_prints_what_the_rfc_prints():
    """pytorch/rfcs: "Masked reductions and normalizations", example invocations."""
    data, mask = torch.tensor([[-3.0, -2, -1], [0, 1, 2]]), torch.tensor([[True, False, True], [False] * 3])
    expected = torch.tensor([[0.1192, 0, 0.8808], [NAN] * 3], dtype=torch.double)
    out = softmax(Pair(data, mask), 1, torch.double, mode="none").data
    torch.testing.assert_close(out, expected, equal_nan=True, atol=1e-4, rtol=0)
    expected = torch.tensor([[-2.1269, -INF, -0.1269], [NAN] * 3], dtype=torch.double)
    out = softmax(Pair(data, mask), 1, torch.double, log=True, mode="none").data
    torch.testing.assert_close(out, expected, equal_nan=True, atol=1e-4, rtol=0)


def test_unknown_mode():
    with pytest.raises(ValueError, match="mode must be 'safe', 'inf_as_zero' or 'none', got 'fast'"):
        softmax(Pair(torch.ones(2), torch.ones(2, dtype=torch.bool)), 0, mode="fast")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("shape", [(3, 4), (50, 60)])
def test_double_backward(name, shape):
    torch.manual_seed(0)
    mask = torch.rand(shape) < 0.6
    mask[0] = False

    def function(data):
        return OPS[name](mt.as_masked_tensor(data, mask), 1).filled(0)

    data = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(function, data, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, data, fast_mode=True)


def test_modules_and_composites():
    torch.manual_seed(0)
    data, mask = torch.randn(2, 3, 4, 5), torch.rand(2, 3, 4, 5) < 0.6
    x = mt.masked_tensor(data, mask)
    assert_same(torch.nn.Softmax2d()(x), slices(torch.softmax, Masked(data, mask), -3, None), "softmax2d")
    assert_same(F.softmin(x, 1), slices(torch.softmax, Masked(-data, mask), 1, None), "softmin")
    assert_same(torch.special.softmax(x, 2), slices(torch.softmax, Masked(data, mask), 2, None), "special")
    with torch.inference_mode():
        assert_same(x.softmax(1), slices(torch.softmax, Masked(data, mask), 1, None), "inference")


@pytest.mark.parametrize("name", OPS)
def test_vmap(name):
    data, mask = torch.randn(3, 4, 5), torch.rand(3, 4, 5) < 0.6
    out = torch.vmap(lambda x: OPS[name](x, -1))(mt.masked_tensor(data, mask))
    assert_same(out, slices(OPS[name], Masked(data, mask), -1, None), "vmap")


@pytest.mark.parametrize("name", OPS)
def test_compiled(name):
    torch.manual_seed(0)
    data, mask = torch.randn(40, 60), torch.rand(40, 60) < 0.6
    mask[0] = False
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: OPS[name](x, -1), fullgraph=True, backend="aot_eager")
    x, y = (mt.as_masked_tensor(poisoned(data, mask, NAN), mask).requires_grad_() for _ in range(2))
    assert_same(compiled(x), OPS[name](y, -1), "compiled")
    for out in (compiled(x), OPS[name](y, -1)):
        (out * out).sum().backward()
    assert_same(x.grad, y.grad, "gradient")


test_law = laws("softmax")
