"""Features that are joined to padding: who is told, and that the way out gives what each sequence gives alone.

The models are usual ones, each with the line that joins as people write it.  NaN lies under every mask.
"""

import os
import random
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor.extend import packing_report
from masked_tensor.testing import poison

NAN = float("nan")
LENGTHS = [4, 2, 1]
B, T, C = 3, 4, 2
WARNS = "joins valid features to masked steps of another part"
DRAWS = int(os.environ.get("MASKED_TENSOR_JOINS", "60"))
Join = Callable[[Any], Any]
Model = Callable[[Any, Join], Any]


def said(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in seen]


def plainly(part: Any) -> Any:
    return part


def timed(lengths: Any, packed: bool = False) -> Join:
    """The line that the warning names."""
    return lambda part: mt.from_lengths(part, lengths, packed=packed)


class Net(nn.Module):
    """All layers that the models use, of the widths that they need."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.ModuleDict({str(n): nn.Linear(n, 3) for n in range(2, 8)})
        self.gru = nn.ModuleDict({str(n): nn.GRU(n, 3, batch_first=True) for n in range(2, 8)})
        self.conv = nn.Conv1d(4, 3, 3, padding=1)
        self.score = nn.Linear(3, 1)
        self.double()

    def linear(self, x: Any) -> Any:
        return self.lin[str(x.shape[-1])](x)


torch.manual_seed(0)
NET = Net()
HOURS, STATIC = torch.rand(B, T, 1).double(), torch.rand(B, 3).double()


def speaker(x: Any, rows: slice, give: Join) -> Any:
    """An embedding of the speaker beside each frame, as in SpeechT5."""
    given = STATIC[rows][:, None].expand(-1, x.shape[1], -1)
    return NET.linear(torch.cat([x, give(given)], -1)).relu().mean(1)


def times(x: Any, rows: slice, give: Join) -> Any:
    """Known features of time, as in Informer and the TimeSeriesTransformer."""
    h = torch.cat([x, give(HOURS[rows, : x.shape[1]])], -1)
    return NET.gru["3"](h)[1][0]


def one_series(x: Any, rows: slice, give: Join) -> Any:
    """The same of one feature."""
    h = torch.cat([x[..., :1], give(HOURS[rows, : x.shape[1]])], -1)
    return NET.gru["2"](h)[1][0]


def stacked(x: Any, rows: slice, give: Join) -> Any:
    """Values and hours as the two features of a series."""
    h = torch.stack([x[..., 0], give(HOURS[rows, : x.shape[1], 0])], -1)
    return NET.linear(h).relu().mean(1)


def coordinates(x: Any, rows: slice, give: Join) -> Any:
    """CoordConv along one dimension: the place of a step as a channel."""
    place = torch.arange(x.shape[1]).double()[:, None].expand(x.shape[0], -1, 2)
    h = torch.cat([x.transpose(1, 2), give(place).transpose(1, 2)], 1)
    return NET.conv(h).relu().mean(2)


def additive_attention(x: Any, rows: slice, give: Join) -> Any:
    """A query beside each key, and a softmax over the keys."""
    query = STATIC[rows][:, None].expand(-1, x.shape[1], -1)
    weight = NET.score(NET.linear(torch.cat([give(query), x], -1)).tanh()).softmax(1)
    return (weight * x).sum(1)


def point_net(x: Any, rows: slice, give: Join) -> Any:
    """The global feature of a set beside each of its points."""
    whole = x.amax(1, keepdim=True).expand_as(x)
    return NET.linear(torch.cat([x, give(whole)], -1)).amax(1)


def context(x: Any, rows: slice, give: Join) -> Any:
    """The mean of a sequence beside each step."""
    return NET.linear(torch.cat([x, give(x.mean(1, True).expand_as(x))], -1)).relu().mean(1)


def biaffine(x: Any, rows: slice, give: Join) -> Any:
    """A one beside the features, for the bias of a product of pairs."""
    h = torch.cat([x, give(torch.ones(x.shape[0], x.shape[1], 1).double())], -1)
    return (h @ h.mT).logsumexp((1, 2))


def gru_d(x: Any, rows: slice, give: Join) -> Any:
    """Values, an indicator and the time since the last value, by hand."""
    since = HOURS[rows, : x.shape[1]].expand(-1, -1, x.shape[2])
    h = torch.cat([x, give(torch.ones_like(since)), give(since)], -1)
    return NET.gru["6"](h)[1][0]


def film(x: Any, rows: slice, give: Join) -> Any:
    """Scales from a condition and the steps together."""
    given = give(STATIC[rows][:, None].expand(-1, x.shape[1], -1))
    return (NET.linear(torch.hstack([x.mT, given.mT]).mT).sigmoid()[..., :2] * x).sum(1)


MODELS = {
    f.__name__: f
    for f in (
        speaker, times, one_series, stacked, coordinates, additive_attention, point_net, context, biaffine, gru_d, film,
    )
}  # fmt: skip


def batch(packed: bool) -> tuple[Any, list[Tensor]]:
    data = torch.linspace(-1, 1, B * T * C).double().sin().view(B, T, C)
    x = poison(mt.from_lengths(data, LENGTHS), NAN)
    return x.packed() if packed else x, [data[k : k + 1, :n] for k, n in enumerate(LENGTHS)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_usual_models_are_told_and_exact_by_the_line_that_is_named(name: str, packed: bool) -> None:
    model = MODELS[name]
    x, rows = batch(packed)
    expected = torch.cat([model(row, slice(k, k + 1), plainly) for k, row in enumerate(rows)])
    messages = said(lambda: model(x, slice(None), plainly))
    assert messages
    assert all(WARNS in message for message in messages)
    assert all(("packed=True" in m) == (packed and "dim=" not in m) for m in messages)
    with mt.strict(), pytest.raises(mt.MaskMismatchError, match=WARNS):
        model(x, slice(None), plainly)
    for give in (timed(LENGTHS, packed), timed(x.lengths(), packed)):
        ours = model(x, slice(None), give)  # warnings are errors
        torch.testing.assert_close(ours.filled(NAN), expected)
    if name in ("context", "point_net") and packed:
        return  # the mean is taken of what strict() compares with a strided part
    with mt.strict():
        torch.testing.assert_close(model(x, slice(None), timed(LENGTHS, packed)).filled(NAN), expected)


ALL = ("speaker", "times", "one_series", "stacked", "additive_attention", "point_net", "context", "gru_d")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_a_product_that_needs_all_of_its_terms_is_the_other_way_out(name: str, packed: bool) -> None:
    model = MODELS[name]
    x, rows = batch(packed)
    expected = torch.cat([model(row, slice(k, k + 1), plainly) for k, row in enumerate(rows)])
    with mt.meaning(product="all"):
        torch.testing.assert_close(model(x, slice(None), plainly).filled(NAN), expected)


def test_pairs_are_told_of() -> None:
    x, rows = batch(False)

    def pairs(x: Any) -> Any:
        t = x.shape[1]
        both = [x[:, :, None].expand(-1, t, t, -1), x[:, None].expand(-1, t, t, -1)]
        return NET.linear(torch.cat(both, -1)).relu().mean((1, 2))

    assert re.search(r"as_masked_tensor\(plain, x.mask.narrow\(3, 0, 1\)\)", said(lambda: pairs(x))[0])
    with mt.meaning(product="all"):
        torch.testing.assert_close(pairs(x).filled(NAN), torch.cat([pairs(row) for row in rows]))


@pytest.mark.parametrize("packed", [False, True])
def test_the_gradients_of_the_way_out_are_those_of_the_sequences(packed: bool) -> None:
    data = torch.randn(B, T, C).double().requires_grad_()
    known = torch.rand(B, T, 1).double().requires_grad_()
    x = mt.from_lengths(data, LENGTHS, packed=packed)
    h = torch.cat([x, mt.from_lengths(known, LENGTHS, packed=packed)], -1)
    assert h.is_packed == packed
    ours = torch.autograd.grad(NET.linear(h).sin().sum(), (data, known))
    alone = sum(NET.linear(torch.cat([data[k, :n], known[k, :n]], -1)).sin().sum() for k, n in enumerate(LENGTHS))
    torch.testing.assert_close(ours, torch.autograd.grad(alone, (data, known)))


def test_what_is_no_join_of_features_is_silent() -> None:
    x, _ = batch(False)
    table = mt.masked_invalid(torch.tensor([[1.0, NAN], [NAN, 2.0]]))
    token, rows = (
        torch.zeros(B, 1, C).double(),
        mt.as_masked_tensor(torch.ones(B, T, C), torch.tensor([[[True]]] * 2 + [[[False]]])),
    )
    for given in (x, x.packed()):
        calls = (
            lambda x: torch.cat([token, x], 1),
            lambda x: torch.cat([token, x[:, :1]], 1),
            lambda x: torch.cat([x, torch.zeros(B, T, C).double()], 0),
            lambda x: torch.stack([x, torch.zeros(B, T, C).double()]),
            lambda x: torch.cat([x, 2 * x], -1),
            lambda x: torch.stack([x, -x], -1),
            lambda x: torch.stack([torch.zeros(B, C).double(), x[:, 1]], 1),
        )
        for call in calls:
            call(given)
            with mt.strict():
                call(given)
    for call in (
        lambda: torch.cat([table, torch.ones(2, 1)], 1),
        lambda: torch.stack([table[0], torch.ones(2)], 1),
        lambda: torch.cat([torch.zeros(B, 1, C), rows], 1),
        lambda: torch.cat([mt.as_masked_tensor(torch.ones(B, T, C), torch.tensor(True)), HOURS], -1),
        lambda: torch.cat([x[:0], HOURS[:0]], -1),
    ):
        call()
        with mt.strict():
            call()


def test_a_dense_mask_is_seen_inside_of_strict_alone() -> None:
    data = torch.randn(B, T, C)
    mask = mt.lengths_to_mask(LENGTHS, T)[..., None].repeat(1, 1, C)
    mask[0, 1, 0] = False
    x = poison(mt.as_masked_tensor(data, mask), NAN)
    torch.cat([x, torch.rand(B, T, 1)], -1)
    for other in (torch.rand(B, T, 1), x.mean(1, True).expand_as(x)):
        with mt.strict(), pytest.raises(mt.MaskMismatchError, match=WARNS):
            torch.cat([x, other], -1)
    gaps = x.packed(lengths=LENGTHS)
    for other in (torch.rand(B, T, 1), x.mean(1, True).expand_as(x)):
        assert "packed=True" in said(lambda other=other: torch.cat([gaps, other], -1))[0]
    both = torch.cat([gaps, mt.from_lengths(torch.rand(B, T, 1), LENGTHS, packed=True)], -1)
    assert both.lengths().tolist() == LENGTHS
    assert not both.mask[0, 1, 0]
    assert both.mask[0, 1, -1]  # the hour of a gap is known


def test_a_full_batch_joins_inside_of_strict() -> None:
    x = mt.from_lengths(torch.ones(2, 3, 2), [3, 3])
    with mt.strict():
        assert torch.cat([x, torch.ones(2, 3, 1)], -1).mask.all()


def test_joins_of_other_sizes_are_told_of() -> None:
    x = mt.from_sequences([torch.ones(3, 2), torch.ones(1, 2)])
    for call in (
        lambda: mt.cat([x, torch.ones(2, 3, 1)], -1),
        lambda: mt.cat([x.packed(), torch.ones(2, 3, 1)], -1),
        lambda: torch.dstack([x, torch.ones(2, 3, 1)]),
        lambda: torch.concatenate([x, torch.ones(2, 3, 1)], axis=-1),
        lambda: torch.column_stack([x.mT, torch.ones(2, 1, 3)]),
    ):
        (message,) = said(call)
        assert WARNS in message


@pytest.mark.parametrize("packed", [False, True])
def test_other_meanings_and_batches_that_are_not_batch_first(packed: bool) -> None:
    x, _ = batch(packed)
    with mt.meaning(padding="tensor"):
        assert said(lambda: torch.cat([x, HOURS], -1))
    steps = x.transpose(0, 1)
    assert said(lambda: torch.cat([steps, HOURS.transpose(0, 1)], -1))
    assert "dim=2" in said(lambda: torch.cat([x.transpose(1, 2), HOURS.transpose(1, 2)], 1))[0]


def test_the_packing_report_counts_the_join() -> None:
    x, _ = batch(True)
    with packing_report() as report, pytest.warns(UserWarning, match="A packed batch is unpacked by this join"):
        torch.cat([x, HOURS], -1)
    assert "aten::cat" in str(report)


def test_compiled_code_tells_while_it_is_traced() -> None:
    x, _ = batch(False)
    compiled = torch.compile(lambda x, h: torch.cat([x, h], -1) * 2, backend="aot_eager", fullgraph=True)
    assert WARNS in said(lambda: compiled(x, HOURS))[0]
    assert compiled(x, HOURS).mask[2, 3].tolist() == [False, False, True]
    assert not said(lambda: compiled(x, HOURS))


# ------------------------------------------------------------------------------------------------------------- the law


def drawn_part(rng: random.Random, shape: tuple[int, ...], lengths: list[int]) -> tuple[str, Any]:
    """A part of a join of ``shape``, whose second dimension is time; NaN under its mask."""
    data = torch.tensor([rng.uniform(-1, 1) for _ in range(torch.Size(shape).numel())], dtype=torch.float64).view(shape)
    kind = rng.choice(["plain", "strided", "strided", "packed", "gaps", "dense", "expanded"])
    steps = mt.lengths_to_mask(lengths, shape[1]).view(*shape[:2], *(1,) * (len(shape) - 2))
    if kind == "plain":
        return kind, data
    if kind == "expanded":
        return kind, mt.as_masked_tensor(data[:, :1], steps[:, :1]).expand(shape)
    x = poison(mt.from_lengths(data, lengths), NAN)
    if kind == "packed":
        return kind, x.packed()
    if kind == "gaps":
        mask = steps & (data > -0.7)
        return kind, poison(mt.as_masked_tensor(data, mask), NAN).packed(lengths=lengths)
    if kind == "dense":
        return kind, poison(mt.as_masked_tensor(data, steps.expand(shape).contiguous() & (data > -0.7)), NAN)
    return kind, x


@pytest.mark.parametrize("seed", range(3))
def test_a_warning_comes_exactly_where_features_meet_padding(seed: int) -> None:
    rng = random.Random(seed)
    found = set()
    for _ in range(DRAWS):
        rank, time = rng.choice([3, 3, 4]), rng.randint(2, 4)
        lengths = [rng.randint(1, time) for _ in range(3)]
        lengths[rng.randrange(3)] = time
        new = rng.random() < 0.3
        dim = rng.randrange(0, rank + new) if rng.random() < 0.4 else rng.randrange(2, rank + new)
        sizes = [rng.randint(2, 3) for _ in range(rank - 2)]
        parts = []
        for _ in range(rng.randint(2, 3)):
            if not new and dim > 1:
                sizes = [rng.randint(2, 3) if d + 2 == dim else n for d, n in enumerate(sizes)]
            parts.append(drawn_part(rng, (3, time, *sizes), lengths))
        kinds, given = [k for k, _ in parts], [p for _, p in parts]
        features = dim > 1 or (new and dim == 1)
        told = ["strided", "packed", "gaps", *(["dense"] if new else [])]
        wide = [k in ("plain", "expanded") for k in kinds]
        expected = features and any(k in told for k in kinds) and any(wide) and min(lengths) < time
        join: Any = partial(torch.stack if new else torch.cat, dim=dim)
        messages = said(partial(join, given))
        # of a batch that is full it is not always known, so that nothing is expected of it
        if min(lengths) < time:
            assert len(messages) == expected, (kinds, dim, new, lengths, messages)
        with mt.meaning(product="all"):
            assert not said(partial(join, given))
        reach = [
            torch.as_tensor(p.mask if isinstance(p, mt.MaskedTensor) else torch.ones(p.shape, dtype=bool))
            for p in given
        ]
        meets = [m if new else m.any(dim, keepdim=True) for m in reach]
        clash = any((~a & b).any() for a in meets for b in meets)
        with mt.strict():
            raised = _raises(join, given)
        assert raised <= bool(clash and dim), (kinds, dim, new, lengths)
        if expected:
            assert raised, (kinds, dim, new, lengths)
        found.add((expected, raised, new))
        _check_way_out(join, parts, lengths, dim, features)
    assert {(True, True, False), (True, True, True), (False, False, False)} <= found


def _raises(join: Join, given: list[Any]) -> bool:
    try:
        join(given)
    except mt.MaskMismatchError:
        return True
    return False


def _check_way_out(join: Join, parts: list[tuple[str, Any]], lengths: list[int], dim: int, features: bool) -> None:
    """With the lengths of the batch nothing is said, and each entry is what the sequences have."""
    if not features:
        return
    packed = [k in ("packed", "gaps") for k, _ in parts]
    given = [mt.from_lengths(p, lengths, packed=any(packed)) if k in ("plain", "expanded") else p for k, p in parts]
    ours = join(given)
    if all(packed[i] or k in ("plain", "expanded") for i, (k, _) in enumerate(parts)) and any(packed):
        assert ours.is_packed
    data = join([p.filled(7.0) if isinstance(p, mt.MaskedTensor) else p for p in given])
    mask = join([p.mask for p in given])
    assert ours.mask.equal(mask)
    assert ours.filled(7.0).equal(data)
    for row, n in enumerate(lengths):
        time = 1 if dim > 1 else 2
        behind = ours.mask.narrow(time, n, ours.shape[time] - n)[row]
        assert not behind.any()  # no step of padding became valid
