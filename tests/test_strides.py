"""No value depends on how a tensor lies in memory, nor on which side of a threshold its size is.

And a result is contiguous wherever torch's is: unmodified code calls ``view`` on it.

Entries of the operator database run twice: on contiguous data, below every tuning number, and on the same values with
odd strides, above every one of them: the numbers are patched down, so that the paths for large tensors run on tiny
ones.  ``MASKED_TENSOR_STRIDES=1`` runs every sample of every entry in every layout.
"""

import copy
import itertools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt
from masked_tensor import settings, shapes
from masked_tensor.engine.boundary.enter_leave import leave
from masked_tensor.engine.tensor import pair_of
from masked_tensor.extend import Pair, Payload

from .helpers import database, harness
from .helpers.harness import Masked, is_record
from .helpers.trees import tree_leaves, tree_map
from .laws import COSTLY, plain_runs
from .oracles import FAMILY, ORACLES
from .sweep import SKIPPED

EVERYTHING = bool(os.environ.get("MASKED_TENSOR_STRIDES"))
# Sizes from which on another path is taken, each with a value that tiny tensors exceed.
THRESHOLDS = {
    "COUNTED": 1,
    "FEW": 1,
    "SMALL_ZERO": 1,
    "SMALL_OTHER": 1,
    "SMALL_ROWS": 1,
    "RECORDED": 1,
    "CHUNK": 7,
    "LARGE": 2,
    "PIECE": 5,
    "STRETCH": 1,
    "FORMULA": 1,
    "FUSED": 1,
    "BLOCKS": 1,
    "CHAIN": 2,
    "ONE_BY_ONE": 2,
}
OF_SPARSE_DATA = {"TABLE", "TABLE_OF", "EXACT", "COLUMNS"}  # strided tensors never ask
OF_ROLLING = {"WINDOWS", "MERGED"}  # patched down in tests/test_series.py
OF_THREADS = {"SHARED"}  # tests run with one, see tests/test_threads.py
OF_KNOWN = {"NOTED", "SHAPES", "KEPT", "KEPT_SIZE"}  # what they decide is compared in tests/test_known_masks.py
OF_FRAMES = {"FRAME"}  # both ways are taken in tests/test_containers.py
OF_FLAT = {"TRIED", "TELLING", "DRAWS"}  # what the check of a flat module tries
OF_ATTENTION = {"TOGETHER"}  # both ways are taken in tests/test_packed_attention.py
# tests/test_gpu_kernels.py makes blocks of them that small tensors exceed
OF_GPUS = {f"GPU_{name}" for name in ["TILE", "COLUMNS", "PROGRAMS", "STEPS", "SPLITS", "WHOLE", "BESIDE", "NARROW"]}


def test_every_tuning_number_is_known() -> None:
    numbers = {name for name, value in vars(settings).items() if type(value) is int and name.isupper()}
    others = OF_SPARSE_DATA | OF_ROLLING | OF_THREADS | OF_KNOWN | OF_FRAMES | OF_FLAT | OF_ATTENTION | OF_GPUS
    assert numbers == set(THRESHOLDS) | others


def patched_down(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in THRESHOLDS.items():
        monkeypatch.setattr(settings, name, value)


def stepped(t: Tensor) -> Tensor:
    """Every second element of a memory twice as large, which begins one element late."""
    memory = t.new_empty(2 * t.numel() + 1)
    strides, step = [], 2
    for size in reversed(t.shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return memory.as_strided(t.shape, strides, 1).copy_(t)


def turned(t: Tensor) -> Tensor:
    """The dimensions lie in memory in the reverse order."""
    dims = tuple(reversed(range(t.dim())))
    return t.permute(dims).clone(memory_format=torch.contiguous_format).permute(dims)


def odd_ones(t: Tensor) -> Tensor:
    """Contiguous, but dimensions of size 1 have strides that mean nothing; one element late."""
    strides = [3 if size == 1 else stride for size, stride in zip(t.shape, t.stride(), strict=True)]
    return t.new_empty(t.numel() + 1).as_strided(t.shape, strides, 1).copy_(t) if t.numel() else t


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {"stepped": stepped, "turned": turned, "odd ones": odd_ones}


def laid_out(case: database.Sample, layout: Callable[[Tensor], Tensor]) -> database.Sample:
    def lay(value: Any) -> Any:
        return Masked(layout(value.data.contiguous()), layout(value.mask.contiguous())) if is_record(value) else value

    args, kwargs = tree_map(lay, (case.args, case.kwargs), is_leaf=is_record)
    return database.Sample(case.op, args, kwargs)


def run(case: database.Sample, requires_grad: bool) -> list[Any]:
    """Results, and gradients; the tensors are wrapped as they lie, with a payload that must not be seen."""

    def make(value: Any) -> Any:
        if isinstance(value, Masked):
            if value.data.is_floating_point():
                value.data.masked_fill_(~value.mask, 1e30)
            x = mt.as_masked_tensor(value.data, value.mask)
            return x.requires_grad_() if requires_grad and harness.differentiable(value.data) else x
        if isinstance(value, Tensor):
            value = value.detach().clone()
            return value.requires_grad_() if requires_grad and harness.differentiable(value) else value
        return value

    args, kwargs = tree_map(make, (case.args, case.kwargs), is_leaf=is_record)
    torch.manual_seed(1)
    out = tree_leaves(case.op(*args, **kwargs))
    inputs = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
    return [*out, *harness._gradients(out, inputs)]


COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x.contiguous(),
    "clone": lambda x: x.clone(memory_format=torch.contiguous_format),
    "to": lambda x: x.to(torch.float64, memory_format=torch.contiguous_format),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "deepcopy": copy.deepcopy,
    "turned": turned,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_mask_lies_in_the_order_of_its_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where data are taken in, and where they are copied: or each op that follows reads one of both across."""
    patched_down(monkeypatch)
    shape = (3, 4, 5, 2)
    whole = torch.rand(shape) < 0.7
    for mask in (whole, turned(whole), whole[:, :1].expand(shape), turned(whole[..., :1]).expand(shape)):
        for data in (torch.randn(shape), turned(torch.randn(shape)), torch.randn(3, 5, 2, 4).movedim(-1, 1)):
            for x in (mt.masked_tensor(data, mask), mt.as_masked_tensor(data, mask)):
                made: Any = COPIES[name](x)
                assert torch.equal(made.get_mask(), mask)
                assert torch.equal(made.filled(0), torch.where(mask, data, 0))
                for pair in (pair_of(x), pair_of(made)):
                    order = shapes.memory_order(pair.data.stride())
                    strides = [s for s in pair.mask.permute(order).stride() if s]
                    assert strides == sorted(strides, reverse=True)


ALONG = [
    "sum", "mean", "var", "std", "amax", "amin", "prod", "logsumexp", "argmax", "argmin", "max", "any", "all",
    "softmax", "cumsum", "sort", "median",
]  # fmt: skip


@pytest.mark.parametrize("low", [True, False], ids=["as if large", "small"])
@pytest.mark.parametrize("name", ALONG)
def test_a_mask_may_lie_in_another_order_than_its_data(name: str, low: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the mask of ``y + x`` does, where ``y`` is plain and lies in another order than ``x``."""
    if low:
        patched_down(monkeypatch)
    mask, values = torch.rand(4, 3, 2) < 0.6, torch.randn(4, 3, 2)
    data = torch.where(mask, values, torch.nan)
    for dim in range(3):
        wanted = tree_leaves(getattr(torch, name)(leave(Pair(data, mask)), dim=dim))
        for d, m in ((turned(data), mask), (data, turned(mask)), (data.mT.contiguous().mT, turned(mask))):
            for x in (Pair(d, m), Pair(torch.empty_like(d).copy_(torch.where(m, d, 0)), m, Payload.ZERO)):
                for got, expected in zip(tree_leaves(getattr(torch, name)(leave(x), dim=dim)), wanted, strict=True):
                    harness.assert_same(got, expected, name)


def refused(case: database.Sample, requires_grad: bool) -> bool:
    """Whether torch refuses the plain data of a case as it lies, or its derivative does."""

    def make(value: Any) -> Any:
        data = value.data if isinstance(value, Masked) else value
        if not isinstance(data, Tensor):
            return data
        return data.requires_grad_() if requires_grad and harness.differentiable(data) else data

    args, kwargs = tree_map(make, (case.args, case.kwargs), is_leaf=is_record)
    inputs = [v for v in tree_leaves((args, kwargs)) if isinstance(v, Tensor)]
    try:
        harness._gradients(tree_leaves(case.op(*args, **kwargs)), inputs)
    except RuntimeError:
        return True
    return False


def cases(name: str) -> Iterator[tuple[str, database.Sample]]:
    """One sample in one of the layouts, or all in all."""
    found = [s for s in database.samples(name, limit=12 if EVERYTHING else 2) if plain_runs(s)]
    for k, sample in enumerate(found if EVERYTHING else found[-1:]):
        case = harness.masked_case(sample, "random", "all", seed=k)
        if list(harness.masked_leaves((case.args, case.kwargs))):
            kinds = list(LAYOUTS) if EVERYTHING else [list(LAYOUTS)[NAMES.index(name) % 3]]
            yield from ((kind, case) for kind in kinds)


# Random numbers are drawn in the order of memory; these read memory as it lies, or say whether it is contiguous; and
# torch's own derivative of nll_loss takes contiguous rows only.
OTHERWISE = {name for name in ORACLES if FAMILY[name] == "random"}
OTHERWISE |= {"as_strided", "as_strided.partial_views", "as_strided_copy", "as_strided_scatter"}
OTHERWISE |= {"contiguous", "view_as_complex"}
OF_FAMILY = 5  # entries of a family that run unless all do, evenly spread


def _names() -> list[str]:
    known = sorted((FAMILY[name], name) for name in set(ORACLES) & set(database.ENTRIES) - OTHERWISE)
    result: list[str] = []
    for _, members in itertools.groupby(known, key=lambda pair: pair[0]):
        names = [name for _, name in members]
        result += names if EVERYTHING else names[:: max(1, len(names) // OF_FAMILY)]
    return result


NAMES = _names()


@pytest.mark.filterwarnings("ignore")  # the database's samples make torch itself warn
@pytest.mark.parametrize("start", range(0, len(NAMES), 20))
def test_large_and_oddly_laid_out(start: int, monkeypatch: pytest.MonkeyPatch, record_property: Any) -> None:
    wrong = []
    for name in NAMES[start : start + 20]:
        checked = 0
        for kind, case in cases(name):
            try:
                tracked = harness.plain_has_gradient(case)
                expected = run(laid_out(case, torch.clone), tracked)
            except (mt.errors.MaskedValueError, mt.errors.UnsupportedOpError):
                continue
            try:
                with monkeypatch.context() as patch:
                    patched_down(patch)
                    actual = run(laid_out(case, LAYOUTS[kind]), tracked)
                for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
                    if e is not None or a is not None:
                        harness.assert_same(a, e, f"result {i}")
            except Exception as error:
                if isinstance(error, RuntimeError) and refused(laid_out(case, LAYOUTS[kind]), tracked):
                    continue  # torch itself does not take data that lies like this
                wrong.append(f"{name}, {kind}: {type(error).__name__}: {str(error)[:200]}")
            checked += 1
        record_property("law", ("strides", name, checked))
    assert not wrong, "\n".join(wrong)


class Calls(TorchDispatchMode):
    """The ops that compute something, and the sizes of what they give, in any order of dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[int]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        view = all(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
        if not view and isinstance(out, Tensor) and func is not torch.ops.aten.clone.default:  # of a result
            self.seen.append((str(func), sorted(n for n in out.shape if n != 1)))
        return out


REDUCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "count": mt.count,
    "norm": lambda x, d: torch.linalg.vector_norm(x, 3, d),
    "aminmax": lambda x, d: torch.aminmax(x, dim=d),
    **{
        name: getattr(torch, name)
        for name in ("sum", "mean", "amax", "amin", "prod", "any", "all", "nansum", "logsumexp", "var", "std")
    },
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_go_along_the_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor that lies column by column costs what its transpose, which lies row by row, costs: the same calls."""
    for setting, value in {
        "COUNTED": 1,
        "FEW": 1,
        "LARGE": 256,
        "CHUNK": 128,
        "PIECE": 64,
        "FORMULA": 1,
        "NOTED": 0,
    }.items():
        monkeypatch.setattr(settings, setting, value)
    call = REDUCTIONS[name]
    generator = torch.Generator().manual_seed(0)
    for shape in ((64, 16), (12, 8, 16)):
        dims = range(len(shape))
        data, mask = torch.randn(shape, generator=generator), torch.rand(shape, generator=generator) < 0.7
        column, row = mt.as_masked_tensor(turned(data), turned(mask)), mt.as_masked_tensor(data, mask)
        other = mt.as_masked_tensor(*(t.permute(*reversed(dims)).contiguous() for t in (data, mask)))
        for d in dims:
            expected = tree_leaves(call(row, d))  # also makes the constants that are kept
            with Calls() as of_column:
                results = tree_leaves(call(column, d))
            with Calls() as of_other:
                call(other, len(shape) - 1 - d)
            assert of_column.seen == of_other.seen
            for actual, wanted in zip(results, expected, strict=True):
                harness.assert_same(actual, wanted, name)
                assert actual.is_contiguous()


WRITING = ("assign", "scatter", "pool", "unique", None)  # the families in which it was otherwise once
TURNED = ("pool", "normalize", "batch_norm", "softmax")  # and in which it was, of data in another order of memory
REACHED = [
    name
    for place, name in enumerate(sorted(set(database.ENTRIES) - set(SKIPPED)))
    # Some are many, and share few rules; of those in which it never was otherwise, a third.
    if EVERYTHING or (FAMILY.get(name) not in COSTLY and (FAMILY.get(name) in WRITING + TURNED or place % 3 == 0))
]
PATTERNS = ("full", "random", "rows")


def uneven(sample: database.Sample, patterns: Sequence[str]) -> Iterator[str]:
    """The results of a sample that are not contiguous though torch's are, masked in each of the patterns."""
    torch.manual_seed(1)
    args, kwargs = harness.build((sample.args, sample.kwargs))
    expected = tree_leaves(sample.op(*args, **kwargs))
    for pattern, which in itertools.product(patterns, ("all", "first")):
        case = harness.masked_case(sample, pattern, which)
        args, kwargs = harness.build((case.args, case.kwargs))
        try:
            results = tree_leaves(sample.op(*args, **kwargs))
        except (mt.errors.MaskedValueError, mt.errors.UnsupportedOpError):
            continue
        for i, (actual, plain) in enumerate(zip(results, expected, strict=True)):
            strided = isinstance(plain, Tensor) and plain.layout is torch.strided and actual.shape == plain.shape
            if strided and plain.is_contiguous() and not actual.is_contiguous():
                yield f"result {i}, {pattern}, {which}: strides {actual.stride()}, torch's {plain.stride()}"


def memory_orders(sample: database.Sample, name: str = "") -> Iterator[database.Sample]:
    """The sample as it is, and with its tensors in other orders of memory: in the large run, and where it mattered."""
    yield sample
    for layout in (stepped, turned) if EVERYTHING else (turned,) if FAMILY.get(name) in TURNED else ():
        args, kwargs = tree_map(
            lambda v, lay=layout: lay(v.detach()) if isinstance(v, Tensor) and v.layout is torch.strided else v,
            (sample.args, sample.kwargs),
        )
        yield database.Sample(sample.op, args, kwargs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", range(0, len(REACHED), 100))
def test_contiguous_where_torch_is(start: int, record_property: Any) -> None:
    wrong, checked = [], 0
    for name in REACHED[start : start + 100]:
        for sample in database.samples(name, limit=12 if EVERYTHING else 3 if FAMILY.get(name) in WRITING else 1):
            for laid in filter(plain_runs, memory_orders(sample, name)):
                wrong += [f"{name}: {what}" for what in uneven(laid, PATTERNS if EVERYTHING else ("random",))]
                checked += 1
    record_property("law", ("contiguous", f"entries from {start}", checked))
    assert not wrong, "\n".join(wrong)


def channels_last(t: Tensor) -> Tensor:
    return t.contiguous(memory_format=torch.channels_last)


PLACED: dict[str, Callable[[Any], Any]] = {
    **{f"sort {d}": lambda x, d=d: torch.sort(x, dim=d, stable=True) for d in range(4)},
    **{f"pad {m}": lambda x, m=m: torch.nn.functional.pad(x, (1, 1, 1, 1), mode=m) for m in ("reflect", "replicate")},
    "pad circular": lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1), mode="circular"),
    "max_pool2d": lambda x: torch.nn.functional.max_pool2d(x, 2, return_indices=True),
    "batch_norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: torch.nn.functional.group_norm(x, 2),
    "instance_norm": torch.nn.functional.instance_norm,
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (4, 5)),
    **{f"topk {d}": lambda x, d=d: torch.topk((x * 9).long(), 2, dim=d).values for d in range(1, 4)},
    **{f"topk {d} indices": lambda x, d=d: torch.topk((x * 1e6).long(), 2, dim=d).indices for d in range(1, 4)},
    "max_unpool2d": lambda x: torch.nn.functional.max_unpool2d(x, (x * 0).long() + torch.arange(20).view(4, 5), 2),
    "rms_norm": lambda x: torch.nn.functional.rms_norm(x, (4, 5)),
    **{
        f"interpolate {m}{a * ' antialiased'}": lambda x, m=m, a=a: torch.nn.functional.interpolate(
            x, (3, 7), mode=m, antialias=a
        )
        for m, a in (("nearest", False), *itertools.product(("bilinear", "bicubic"), (False, True)))
    },
    "interpolate bytes": lambda x: torch.nn.functional.interpolate((x * 50).to(torch.uint8), (3, 7), mode="bilinear"),
}


@pytest.mark.parametrize("layout", [torch.clone, channels_last, turned, stepped])
@pytest.mark.parametrize("name", PLACED)
def test_results_lie_as_torchs(name: str, layout: Callable[[Tensor], Tensor]) -> None:
    """Not only where they are contiguous: the strides are those of the plain op, and the values."""
    for shape in ((2, 4, 4, 5), (1, 4, 4, 5), (2, 2, 4, 5)):
        x = layout(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
        results = tree_leaves(PLACED[name](mt.as_masked_tensor(x, torch.ones(shape, dtype=torch.bool))))
        for actual, expected in zip(results, tree_leaves(PLACED[name](x)), strict=True):
            assert_lies_as(actual, expected)


def assert_lies_as(actual: mt.MaskedTensor, expected: Tensor) -> None:
    """The values, and the strides where a size is not 1, whose stride means nothing."""
    wide = [d for d, size in enumerate(expected.shape) if size > 1]
    assert [actual.stride(d) for d in wide] == [expected.stride(d) for d in wide]
    torch.testing.assert_close(actual.filled(0), expected)


def drawn(rng: random.Random, sizes: tuple[int, ...]) -> Tensor:
    """Positive values; some sizes are 1, and the dimensions lie in any order."""
    order = rng.sample(range(len(sizes)), len(sizes))
    x = torch.rand([sizes[d] if rng.random() < 0.7 else 1 for d in order]) + 0.5
    return x.permute([order.index(d) for d in range(len(sizes))])


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", ["mul", "div", "sub", "maximum", "atan2", "pow"])
def test_broadcast_operands_lie_as_torchs(name: str, tracked: bool) -> None:
    """Whichever is masked: the order in memory is that of the first operand that has one."""
    rng, op = random.Random(name), getattr(torch, name)
    for _ in range(60):
        operands = [drawn(rng, (2, 3, 4)) for _ in range(2)]
        for masked in ((0,), (1,), (0, 1)):
            given = [
                mt.as_masked_tensor(x, torch.ones(x.shape, dtype=torch.bool)) if i in masked else x
                for i, x in enumerate(operands)
            ]
            ours = op(*(x.detach().requires_grad_(tracked) for x in given))
            assert_lies_as(ours.detach(), op(*operands))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("of_weight", [torch.clone, channels_last, turned])
@pytest.mark.parametrize("layout", [torch.clone, channels_last, turned])
def test_convolutions_lie_as_torchs(
    layout: Callable[[Tensor], Tensor], of_weight: Callable[[Tensor], Tensor], transposed: bool
) -> None:
    """Whichever of image and weight is masked, and however many channels a group has: one has no order in memory."""
    op: Any = torch.conv_transpose2d if transposed else torch.conv2d
    for channels, groups, padding in itertools.product((4, 8), (1, 2, 4), (0, 1)):
        x = layout(torch.rand(2, channels, 6, 5))
        weight = of_weight(torch.rand((channels, 8 // groups, 3, 3) if transposed else (8, channels // groups, 3, 3)))
        masked = [mt.as_masked_tensor(t, torch.ones(t.shape, dtype=torch.bool)) for t in (x, weight)]
        for given in ((masked[0], weight), (x, masked[1]), masked):
            assert_lies_as(op(*given, None, 1, padding, groups=groups), op(x, weight, None, 1, padding, groups=groups))
