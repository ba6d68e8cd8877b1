"""Select and guard: every dtype, every bit, every stride."""

import itertools

import pytest
import torch

import masked_tensor as mt
from masked_tensor import masks
from masked_tensor.fill import fill_bits
from masked_tensor.pair import Pair, Payload
from masked_tensor.select import fill_masked, guard, select, zero_masked, zero_masked_inplace
from masked_tensor.settings import CHUNK

NAN, INF = float("nan"), float("inf")
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EIGHTS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
DTYPES = [torch.bool, *INTEGERS, *FLOATS, *EIGHTS, torch.complex64, torch.complex128]
SHAPES = [(), (0,), (3, 0), (7,), (20, 30), (40, 64), (70, 61, 2), (2 * CHUNK + 5,), (3, CHUNK // 2 + 1)]
BYTES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def random_bits(shape, dtype):
    """Any bits at all: NaN of every kind, -0.0, denormals."""
    if dtype is torch.bool:
        return torch.rand(shape) < 0.5
    count = torch.Size(shape).numel() * dtype.itemsize
    return torch.randint(0, 256, (count,), dtype=torch.uint8).view(dtype).reshape(shape)


def bits(x):
    x = x.resolve_conj().resolve_neg().contiguous()
    if x.dim() == 0:
        x = x.view(1)
    return torch.view_as_real(x).view(torch.int64) if x.dtype is torch.complex128 else x.view(BYTES[x.dtype.itemsize])


def assert_selected(out, data, mask, fill):
    """Bit for bit ``data`` where valid, bit for bit ``fill`` elsewhere."""
    assert out.dtype is data.dtype
    assert out.shape == data.shape
    constant = torch.full((), fill).to(data.dtype) if data.dtype in EIGHTS else torch.full((), fill, dtype=data.dtype)
    mask = mask.expand(data.shape)
    wide = mask.reshape(1) if mask.dim() == 0 else mask
    kept, put, got = bits(data), bits(constant.expand(data.shape)), bits(out)
    if data.dtype is torch.complex128:
        wide = wide.unsqueeze(-1)
    assert torch.equal(got, torch.where(wide, kept, put))


def fills(dtype):
    if dtype is torch.bool:
        return [False, True]
    if dtype in INTEGERS:
        info = torch.iinfo(dtype)
        return [0, 1, info.min, info.max]
    if dtype in EIGHTS:
        return [0, 1.0]
    return [0, 0.0, -0.0, 1, 1.0, -1.5, INF, -INF, NAN]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits(dtype, shape):
    torch.manual_seed(0)
    data, mask = random_bits(shape, dtype), torch.rand(shape) < 0.5
    for fill in fills(dtype):
        assert_selected(select(data, mask, fill), data, mask, fill)


def test_the_sign_of_zero_survives_the_cache():
    data, mask = torch.ones(4000), torch.zeros(4000, dtype=torch.bool)
    for fill in (0.0, -0.0, 0, -0.0, 0.0):
        assert torch.signbit(select(data, mask, fill)).all() == (str(fill) == "-0.0")
        assert torch.signbit(select(data[:5], mask[:5], fill)).all() == (str(fill) == "-0.0")
    assert fill_bits(-0.0, torch.float32) == -(2**31)
    assert fill_bits(0.0, torch.float32) == 0


@pytest.mark.parametrize(
    "stride",
    ["transposed", "every second", "flipped", "expanded", "channels last", "narrowed", "permuted"],
)
@pytest.mark.parametrize("fill", [0, -INF])
def test_strides(stride, fill):
    torch.manual_seed(0)
    data = torch.randn(6, 8, 70, 90)
    data[torch.rand(data.shape) < 0.1] = NAN
    data = {
        "transposed": lambda: data.mT,
        "every second": lambda: data[..., ::2],
        "flipped": lambda: data.flip(-1),
        "expanded": lambda: data[:, :1].expand(6, 8, 70, 90),
        "channels last": lambda: data.contiguous(memory_format=torch.channels_last),
        "narrowed": lambda: data[1:, :, 3:, 5:],
        "permuted": lambda: data.permute(2, 0, 3, 1),
    }[stride]()
    for mask in (torch.rand(data.shape) < 0.5, (torch.rand(data.shape).mT < 0.5).mT, torch.rand(data.shape[-1:]) < 0.5):
        assert_selected(select(data, mask, fill), data, mask, fill)
        assert_selected(select(data, masks.expand_to(mask, data.shape), fill), data, mask, fill)
    kept = select(data, torch.ones(data.shape, dtype=torch.bool), fill)
    assert kept.stride() == torch.empty_like(data).stride()


def test_large_broadcast_masks():
    torch.manual_seed(0)
    data = torch.randn(300, 7, 200)
    for shape in [(300, 1, 1), (300, 7, 1), (1, 7, 200), (300, 1, 200), (200,), ()]:
        mask = torch.rand(shape) < 0.5
        for fill in (0, 2.5):
            assert_selected(select(data, mask, fill), data, mask, fill)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("size", [5, 5000])
def test_conjugate_and_negative_views(dtype, size):
    torch.manual_seed(0)
    data, mask = torch.randn(size, dtype=dtype), torch.rand(size) < 0.5
    assert_selected(select(data.conj(), mask, 0), data.conj(), mask, 0)
    negative = data.conj().imag
    assert negative.is_neg()
    assert_selected(select(negative, mask, 3), negative, mask, 3)


def test_inputs_are_not_written_to():
    data, mask = torch.randn(5000), torch.rand(5000) < 0.5
    before = data.clone(), mask.clone()
    for fill in (0, 7):
        select(data, mask, fill)
        select(data.to(torch.uint8), mask, fill)
    assert torch.equal(data, before[0])
    assert torch.equal(mask, before[1])


@pytest.mark.parametrize(("size", "fill"), list(itertools.product([6, 5000], [0, 3.0])))
def test_gradients(size, fill):
    torch.manual_seed(0)
    mask = torch.rand(size) < 0.5
    data = torch.where(mask, torch.randn(size), NAN).requires_grad_()
    weights = torch.where(mask, torch.randn(size), NAN)
    (grad,) = torch.autograd.grad(select(data, mask, fill), data, weights)
    assert torch.equal(grad, torch.where(mask, weights, 0))
    (grad,) = torch.autograd.grad(guard(data, mask), data, weights)
    assert torch.equal(grad, torch.where(mask, weights, 0))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own forward mode
def test_second_and_forward_derivatives():
    mask = torch.tensor([True, False, True])
    data = torch.randn(3, dtype=torch.float64, requires_grad=True)

    def function(x):
        return select(x, mask, 2.0) ** 3 + guard(x, mask) ** 2

    def kept(x):
        return function(torch.where(mask, x, 1.0))

    assert torch.autograd.gradcheck(kept, data, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(kept, data)


def test_guard_expands_so_that_the_zero_lands_before_the_sum():
    mask = torch.tensor([[True, False], [True, True]])
    row = torch.ones(2, requires_grad=True)
    weights = torch.tensor([[1.0, NAN], [1.0, 1.0]])
    assert torch.equal(torch.autograd.grad(guard(row, mask), row, weights)[0], torch.tensor([2.0, 1.0]))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own forward mode
@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp", "jacrev"])
def test_transforms(transform):
    mask = torch.tensor([True, False, True])
    data = torch.tensor([1.0, NAN, 3.0])

    def function(x):
        return (select(x, mask, 2.0) ** 2).sum()

    if transform == "vmap":
        rows = torch.vmap(lambda x, m: select(x, m, 2.0))(data.expand(4, 3), mask.expand(4, 3))
        assert torch.equal(rows, torch.tensor([1.0, 2.0, 3.0]).expand(4, 3))
        return
    result = {
        "grad": lambda: torch.func.grad(function)(data),
        "jvp": lambda: torch.func.jvp(function, (data,), (torch.ones(3),))[1] * torch.tensor([0.25, 0, 0.75]),
        "jacrev": lambda: torch.func.jacrev(function)(data),
    }[transform]()
    assert torch.equal(result, torch.tensor([2.0, 0.0, 6.0]))


def test_zeroed_and_filled_trust_known_zeros():
    data, mask = torch.tensor([1.0, 0.0]), torch.tensor([True, False])
    assert zero_masked(Pair(data, mask, Payload.ZERO)) is data
    assert fill_masked(Pair(data, mask, Payload.ZERO), 0) is data
    assert fill_masked(Pair(data, mask, Payload.ZERO), 5).tolist() == [1, 5]
    assert zero_masked(Pair(torch.tensor([1.0, NAN]), mask)).tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.complex64, torch.complex128], ids=str)
def test_cleared_writes_in_place_where_it_can(dtype):
    torch.manual_seed(0)
    data, mask = random_bits((9, 8), dtype), torch.rand(9, 8) < 0.5
    expected = torch.where(mask, data, torch.zeros((), dtype=dtype))
    assert torch.equal(bits(zero_masked_inplace(data.clone(), mask)), bits(expected))
    column = mask[:, :1].expand(9, 8)
    expected = torch.where(column, data, torch.zeros((), dtype=dtype))
    assert torch.equal(bits(zero_masked_inplace(data.clone(), column)), bits(expected))


@pytest.mark.parametrize("size", [10, 5_000, 1 << 20])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_forward_mode_tangents_pass_through_the_functional_forms(size, requires_grad):
    data = torch.randn(size, dtype=torch.float64, requires_grad=requires_grad)
    mask = torch.rand(size) < 0.5
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(data, torch.ones(size, dtype=torch.float64))
        tangent = torch.autograd.forward_ad.unpack_dual(mt.sum(dual, mask=mask)).tangent
    assert tangent == mask.sum()


def test_batched_gradients_of_a_large_tensor() -> None:
    """``is_grads_batched`` wraps gradients in something that has no bits."""
    data, mask = torch.randn(3, 1000, requires_grad=True), torch.rand(3, 1000) < 0.5
    result = select(data, mask, 2.0)
    grads = torch.randn(4, 3, 1000)
    (batched,) = torch.autograd.grad(result, data, grads, is_grads_batched=True)
    torch.testing.assert_close(batched, grads * mask)
