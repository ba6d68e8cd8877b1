"""Lengths stay with a batch that was packed with them: each op keeps them, moves them with the sequences, or says so.

The law runs every entry of torch's database and every call of the package's own lists: of a batch with gaps, also at
the ends, whoever asks the result for lengths gets those of a batch without gaps, or an error.

``MASKED_TENSOR_LENGTHS=3 python -m pytest tests/test_packed_lengths.py`` runs all, with so many samples of each.
"""

import copy
import os
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor.engine.tensor import LOST
from masked_tensor.packing.lengths_table import FORM_KINDS, is_declared
from masked_tensor.rules import FAMILIES

from .helpers import database, ragged_calls
from .helpers.trees import tree_leaves, tree_map
from .laws import plain_runs
from .sweep import SKIPPED

SAMPLES = int(os.environ.get("MASKED_TENSOR_LENGTHS", "0"))  # of each entry; 0: one of every eighth
#: several ops: after one that loses lengths, such as the resizing of a transform, the others know of none
PROGRAMS = {
    "fft.fft2",
    "fft.hfft2",
    "fft.ifft2",
    "fft.ihfft2",
    "fft.irfft2",
    "fft.rfft2",
    "linalg.cond",
    "pca_lowrank",
    "svd_lowrank",
}
NAMES = sorted(name for name in database.ENTRIES if name not in {*SKIPPED, *PROGRAMS})
#: two ops, too: steps (N, ...) of a whole batch have no batch, and one that is made of them reads lengths from its mask
FLATTENED = {
    "cosine_embedding_loss", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss",
    "nn.Bilinear", "nn.CosineEmbeddingLoss", "nn.MultiLabelMarginLoss", "nn.MultiLabelSoftMarginLoss",
    "nn.MultiMarginLoss",
}  # fmt: skip
CALLS = [(name, call) for name, calls in ragged_calls.calls().items() for call in calls if name not in FLATTENED]
TURN = 8
BATCH, TIME = 5, 11  # sizes by which the dimensions of a result are known
LENGTHS = [3, 2, 4]
_ERRORS = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError)


def batch(features: int | None, side: str = "right") -> mt.MaskedTensor:
    """Sequences of 3, 2 and 4 steps ``(T,)`` or ``(T, features)``; the outer step of the first one is missing."""
    generator = torch.Generator().manual_seed(0)
    parts = []
    for n in LENGTHS:
        data = torch.randn(n, *(() if features is None else (features,)), generator=generator, dtype=torch.float64)
        mask = torch.ones(data.shape, dtype=torch.bool)
        if n == 3:
            mask[-1 if side == "right" else 0] = False
            data[~mask] = torch.nan
        parts.append(mt.as_masked_tensor(data, mask))
    return mt.from_sequences(parts, packed=True, padding_side=side)


# ----------------------------------------------------------------------------------------------------------- the table


def test_every_op_and_form_says_what_it_makes_of_lengths() -> None:
    missing = [op.name for family in FAMILIES for op in family.OPS if not is_declared(op)]
    missing += [name for name in mt.functional.__all__ if name not in FORM_KINDS]
    assert not missing, f"say in packing/lengths_table.py what becomes of lengths: {missing}"


# ------------------------------------------------------------------------------------------------------------- the law


def gaps(x: Tensor) -> tuple[Tensor, Tensor]:
    """Which steps ``(B, T)`` exist, and which entries are valid: at least the last step of a sequence is missing."""
    generator = torch.Generator().manual_seed(x.shape[0] * 31 + x.shape[1])
    lengths = torch.randint(1, x.shape[1] + 1, (x.shape[0],), generator=generator)
    exists = torch.arange(x.shape[1]) < lengths[:, None]
    steps = exists & (torch.rand(exists.shape, generator=generator) < 0.8)
    steps[torch.arange(len(x)), lengths - 1] = False
    wide = (..., *(None,) * (x.dim() - 2))
    return exists, steps[wide].expand(x.shape)


def pair_of_batches(x: Tensor) -> tuple[mt.MaskedTensor, mt.MaskedTensor]:
    """A batch with gaps that knows its lengths, and one of the same data, and strided, in which all that exists is
    valid."""
    exists, valid = gaps(x)
    data = x.detach()
    whole = mt.as_masked_tensor(data, exists[(..., *(None,) * (x.dim() - 2))].expand(x.shape))
    return mt.as_masked_tensor(data, valid).packed(lengths=exists.sum(1)), whole


def steps(x: mt.MaskedTensor, dims: tuple[int, int]) -> Tensor:
    """Which steps have something valid."""
    mask = x.get_mask().movedim(dims, (0, 1))
    return mask.flatten(2).any(2) if mask.dim() > 2 else mask


def check(what: str, given: Any, wanted: Any, counts: Counter[str]) -> None:
    """Results of a batch with gaps, and of one without."""
    for got, whole in zip(tree_leaves(given), tree_leaves(wanted), strict=True):
        if type(got) is not mt.MaskedTensor or got.dim() < 2 or type(whole) is not mt.MaskedTensor:
            continue
        p = got._packed
        if got._steps is LOST or (p is not None and p.grid.complete is None):
            counts["lost"] += 1
            with pytest.raises(ValueError, match="packed with lengths, but"):
                got.unpad()
            continue
        if p is not None and p.grid.complete and len(p.grid.shape) == 2:
            frame = p.frame
        elif got._steps is not None:
            frame = got._steps
        else:  # what has no batch, or no time, has no lengths either
            sizes = list(got.shape)
            if BATCH in sizes and TIME in sizes:
                dims = sizes.index(BATCH), sizes.index(TIME)
                same = steps(got, dims).equal(steps(whole, dims))
                assert same, f"{what}: lengths are read from the mask, and differ from those that were said"
            counts["no batch"] += 1
            continue
        if (0,) not in frame.order or (1,) not in frame.order:
            continue
        dims = frame.order.index((0,)), frame.order.index((1,))
        exists = steps(whole, dims)
        beyond = exists & ~frame.grid.mask
        assert not beyond.any(), f"{what}: {frame.grid.lengths.tolist()} leave steps out: {exists.sum(1).tolist()}"
        counts["kept"] += 1


def run(what: str, op: Callable[..., Any], args: Any, kwargs: Any, counts: Counter[str]) -> None:
    """One call, whose first tensor that can be one is a batch."""
    made: list[mt.MaskedTensor] = []

    def one(value: Any, which: int) -> Any:
        fits = isinstance(value, Tensor) and value.layout is torch.strided and value.dim() > 1 and value.numel()
        if not fits or made or value.is_quantized:
            return value
        made.append(pair_of_batches(value)[which])
        return made[-1]

    outcomes = []
    for which in (0, 1):
        made.clear()
        torch.manual_seed(0)
        try:
            taken, named = tree_map(lambda v, w=which: one(v, w), (args, kwargs))
            outcomes.append(op(*taken, **named) if made else None)
        except _ERRORS:
            return
    check(what, *outcomes, counts)


def widened(sample: database.Sample) -> database.Sample:
    """With a batch and a time before the dimensions of each tensor."""

    def wide(x: Any) -> Any:
        if not isinstance(x, Tensor) or x.layout is not torch.strided:
            return x
        return x.detach().expand(BATCH, TIME, *x.shape).clone()

    args, kwargs = tree_map(wide, (sample.args, sample.kwargs))
    return database.Sample(sample.op, args, kwargs)


def runs(case: database.Sample) -> bool:
    try:
        return plain_runs(case)
    except AssertionError:  # a widened sample of a Python function
        return False


@pytest.mark.filterwarnings("ignore")
def test_law_of_ops(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for name in NAMES if SAMPLES else NAMES[::TURN]:
        samples = list(database.samples(name, limit=max(SAMPLES, 1)))[: max(SAMPLES, 1)]
        for sample in samples:
            for case in (sample, widened(sample)):
                if runs(case):
                    run(name, case.op, case.args, case.kwargs, counts)
    assert min(counts[kind] for kind in ("kept", "lost", "no batch")) > 0
    record_property("lengths", dict(counts))


@pytest.mark.filterwarnings("ignore")
def test_law_of_forms_modules_and_losses(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(BATCH, TIME, ragged_calls.FEATURES, generator=generator, dtype=torch.float64) + 0.1
    for name, call in CALLS if SAMPLES else CALLS[::TURN]:
        packed, whole = pair_of_batches(x)
        said = {"lengths": packed.lengths()} if call.said == "lengths" else {}
        try:
            results = call(packed), call(whole, **said)
        except _ERRORS:
            continue
        check(name, *results, counts)
    assert counts["kept"]
    record_property("lengths", dict(counts))


# --------------------------------------------------------------------------------------------------- what has to stay

KEPT: dict[str, Callable[[Any], Any]] = {
    "one step": lambda x: x - x[:, :1],
    "one step by its number": lambda x: x / x[:, 0][:, None],
    "a later step": lambda x: x[:, 2:3] + x,
    "a sequence's mean": lambda x: x - x.mean(1, True),
    "where": lambda x: torch.where(x > 0, x, x[:, :1]),
    "maximum": lambda x: torch.maximum(x, x[:, :1]),
    "clamp": lambda x: x.clamp(min=x[:, :1]),
    "plain": lambda x: x * torch.ones(x.shape),
    "strided": lambda x: x + x.unpacked(),
    "masked_fill": lambda x: x.masked_fill(torch.ones(x.shape, dtype=torch.bool), 1.0),
    "bucketize": lambda x: torch.bucketize(x, torch.zeros(1, dtype=torch.float64)),
    "cumsum": lambda x: x.cumsum(1),
    "shift": lambda x: mt.shift(x, 1, 1),
    "shifted back": lambda x: mt.shift(x, -2, 1),
    "a copy": mt.masked_tensor,
    "a copy with a mask": lambda x: mt.masked_tensor(x, torch.ones(x.shape, dtype=torch.bool)),
    "as_masked_tensor": lambda x: mt.as_masked_tensor(x, torch.ones(x.shape, dtype=torch.bool)),
    "masked_invalid": mt.masked_invalid,
    "masked_where": lambda x: mt.masked_where(torch.zeros(x.shape, dtype=torch.bool), x),
    "clone": torch.clone,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "strict": lambda x: within(mt.strict(), lambda: x.exp()[..., :]),
    "meaning": lambda x: within(mt.meaning(product="all"), lambda: x * 2),
}  # fmt: skip
FEATURES: dict[str, Callable[[Any], Any]] = {
    "selected": lambda x: x[..., [0, 0]],
    "index_select": lambda x: x.index_select(-1, torch.tensor([0])),
    "gather": lambda x: x.gather(-1, torch.zeros(*x.shape[:2], 1, dtype=torch.int64)),
    "einsum": lambda x: torch.einsum("btf,fg->btg", x, torch.ones(x.shape[-1], 3, dtype=torch.float64)),
    "matmul": lambda x: x @ torch.ones(x.shape[-1], 3, dtype=torch.float64),
    "median": lambda x: x.median(-1).values,
    "quantile": lambda x: x.quantile(0.5, -1),
    "mt.median": lambda x: mt.median(x, -1)[0],
    "mt.quantile": lambda x: mt.quantile(x, 0.5, -1),
    "mt.amax": lambda x: mt.amax(x, dim=-1),
    "cosine_similarity": lambda x: torch.cosine_similarity(x, x.unpacked(), -1),
    "cosine_similarity with a vector": lambda x: torch.cosine_similarity(x, torch.ones(x.shape[-1]).double(), -1),
    "sort": lambda x: x.sort(-1).values,
    "topk": lambda x: x.topk(1, -1).values,
    "flip": lambda x: x.flip(-1),
    "roll": lambda x: x.roll(1, -1),
    "shift": lambda x: mt.shift(x, 1, -1),
    "norm": lambda x: x.norm(dim=-1),
    "mt.ffill": lambda x: mt.ffill(x, 1),
    "mt.bfill": lambda x: mt.bfill(x, 1),
    "mt.interpolate": lambda x: mt.interpolate(x, 1),
    "mt.rolling": lambda x: mt.rolling(x, 2, 1, min_periods=1).mean(),
    "a class of each": lambda x: x.argmax(-1),
}
MOVED: dict[str, tuple[Callable[[Any], Any], list[int]]] = {
    "flip": (lambda x: x.flip(0), [4, 2, 3]),
    "roll": (lambda x: x.roll(1, 0), [4, 3, 2]),
    "repeat": (lambda x: x.repeat(2, *(1,) * (x.dim() - 1)), LENGTHS * 2),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 0), [3, 3, 2, 2, 4, 4]),
    "sort": (lambda x: x.sort(0).values, [4, 3, 2]),
    "index_select": (lambda x: x.index_select(0, torch.tensor([2, 0])), [4, 3]),
    "by numbers": (lambda x: x[[1, 2]], [2, 4]),
    "by a mask": (lambda x: x[torch.tensor([True, False, True])], [3, 4]),
    "slice": (lambda x: x[::2], [3, 4]),
    "one": (lambda x: x[:1], [3]),
    "none": (lambda x: x[:0], []),
    "cat": (lambda x: torch.cat([x, x]), LENGTHS * 2),
    "every second step": (lambda x: x[:, ::2], [2, 1, 2]),
    "cut": (lambda x: x[:, :3], [3, 2, 3]),
}
LOSE: dict[str, Callable[[Any], Any]] = {
    "time is turned": lambda x: x.flip(1),
    "time is rolled": lambda x: x.roll(1, 1),
    "other lengths": lambda x: x + x.unpacked().packed(lengths=[4, 4, 4]),
    "padding is made valid": lambda x: torch.where(torch.zeros(x.shape, dtype=torch.bool), x, 0.0),
}


def within(context: Any, call: Callable[[], Any]) -> Any:
    with context:
        return call()


def plain_lengths(x: mt.MaskedTensor) -> list[int]:
    return x.lengths().tolist()


@pytest.mark.parametrize("features", [None, 1, 2])
@pytest.mark.parametrize("name", KEPT)
def test_lengths_stay(name: str, features: int | None) -> None:
    x = batch(features)
    result = KEPT[name](x)
    assert plain_lengths(result) == LENGTHS
    assert [len(part) for part in result.unpad()] == LENGTHS
    assert result.is_packed


@pytest.mark.parametrize("features", [1, 2])
@pytest.mark.parametrize("name", FEATURES)
def test_lengths_stay_with_ops_over_features(name: str, features: int) -> None:
    for side in ("right", "left"):
        assert plain_lengths(FEATURES[name](batch(features, side))) == LENGTHS


@pytest.mark.parametrize("features", [None, 1, 2])
@pytest.mark.parametrize("name", MOVED)
def test_lengths_follow_their_sequences(name: str, features: int | None) -> None:
    call, lengths = MOVED[name]
    x = batch(features)
    assert plain_lengths(call(x)) == lengths
    wanted = call(x.unpacked())
    got = call(x)
    assert got.get_mask().equal(wanted.get_mask())
    assert got.filled(0).equal(wanted.filled(0))


@pytest.mark.parametrize("features", [None, 1, 2])
@pytest.mark.parametrize("name", LOSE)
def test_who_asks_for_lost_lengths_is_told(name: str, features: int | None) -> None:
    lost = LOSE[name](batch(features))
    for x in (lost, lost.unpacked(), lost.unpacked().packed(), pickle.loads(pickle.dumps(lost.packed()))):
        for ask in (mt.MaskedTensor.lengths, mt.MaskedTensor.unpad, mt.to_left, mt.to_right, mt.MaskedTensor.to_nested):
            with pytest.raises(ValueError, match=r"packed with lengths, but.*lengths=\["):
                ask(x)
    said = lost.unpacked().packed(lengths=[4, 4, 4])
    assert plain_lengths(said) == [4, 4, 4]
    assert [len(part) for part in lost.unpad(lengths=[4, 4, 4])] == [4, 4, 4]


def test_an_unpacked_batch_answers_as_before() -> None:
    x = batch(2)
    padded = x.unpacked()
    assert not padded.is_packed
    assert plain_lengths(padded) == plain_lengths(padded.packed()) == plain_lengths(mt.masked_tensor(padded)) == LENGTHS
    for turn in (mt.to_left, mt.to_right):
        assert turn(padded).get_mask().equal(turn(x).get_mask())
        assert not turn(padded).is_packed
    padded[1, 3] = 1.0  # behind its end
    with pytest.raises(ValueError, match="packed with lengths, but"):
        padded.lengths()


WRITES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda x: x.__setitem__((1, 0), None),
    "a valid entry": lambda x: x.__setitem__((1, 0), 9.0),
    "a gap": lambda x: x.__setitem__((0, 2), 9.0),
    "a row": lambda x: x[:1].mul_(2),
    "a row by its number": lambda x: x[0].fill_(2.0),
    "rows by their numbers": lambda x: x.index_fill_(0, torch.tensor([], dtype=torch.int64), 2.0),
    "all": lambda x: x.mul_(2),
    "a copy": lambda x: x.copy_(x * 2),
}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("features", [None, 1, 2])
@pytest.mark.parametrize("name", WRITES)
def test_writes_leave_lengths(name: str, features: int | None, held: bool) -> None:
    x = batch(features)
    view = x[1:] if held else None
    WRITES[name](x)
    for result in (x, x + 1, x.clone(), x.exp(), x.transpose(0, 1).transpose(0, 1)):
        assert plain_lengths(result) == LENGTHS
    assert plain_lengths(mt.cat([x, x])) == LENGTHS * 2
    assert plain_lengths(mt.join(x, x)) == [2 * n for n in LENGTHS]
    if held:
        assert plain_lengths(view) == plain_lengths(view * 2) == LENGTHS[1:]
    x[1, 3] = 1.0
    with pytest.raises(ValueError, match="packed with lengths, but"):
        x.lengths()


def test_what_is_asked_for_unpacked_stays_so() -> None:
    """Also of a batch that a write has unpacked, whose results are packed; views and results of it, too."""
    written = batch(None)
    written[0, 0] = 9.0
    assert not written.is_packed
    assert (written + 1).is_packed
    for x in (batch(None).unpacked(), written.unpacked(), written.unpacked()[:1], mt.masked_tensor(written.unpacked())):
        x[:1] = x[:1] * 2  # a view is made of it, and it is written
        for y in (x, x + 1, x[:1], x[:1].exp(), copy.deepcopy(x), x.unpacked()):
            assert not y.is_packed
        assert plain_lengths(x) == LENGTHS[: len(x)]
    assert written[0, 0].item() == 36.0  # two of the four were views of it


def test_a_batch_that_is_turned_in_place_forgets_where_it_was() -> None:
    x = mt.from_sequences([mt.masked_tensor([1.0, None]), mt.masked_tensor([3.0])], packed=True)
    x.t_()
    with pytest.raises(ValueError, match="packed with lengths, but"):
        x.lengths()


def test_gradients_flow_through_what_is_packed_again() -> None:
    def of(x: Any) -> Any:
        y = x.flip(0).index_select(-1, torch.tensor([1, 0, 1])) * 2
        return (mt.median(y, -1)[0] + torch.quantile(y, 0.5, -1)).sum()

    leaf, padded = batch(2).requires_grad_(), batch(2).unpacked().requires_grad_()
    for x in (leaf, padded):
        of(x).backward()
    assert leaf.grad.filled(0).equal(padded.grad.filled(0))
    assert plain_lengths(leaf.grad) == LENGTHS


def test_compiled_code_keeps_them() -> None:
    x = batch(2)
    for call in (lambda x: x - x[:, :1], lambda x: x[..., [0, 0]] * 2):
        result = torch.compile(call, backend="aot_eager", fullgraph=True)(x)
        assert plain_lengths(result) == LENGTHS


# ------------------------------------------------------------------------------------- one feature; nothing to measure


@pytest.mark.parametrize(
    "fill", [mt.ffill, mt.bfill, mt.interpolate, lambda *a, **k: mt.rolling(a[0], 2, a[1], **k).mean()]
)
def test_one_feature_takes_lengths(fill: Callable[..., Any]) -> None:
    x = batch(1).unpacked()
    bare = mt.as_masked_tensor(x.filled(0), x.get_mask()).packed()
    wanted = fill(x, 1, lengths=LENGTHS)
    for side in (bare, x.packed(lengths=LENGTHS)):
        got = fill(side, 1, lengths=LENGTHS)
        assert plain_lengths(got) == LENGTHS
        assert got.get_mask().equal(wanted.get_mask())
        torch.testing.assert_close(got.filled(0), wanted.filled(0))


EMPTY: dict[str, Callable[[Any], Any]] = {
    "from_lengths": lambda x: mt.from_lengths(torch.zeros(0, 3), []),
    "packed from_lengths": lambda x: mt.from_lengths(torch.zeros(0, 3), [], packed=True),
    "packed": lambda x: x.packed(lengths=[]),
    "to_left": lambda x: mt.to_left(x, lengths=[]),
    "to_right": lambda x: mt.to_right(x, lengths=[]),
    "ffill": lambda x: mt.ffill(x, 1, lengths=[]),
    "bfill": lambda x: mt.bfill(x, 1, lengths=[]),
    "interpolate": lambda x: mt.interpolate(x, 1, lengths=[]),
    "shift": lambda x: mt.shift(x, 1, 1, lengths=[]),
    "rolling": lambda x: mt.rolling(x, 2, 1, lengths=[]).mean(),
}


@pytest.mark.parametrize("name", EMPTY)
def test_no_sequences_have_no_lengths(name: str) -> None:
    x = mt.from_lengths(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
    result = EMPTY[name](x)
    assert result.shape == (0, 3)
    assert plain_lengths(result) == []
    assert result.unpad(lengths=[]) == []
    assert mt.lengths_to_mask([]).shape == (0, 0)
    with pytest.raises(TypeError, match="integers"):
        mt.from_lengths(torch.zeros(0, 3), torch.zeros(0))
