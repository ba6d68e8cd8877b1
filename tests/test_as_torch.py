"""With nothing masked every op is torch's own, in every dtype: the dtype, the shape, and what half precision can hold.

Of each entry of torch's operator database the first samples are called on plain tensors and on masked ones whose mask
is True everywhere, and not constant in memory, so that the general path of each rule runs.
"""

import itertools
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor.errors import MaskedValueError, UnsupportedOpError

from .helpers import database, harness
from .helpers.database import Sample
from .helpers.trees import tree_leaves, tree_map
from .oracles import FAMILY
from .sweep import REASONS, SKIPPED

SAMPLES = int(os.environ.get("MASKED_TENSOR_AS_TORCH", "1"))  # per entry and dtype
PARTS = 12
NAMES = sorted(name for name in database.ENTRIES if name not in SKIPPED and name not in REASONS)
HALVES = (torch.float16, torch.bfloat16)
#: The families that add up or take norms.
ADDING = {
    *("reduction", "moment", "norm", "normalize", "average", "similarity", "distance", "softmax", "scan", "covariance"),
    *("loss", "losses", "margin", "cross_entropy", "batch_norm", "linalg", "matmul", "segment", "scatter", "pool"),
}
ADDED = [name for name in NAMES if FAMILY.get(name) in ADDING]
#: What is known not to be as torch's; each must still fail.
KNOWN: dict[str, str] = {}
pytestmark = pytest.mark.filterwarnings("ignore")  # those of the samples


def first_samples(name: str, dtype: torch.dtype, limit: int) -> Iterator[Sample]:
    info = database.ENTRIES[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=False), limit):
            yield Sample(info.op, (sample.input, *sample.args), dict(sample.kwargs))


def unexpected(wrong: list[str], names: list[str], law: str) -> list[str]:
    """What is wrong and not known to be; and what is known to be, in this law and of these entries, and is not."""
    known = [
        k for k in KNOWN if ("size" in k) == (law == "size") and any(k.split(",")[0].split(" ")[0] == n for n in names)
    ]
    fine = [f"{k} is as torch's now" for k in known if not any(w.startswith(k) for w in wrong)]
    return [w for w in wrong if not any(w.startswith(k) for k in known)] + fine


def masked(value: Any) -> Any:
    """The tensor with a mask that is True everywhere."""
    if not isinstance(value, Tensor) or value.layout is not torch.strided or value.is_quantized:
        return value
    return mt.as_masked_tensor(value.detach().clone(), torch.ones(value.shape, dtype=torch.bool))


def called(sample: Sample, change: Callable[[Any], Any]) -> list[Any] | None:
    """The leaves of the result; None where it raises what any call may raise."""
    args, kwargs = tree_map(change, (sample.args, sample.kwargs))
    torch.manual_seed(1)
    return tree_leaves(sample.op(*args, **kwargs))


def copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def plainly(sample: Sample) -> list[Any] | None:
    """What torch gives, or None where it raises."""
    try:
        return called(sample, copied)
    except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
        return None


def compared(sample: Sample) -> Iterator[tuple[Tensor, Tensor]]:
    """Each tensor of the result: the data of the masked one, and torch's."""
    expected = plainly(sample)
    if expected is None:
        return
    try:
        actual = called(sample, masked)
    except (MaskedValueError, UnsupportedOpError):
        return
    for a, e in zip(actual, expected, strict=True):
        if isinstance(e, Tensor) and e.layout is torch.strided:
            yield harness.seen(a).data, e


@pytest.mark.parametrize("part", range(PARTS))
def test_dtype_and_shape_are_torchs(part: int, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    wrong = []
    for name in NAMES[part::PARTS]:
        for dtype in sorted(database.ENTRIES[name].supported_dtypes("cpu"), key=str):
            for sample in first_samples(name, dtype, SAMPLES):
                try:
                    for a, e in compared(sample):
                        counts["results"] += 1
                        if (a.dtype, a.shape) != (e.dtype, e.shape):
                            wrong.append(
                                f"{name} of {dtype}: {a.dtype} {tuple(a.shape)}, not {e.dtype} {tuple(e.shape)}"
                            )
                except Exception as error:
                    wrong.append(f"{name} of {dtype}: {error!r}"[:200])
    wrong = unexpected(wrong, NAMES[part::PARTS], "dtype")
    assert not wrong, "\n".join(wrong)
    record_property("as torch", dict(counts))


def enlarged(sample: Sample, factor: float, every: bool) -> Sample:
    """The first tensor, or every one, ``factor`` times as large: of half precision its squares overflow."""
    state = {"left": 10**6 if every else 1}

    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point() or not state["left"]:
            return value
        state["left"] -= 1
        return value.detach() * factor

    args, kwargs = tree_map(change, (sample.args, sample.kwargs))
    return Sample(sample.op, args, kwargs)


def repeated(sample: Sample) -> Sample:
    """The first tensor 500 times over along a new first dimension, of which the sum passes the range of half."""
    value = sample.args[0]
    return Sample(sample.op, (value.detach().abs().expand(500, *value.shape) * 100, *sample.args[1:]), sample.kwargs)


def large_samples(name: str, dtype: torch.dtype) -> Iterator[Sample]:
    for sample in first_samples(name, dtype, 1 + SAMPLES):
        yield from (enlarged(sample, *how) for how in ((60.0, True), (1000.0, False), (1000.0, True)))
        if isinstance(sample.args[0], Tensor) and sample.args[0].numel() <= 20:
            yield repeated(sample)


def overflows(actual: Tensor, expected: Tensor) -> str:
    """Where torch's own result is finite, but this one is not, or is another."""
    if not expected.is_floating_point() or not expected.numel():
        return ""
    known = expected.isfinite()
    if not bool(actual.isfinite()[known].all()):
        return f"{actual.dtype}: not finite, where torch gives {expected[known & ~actual.isfinite()][:3].tolist()}"
    a, e = actual.double()[known], expected.double()[known]
    eps = torch.finfo(expected.dtype).eps if expected.dtype in HALVES else torch.finfo(torch.bfloat16).eps
    if e.numel() and bool(((a - e).abs() > 16 * eps * e.abs().max()).any()):
        return f"{actual.dtype}: {a[:4].tolist()}, where torch gives {e[:4].tolist()}"
    return ""


@pytest.mark.parametrize("part", range(PARTS // 2))
def test_half_precision_holds_what_torch_holds(part: int, record_property: Callable[[str, object], None]) -> None:
    """Values whose squares overflow, and whose sum does, where torch's own result is finite."""
    counts: Counter[str] = Counter()
    wrong = []
    for name in ADDED[part :: PARTS // 2]:
        for dtype in HALVES:
            if dtype not in database.ENTRIES[name].supported_dtypes("cpu"):
                continue
            for sample in large_samples(name, dtype):
                try:
                    for a, e in compared(sample):
                        counts["results"] += 1
                        said = overflows(a, e)
                        if said:
                            wrong.append(f"{name} of {dtype}: {said}")
                except Exception as error:
                    wrong.append(f"{name} of {dtype}: {error!r}"[:200])
    assert not wrong, "\n".join(sorted(set(wrong)))
    record_property("half precision", dict(counts))


def emptied(sample: Sample, size: int) -> Sample:
    """Every dimension of that size has none."""

    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.layout is not torch.strided:
            return value
        return value.detach()[tuple(slice(0, 0) if n == size else slice(None) for n in value.shape)]

    args, kwargs = tree_map(change, (sample.args, sample.kwargs))
    return Sample(sample.op, args, kwargs)


def only(place: int) -> Callable[[Any], Any]:
    """Makes the tensor at that place masked, and no other."""
    state = {"at": -1}

    def change(value: Any) -> Any:
        state["at"] += isinstance(value, Tensor)
        return masked(value) if isinstance(value, Tensor) and state["at"] == place else copied(value)

    return change


#: What torch itself ends the process with, of tensors of size 0.
ENDS = {"torch.ops.aten._scaled_dot_product_flash_attention_for_cpu"} if torch.__version__ >= "2.14" else set()


@pytest.mark.parametrize("part", range(PARTS // 2))
def test_nothing_is_done_with_nothing(part: int, record_property: Callable[[str, object], None]) -> None:
    """Of tensors of size 0, each argument masked alone and all together, the shape and the dtype are torch's."""
    counts: Counter[str] = Counter()
    wrong = []
    for name in NAMES[part :: PARTS // 2]:
        dtype = database.dtypes(name)
        for sample in first_samples(name, dtype[0], 1 + SAMPLES) if dtype and name not in ENDS else ():
            tensors = [x for x in tree_leaves((sample.args, sample.kwargs)) if isinstance(x, Tensor)]
            for size in sorted({n for x in tensors for n in x.shape}):
                case = emptied(sample, size)
                expected = plainly(case)
                if expected is None:
                    continue
                for place in (None, *range(len(tensors))):
                    try:
                        actual = called(case, masked if place is None else only(place))
                    except (MaskedValueError, UnsupportedOpError):
                        continue
                    except Exception as error:
                        wrong.append(f"{name}, size {size}, argument {place}: {error!r}"[:200])
                        continue
                    counts["results"] += 1
                    for a, e in zip(actual, expected, strict=True):
                        if isinstance(e, Tensor) and (a.dtype, a.shape) != (e.dtype, e.shape):
                            wrong.append(f"{name}, size {size}, argument {place}: {a.shape}, not {e.shape}")
    wrong = unexpected(wrong, NAMES[part :: PARTS // 2], "size")
    assert not wrong, "\n".join(wrong)
    record_property("nothing", dict(counts))


REFILLS: dict[str, tuple[Any, ...]] = {
    "normal_": (), "uniform_": (), "exponential_": (), "cauchy_": (), "log_normal_": (), "bernoulli_": (),
    "geometric_": (0.5,), "random_": (),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", [*REFILLS, "bernoulli_ by a tensor"])
def test_a_refill_has_the_gradient_0(name: str, packed: bool) -> None:
    """And none to a tensor that nothing else depends on, as torch: the new numbers do not depend on the old ones."""
    valid = torch.tensor([[True, True, False], [True, False, False]])[..., None]
    leaf = mt.as_masked_tensor(torch.ones(2, 3, 1).masked_fill(~valid, float("nan")), valid).requires_grad_()
    x = (leaf.packed() if packed else leaf) * 2
    rest = (torch.full((2, 3, 1), 0.5),) if "tensor" in name else REFILLS[name]
    getattr(x, name.split()[0])(*rest)
    assert x.requires_grad
    (x * 3).sum().backward()
    assert leaf.grad is not None
    assert not leaf.grad.filled(0).any()
    assert torch.equal(x.get_mask(), valid)


FORMS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name) for name in ("sum", "mean", "nansum", "nanmean", "amax", "amin", "std", "var")},
    **{name: getattr(torch, name) for name in ("var_mean", "std_mean", "cumsum", "prod")},
    "norm": lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
    "logsumexp": torch.logsumexp,
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "normalize": lambda x, dim: torch.nn.functional.normalize(x, dim=dim),
    "average": lambda x, dim: x.mean(dim),
}
LARGE = {
    "squares": torch.tensor([[2000.0, -2000.0, 0.0, 1.0], [300.0, 299.0, 3.0, -300.0]]),
    "sums": torch.full((2, 500), 1000.0),
    "cubes": torch.tensor([[60.0, 61.0, 59.0], [-60.0, 50.0, 0.0]]),
}


@pytest.mark.parametrize("layout", ["strided", "coo", "csr"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", FORMS)
def test_functional_forms_hold_what_torch_holds(name: str, dtype: torch.dtype, layout: str) -> None:
    """Plain tensors of every layout with a mask, against torch on what is valid."""
    if layout != "strided" and name in ("average", "cumsum", "prod"):
        pytest.skip("checked strided: a zero that is not stored takes part, or none may be")
    make = {"strided": Tensor.clone, "coo": Tensor.to_sparse_coo, "csr": Tensor.to_sparse_csr}[layout]
    for what, data in LARGE.items():
        padded = torch.nn.functional.pad(data, (0, 2), value=6e4).to(dtype)
        mask = torch.nn.functional.pad(torch.ones(data.shape, dtype=torch.bool), (0, 2))
        expected = tree_leaves(FORMS[name](data.to(dtype), dim=1))
        actual = tree_leaves(getattr(mt, name)(make(padded), dim=1, mask=mask))
        for a, e in zip(actual, expected, strict=True):
            a = a if a.layout is torch.strided else a.to_dense()
            a = a.narrow(1, 0, e.shape[1]) if e.dim() == 2 else a
            assert a.dtype == e.dtype, what
            stored = data.to(dtype) != 0 if layout != "strided" and e.dim() == 2 else torch.ones((), dtype=torch.bool)
            assert not overflows(torch.where(stored, a, 0), torch.where(stored, e, 0)), f"{what}: {a}, not {e}"


def test_bytes_are_interpolated_around_masked_entries() -> None:
    """As float32, rounded; where no neighbour is masked as torch's own kernel rounds."""
    image = torch.randint(0, 256, (1, 2, 6, 6), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    mask = torch.rand(image.shape, generator=torch.Generator().manual_seed(1)) < 0.7
    for mode in ("bilinear", "bicubic"):
        whole, part = (
            torch.nn.functional.interpolate(mt.as_masked_tensor(image.to(dtype), mask), size=(9, 4), mode=mode)
            for dtype in (torch.float32, torch.uint8)
        )
        assert part.dtype is torch.uint8
        assert torch.equal(part.get_mask(), whole.get_mask())
        assert (part.filled(0).float() - whole.filled(0).clamp(0, 255)).abs().max() <= 1


@pytest.mark.parametrize("invert", [False, True])
def test_a_promise_about_elements_is_about_valid_ones(invert: bool) -> None:
    """``assume_unique``: under the mask may lie what is valid elsewhere."""
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        x, test = torch.randperm(12, generator=generator), torch.randperm(40, generator=generator)[:20]
        x_mask, test_mask = (torch.rand(n, generator=generator) < 0.6 for n in (12, 20))
        expected = torch.isin(x, test[test_mask], invert=invert)
        payload = x[torch.randint(0, 12, (12,), generator=generator)]
        under = test[torch.randint(0, 20, (20,), generator=generator)]
        given = mt.as_masked_tensor(torch.where(x_mask, x, payload), x_mask)
        asked = mt.as_masked_tensor(torch.where(test_mask, test, under), test_mask)
        found = torch.isin(given, asked, assume_unique=True, invert=invert)
        assert torch.equal(found.get_mask(), x_mask)
        assert torch.equal(found.filled(False), expected & x_mask)


def test_a_masked_sample_masks_its_channel() -> None:
    image = torch.rand(2, 3, 6, 6)
    samples = torch.rand(2, 3, 2).masked_fill(torch.tensor([False, True]).expand(2, 3, 2), 0.25)
    known = torch.tensor([[True, False, True], [True, True, False]])
    pool = torch.nn.functional.fractional_max_pool2d
    given = mt.as_masked_tensor(samples.masked_fill(~known[..., None], float("nan")), known[..., None].expand(2, 3, 2))
    found = pool(image, 2, output_size=3, _random_samples=given)
    expected = pool(image, 2, output_size=3, _random_samples=samples)
    assert torch.equal(found.get_mask(), known[..., None, None].expand(2, 3, 3, 3))
    assert torch.equal(found.filled(0), expected * known[..., None, None])


def test_a_convolution_without_input_channels() -> None:
    every: Callable[[Tensor], Any] = masked
    for size in ((1, 0, 5), (0, 5)):
        x, weight, bias = torch.zeros(size), torch.zeros(2, 0, 3), torch.ones(2)
        expected = torch.nn.functional.conv1d(x, weight, bias)
        for given in ((every(x), weight, bias), (x, every(weight), bias), (x, weight, every(bias))):
            assert torch.nn.functional.conv1d(*given).shape == expected.shape


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("weight", FLOATS)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.complex64])
def test_weights_of_a_covariance_promote(dtype: torch.dtype, weight: torch.dtype) -> None:
    x, w, n = torch.arange(6).reshape(2, 3).to(dtype), torch.ones(3, dtype=weight), torch.ones(3, dtype=torch.long)
    every: Callable[[Tensor], Any] = masked
    for counts in (None, n):
        expected = torch.cov(x, aweights=w, fweights=counts)
        for data, rates in ((every(x), w), (x, every(w)), (every(x), every(w))):
            found = torch.cov(data, aweights=rates, fweights=counts)
            assert found.dtype == expected.dtype
            assert torch.allclose(found.filled(0), expected, rtol=1e-2)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
def test_what_torch_gives_back_as_it_is_is_the_tensor_itself(dtype: torch.dtype, tracked: bool) -> None:
    for shape in ((3,), (2, 3)):
        plain = torch.ones(shape, dtype=dtype)
        x: Any = masked(plain)
        x.requires_grad_(tracked)
        same: list[Callable[[Any], Any]] = [Tensor.positive, Tensor.conj_physical, Tensor.resolve_conj]
        same += [lambda t: t.flatten(t.dim() - 1, -1), lambda t: t.flatten(), lambda t: t.contiguous()]
        for op in same:
            assert (op(x) is x) == (op(plain) is plain)


def refusal(call: Callable[..., Any], *args: Any) -> str:
    """What an error says; nothing where there is none."""
    try:
        call(*args)
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def test_an_inplace_op_refuses_the_dtypes_that_torch_refuses() -> None:
    """Every op of one tensor, and of one with a number, on every dtype that the op itself takes."""
    wrong, checked = [], 0
    for name in sorted(n for n in database.ENTRIES if hasattr(Tensor, n) and hasattr(Tensor, f"{n}_")):
        for dtype, rest in itertools.product((torch.int64, *FLOATS, torch.complex64), ((), (2,))):
            x, every = torch.ones(2, 2, dtype=dtype), masked
            if refusal(getattr(every(x), name), *rest):
                continue  # the op takes no such argument
            said = refusal(getattr(x.clone(), f"{name}_"), *rest)
            if not said or "not implemented for" in said:  # a kernel that is missing
                continue
            checked += 1
            if not refusal(getattr(every(x), f"{name}_"), *rest):
                wrong.append(f"{name}_ of {dtype}, {rest}: {said}")
    assert not wrong, "\n".join(wrong)
    assert checked > 20


@pytest.mark.parametrize("mask", ["constant", "dense"])
def test_statistics_of_a_layer_have_no_gradient_where_torchs_have_none(mask: str) -> None:
    plain = torch.ones(2, 4, 3, requires_grad=True)
    valid = torch.ones(2, 4, 3, dtype=torch.bool) if mask == "dense" else torch.ones(()).bool().expand(2, 4, 3)
    forms: list[Callable[[Any], Any]] = [
        lambda x: torch.native_layer_norm(x, (3,), None, None, 1e-5),
        lambda x: torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5),
        lambda x: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5),
        lambda x: torch.ops.aten._fused_rms_norm(x, (3,), None, 1e-5),
    ]
    for form in forms:
        x: Any = mt.as_masked_tensor(plain.detach().clone(), valid).requires_grad_()
        assert [r.requires_grad for r in form(x)] == [r.requires_grad for r in form(plain)]
