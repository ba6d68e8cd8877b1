"""What docs/extending.md defines keeps the laws that the operators of this package keep.

The blocks of the page import nothing but torch, ``masked_tensor.extend`` and ``masked_tensor.testing``.  This file runs
in an empty folder against the wheel, too: ``.ci/package``.
"""

import ast
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor import extend
from masked_tensor.testing import check_rule

from .helpers import harness, packed_cases, sparse_cases, transforms
from .helpers.database import Sample
from .helpers.harness import Masked
from .oracles.slices import reduced
from .test_documentation import BLOCK, _run

NAN = float("nan")
PAGE = Path(__file__).parent.parent / "docs/extending.md"


@cache
def page() -> dict[str, Any]:
    """The names that the blocks of the page define, one after the other, from nothing."""
    namespace: dict[str, Any] = {"__name__": "extension"}
    for number, code in enumerate(BLOCK.findall(PAGE.read_text())):
        namespace = _run(code, namespace, f"extending.md, block {number}")
    return namespace


def test_the_page_imports_the_kit_alone() -> None:
    found = set()
    for code in BLOCK.findall(PAGE.read_text()):
        if ">>>" not in code:
            for node in ast.walk(ast.parse(code)):
                found |= {node.module} if isinstance(node, ast.ImportFrom) else set()
                found |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
    assert found == {"torch", "masked_tensor", "masked_tensor.extend", "masked_tensor.testing"}


def test_the_page_names_what_the_kit_has() -> None:
    text = PAGE.read_text()
    unnamed = [n for n in extend.__all__ if not re.search(rf"\b{n}\b", text)]
    assert unnamed == ["NoRule", "Packed", "Payload", "specified_mask"], "what the reference alone describes"


def soft_clip(op: Any, x: Masked, limit: float) -> Masked:
    return Masked(limit * torch.tanh(x.data / limit), x.mask)


def mean_square(op: Any, x: Masked, dim: int, keepdim: bool = False) -> Masked:
    return reduced(x, dim, keepdim, lambda v: v.square().mean())


def low_rank(op: Any, x: Masked, a: torch.Tensor, b: torch.Tensor) -> Masked:
    data = torch.where(x.mask, x.data, 0) @ a @ b
    return Masked(data, x.mask.any(-1, keepdim=True).expand(data.shape))


ORACLES = {"soft_clip": soft_clip, "mean_square": mean_square, "power": mean_square, "low_rank": low_rank}


def samples(name: str) -> list[Sample]:
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    op = page()[name]
    if name == "soft_clip":
        return [Sample(op, (random(*shape), 2.0), {}) for shape in ((), (3,), (3, 4), (2, 3, 4), (0, 2))]
    if name == "low_rank":
        weights = random(4, 2), random(2, 3)
        return [Sample(op, (random(*shape), *weights), {}) for shape in ((2, 4), (2, 3, 4), (2, 3, 2, 4))]
    calls: list[tuple[tuple[int, ...], int, dict[str, bool]]]
    calls = [((3,), 0, {}), ((3, 4), 1, {}), ((3, 4), 0, {"keepdim": True}), ((2, 3, 4), 1, {}), ((2, 3, 4), -1, {})]
    calls += [((2, 3, 4), 1, {"keepdim": True})]
    return [Sample(op, (random(*shape), dim), named) for shape, dim, named in calls]


LAWS = ("value", "garbage", "gradient", "identity", "compiled", "inference", "autocast", "packed", "sparse")
PATTERNS = ("random", "rows", "none", "full")


def check(law: str, name: str, sample: Sample, case: Sample) -> None:
    if law == "value":
        harness.check_value(case, ORACLES[name])
    elif law == "identity":
        (output,), _ = harness.run(harness.masked_case(sample, "full", "first"))
        harness.assert_same(output, sample.op(*sample.args, **sample.kwargs), "where all is valid")
    elif law in ("garbage", "gradient", "compiled"):
        getattr(harness, f"check_{law}")(case)
    elif law == "inference":
        transforms.check_inference(case)
    elif law == "autocast":
        transforms.check_autocast(case, None)
    else:
        counts: Counter[str] = Counter()
        sparse_cases.check(case, counts)
        assert counts["equal"] or not sample.args[0].dim() or name in ("mean_square", "low_rank")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", ORACLES)
def test_what_the_page_defines_keeps_the_laws(name: str, law: str) -> None:
    checked = 0
    for sample in samples(name):
        for seed, pattern in enumerate(PATTERNS[:1] if law in ("compiled", "identity") else PATTERNS):
            if law != "packed":
                check(law, name, sample, harness.masked_case(sample, pattern, "first", seed))
                checked += 1
        for kind, _, dims in packed_cases.KINDS if law == "packed" else ():
            case = packed_cases.packed_case(sample, kind, "first", dims)
            if case is not None:
                packed_cases.check(case, counts := Counter())
                checked += counts["equal"]
    assert checked >= 3


def test_packed_rules_of_the_page_are_taken() -> None:
    x = mt.from_lengths(torch.ones(2, 3, 4), [3, 1]).packed()
    page()  # its own calls are not those that are looked at
    with extend.packing_report() as report:
        page()["soft_clip"](x, 1.0)
        page()["power"](x, 1)
        page()["power"](x, 2)
        page()["low_rank"](x, torch.ones(4, 2), torch.ones(2, 3))
    assert not report


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [1, 2, -1, 0])
def test_a_reduction_has_arguments_before_and_after_its_dim(dim: int, keepdim: bool) -> None:
    def sums(x: torch.Tensor, power: float, dim: int, keepdim: bool, scale: float = 1.0) -> torch.Tensor:
        return scale * x.abs().pow(power).sum(dim, keepdim)

    def of_segments(values: torch.Tensor, segments: extend.Segments, power: float, scale: float) -> torch.Tensor:
        return scale * segments.sum(values.abs().pow(power))

    def masked(x: extend.Pair, power: float, dim: int, keepdim: bool, scale: float = 1.0) -> extend.Pair:
        data = sums(extend.zero_masked(x), power, dim, keepdim, scale)
        return extend.Pair(data, extend.masks.reduce_validity(x.mask, dim, keepdim))

    schema = "(Tensor x, float power, int dim, bool keepdim, *, float scale=1.0) -> Tensor"
    name = f"test_extending::sums_{dim % 3}_{dim < 0}_{keepdim}"
    op = torch.library.custom_op(name, sums, mutates_args=(), schema=schema)
    calls = []
    packed = extend.packed_reduction(lambda *args, **named: calls.append(1) or of_segments(*args, **named))
    extend.register_rule(name, packed=packed)(masked)
    x = mt.from_lengths(torch.randn(3, 4, 2), [4, 0, 2])
    wanted, found = (op(form, 3.0, dim, keepdim, scale=0.5) for form in (x, x.packed()))
    harness.assert_same(found, wanted, "packed")
    torch.testing.assert_close(wanted.filled(0), sums(x.filled(0), 3.0, dim, keepdim, 0.5))
    assert bool(calls) == (dim == 1)  # over time each sequence is a segment
    assert found.is_packed == (dim % 3 == 2)


# ------------------------------------------------------------------------------------------- check_rule finds mistakes


def wrong(x: extend.Pair) -> extend.Pair:
    return extend.Pair(2 * extend.guard(x.data, x.mask).square(), x.mask)


def right(x: extend.Pair) -> extend.Pair:
    return extend.Pair(extend.guard(x.data, x.mask).square(), x.mask)


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "reads masked-out data": (
        lambda x: extend.Pair(x.data.square() + 0 * x.data.sum(), x.mask),
        {},
        "masked-out data nan",
    ),
    "no guard": (lambda x: extend.Pair(x.data.square(), x.mask), {}, "gradient"),
    "other values": (wrong, {}, "where all is valid: the outputs differ"),
    "no gradient": (lambda x: extend.Pair(x.data.detach().square(), x.mask), {}, "where all is valid: the gradients"),
    "where nothing is valid": (
        lambda x: (
            extend.Pair(extend.guard(x.data, x.mask).square() + 0 / (x.mask.any() | x.mask.all()).float(), x.mask)
            if x.mask.any()
            else extend.Pair(x.data.square(), x.mask)
        ),
        {},
        "gradient",
    ),
    "packed": (right, {"packed": extend.packed_rule(lambda x: extend.pack_like(x.values, x))}, "packed: the outputs"),
    "sparse": (right, {"sparse": extend.sparse_rule(lambda x: x)}, "sparse_coo: the outputs differ"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_check_rule_finds_a_mistake(name: str) -> None:
    rule, options, said = MISTAKES[name]
    op = torch.library.custom_op(
        f"test_extending::{name.replace(' ', '_').replace('-', '_')}",
        lambda x: x.square(),
        mutates_args=(),
        schema="(Tensor x) -> Tensor",
    )
    op.register_autograd(lambda ctx, g: 2 * g * ctx.saved_tensors[0], setup_context=save)
    extend.register_rule(op._qualname, **options)(rule)
    with pytest.raises(AssertionError, match=said):
        check_rule(op, mt.masked_tensor([[1.0, None, 3.0], [None, None, 6.0]]))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_check_rule_looks_at_each_sparse_layout(layout: torch.layout, shape: tuple[int, ...]) -> None:
    def twice_there(x: torch.Tensor) -> torch.Tensor:
        return x * (2 if x.layout is layout else 1)

    x = mt.masked_tensor(torch.randn(shape), torch.rand(shape) < 0.7)
    if layout is torch.sparse_csr and len(shape) != 2:
        check_rule(twice_there, x)
        return
    with pytest.raises(AssertionError, match=f"{layout}: the outputs differ"):
        check_rule(twice_there, x)


@pytest.mark.parametrize("sequences", [1, 2, 5])
def test_a_function_of_segments_knows_how_many_there_are(sequences: int) -> None:
    """One for each sequence, also where there are more steps, or fewer."""
    known = []

    def sums(values: torch.Tensor, segments: extend.Segments) -> torch.Tensor:
        known.append((segments.number, segments.count.numel()))
        return values.new_zeros(segments.number, *values.shape[1:]).index_add(0, segments.ids, values)

    name = f"test_extending::segments_{sequences}"
    op = torch.library.custom_op(
        name, lambda x, dim: x.sum(dim), mutates_args=(), schema="(Tensor x, int dim) -> Tensor"
    )
    extend.register_rule(name, packed=extend.packed_reduction(sums))(
        lambda x, dim: extend.Pair(op(extend.zero_masked(x), dim), extend.masks.reduce_validity(x.mask, dim))
    )
    x = mt.from_lengths(torch.randn(sequences, 3, 2), [3, 0, 2, 1, 3][:sequences])
    torch.testing.assert_close(op(x.packed(), 1), op(x, 1))
    assert known == [(sequences, sequences)]


def save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


# -------------------------------------------------------------------------------------------------------- containers


def test_a_container_is_read_wherever_data_is_taken() -> None:
    track = page()["Track"]([1.0, NAN, 3.0], [False, True, False])
    derived = type("Derived", (type(track),), {})([NAN, 5.0], [True, False])
    padded = [[1.0, None, 3.0], [None, 5.0, None]]
    assert mt.masked_tensor(track, dtype=torch.bfloat16).dtype is torch.bfloat16
    assert (mt.masked_tensor(track) + 1).tolist() == [2.0, None, 4.0]
    assert mt.masked_tensor([track, derived]).tolist() == padded
    assert mt.collate([track, derived]).tolist() == mt.from_sequences([track, derived]).tolist() == padded
    assert mt.collate([{"x": track}, {"x": derived}])["x"].tolist() == padded
    assert mt.RunningStatistics(3).update([track]).mean.tolist() == padded[0]


def test_the_nearest_reader_and_the_last_is_used_and_no_library_is_imported() -> None:
    base = type("Base", (), {"__module__": "soundlib.tracks"})
    near = type("Near", (base,), {"__module__": "soundlib.tracks"})
    with pytest.raises(TypeError, match="got Base"):
        mt.masked_tensor(base())
    extend.register_container("soundlib.Base", "soundlib.Other")(lambda data: ([1.0, None], None))
    assert mt.masked_tensor(near()).tolist() == [1.0, None]
    extend.register_container(near)(lambda data: (base(), torch.tensor(True)))  # of another container
    assert mt.masked_tensor(near()).tolist() == [1.0, None]
    extend.register_container(near)(lambda data: (base(), [False, True]))
    assert mt.masked_tensor(near()).tolist() == [None, None]
    assert "soundlib" not in sys.modules


@pytest.mark.parametrize("masked", [False, True], ids=["values", "values and mask"])
def test_what_a_reader_returns_is_copied(masked: bool) -> None:
    kind, values = type("Kind", (), {}), torch.tensor([1.0, 2.0])
    valid = torch.tensor([True, False]) if masked else None
    given = values if masked else mt.masked_tensor(values, torch.tensor([True, False]))
    extend.register_container(kind)(lambda data: (given, valid))
    x = mt.masked_tensor(kind())
    x[0], x[1] = None, 5.0
    assert mt.masked_tensor(kind()).tolist() == [1.0, None]
    extend.register_container(kind)(lambda data: (values, None))
    x = mt.masked_tensor(kind()).zero_()
    assert values.tolist() == [1.0, 2.0]


def test_a_reader_that_is_wrong_is_named() -> None:
    track, wrong = page()["Track"], type("Wrong", (), {})
    with pytest.raises(ValueError, match=r"the mask of Track must be a bool tensor .* got bool \(2,\)"):
        mt.masked_tensor(track([1.0, 2.0, 3.0], [True, False]))
    extend.register_container(wrong)(lambda data: [1.0, 2.0])
    with pytest.raises(TypeError, match=r"the reader of Wrong must return \(values, valid\), got \[1.0, 2.0\]"):
        mt.masked_tensor(wrong())
    for kind in ("Track", "a.b.Track", dict, torch.nn.Parameter, mt.MaskedTensor, 3):
        with pytest.raises(TypeError, match=r"a container is a class, or .library.Class., got"):
            extend.register_container(kind)(lambda data: ([], None))  # type: ignore[arg-type]  # the mistake


# ------------------------------------------------------------------------------------------------ what a rule declares


def test_a_rule_refuses_what_it_does_not_take() -> None:
    a = mt.masked_tensor(torch.ones(4, 2), torch.eye(4, 2).bool())
    with pytest.raises(mt.UnsupportedOpError, match=r"a of .*low_rank must not be masked; use a.filled"):
        page()["low_rank"](torch.ones(2, 4), a, torch.ones(2, 3))


def test_elementwise_serves_every_storage() -> None:
    op = page()["soft_clip"]
    x = mt.masked_tensor([[1.0, None], [3.0, 4.0]])
    for same in (x.packed(), x.to_sparse(), x.to_sparse_csr()):
        result = op(same, 2.0)
        assert (result.layout, result.is_packed) == (same.layout, same.is_packed)


def test_reductions_over_time_and_features_are_unpacked() -> None:
    """Where a function of segments would not give the same."""
    x = mt.from_lengths(torch.randn(2, 3, 4), [3, 1])
    op = torch.library.custom_op(
        "test_extending::spread_of", lambda x, dim: x.amax(dim) - x.amin(dim), mutates_args=(),
        schema="(Tensor x, int[] dim) -> Tensor",
    )  # fmt: skip

    @extend.register_rule("test_extending::spread_of", packed=extend.packed_reduction(lambda v, s: s.max(v) - s.min(v)))
    def masked(x: extend.Pair, dim: Any) -> extend.Pair:
        big, small = (extend.select(x.data, x.mask, fill) for fill in (-float("inf"), float("inf")))
        return extend.Pair(big.amax(dim) - small.amin(dim), extend.masks.any(x.mask, dim))

    for dim in ([1], [2], [1, 2], [0, 1, 2], [0]):
        torch.testing.assert_close(op(x.packed(), dim).unpacked(), op(x, dim))


def test_a_function_of_segments_gets_halves_as_float32_and_gives_them_back() -> None:
    """Sparse and packed: values and results in the dtypes that the page of the two functions names."""
    seen: list[torch.dtype] = []

    def mean(values: torch.Tensor, segments: extend.Segments) -> torch.Tensor:
        seen.append(values.dtype)
        return segments.sum(values) / segments.count.view(-1, *(1,) * (values.dim() - 1))

    def number(values: torch.Tensor, segments: extend.Segments) -> torch.Tensor:
        seen.append(values.dtype)
        return segments.sum(torch.ones_like(values, dtype=torch.int64))

    rules = {"mean_of": mean, "number_of": number}
    for name, function in rules.items():
        op = torch.library.custom_op(
            f"test_extending::{name}",
            lambda x, dim: x.sum(dim),
            mutates_args=(),
            schema="(Tensor x, int dim) -> Tensor",
        )
        extend.register_rule(
            f"test_extending::{name}",
            sparse=extend.sparse_reduction(function),
            packed=extend.packed_reduction(function),
        )(lambda x, dim: extend.Pair(x.data.sum(dim), extend.masks.any(x.mask, dim)))
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            seen.clear()
            values = (
                torch.linspace(1, 3, 600, dtype=torch.float64).view(2, 300).to(dtype)
            )  # halves add up to 512 or 256
            x = mt.from_lengths(values, [300, 200])
            got = [op(x.packed(), 1).unpacked(), op(x.to_sparse_csr(), 1).to_dense(), op(x.to_sparse(), 1).to_dense()]
            wide = torch.float64 if dtype is torch.float64 else torch.float32
            assert seen == [wide] * 3, (name, dtype)
            exact = torch.stack([values[0].double().mean(), values[1, :200].double().mean()]).to(dtype)
            for result in got:
                if name == "mean_of":
                    assert result.dtype is dtype
                    torch.testing.assert_close(result.filled(0.0), exact)
                else:
                    assert result.dtype is torch.int64
                    assert result.tolist() == [300, 200]


def test_an_operator_and_its_rule_may_be_defined_anew() -> None:
    """As by a cell of a notebook that runs twice."""
    for factor in (2, 3):
        op = torch.library.custom_op("test_extending::times", lambda x, k=factor: x * k, mutates_args=(),
                                     schema="(Tensor x) -> Tensor")  # fmt: skip
        extend.register_rule("test_extending::times", elementwise=True)(
            lambda x, op=op: extend.Pair(op(x.data), x.mask)
        )
        assert op(mt.masked_tensor([1.0, None])).tolist() == [factor, None]
        with torch.inference_mode():
            assert op(mt.masked_tensor([1.0, None])).tolist() == [factor, None]
