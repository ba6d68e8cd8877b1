"""Sums of losses: each trains on the parts that exist, or says that it does not.

The law: for random losses, masks, weights, reductions and ways to add them up, the gradient is that of the valid parts,
computed by plain torch of the valid entries, or the warning was given.  ``MASKED_TENSOR_LOSSES=20000`` runs so many.
"""

import math
import os
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import masked_tensor as mt
from masked_tensor.api.losses import masked_losses
from masked_tensor.compat import IS_OLD

from .helpers.ranks import gathered
from .helpers.reads import no_sync

COUNT = int(os.environ.get("MASKED_TENSOR_LOSSES", "200"))
GARBAGE = float("nan"), float("inf"), -float("inf"), 1e30, -7.0
NOTHING = mt.masked_tensor([float("nan")], [False])  # no label in this batch


@contextmanager
def counted() -> Iterator[list[Any]]:
    """The warnings of masked losses that are given inside; another warning is an error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        warnings.simplefilter("always", mt.MaskedLossWarning)
        yield seen


def weight() -> Tensor:
    return torch.tensor(2.0, requires_grad=True)


def pair(w: Tensor) -> tuple[Tensor, Tensor]:
    """A loss of one label, and one of none."""
    return F.mse_loss(w.expand(1), mt.masked_tensor([5.0])), F.mse_loss(w.expand(1), NOTHING)


# -------------------------------------------------------------------------------------------------- sums of two losses

SUMS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "a + b": lambda a, b, w: a + b,
    "sum": lambda a, b, w: sum([a, b]),  # type: ignore[return-value]
    "weighted": lambda a, b, w: 1 * a + 0.3 * b,
    "penalty": lambda a, b, w: b + 0.01 * w.square().sum(),
    "reduction": lambda a, b, w: a + F.mse_loss(w.expand(1), NOTHING, reduction="sum"),
    "in place": lambda a, b, w: a.mul(1).add_(b),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_that_is_masked_says_so_where_the_user_calls(name: str) -> None:
    w = weight()
    for _ in range(2):  # every time
        loss = SUMS[name](*pair(w), w)
        with counted() as seen:
            loss.backward()
        assert [warning.category for warning in seen] == [mt.MaskedLossWarning]
        assert seen[0].filename == __file__
        assert "mask" in str(seen[0].message)
        assert "total" in str(seen[0].message)
    assert w.grad is not None
    assert w.grad.item() == 0


def test_total_trains_what_exists() -> None:
    w = weight()
    a, b = pair(w)
    with counted() as seen:
        mt.total(a, b, w.square()).backward()
    assert not seen
    assert w.grad is not None
    assert w.grad.item() == 2 * (2 - 5) + 2 * 2


def test_five_tasks_with_few_labels() -> None:
    """Of five tasks with 20 % labels each, a batch of 8 has all with a probability of 0.4."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 5)
    idle = {"+": 0, "total": 0}
    told = dict.fromkeys(idle, 0)
    for _ in range(60):
        x, target = torch.randn(8, 4), mt.as_masked_tensor(torch.randn(8, 5), torch.rand(8, 5) < 0.2)
        for how in idle:
            losses = [F.mse_loss(net(x)[:, k], target[:, k]) for k in range(5)]
            net.zero_grad()
            with counted() as seen:
                (sum(losses) if how == "+" else mt.total(*losses)).backward()
            idle[how] += not net.weight.grad.any()
            told[how] += len(seen)
    assert idle == told
    assert idle["+"] > 20
    assert idle["total"] == 0


# ---------------------------------------------------------------------------------------------- every backward pass


def by_backward(loss: Tensor, w: Tensor) -> None:
    loss.backward()


def by_autograd_backward(loss: Tensor, w: Tensor) -> None:
    torch.autograd.backward([loss])


def by_grad(loss: Tensor, w: Tensor) -> None:
    (w.grad,) = torch.autograd.grad(loss, w)


def by_scaler(loss: Tensor, w: Tensor) -> None:
    torch.amp.GradScaler("cpu", init_scale=1.0).scale(loss).backward()


def by_accelerate(loss: Tensor, w: Tensor) -> None:
    pytest.importorskip("accelerate").Accelerator(cpu=True).backward(loss)


ROADS: Sequence[Callable[[Tensor, Tensor], None]] = (by_backward, by_autograd_backward, by_grad, by_scaler)


@pytest.mark.parametrize("road", [*ROADS, by_accelerate])
def test_every_road_says_so(road: Callable[[Tensor, Tensor], None]) -> None:
    w = weight()
    for _ in range(2):
        a, b = pair(w)
        with counted() as seen:
            road(a + b, w)
        assert len(seen) == 1
        assert w.grad is not None
        assert not w.grad.any()
    with counted() as seen:
        road(mt.total(*pair(w)), w)
    assert not seen
    assert w.grad.any()


def test_compiled_steps_say_so() -> None:
    def loss(w: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(w.expand(1), target)

    def step(w: Tensor, target: Tensor) -> Tensor:
        loss(w, target).backward()
        return w.grad  # type: ignore[return-value]

    forward = torch.compile(loss, backend="aot_eager")
    whole = torch.compile(step, backend="aot_eager")
    w = weight()
    given = mt.masked_tensor([5.0, 5.0], [True, False])[:1]
    for target, expected in ((given, 0), (NOTHING, 1), (given, 0), (NOTHING, 1)):
        with counted() as seen:
            forward(w, target).backward()
        assert len(seen) == expected
        with counted() as seen:
            whole(w, target)
        assert len(seen) == expected


def test_total_in_one_graph() -> None:
    def loss(w: Tensor, target: Tensor, share: Any) -> Tensor:
        return mt.total(F.mse_loss(w.expand(1), target), w.square(), weights=[share, 0.5])

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    for target in (NOTHING, mt.masked_tensor([5.0])):
        for share in (0.5, torch.tensor(0.75)):
            w, v = weight(), weight()
            found, expected = compiled(w, target, share), loss(v, target, share)
            torch.testing.assert_close(found, expected)
            found.backward()
            expected.backward()
            assert w.grad == v.grad


def test_which_roots_say_so() -> None:
    w = weight()
    padded = mt.from_lengths(w.expand(2, 3) * 1.0, torch.tensor([0, 0]))
    entries = w * mt.masked_tensor([1.0, 2.0], [False, False])
    good = w * mt.masked_tensor([1.0, None])

    def told(roots: list[Tensor], gradients: list[Tensor] | None = None) -> int:
        with counted() as seen:
            torch.autograd.backward(roots, gradients, retain_graph=True)
        return len(seen)

    assert told([entries], [torch.ones(2)]) == 1
    assert told([entries, good], [torch.ones(2)] * 2) == 0  # all of them together
    assert told([entries.sum(), entries.mean()]) == 1
    assert told([entries.sum(), w * 1]) == 0  # a plain root is valid
    assert told([entries[:0]], [torch.ones(0)]) == 0  # no entries are none that are masked
    assert told([padded], [torch.ones(2, 3)]) == 1
    assert told([entries.to_sparse()], [torch.ones(2).to_sparse()]) == 1
    if not IS_OLD:  # where torch cannot ask a Function for the shape of its result
        assert told([torch.autograd.graph.get_gradient_edge(entries.sum())]) == 0  # type: ignore[list-item]
    with FlopCounterMode(display=False):  # as any mode that sees every op; docs/limits.md names both
        assert told([entries.sum()]) == 0


def test_packed_roots() -> None:
    w = weight()
    x = mt.from_sequences([torch.ones(2), torch.ones(1)], packed=True) * w
    for root, expected in ((x, 0), (x.masked_fill(mt.masked_tensor([[False]], [[False]]), 0), 1)):
        with counted() as seen:
            root.backward(torch.ones(2, 2), retain_graph=True)
        assert len(seen) == expected


def test_a_pass_inside_of_another_does_not_say_so() -> None:
    """A reentrant checkpoint goes back through its own part of the model."""
    w = weight()

    def part(w: Tensor) -> Tensor:
        return w * NOTHING

    with counted() as seen:
        inner = torch.utils.checkpoint.checkpoint(part, w, use_reentrant=True)
        mt.total(inner.sum(), w.square()).backward()
    assert not seen


# ------------------------------------------------------------------------------------------ strict, mean_over, devices


def test_strict_raises_before_anything_is_computed() -> None:
    w = weight()
    a, b = pair(w)
    with mt.strict():
        with pytest.raises(mt.MaskedValueError, match=r"mask.*total"):
            b.backward()
        assert w.grad is None
        mt.total(a, b, weights=[1, torch.tensor(0.5)]).backward()
    assert w.grad is not None


def accumulated(w: Tensor, targets: Sequence[Tensor]) -> mt.mean_over:
    mean = mt.mean_over(parameters=[w])
    for target in targets:
        with mean:
            loss = F.mse_loss(w.expand(1), target)
        loss.backward()
    return mean


def test_a_part_of_a_mean_does_not_say_so_the_whole_does() -> None:
    w = weight()
    with counted() as seen:
        accumulated(w, [NOTHING, mt.masked_tensor([5.0]), NOTHING]).finish()
        assert not seen
        mean = accumulated(w, [NOTHING, NOTHING])
        assert not seen
        mean.finish()
        assert len(seen) == 1
        mean = accumulated(w, [NOTHING])
        F.mse_loss(w.expand(1), NOTHING).backward()  # is no part of it
        assert len(seen) == 2
        mean.reset()
        with mt.mean_over():
            loss = F.mse_loss(w.expand(1), NOTHING)
        loss.backward()
        assert len(seen) == 3
        accuracy = mt.mean_over(parameters=())  # of which nothing is trained
        accuracy.mean(NOTHING)
        accuracy.finish()
        assert len(seen) == 3


def test_a_mean_that_strict_refuses_to_finish_stays_as_it_is() -> None:
    w = weight()
    mean = accumulated(w, [NOTHING])
    with mt.strict(), pytest.raises(mt.MaskedValueError, match="mean_over"):
        mean.finish()
    with mean:
        loss = F.mse_loss(w.expand(1), mt.masked_tensor([5.0]))
    loss.backward()
    assert mean.finish().item() == 9
    assert w.grad is not None
    assert w.grad.item() == -6


def ranked(rank: int, ranks: int) -> list[int]:
    """How often a rank is told: of a loss of its own, of a mean over all, of what only one of them lacks."""
    w, told = weight(), []
    own = NOTHING if rank else mt.masked_tensor([5.0])
    for targets in ([NOTHING], [own], [own, NOTHING]):
        with mt.strict(), counted() as seen:
            accumulated(w, targets).finish()
        told.append(len(seen))
    with mt.strict(), counted() as seen:
        with mt.mean_over():
            loss = F.mse_loss(w.expand(1), own)
        loss.backward()
        F.mse_loss(w.expand(1), own).backward()
    return [*told, len(seen)]


def test_ranks_are_told_alike_and_none_raises() -> None:
    assert gathered(2, ranked) == [[1, 0, 0, 0], [1, 0, 0, 1]]


class Arrival:
    """An event of a device that is slow."""

    here = False
    device: torch.device | None = None

    def __init__(self, device: Any) -> None: ...

    def record(self) -> None: ...

    def query(self) -> bool:
        return Arrival.here

    def synchronize(self) -> None:
        Arrival.here = True


class Far(NamedTuple):
    """A bool on a device, of which nobody may ask before it is sent."""

    value: Tensor
    is_cpu = False
    is_cuda = False
    device = None

    def to(self, device: str, non_blocking: bool) -> Tensor:
        assert non_blocking
        return self.value


@pytest.fixture
def slow_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "Event", Arrival)
    monkeypatch.setattr(Arrival, "here", False)
    found = masked_losses._any_valid
    monkeypatch.setattr(
        masked_losses, "_any_valid", lambda roots: None if (some := found(roots)) is None else Far(some)
    )


@pytest.mark.usefixtures("slow_device")
def test_nothing_waits_for_a_device_which_says_so_when_it_has_arrived() -> None:
    w = weight()
    with counted() as seen:
        for _ in range(2):
            pair(w)[1].backward()
        assert not seen
        Arrival.here = True
        w.square().backward()
        assert len(seen) == 2
        Arrival.here = False
        pair(w)[1].backward()
        with mt.strict():
            assert len(seen) == 2
        assert len(seen) == 3  # it was no pass inside of it


@pytest.mark.usefixtures("slow_device")
def test_what_a_device_says_of_a_pass_inside_of_strict_is_raised_at_its_end() -> None:
    w = weight()
    with pytest.raises(mt.MaskedValueError, match="total"), mt.strict():
        pair(w)[1].backward()
    with pytest.raises(KeyError), mt.strict():  # noqa: PT012
        pair(w)[1].backward()
        raise KeyError  # which an error of the end would hide
    Arrival.here = True
    with pytest.raises(mt.MaskedValueError, match="total"):
        w.square().backward()


@pytest.mark.usefixtures("slow_device")
def test_no_device_is_asked_while_a_graph_is_captured() -> None:
    w = weight()
    pair(w)[1].backward()
    Arrival.here = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Arrival, "device", torch.device("cuda"))
        patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
        w.square().backward()  # a warning is an error here
    with pytest.warns(mt.MaskedLossWarning):
        masked_losses.tell_sent()


@pytest.mark.cuda
def test_on_a_gpu_nothing_waits() -> None:
    w = torch.tensor(2.0, device="cuda", requires_grad=True)
    nothing = NOTHING.to("cuda")
    F.mse_loss(w.expand(1), mt.masked_tensor([5.0]).to("cuda")).backward()
    with no_sync("cuda", allowed=False):
        F.mse_loss(w.expand(1), nothing).backward()
    torch.cuda.synchronize()
    with pytest.warns(mt.MaskedLossWarning):
        w.square().backward()
    with pytest.raises(mt.MaskedValueError), mt.strict():
        F.mse_loss(w.expand(1), nothing).backward()


# -------------------------------------------------------------------------------------------------------------- total


def test_total_of_plain_losses_is_their_sum() -> None:
    w = weight()
    found = mt.total(w, w.square(), torch.tensor(float("nan")))
    assert type(found) is Tensor
    assert math.isnan(found.item())
    assert mt.total(w, w.double(), weights=[2, torch.tensor(3.0)]).item() == 10


def test_total_is_masked_only_if_all_losses_are() -> None:
    a, b = pair(weight())
    assert mt.total(b, b).tolist() is None
    assert type(mt.total(a)) is mt.MaskedTensor  # whatever the data
    assert mt.total(a, b).item() == 9
    assert mt.total(a, b, weights=[0.5, 0.5]).item() == 4.5  # not rescaled
    assert math.isnan(mt.total(b, torch.tensor(float("nan"))).item())


def test_weights_that_are_learned_get_the_gradient_of_what_exists() -> None:
    shares = [torch.tensor(s, requires_grad=True) for s in (0.5, float("inf"), 2.0)]
    w = weight()
    mt.total(*pair(w), w.square(), weights=shares).backward()
    assert [s.grad.item() for s in shares if s.grad is not None] == [9, 0, 4]
    assert w.grad is not None
    assert w.grad.item() == 0.5 * -6 + 2 * 4


def test_losses_of_torch_func_say_so() -> None:
    def loss(w: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(w.expand(1), target)

    w, targets = torch.tensor(2.0), mt.masked_tensor([[5.0], [7.0]], [[True], [False]])
    for rows, expected in ((slice(0, 2), 0), (slice(1, 2), 1)):  # of a vmap all entries together
        with counted() as seen:
            gradients = torch.func.vmap(torch.func.grad(loss), (None, 0))(w, targets[rows])
        assert len(seen) == expected
        assert gradients.tolist() == [-6, 0][rows]
    with counted() as seen:
        torch.func.grad(loss)(w, NOTHING)
    assert len(seen) == 1


def test_total_under_transforms() -> None:
    targets = mt.masked_tensor([[5.0, None], [None, None], [1.0, 4.0]])

    def loss(w: Tensor, target: Tensor) -> Tensor:
        return mt.total(F.mse_loss(w.expand(2), target), w.square()).filled()

    w = torch.tensor(2.0)
    found = torch.func.vmap(torch.func.grad(loss), (None, 0))(w, targets)
    assert found.tolist() == [-6 + 4, 4, (2 - 4) / 2 + 4]
    assert torch.func.jvp(lambda w: loss(w, targets[0]), (w,), (torch.ones(()),))[1].item() == -2


# ------------------------------------------------------------------------------------------------------------ the law


class Part(NamedTuple):
    """A loss, and the same by plain torch of the valid entries; None if there are none."""

    loss: Tensor
    alone: Tensor | None


def garbled(values: Tensor, valid: Tensor, pick: random.Random) -> Tensor:
    return torch.where(valid, values, torch.tensor([pick.choice(GARBAGE) for _ in values]).to(values))


def regression(w: Tensor, pick: random.Random, valid: Tensor) -> Part:
    form = pick.choice([F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss])
    reduction = pick.choice(["mean", "sum"])
    prediction, target = w * torch.arange(1.0, len(valid) + 1).double(), torch.randn(len(valid)).double()
    masked = mt.as_masked_tensor(garbled(target, valid, pick), valid)
    alone = form(prediction[valid], target[valid], reduction=reduction)
    return Part(form(prediction, masked, reduction=reduction), alone)


def classes(w: Tensor, pick: random.Random, valid: Tensor) -> Part:
    logits = torch.outer(torch.randn(len(valid)).double(), torch.stack([w, -w, w.square()]))
    labels = torch.randint(3, (len(valid),))
    weights = pick.choice([None, torch.tensor([0.2, 1.0, 3.0]).double()])
    masked = mt.as_masked_tensor(torch.where(valid, labels, pick.choice([-100, 10**9])), valid)
    alone = F.cross_entropy(logits[valid], labels[valid], weight=weights)
    return Part(F.cross_entropy(logits, masked, weight=weights), alone)


def packed(w: Tensor, pick: random.Random, valid: Tensor) -> Part:
    """Of sequences; of a batch of empty ones nothing is valid."""
    values = torch.randn(len(valid), 3).double()
    lengths = torch.where(valid, torch.randint(1, 4, valid.shape), 0)
    x = mt.from_lengths(values, lengths)
    x = x.packed() if pick.random() < 0.5 else x
    alone = (w * x.compressed()).square().mean()
    return Part((w * x).square().mean(), alone)


def sparse(w: Tensor, pick: random.Random, valid: Tensor) -> Part:
    values = torch.randn(len(valid)).double()
    at = torch.arange(len(valid))[None]
    layout = mt.masked_tensor(
        torch.sparse_coo_tensor(at, garbled(values, valid, pick), valid.shape, is_coalesced=True),
        torch.sparse_coo_tensor(at, valid, valid.shape, is_coalesced=True),
    )
    return Part((w * layout).sum(), (w * values[valid]).sum())


def plain(w: Tensor, pick: random.Random, valid: Tensor) -> Part:
    loss = pick.choice([w.square(), w.abs(), F.mse_loss(w * valid.double(), torch.ones(len(valid)).double())])
    return Part(loss, loss)


KINDS = (regression, classes, packed, sparse, plain)


def part(w: Tensor, pick: random.Random) -> Part:
    valid = torch.rand(pick.randint(1, 4)) < pick.choice([0.0, 0.3, 0.7, 1.0])
    kind = pick.choice(KINDS)
    found = kind(w, pick, valid)
    return found if valid.any() or kind is plain else Part(found.loss, None)


def added(losses: list[Tensor], weights: list[float], pick: random.Random) -> tuple[Tensor, bool]:
    """Their weighted sum, and whether it is that of those that exist."""
    how = pick.choice(["total", "weights", "tensors", "stack", "+", "sum", "tree"])
    weighted = [c * loss for c, loss in zip(weights, losses, strict=True)]
    if how == "total":
        return mt.total(*weighted), True
    if how == "weights":
        return mt.total(*losses, weights=weights), True
    if how == "tensors":
        return mt.total(*losses, weights=[torch.tensor(c).double() for c in weights]), True
    if how == "stack":
        return torch.stack(weighted).sum(), True
    if how == "sum":
        return sum(weighted), False  # type: ignore[return-value]
    while len(weighted) > 1:
        at = pick.randrange(len(weighted) - 1) if how == "tree" else 0
        weighted[at : at + 2] = [weighted[at] + weighted[at + 1]]
    return weighted[0], False


@pytest.mark.parametrize("seeds", [range(k, COUNT, 4) for k in range(4)], ids=lambda seeds: f"from {seeds[0]}")
def test_law_the_gradient_is_that_of_the_valid_parts_or_the_warning_was_given(seeds: range) -> None:
    for seed in seeds:
        torch.manual_seed(seed)
        pick = random.Random(seed)
        w = torch.randn((), dtype=torch.float64, requires_grad=True)
        parts = [part(w, pick) for _ in range(pick.randint(1, 5))]
        weights = [pick.choice([1.0, 0.3, 2.0, 0.0]) for _ in parts]
        exist = [c * p.alone for c, p in zip(weights, parts, strict=True) if p.alone is not None]
        expected = sum((torch.autograd.grad(p, w, retain_graph=True)[0] for p in exist), torch.zeros(()).double())
        loss, of_those = added([p.loss for p in parts], weights, pick)
        road = pick.choice(ROADS)
        with counted() as seen:
            road(loss, w)
        assert w.grad is not None
        silent = len(exist) > 0 if of_those else len(exist) == len(parts)
        assert len(seen) == (not silent), seed
        torch.testing.assert_close(w.grad, expected if silent else torch.zeros(()).double(), msg=f"seed {seed}")
        if silent:
            torch.testing.assert_close(
                loss.filled() if mt.is_masked_tensor(loss) else loss, sum(exist, torch.zeros(()).double())
            )


def test_a_pass_without_values_runs() -> None:
    x = mt.as_masked_tensor(torch.empty(2, 3, device="meta"), torch.empty(2, 3, dtype=torch.bool, device="meta"))
    weight = torch.ones(3, device="meta", requires_grad=True)
    (x * weight).square().mean().backward()
    assert weight.grad.shape == (3,)
