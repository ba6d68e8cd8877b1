"""One mean over micro-batches and ranks: equal to that of the whole, value and gradient (ranks: test_distributed)."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import masked_tensor as mt

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


def test_nothing_valid_is_a_hole_with_zero_gradients() -> None:
    weight = torch.ones(2, requires_grad=True)
    mean = mt.mean_over(parameters=[weight])
    for _ in range(2):
        with mean:
            loss = F.mse_loss(weight * 1, mt.masked_tensor([float("nan")] * 2, [False, False]))
        loss.backward()
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
    with pytest.raises(RuntimeError, match="used a second time"), once:
        pass
    with pytest.raises(RuntimeError, match="second mean in one part"), mt.mean_over(parameters=()):
        F.mse_loss(x, y) + F.l1_loss(x, y)
    with pytest.raises(RuntimeError, match="given 2 counts, and saw 1"), mt.mean_over(count=[1, 2]):
        F.mse_loss(x, y)
    with pytest.raises(RuntimeError, match="given 1 counts, and sees another"), mt.mean_over(count=1):
        F.mse_loss(x, y) + F.l1_loss(x, y)
    with pytest.raises(ValueError, match="not both"):
        mt.mean_over(parameters=(), count=1)
    for count in (0, [2, 0], [], -1.0, float("nan"), torch.zeros(2)):
        with pytest.raises(ValueError, match="needs a positive count for each loss"):
            mt.mean_over(count=count)
    with pytest.raises(RuntimeError, match="nothing to finish"):
        mt.mean_over(parameters=[y]).finish()
    with once_more() as over, pytest.raises(RuntimeError, match="in use already"), over:
        pass


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
