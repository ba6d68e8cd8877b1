"""Assignment: item assignment of every kind, and masked_fill, masked_scatter, masked_select as functions."""

from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.errors import MaskedWriteError
from masked_tensor.testing import GARBAGE, poison

from .helpers import database
from .laws import laws

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
DTYPES = [*FLOATS, *INTEGERS, torch.bool, torch.complex64, torch.complex128]


def example() -> MaskedTensor:
    return mt.masked_tensor(torch.arange(6.0).view(2, 3), torch.tensor([[True, False, True], [False, True, True]]))


INF, NAN = float("inf"), float("nan")


def with_masked(*values: float | None) -> MaskedTensor:
    """A masked tensor from numbers and None."""
    return mt.masked_tensor(torch.tensor([v or 0.0 for v in values]), torch.tensor([v is not None for v in values]))


# ----------------------------------------------------------------------------------------------- item assignment


def test_what_is_assigned_becomes_valid() -> None:
    x = example()
    x[0] = 9
    assert x.tolist() == [[9, 9, 9], [None, 4, 5]]
    x[:, 0] = torch.tensor([7.0, 8.0])
    assert x.tolist() == [[7, 9, 9], [8, 4, 5]]
    x[..., -1] = with_masked(None, 3)
    assert x.tolist() == [[7, 9, None], [8, 4, 3]]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (torch.tensor([1]), [[0, None, 2], [9, 9, 9]]),
        (torch.tensor([True, False]), [[9, 9, 9], [None, 4, 5]]),
        ((slice(None), torch.tensor([0, 2])), [[9, None, 9], [9, 4, 9]]),
        ((torch.tensor([0, 1]), torch.tensor([1, 0])), [[0, 9, 2], [9, 4, 5]]),
        ((None, 1, slice(1, None)), [[0, None, 2], [None, 9, 9]]),
        ((..., 1), [[0, 9, 2], [None, 9, 5]]),
        (([0, 1], slice(None, 1)), [[9, None, 2], [9, 4, 5]]),
        (slice(None, None, 2), [[9, 9, 9], [None, 4, 5]]),
    ],
)
def test_keys_of_every_kind(key, expected) -> None:
    x = example()
    x[key] = 9
    assert x.tolist() == expected
    y = example()
    y[key] = y[key] * 0 + 9  # a masked source keeps its masked entries
    want = [
        [9 if (e == 9 and v is not None) else v for e, v in zip(*r, strict=True)]
        for r in zip(expected, example().tolist(), strict=True)
    ]
    assert y.tolist() == want


def test_a_masked_index_writes_nothing() -> None:
    x = example()
    index = mt.as_masked_tensor(torch.tensor([10**9, 1]), torch.tensor([False, True]))
    x[index] = torch.tensor([[1.0, 1, 1], [8, 8, 8]])
    assert x.tolist() == [[0, None, 2], [8, 8, 8]]
    x[:, mt.as_masked_tensor(torch.tensor([-100, 2, -3]), torch.tensor([False, True, True]))] = 5.0
    assert x.tolist() == [[5, None, 5], [5, 8, 5]]
    with pytest.raises(IndexError):
        x[mt.as_masked_tensor(torch.tensor([2, 0]), torch.tensor([True, True]))] = 0.0
    with pytest.raises(mt.MaskedValueError, match="the value is masked"):
        x[mt.as_masked_tensor(torch.tensor(77), torch.tensor(False))] = 0.0
    x[0, mt.as_masked_tensor(torch.tensor(1), torch.tensor(True))] = 0.0
    assert x.tolist() == [[5, 0, 5], [5, 8, 5]]


def test_a_masked_entry_of_a_boolean_key_selects_nothing() -> None:
    x = example()
    x[mt.as_masked_tensor(torch.tensor([True, True]), torch.tensor([False, True]))] = 7.0
    assert x.tolist() == [[0, None, 2], [7, 7, 7]]
    x[x > 4] = 0.0  # the comparison is masked where x is
    assert x.tolist() == [[0, None, 2], [0, 0, 0]]


def test_in_place_arithmetic_takes_the_and() -> None:
    x = example()
    x += example().flip(1)
    assert x.tolist() == [[2, None, 2], [None, 8, None]]
    x[:, 1:] += 1
    assert x.tolist() == [[2, None, 3], [None, 9, None]]
    x.lerp_(torch.zeros(2, 3), 0.5)
    assert x.tolist() == [[1, None, 1.5], [None, 4.5, None]]


def test_out() -> None:
    out = mt.masked_tensor(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool))
    assert torch.add(example(), 1, out=out) is out
    assert out.tolist() == [[1, None, 3], [None, 5, 6]]
    torch.zeros(3)
    with pytest.raises(RuntimeError, match="a masked out= cannot be resized"):
        torch.add(example(), 1, out=out[0])


@pytest.mark.parametrize("args", [(torch.zeros(3), 2.0), (2.0, torch.ones(3)), (torch.zeros(3), torch.ones(3))])
def test_out_of_normal(args: tuple[Any, Any]) -> None:
    """Of one tensor and a number, torch itself does not resize ``out=``."""
    out = mt.masked_tensor([1.0, None, 3.0])
    torch.manual_seed(0)
    assert torch.normal(*args, out=out) is out
    torch.manual_seed(0)
    assert out.tolist() == torch.normal(*args).tolist()


def results(sample: database.Sample, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    found = sample.op(*sample.args, **sample.kwargs, **kwargs)
    return (found,) if isinstance(found, torch.Tensor) else tuple(found)


# Samples without a result, or of memory that nobody has written.
WITHOUT_OUT = {"empty", "empty_permuted", "empty_like", "normal.number_mean", "torch._scaled_mm_v2"}

# What makes a tensor from numbers has no masked form; what is made of other ops would write into a plain tensor.
REFUSES_OUT = {
    *(
        "arange",
        "linspace",
        "linspace.tensor_overload",
        "logspace",
        "logspace.tensor_overload",
        "randn",
        "ones",
        "zeros",
    ),
    *(
        "full",
        "eye",
        "sparse.sampled_addmm",
        "lu",
        "torch._scaled_mm",
        "nn.functional.logsigmoid",
        "msort",
        "hash_tensor",
    ),
    *("linalg.det", "linalg.cholesky", "linalg.eigvals", "linalg.eigvalsh", "linalg.ldl_factor", "linalg.slogdet"),
    *("linalg.lu_factor", "linalg.inv", "linalg.solve", "linalg.solve_ex", "linalg.svdvals"),
}


@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
@pytest.mark.parametrize(
    "name", [n for n, info in database.ENTRIES.items() if info.supports_out and n not in WITHOUT_OUT]
)
def test_out_of_plain_arguments(name: str) -> None:
    """Where nothing else is masked, ``out=`` gets torch's own result, valid everywhere."""
    for sample in database.samples(name, limit=1):
        try:
            expected = results(sample)
            targets = tuple(torch.empty_like(x) for x in expected)
            results(sample, out=targets[0] if len(targets) == 1 else targets)
        except (TypeError, RuntimeError):  # no overload with out= takes this sample
            continue
        outs = tuple(mt.as_masked_tensor(torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)) for x in expected)
        if name in REFUSES_OUT:
            with pytest.raises((MaskedWriteError, mt.UnsupportedOpError)):
                results(sample, out=outs[0] if len(outs) == 1 else outs)
            continue
        found = results(sample, out=outs[0] if len(outs) == 1 else outs)
        for out, x, same in zip(outs, expected, found, strict=True):
            assert same is out
            assert out.get_mask().all()
            torch.testing.assert_close(out.filled(), x.detach(), equal_nan=True)


def test_fill_diagonal_and_scatter() -> None:
    x = mt.masked_tensor(torch.zeros(3, 3), torch.zeros(3, 3, dtype=torch.bool))
    x.fill_diagonal_(2)
    assert x.tolist() == [[2, None, None], [None, 2, None], [None, None, 2]]
    index = mt.as_masked_tensor(torch.tensor([[2, -7, 1]]), torch.tensor([[True, False, True]]))
    x.scatter_(0, index, mt.masked_tensor([[5.0, 6.0, 7.0]], [[True, True, False]]))
    assert x.tolist() == [[2, None, None], [None, 2, None], [5, None, 2]]
    x.scatter_add_(0, index, torch.tensor([[1.0, 1, 1]]))
    assert x.tolist() == [[2, None, None], [None, 2, 1], [6, None, 2]]


# --------------------------------------------------------------------------------------------------- masked_fill


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [3, 3000])
def test_masked_fill_dtypes_and_broadcasting(dtype, size) -> None:
    x = torch.ones(4, size).to(dtype)
    value = True if dtype is torch.bool else 1.5 if dtype.is_floating_point else 3 + 1j if dtype.is_complex else 3
    for shape in [(4, size), (size,), (4, 1), (1, 1), ()]:
        mask = torch.rand(shape) < 0.5
        for v in (value, torch.tensor(value, dtype=dtype)):
            expected = torch.where(mask, torch.tensor(value, dtype=dtype), x)
            kept = x.clone()
            result = mt.masked_fill(x, mask, v)
            assert result.dtype == dtype
            assert torch.equal(result, expected)
            assert torch.equal(x, kept)
            assert mt.masked_fill_(kept, mask, v) is kept
            assert torch.equal(kept, expected)
    wide = mt.masked_fill(x[0], torch.ones(5, size, dtype=torch.bool), value)
    assert wide.shape == (5, size)


@pytest.mark.parametrize("size", [3, 3000])
@pytest.mark.parametrize("value", [1e10, INF, -INF, NAN, -0.0, True, 7, 2**40], ids=str)
def test_masked_fill_takes_the_numbers_that_torch_takes(value, size) -> None:
    where = torch.rand(4, size) < 0.5
    for dtype in FLOATS:
        x, masked = torch.ones(4, size, dtype=dtype), mt.masked_tensor(torch.ones(4, size, dtype=dtype), ~where)
        if dtype is torch.float16 and 1e5 < value < INF:
            for call in (x.masked_fill, masked.masked_fill, lambda *a, x=x: mt.masked_fill(x, *a)):
                with pytest.raises(RuntimeError, match="without overflow"):
                    call(where, value)
            continue
        expected = x.masked_fill(where, value)
        for result in (mt.masked_fill(x, where, value), masked.masked_fill(where, value).get_data()):
            assert torch.equal(result.view(torch.uint8), expected.view(torch.uint8)), "to the bit"


@pytest.mark.parametrize("size", [3, 3000])
def test_masked_fill_gradients(size) -> None:
    x = torch.randn(4, size, dtype=torch.float64, requires_grad=True)
    mask, value = torch.rand(size) < 0.5, torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(4, size, dtype=torch.float64)
    (mt.masked_fill(x, mask, value) * weights).sum().backward()
    assert torch.equal(x.grad, weights * ~mask)
    torch.testing.assert_close(value.grad, (weights * mask).sum())
    x.grad = None
    (mt.masked_fill(x, mask, 2.0) * weights).sum().backward()
    assert torch.equal(x.grad, weights * ~mask)
    y = x * 1
    (mt.masked_fill_(y, mask, value) * weights).sum().backward()
    torch.testing.assert_close(x.grad, 2 * weights * ~mask)


def test_masked_fill_never_makes_padding_data() -> None:
    x, where = example(), torch.tensor([True, True, False])
    assert mt.masked_fill(x, where, 7.0).tolist() == [[7, None, 2], [None, 7, 5]]
    assert x.masked_fill_(where, float("-inf")).softmax(1).tolist() == [[0, None, 1], [None, 0, 1]]
    masked_where = mt.as_masked_tensor(where, torch.tensor([True, False, True]))
    assert mt.masked_fill(example(), masked_where, 7.0).tolist() == [[7, None, 2], [None, None, 5]]
    assert mt.masked_fill(torch.zeros(3), masked_where, 7.0).tolist() == [7, None, 0]


def test_masked_fill_value_gradient_counts_valid_positions() -> None:
    x = example().requires_grad_()
    value = torch.tensor(2.0, requires_grad=True)
    mt.masked_fill(x, torch.tensor([True, True, False]), value).sum().backward()
    assert value.grad == 2
    assert x.grad.tolist() == [[0, None, 1], [None, 0, 1]]


# ------------------------------------------------------------------------------------------------ masked_scatter


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masked_scatter_dtypes_and_broadcasting(dtype) -> None:
    x = torch.zeros(4, 3).to(dtype)
    source = torch.arange(1, 21).to(dtype)
    other = torch.int32 if dtype is torch.int64 else torch.int64
    with pytest.raises(RuntimeError, match="same dtype"):
        mt.masked_scatter(x, torch.tensor(True), torch.ones(20, dtype=other))
    for shape in [(4, 3), (3,), (4, 1), ()]:
        mask = torch.rand(shape) < 0.5
        expected = x.clone()
        expected[mask.expand(4, 3)] = source[: int(mask.expand(4, 3).sum())]
        kept = x.clone()
        assert torch.equal(mt.masked_scatter(x, mask, source), expected)
        assert torch.equal(torch.masked_scatter(x, mask, source), expected)
        assert mt.masked_scatter(x, mask, source).dtype == dtype
        assert torch.equal(x, kept)
        assert mt.masked_scatter_(kept, mask, source) is kept
        assert torch.equal(kept, expected)


def test_masked_scatter_gradients() -> None:
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    source = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, False, True])
    assert torch.autograd.gradcheck(lambda a, b: mt.masked_scatter(a, mask, b), (x, source))
    assert torch.autograd.gradcheck(lambda a, b: mt.masked_scatter_(a * 1, mask, b), (x, source))
    m = mt.masked_tensor(x.detach(), example().get_mask(), requires_grad=True)
    s = mt.masked_tensor(source.detach(), torch.tensor([[True, False, True], [True, True, True]]), requires_grad=True)
    result = mt.masked_scatter(m, mask, s)
    assert result.get_mask().tolist() == [[True, False, False], [True, True, True]]
    result.sum().backward()
    assert m.grad.tolist() == [[0, None, 0], [None, 1, 0]]
    assert s.grad.tolist() == [[1, None, 1], [1, 0, 0]]


def test_masked_select() -> None:
    x, where = example(), torch.tensor([True, True, False])
    assert mt.masked_select(x, where).tolist() == [0, None, None, 4]
    assert mt.masked_select(torch.arange(3), where).tolist() == [0, 1]
    assert mt.masked_select(
        torch.arange(3), mt.as_masked_tensor(where, torch.tensor([True, False, True]))
    ).tolist() == [0]


# -------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("masked", [False, True])
def test_errors_name_the_mistake_and_change_nothing(masked) -> None:
    x = example() if masked else torch.arange(6.0).view(2, 3)
    before, good = x.clone(), torch.tensor([True, False, True])
    for name in ("masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_"):
        function = getattr(mt, name)
        other = torch.zeros(6) if "scatter" in name else 0.0
        with pytest.raises(TypeError, match=r"^input must be a tensor, got list$"):
            function([1.0], good, other)
        with pytest.raises(TypeError, match=r"^mask must be a bool tensor, got list$"):
            function(x, [True], other)
        with pytest.raises(TypeError, match=r"^mask must be a bool tensor, got float32; use mask.bool\(\)$"):
            function(x, torch.ones(3), other)
        with pytest.raises(RuntimeError, match=r"size|broadcast|expand"):
            function(x, torch.ones(5, dtype=torch.bool), other)
    with pytest.raises(TypeError, match=r"^value must be a number or a 0-d tensor, got str$"):
        mt.masked_fill(x, good, "1")
    with pytest.raises(RuntimeError, match="only supports a 0-dimensional value tensor"):
        mt.masked_fill(x, good, torch.zeros(2))
    with pytest.raises(TypeError, match=r"^source must be a tensor, got float$"):
        mt.masked_scatter(x, good, 1.0)
    for function in (mt.masked_scatter, mt.masked_scatter_):
        with pytest.raises(RuntimeError) as error:
            function(x, good, torch.zeros(3))
        assert_expected_inline(
            str(error.value), "masked_scatter: the mask has 4 True positions, but source has only 3 elements"
        )
    if masked:
        with pytest.raises(RuntimeError, match="4 True positions, but source has only 3"):
            x.masked_scatter_(good, torch.zeros(3))
    assert x.tolist() == before.tolist()


def test_plain_targets_of_the_in_place_functions() -> None:
    plain, where = (
        torch.zeros(3),
        mt.as_masked_tensor(torch.ones(3, dtype=torch.bool), torch.tensor([True, False, True])),
    )
    with pytest.raises(MaskedWriteError):
        mt.masked_fill_(plain, where, 1.0)
    with pytest.raises(MaskedWriteError):
        mt.masked_scatter_(plain, torch.ones(3, dtype=torch.bool), with_masked(1, None, 2))
    assert plain.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "write",
    [
        lambda z, i, y: z.index_add(0, i, y),
        lambda z, i, y: z.index_copy(0, i, y),
        lambda z, i, y: z.index_put((i,), y),
        lambda z, i, y: z.index_put((i,), y, accumulate=True),
        lambda z, i, y: z.scatter(0, i[:, None].expand(3, 2), y),
        lambda z, i, y: z.scatter_add(0, i[:, None].expand(3, 2), y),
    ],
)
def test_a_masked_entry_that_shares_its_slot_gets_no_gradient(write) -> None:
    # The masked row is written to the slot of a valid one; what reaches the bias is the number of valid rows.
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    mask = torch.tensor([[True], [False], [True]])
    y = net(mt.masked_tensor(torch.randn(3, 4), mask.expand(3, 4)))
    out = write(torch.zeros(2, 2), torch.tensor([0, 1, 1]), y)
    out.sum().backward()
    assert net.bias.grad.tolist() == [2.0, 2.0]


# ------------------------------------------------------------------------------- a valid 0-d tensor is a number


def test_a_plain_tensor_takes_a_valid_number() -> None:
    losses, loss = torch.zeros(3), mt.masked_tensor([1.0, 2.0, None]).mean()
    losses[0] = loss
    losses[1:] += loss
    losses.mul_(loss)
    assert type(losses) is torch.Tensor
    assert losses.tolist() == [2.25, 2.25, 2.25]
    assert torch.tensor([loss, 2 * loss]).tolist() == [1.5, 3.0]
    unknown = mt.masked_tensor([None, None]).mean()
    for write in (
        lambda: losses.__setitem__(0, unknown),
        lambda: losses.add_(unknown),
        lambda: torch.tensor([unknown]),
    ):
        with pytest.raises(mt.MaskedValueError, match="the value is masked"):
            write()
    with pytest.raises(mt.MaskedWriteError):
        losses[:] = mt.masked_tensor([1.0, 2.0, 3.0])
    with pytest.raises(mt.MaskedWriteError):
        losses[mt.masked_tensor([0, 1])] = 1.0
    assert losses.tolist() == [2.25, 2.25, 2.25]
    with pytest.raises(mt.MaskedWriteError):
        torch.vmap(lambda value: torch.zeros(2).add_(value))(mt.masked_tensor([1.0, None]))


def test_gradients_flow_from_a_plain_tensor_back_into_a_number() -> None:
    weight, x = torch.ones(3, requires_grad=True), mt.masked_tensor([4.0, None], requires_grad=True)
    y = weight * 1
    y.mul_(x.mean())
    y[0] = x.sum()
    y.sum().backward()
    assert weight.grad.tolist() == [0, 4, 4]
    assert x.grad.tolist() == [3, None]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
@pytest.mark.parametrize("value", [0.0, torch.tensor(5.0), torch.tensor([5.0, 6.0]), "a valid number"])
def test_a_plain_tensor_is_written_at_a_masked_condition(dtype: torch.dtype, value) -> None:
    """What is masked selects nothing, so that the result needs no mask."""
    key = mt.as_masked_tensor(torch.tensor([1, 1, 0, 1]).to(dtype), torch.tensor([True, False, True, True]))
    weight, value = torch.ones(4, requires_grad=True), mt.masked_tensor(5.0) if isinstance(value, str) else value
    target, expected = weight * 2, torch.full((4,), 2.0)
    target.index_put_((key,), torch.as_tensor(value) if isinstance(value, float) else value)
    expected[[0, 3]] = value.filled(0) if type(value) is MaskedTensor else torch.as_tensor(value)
    assert torch.equal(target, expected)
    target.sum().backward()
    assert weight.grad.tolist() == [0, 2, 2, 0]
    with mt.strict(), pytest.raises(MaskedWriteError):
        torch.ones(4).index_put_((key,), torch.tensor(1.0))
    with pytest.raises(MaskedWriteError):
        torch.ones(4).index_put_((key,), with_masked(5.0, None))


def test_log_prob_of_a_distribution_that_writes_at_a_condition() -> None:
    value = torch.tensor([0.0, 0.0, 3.0])
    for given in ({"probs": torch.tensor([0.3, 1.0, 0.5])}, {"logits": torch.tensor([0.3, 1.0, 0.5])}):
        geometric = torch.distributions.Geometric(**given)
        ours, plain = geometric.log_prob(mt.masked_tensor(value, [True, True, False])), geometric.log_prob(value)
        torch.testing.assert_close(ours, mt.masked_tensor(plain, [True, True, False]))


@pytest.mark.parametrize("value", [3, 0.1, True, 2**40 + 1, -INF, 1 + 2j])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.bool, torch.complex64])
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_a_number_is_copied(value: complex, dtype: torch.dtype) -> None:
    if value == -INF and not dtype.is_floating_point and not dtype.is_complex:
        pytest.skip("what becomes of an infinity in an integer is not defined")
    ours, plain = example().to(dtype).copy_(value), torch.zeros(2, 3, dtype=dtype).copy_(value)
    assert ours.get_mask().all()
    assert torch.equal(ours.get_data(), plain)


EXPANDED = {
    "columns": lambda x: x[:, :1].expand(2, 3),
    "rows": lambda x: x[:1].expand(2, 3),
    "all": lambda x: x[0, 0].expand(2, 3),
    "a part": lambda x: x[:, :1].expand(2, 3)[:, 1:],
    "turned": lambda x: x[:, :1].expand(2, 3).t(),
}


@pytest.mark.parametrize("view", EXPANDED)
@pytest.mark.parametrize("write", ["fill_", "zero_", "fill_ masked", "fill_ tracked", "a number"])
def test_expanded_memory_is_filled(view: str, write: str) -> None:
    x, value = example(), torch.tensor(7.0, requires_grad=True)
    reference, mask = x.filled(0), x.get_mask()
    seen = EXPANDED[view](x)
    filled = {"zero_": 0.0}.get(write, 7.0)
    if write == "zero_":
        assert seen.zero_() is seen
    elif write == "a number":
        with torch.inference_mode():
            seen[...] = 7
    else:
        seen.fill_({"fill_ masked": with_masked(None)[0], "fill_ tracked": value}.get(write, 7.0))
    EXPANDED[view](reference).fill_(filled)
    if write in ("fill_ masked", "a number"):
        EXPANDED[view](mask).fill_(write == "a number")
    assert torch.equal(x.get_mask(), mask)
    assert torch.equal(x.filled(-1), torch.where(mask, reference, -1))
    assert torch.equal(seen.get_mask(), EXPANDED[view](mask))
    if write == "fill_ tracked":
        (grad,) = torch.autograd.grad(x.sum(), value)
        assert grad == (mask & (reference == 7)).sum()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        seen.detach().mul_(2)  # as in torch


@pytest.mark.parametrize("mask", [torch.eye(3, 4, dtype=torch.bool), torch.ones(3, 1, dtype=torch.bool)])
def test_expanded_memory_of_somebody_else_is_filled(mask: torch.Tensor) -> None:
    plain = torch.zeros(3, 1)
    x = mt.as_masked_tensor(plain.expand(3, 4), mask)
    x.fill_(3.0)
    kept = [[3.0 if valid else None for valid in row] for row in mask.expand(3, 4).tolist()]
    assert x.tolist() == kept
    assert plain.tolist() == [[3.0]] * 3
    with torch.inference_mode():  # as torch itself assigns
        x[...] = 4.0
    assert x.tolist() == [[4.0] * 4] * 3
    x = mt.as_masked_tensor(plain.expand(3, 4), mask)
    x.fill_(mt.masked_tensor(5.0, False))
    assert not x.get_mask().any()
    y = mt.as_masked_tensor(torch.zeros(3, 1, requires_grad=True).expand(3, 4), mask)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        y.fill_(3.0)
    assert torch.equal(y.get_mask(), mask.expand(3, 4))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ["masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_"])
def test_they_are_methods_too_and_compile(name, masked) -> None:
    torch._dynamo.reset()
    where, other = torch.tensor([True, False, True]), torch.full((6,), 8.0) if "scatter" in name else 8.0
    x = example() if masked else torch.arange(6.0).view(2, 3)
    expected = getattr(x.clone(), name)(where, other).tolist()
    assert getattr(mt, name)(x.clone(), where, other).tolist() == expected
    compiled = torch.compile(lambda x: getattr(mt, name)(x * 1, where, other) * 1, fullgraph=True, backend="aot_eager")
    assert compiled(x).tolist() == expected


test_law = laws("assign")


# ------------------------------------------------------------------------------------ numbers that are masked out


WRITES = {
    "setitem": lambda x, key, value: x.__setitem__(key, value),
    "index_put_": lambda x, key, value: x.index_put_((key,), value.to(x.dtype)),
    "masked_fill": lambda x, key, value: x.masked_fill(key, value),
    "masked_fill_": lambda x, key, value: x.masked_fill_(key, value),
    "index_fill": lambda x, key, value: x.index_fill(0, torch.tensor([0, -1]), value),
    "index_fill_": lambda x, key, value: x.index_fill_(0, torch.tensor([0, -1]), value),
    "index_fill of a masked index": lambda x, key, value: x.index_fill(0, with_masked(0, None).long(), value),
    "fill_": lambda x, key, value: x.fill_(value),
    "copy_": lambda x, key, value: x.copy_(value),
}


@pytest.mark.parametrize("plain", [False, True], ids=["masked", "plain"])
@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_garbage_of_a_masked_number_need_not_fit_the_dtype(call: Any, plain: bool) -> None:
    """A masked-out 0-d value of any dtype does what it does with 0 under the mask: torch converts it as a number."""

    def outcome(dtype: torch.dtype, other: torch.dtype, garbage: float) -> Any:
        x: Any = torch.arange(4).to(dtype)
        x = x if plain else mt.masked_tensor(x, torch.tensor([True, False, True, True]))
        key = torch.tensor([True, False, False, True])
        value = poison(mt.masked_tensor(torch.zeros((), dtype=other), torch.tensor(False)), garbage)
        try:
            result = call(x, key, value)
        except (MaskedWriteError, mt.MaskedValueError) as error:
            return type(error)
        result = x if result is None else result
        return result.tolist() if plain else (result.tolist(), result.get_mask().tolist())

    for dtype in DTYPES[:-2]:
        for other in (torch.float64, torch.float32, torch.int64):
            for garbage in GARBAGE:
                assert outcome(dtype, other, garbage) == outcome(dtype, other, 0)
