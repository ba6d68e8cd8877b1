"""The family cross entropy under the laws."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import masked_tensor as mt

from .laws import laws

INF = float("inf")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.15])
def test_the_dtype_is_that_of_the_input(smoothing: float, probabilities: bool, dtype: torch.dtype) -> None:
    """Nor is anything rounded to a narrower one on the way: smoothing of float64 is as exact as the rest."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, generator=random, dtype=torch.float64).to(dtype)
    target = x.softmax(1) if probabilities else torch.tensor([0, 2, 1, 1, 0])
    weights = torch.rand(3, generator=random, dtype=torch.float64).to(dtype)
    for reduction, weight in itertools.product(("mean", "sum", "none"), (None, weights)):
        options = {"weight": weight, "reduction": reduction, "label_smoothing": smoothing}
        expected = F.cross_entropy(x, target, **options)
        valid = [mt.masked_tensor(t, torch.ones(t.shape, dtype=torch.bool)) for t in (x, target)]
        for given in ((valid[0], target), (x, valid[1]), valid):
            actual = F.cross_entropy(*given, **options).get_data()
            precise = {"rtol": 1e-12, "atol": 0.0} if dtype is torch.float64 else {}
            torch.testing.assert_close(actual, expected, **precise)


test_law = laws("cross_entropy")


# ------------------------------------------------------------------------------------- targets that name masked classes


def _sample(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Logits, which classes are valid (of the last sample none), targets that name any, and weights."""
    random = torch.Generator().manual_seed(seed)
    samples, classes = int(torch.randint(3, 9, (), generator=random)), int(torch.randint(2, 6, (), generator=random))
    x = torch.randn(samples, classes, generator=random, dtype=torch.float64)
    valid = torch.rand(samples, classes, generator=random) < 0.6
    valid[:, 0], valid[-1] = True, False
    target = torch.randint(classes, (samples,), generator=random)
    target[-1] = 10**9  # nothing is valid there: padding, which names nothing
    weight = torch.rand(classes, generator=random, dtype=torch.float64).round(decimals=1) if seed % 2 else None
    return x, valid, target, torch.rand(samples, generator=random) < 0.8, weight


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("seed", range(12))
def test_a_masked_class_is_a_logit_of_minus_infinity(seed: int, reduction: str) -> None:
    """In every form: the loss, and the gradient of what is valid, are plain torch's for -inf."""
    x, valid, target, known, weight = _sample(seed)
    options = {"weight": weight, "reduction": reduction}
    some = valid.any(1) & known
    plain = x.masked_fill(~valid, -INF).requires_grad_()
    expected = F.cross_entropy(plain[some], target[some], **options)
    expected.sum().backward()
    gradient = plain.grad.where(valid, 0)
    given = [mt.as_masked_tensor(x.masked_fill(~valid, float("nan")), valid) for _ in range(4)]
    hidden = mt.as_masked_tensor(target.where(known, -(10**9)), known)
    forms = [
        lambda g: F.cross_entropy(g, hidden, **options),
        lambda g: F.nll_loss(g.log_softmax(1), hidden, **options),
        lambda g: F.cross_entropy(g[None].packed().mT, hidden[None], **options)[0 if reduction == "none" else ...],
        lambda g: F.cross_entropy(g.to_sparse(), hidden, **options),
    ]
    for number, (form, leaf) in enumerate(zip(forms, given, strict=True)):
        loss = form(leaf.requires_grad_())
        seen = loss.compressed() if reduction == "none" else loss.filled(float("nan"))
        torch.testing.assert_close(seen, expected, equal_nan=True)
        loss.sum().backward()
        back, wanted = leaf.grad.filled(0), gradient
        if number == 1:  # a masked logarithm takes no part in what softmax is given back
            named = valid.gather(1, target.clamp(0, valid.shape[1] - 1)[:, None])
            wanted = gradient.where(named | ~some[:, None], 0)
        torch.testing.assert_close(back, wanted, equal_nan=True)
    for name, scores in (("cross_entropy", x), ("nll_loss", x.masked_fill(~valid, -INF).log_softmax(1))):
        for layout in (torch.Tensor.clone, torch.Tensor.to_sparse):
            found = getattr(mt, name)(layout(scores), target.where(known, -1), mask=valid, target_mask=known, **options)
            torch.testing.assert_close(found[some] if reduction == "none" else found, expected, equal_nan=True)


def test_probabilities_of_masked_classes() -> None:
    x = mt.as_masked_tensor(torch.tensor([[0.0, 0.0, 9.0]] * 3), torch.tensor([[True, True, False]] * 3))
    share = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]], requires_grad=True)
    two = torch.tensor(2.0).log().item()
    for smoothing in (0.0, 0.3):
        loss = F.cross_entropy(x.requires_grad_(), share, reduction="none", label_smoothing=smoothing)
        torch.testing.assert_close(loss.filled(-1), torch.tensor([two, INF, two]))
        loss.sum().backward()
        assert x.grad.filled(0).isfinite().all()
        assert share.grad.isfinite().all()


def test_targets_out_of_range_raise_as_torch_does() -> None:
    x, target = torch.zeros(2, 3), torch.tensor([0, 7])
    masked = mt.as_masked_tensor(x, torch.tensor([[True, True, False]] * 2))
    for weight in (None, torch.ones(3), mt.masked_tensor([1.0, None, 1.0])):
        for call in (F.cross_entropy, F.nll_loss):
            with pytest.raises(IndexError, match="Target 7 is out of bounds"):
                call(masked, target, weight=weight)


@pytest.mark.parametrize("missing", [255, -1, 10**9])
@pytest.mark.parametrize("packed", [False, True])
def test_an_inverted_mask_of_labels_is_named(missing: int, packed: bool) -> None:
    target, x = torch.tensor([[0, missing, 2]]), torch.zeros(1, 3, 3)
    known = mt.masked_tensor(target, target == missing)
    with pytest.raises(IndexError, match="use ~mask"):
        F.cross_entropy(x, known.packed() if packed else known)
    assert F.cross_entropy(x, mt.masked_tensor(target, target != missing)).isfinite().item()
    with pytest.raises(IndexError, match=rf"mask it: masked_equal\(target, {missing}\)$"):  # nothing is masked
        F.cross_entropy(x, mt.masked_tensor(target))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (5,), (3, 5, 4)])
def test_plain_scores_are_scores_that_are_all_valid(
    shape: tuple[int, ...], weighted: bool, smoothing: float, reduction: str
) -> None:
    """By torch's kernel: the same bits without smoothing; what is masked, or beside it, may be anything."""
    torch.manual_seed(0)
    dim = min(len(shape) - 1, 1)
    known = torch.rand(shape[:dim] + shape[dim + 1 :]) > 0.4
    target = torch.where(known, torch.randint(5, known.shape), 10**6)
    data = torch.where(known.unsqueeze(dim), torch.randn(shape), float("nan"))
    weight = torch.rand(5) if weighted else None

    def run(wrap: Callable[[torch.Tensor], Any]) -> list[torch.Tensor]:
        leaf = data.clone().requires_grad_()
        y = mt.masked_tensor(target, known)
        loss: Any = F.cross_entropy(wrap(leaf), y, weight, label_smoothing=smoothing, reduction=reduction)
        loss.sum().filled(0).backward()
        return [loss.filled(-1).detach(), loss.get_mask(), leaf.grad]

    valid = torch.ones(shape, dtype=torch.bool)
    for found, wanted in zip(run(lambda x: x), run(lambda x: mt.as_masked_tensor(x, valid)), strict=True):
        assert torch.equal(found, wanted) if not smoothing else torch.allclose(found, wanted, 1e-6, 1e-7)
