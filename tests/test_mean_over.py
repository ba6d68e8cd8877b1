"""One mean over micro-batches and ranks: equal to that of the whole, value and gradient (ranks: test_distributed)."""

import contextlib
import gc
import itertools
import os
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt
from masked_tensor import compat
from masked_tensor.shared import ranks

torch.manual_seed(0)
DATA, TARGET = torch.randn(12, 3, dtype=torch.float64), torch.randn(12, 2, dtype=torch.float64)
VALID = torch.arange(24).view(12, 2) % 5 < torch.tensor([1, 3]).repeat(12, 1)
LABELS = mt.masked_tensor(torch.arange(12) % 2, torch.arange(12) % 3 > 0)
CLASSES = torch.tensor([0.25, 2.0], dtype=torch.float64)


def model() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()


def squares(m: torch.nn.Module, rows: slice) -> torch.Tensor:
    return F.mse_loss(m(DATA[rows]), mt.masked_tensor(TARGET[rows], VALID[rows]))


def classes(m: torch.nn.Module, rows: slice) -> torch.Tensor:
    return F.cross_entropy(m(DATA[rows]), LABELS[rows], weight=CLASSES)


def whole(*losses: object) -> tuple[float, list[torch.Tensor]]:
    m = model()
    loss = sum(loss(m, slice(None)) for loss in losses)  # type: ignore[operator, misc]
    loss.backward()
    return loss.item(), [p.grad for p in m.parameters()]


@pytest.mark.parametrize("cuts", [[0, 12], [0, 5, 12], [0, 1, 2, 12], [0, 0, 7, 12]])
@pytest.mark.parametrize("loss", [squares, classes])
def test_parts_add_up_to_the_whole(loss: object, cuts: list[int]) -> None:
    value, gradients = whole(loss)
    m = model()
    mean = mt.mean_over(parameters=m.parameters())
    for start, stop in itertools.pairwise(cuts):
        with mean:
            part = loss(m, slice(start, stop))  # type: ignore[operator]
        part.backward()
    assert mean.finish().item() == pytest.approx(value, rel=1e-14)
    torch.testing.assert_close([p.grad for p in m.parameters()], gradients, rtol=1e-13, atol=1e-15)


def test_several_losses_with_counts_that_are_known() -> None:
    value, gradients = whole(squares, classes)
    m = model()
    counts = [VALID.sum().item(), CLASSES[LABELS.compressed()].sum().item()]
    total = 0.0
    mean = mt.mean_over(count=counts)
    for rows in (slice(0, 2), slice(2, 12)):
        with mean:
            part = squares(m, rows) + classes(m, rows)
        part.backward()
        total += part.item()
    assert total == pytest.approx(value, rel=1e-14)
    torch.testing.assert_close([p.grad for p in m.parameters()], gradients, rtol=1e-13, atol=1e-15)


def test_one_use_is_the_mean_itself() -> None:
    value, gradients = whole(squares)
    m = model()
    with mt.mean_over():
        loss = squares(m, slice(None))
    loss.backward()
    assert loss.item() == pytest.approx(value, rel=1e-14)
    torch.testing.assert_close([p.grad for p in m.parameters()], gradients, rtol=1e-13, atol=1e-15)


def test_a_mean_by_hand_and_a_non_linear_use() -> None:
    m = model()
    with mt.mean_over() as over:
        loss = over.mean((m(DATA) - mt.masked_tensor(TARGET, VALID)) ** 2).sqrt()
    assert loss.item() == pytest.approx(whole(squares)[0] ** 0.5, rel=1e-14)


def test_packed_parts_add_up_to_the_whole() -> None:
    lengths = torch.tensor([5, 1, 3, 4])
    valid = torch.arange(5) < lengths[:, None]
    x, y = (mt.masked_tensor(torch.randn(4, 5, n, dtype=torch.float64), valid[..., None]) for n in (3, 2))
    net = model()
    F.mse_loss(net(x), y).backward()
    gradients = [p.grad for p in net.parameters()]
    for parts in ([slice(0, 4)], [slice(0, 1), slice(1, 4)]):
        net = model()
        mean = mt.mean_over(parameters=net.parameters())
        for rows in parts:
            given, target = x[rows].packed(), y[rows].packed()
            with mean:
                loss = F.mse_loss(net(given), target)
            assert given.is_packed
            loss.backward()
        assert mean.finish().item() == pytest.approx(F.mse_loss(net(x), y).item(), rel=1e-14)
        torch.testing.assert_close([p.grad for p in net.parameters()], gradients, rtol=1e-13, atol=1e-15)


def test_nothing_valid_is_a_masked_entry_with_zero_gradients() -> None:
    weight = torch.ones(2, requires_grad=True)
    mean = mt.mean_over(parameters=[weight])
    for _ in range(2):
        with mean:
            loss = F.mse_loss(weight * 1, mt.masked_tensor([float("nan")] * 2, [False, False]))
        loss.backward()
    with pytest.warns(mt.MaskedLossWarning):
        assert mean.finish().tolist() is None
    assert weight.grad.tolist() == [0, 0]


def test_metrics_over_batches() -> None:
    accuracy = mt.mean_over(parameters=())
    own = [accuracy.mean(mt.masked_tensor(batch)) for batch in ([True, None], [False, True], [None, None])]
    assert [x.tolist() for x in own] == [1.0, 0.5, None]
    assert accuracy.finish().item() == 2 / 3
    accuracy.mean(torch.tensor([True, False]))  # a new metric from here on
    assert accuracy.finish().item() == 0.5


def test_second_derivatives() -> None:
    weight = torch.randn(4, dtype=torch.float64, requires_grad=True)
    target = mt.masked_tensor(torch.randn(4, dtype=torch.float64), [True, False, True, True])

    def loss(w: torch.Tensor) -> torch.Tensor:
        with mt.mean_over():
            return F.mse_loss(w.exp(), target).filled(0)

    assert torch.autograd.gradcheck(loss, weight)
    assert torch.autograd.gradgradcheck(loss, weight)


def test_what_would_be_wrong_in_silence_raises() -> None:
    x = mt.masked_tensor([1.0, None])
    y = torch.zeros(2)
    with pytest.raises(RuntimeError, match="saw no mean of a masked loss"), mt.mean_over():
        F.mse_loss(y, y)
    once = mt.mean_over()
    with once:
        F.mse_loss(x, y)
    with pytest.raises(RuntimeError, match="entered twice"), once:
        pass
    with pytest.raises(RuntimeError, match="second mean in one part"), mt.mean_over(parameters=()):
        F.mse_loss(x, y) + F.l1_loss(x, y)
    with pytest.raises(RuntimeError, match="given 2 counts, and saw 1"), mt.mean_over(count=[1, 2]):
        F.mse_loss(x, y)
    with pytest.raises(RuntimeError, match="got 1 counts, but there are more"), mt.mean_over(count=1):
        F.mse_loss(x, y) + F.l1_loss(x, y)
    with pytest.raises(ValueError, match="both parameters= and count="):
        mt.mean_over(parameters=(), count=1)
    for count in ([], -1.0, [2, -1], float("nan"), float("inf"), LABELS[:1].count() * LABELS[0]):
        with pytest.raises(ValueError, match="needs a count for each loss, 0 or more"):
            mt.mean_over(count=count)
    with pytest.raises(RuntimeError, match="nothing to finish"):
        mt.mean_over(parameters=[y]).finish()
    with once_more() as over, pytest.raises(RuntimeError, match="in use already"), over:
        pass


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_loss_of_count_0_is_masked_and_left_out(dtype: torch.dtype) -> None:
    weight = torch.ones(2, dtype=dtype, requires_grad=True)
    none = mt.masked_tensor(torch.full((2,), torch.nan, dtype=dtype), torch.zeros(2, dtype=torch.bool))
    some = mt.masked_tensor(torch.tensor([3.0, 5.0], dtype=dtype), torch.tensor([True, False]))
    for _ in range(2):
        with mt.mean_over(count=[2, 0]):
            first, second = F.mse_loss(weight * 1, some), F.mse_loss(weight * 1, none)
        assert first.dtype == second.dtype == dtype
        assert mt.is_masked_tensor(second)
        assert not second.mask
        mt.total(first, second).backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2 * (1 - 3) / 2 * 2, 0]
    with mt.mean_over(count=0):
        denied = F.mse_loss(weight * 1, some)
    assert denied.isnan().item()  # the count says that there is no target, and there is one


def once_more() -> mt.mean_over:
    class Lenient(mt.mean_over):
        def __exit__(self, *error: object) -> None:
            super().__exit__(RuntimeError, None, None)

    return Lenient()


def test_a_forgotten_finish_is_noticed_at_the_optimizers_step() -> None:
    weight, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    mean = mt.mean_over(parameters=[weight])
    with mean:
        loss = F.mse_loss(weight * 1, mt.masked_tensor([2.0, None]))
    loss.backward()
    torch.optim.SGD([other]).step()
    optimizer = torch.optim.SGD([weight], lr=0.5)
    with pytest.raises(RuntimeError, match=r"call finish\(\) first"):
        optimizer.step()
    mean.finish()
    optimizer.step()
    assert weight.tolist() == [2, 1]


def test_a_second_mean_of_the_same_parameters_waits_until_the_first_is_finished() -> None:
    """Each ``finish`` scales all gradients, so that two that are open at once would both be wrong."""
    weight, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, second = mt.mean_over(parameters=[weight]), mt.mean_over(parameters=[other, weight])

    def part(mean: mt.mean_over, values: list[float | None]) -> None:
        with mean:
            loss = mean.mean(weight * mt.masked_tensor(values))
        loss.backward()

    part(first, [1.0, None])
    with pytest.raises(RuntimeError, match="of the same parameters is not finished"):
        part(second, [1.0, 2.0])
    apart = mt.mean_over(parameters=[other])
    with apart:
        apart.mean(other * mt.masked_tensor([1.0, None])).backward()
    apart.finish()
    part(first, [2.0, 3.0])
    first.finish()
    torch.testing.assert_close(weight.grad, torch.tensor([1.0, 1.0]))
    part(second, [1.0, None])
    part(second, [2.0, 3.0])
    second.finish()
    torch.testing.assert_close(weight.grad, torch.tensor([2.0, 2.0]))


def test_a_mean_that_was_given_up_is_in_nobodys_way_but_the_optimizers() -> None:
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    with mt.mean_over(parameters=[weight]):
        F.mse_loss(weight, mt.masked_tensor([2.0, None]))
    gc.collect()
    mean = mt.mean_over(parameters=[weight])
    with mean:
        F.mse_loss(weight, mt.masked_tensor([2.0, None])).backward()
    mean.finish()
    with pytest.raises(RuntimeError, match="gradients of an unfinished mean_over"):
        optimizer.step()  # nobody knows whether there was a backward pass


def test_a_checkpoint_that_does_not_reenter() -> None:
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="inside a checkpoint"), mt.mean_over():
        checkpoint(lambda w: F.mse_loss(w, mt.masked_tensor([2.0, None])), weight, use_reentrant=False)


def test_a_loss_in_compiled_code() -> None:
    @torch.compile(backend="eager", fullgraph=True)
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.mse_loss(x, y)

    with pytest.raises(Exception, match="inside compiled code"), mt.mean_over():
        loss(mt.masked_tensor([1.0, None]), torch.zeros(2))


# ------------------------------------------------------------------------------------ parts that do not go to the end


def weights_after(*targets: object) -> tuple[float, float]:
    """The mean and gradient of some parts of a scalar weight, by one use."""
    weight = torch.tensor(1.0, requires_grad=True)
    loss = F.mse_loss(weight.expand(2 * len(targets)), mt.masked_tensor([t for target in targets for t in target]))
    loss.backward()
    return loss.item(), weight.grad.item()


@pytest.mark.parametrize("first", [[3.0, None], [None, None]])
def test_a_part_that_raises_or_is_skipped_is_taken_back(first: list[object]) -> None:
    weight = torch.tensor(1.0, requires_grad=True)
    mean = mt.mean_over(parameters=[weight])
    ways = ["inside", "after", "keeps", "raises", "keeps", "skips twice"]
    parts = [[7.0, 8.0], [float("inf"), 1.0], first, [100.0, 100.0], [5.0, None], [9.0, None]]
    for way, target in zip(ways, parts, strict=True):
        with contextlib.suppress(MemoryError):
            with mean:
                loss = F.mse_loss(weight.expand(2), mt.masked_tensor(target))
                if way == "inside":
                    mean.skip()
                if way == "raises":
                    raise MemoryError
            if way in ("after", "skips twice"):
                mean.skip()
            if way == "skips twice":
                with pytest.raises(RuntimeError, match="nothing to skip"):
                    mean.skip()
            if way == "keeps":
                loss.backward()
    assert (mean.finish().item(), weight.grad.item()) == pytest.approx(weights_after(first, [5.0, None]))
    with mean:  # the next step
        F.mse_loss(weight.expand(2), mt.masked_tensor([3.0, None])).backward()
    assert mean.finish().item() == 4


def test_a_single_use_that_was_skipped_may_be_taken_again() -> None:
    mean = mt.mean_over()
    with mean:
        F.mse_loss(torch.zeros(2), mt.masked_tensor([float("inf"), None]))
    mean.skip()
    with mean:
        loss = F.mse_loss(torch.zeros(2), mt.masked_tensor([2.0, None]))
    assert loss.item() == 4
    with pytest.raises(RuntimeError, match="entered twice"), mean:
        pass


def test_after_backward_nothing_can_be_taken_back() -> None:
    weight = torch.tensor(1.0, requires_grad=True)
    mean = mt.mean_over(parameters=[weight])
    with mean:
        F.mse_loss(weight.expand(2), mt.masked_tensor([3.0, None])).backward()
    with pytest.raises(RuntimeError, match=r"came after backward\(\)"):
        mean.skip()
    assert mean.finish().item() == 4

    def fails() -> None:
        with mean:
            F.mse_loss(weight.expand(2), mt.masked_tensor([3.0, None])).backward()
            raise MemoryError

    with pytest.raises(MemoryError):
        fails()
    for act in (mean.__enter__, mean.finish):
        with pytest.raises(RuntimeError, match="came after backward"):
            act()
    weight.grad = None
    mean.reset()
    with mean:
        F.mse_loss(weight.expand(2), mt.masked_tensor([3.0, None])).backward()
    assert (mean.finish().item(), weight.grad.item()) == (4, -4)


@pytest.mark.parametrize("positional", [True, False])
def test_a_closure_may_finish(positional: bool) -> None:
    weight = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.25)
    mean = mt.mean_over(parameters=[weight])

    def part(target: list[object]) -> None:
        with mean:
            loss = F.mse_loss(weight.expand(2), mt.masked_tensor(target))
        loss.backward()

    def closure(finishes: bool = True) -> torch.Tensor:
        part([5.0, 6.0])
        return mean.finish() if finishes else torch.zeros(())

    def step(closure: object) -> torch.Tensor:
        return optimizer.step(closure) if positional else optimizer.step(closure=closure)  # type: ignore[arg-type]

    part([3.0, None])
    assert step(closure).item() == 15  # (4 + 16 + 25) / 3
    assert weight.item() == pytest.approx(1 + 0.25 * 22 / 3)
    part([3.0, None])
    with pytest.raises(RuntimeError, match=r"call finish\(\) first"):
        step(lambda: closure(False))
    mean.reset()
    lbfgs = torch.optim.LBFGS([weight], max_iter=4)

    def again() -> torch.Tensor:
        lbfgs.zero_grad()
        part([3.0, None])
        part([5.0, 7.0])
        return mean.finish().filled(0)

    lbfgs.step(again)
    assert weight.item() == pytest.approx(5)


def test_a_metric_without_a_batch_is_masked() -> None:
    assert mt.mean_over(parameters=()).finish().tolist() is None


# ----------------------------------------------------------------------------------------------------- process groups


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts what Linux shows of a process")
def test_groups_end_with_those_they_are_made_of_and_wait_as_long() -> None:
    def cycle() -> None:
        given = {"rank": 0, "world_size": 1, "timeout": timedelta(seconds=7)}
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), **given)
        with mt.mean_over():
            F.mse_loss(torch.zeros(2), mt.masked_tensor([2.0, None]))
        own = ranks.own_group(None)
        assert own is ranks.own_group(None)
        assert own is not torch.distributed.group.WORLD
        assert compat.group_timeout(own) == timedelta(seconds=7)
        torch.distributed.destroy_process_group()

    cycle()
    gc.collect()
    before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
    for _ in range(5):
        cycle()
    gc.collect()
    assert (len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))) == before
    assert len(ranks._OWN) == 0
