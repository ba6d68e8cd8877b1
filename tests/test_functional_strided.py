"""Losses, normalizations and order statistics on strided tensors: the plain function on the valid elements alone."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import MaskedTensor

NAN = float("nan")
GENERATOR = torch.Generator().manual_seed(0)
X, T = torch.randn(6, 5, generator=GENERATOR), torch.randn(6, 5, generator=GENERATOR)
M, TM = torch.rand(6, 5, generator=GENERATOR) < 0.6, torch.rand(6, 5, generator=GENERATOR) < 0.7
M[2] = False
BOTH = M & TM

ELEMENTWISE: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "mse_loss": (lambda x: x, lambda t: t),
    "l1_loss": (lambda x: x, lambda t: t),
    "smooth_l1_loss": (lambda x: x, lambda t: t),
    "huber_loss": (lambda x: x, lambda t: t),
    "poisson_nll_loss": (lambda x: x, lambda t: t.abs()),
    "kl_div": (lambda x: x, lambda t: t.abs()),
    "soft_margin_loss": (lambda x: x, lambda t: t.sign()),
    "hinge_embedding_loss": (lambda x: x, lambda t: t.sign()),
    "binary_cross_entropy": (lambda x: x.sigmoid(), lambda t: t.sigmoid()),
    "binary_cross_entropy_with_logits": (lambda x: x, lambda t: t.sigmoid()),
}


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # torch's own kl_div
@pytest.mark.parametrize("dirt", [NAN, float("inf"), 0.0])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_losses(name: str, dirt: float) -> None:
    left, right = ELEMENTWISE[name]
    function, plain = getattr(mt, name), getattr(F, name)
    x, t = left(X).masked_fill(~M, dirt).requires_grad_(), right(T).masked_fill(~TM, dirt)
    for reduction in ("mean", "sum", "none"):
        x.grad = None
        out = function(x, t, mask=M, target_mask=TM, reduction=reduction)
        expected = plain(left(X)[BOTH], right(T)[BOTH], reduction=reduction)
        torch.testing.assert_close(out[BOTH] if reduction == "none" else out, expected)
        out.sum().backward()
        assert x.grad is not None
        assert x.grad.isfinite().all()
        assert (x.grad[~BOTH] == 0).all()
        if reduction == "none":
            assert (out[~BOTH] == 0).all()
    nothing = torch.zeros(6, 5, dtype=torch.bool)
    assert function(x, t, mask=nothing).isnan()
    assert function(x, t, mask=nothing, fill_value=0.0).item() == 0
    masked = function(mt.as_masked_tensor(x, M), t, target_mask=TM)
    assert type(masked) is MaskedTensor
    torch.testing.assert_close(masked.item(), plain(left(X)[BOTH], right(T)[BOTH]).item())


KINKS: list[tuple[str, dict[str, float]]] = [
    ("l1_loss", {}),
    ("smooth_l1_loss", {"beta": 0.0}),
    ("smooth_l1_loss", {"beta": 1.0}),
    ("huber_loss", {"delta": 1.0}),
    ("hinge_embedding_loss", {"margin": 1.0}),
    ("kl_div", {}),
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
@pytest.mark.parametrize(("name", "options"), KINKS)
def test_losses_have_torchs_gradients_where_they_bend(name: str, options: Any) -> None:
    """What torch.nn.functional decides before it calls an op belongs to the loss."""
    right = ELEMENTWISE[name][1]
    x, t = torch.randint(-2, 3, (60,)).double(), right(torch.randint(-2, 3, (60,)).double())
    if name == "hinge_embedding_loss":
        t = torch.where(t == 0, 1, t)
    mask = torch.rand(60) < 0.7
    for reduction in ("mean", "sum", "none"):
        leaf, wanted = x.clone().requires_grad_(), x.clone().requires_grad_()
        getattr(mt, name)(leaf, t, mask=mask, reduction=reduction, **options).sum().backward()
        getattr(F, name)(wanted[mask], t[mask], reduction=reduction, **options).sum().backward()
        torch.testing.assert_close(leaf.grad, wanted.grad)


def test_batchmean_divides_by_rows_with_something_valid() -> None:
    out = mt.kl_div(X, T.abs(), mask=M, target_mask=TM, reduction="batchmean")
    expected = F.kl_div(X[BOTH], T.abs()[BOTH], reduction="sum") / BOTH.any(1).sum()
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("shape", [(), (6,), (6, 5), (2, 3, 5)])
def test_batchmean_counts_the_first_dimension_of_the_result(shape: tuple[int, ...]) -> None:
    x, valid = torch.randn(shape), torch.rand(shape) < 0.6
    for keep in range(1 << len(shape)):
        small = tuple(n if keep >> d & 1 else 1 for d, n in enumerate(shape))
        y, seen = torch.rand(small), torch.rand(small) < 0.8
        for mask, target_mask in ((valid, seen), (valid, None), (None, seen), (None, None), (~valid, valid)):
            if target_mask is valid and y.shape != shape:
                continue
            both = torch.ones(shape, dtype=torch.bool)
            for given in (mask, target_mask):
                both = both if given is None else both & given
            rows = sum(bool(entry.any()) for entry in both) if shape else 1
            total = F.kl_div(x, y.expand(shape), reduction="none")[both].sum()
            ours = mt.kl_div(x, y, reduction="batchmean", mask=mask, target_mask=target_mask)
            torch.testing.assert_close(ours, total / rows if both.any() else torch.tensor(float("nan")), equal_nan=True)
            if mask is not None:
                ours = mt.kl_div(mt.as_masked_tensor(x, mask), y, reduction="batchmean", target_mask=target_mask)
                assert ours.tolist() == (pytest.approx((total / rows).item(), rel=1e-5) if both.any() else None)


def test_class_losses() -> None:
    y = torch.tensor([0, 4, 2, 1, 3, 0])
    valid = torch.tensor([True, True, False, True, False, True])
    dirty = torch.where(valid, y, 10**9)
    torch.testing.assert_close(mt.cross_entropy(X, dirty, target_mask=valid), F.cross_entropy(X[valid], y[valid]))
    scores = X.log_softmax(1)
    torch.testing.assert_close(mt.nll_loss(scores, dirty, target_mask=valid), F.nll_loss(scores[valid], y[valid]))
    torch.testing.assert_close(
        mt.multi_margin_loss(X, dirty, target_mask=valid), F.multi_margin_loss(X[valid], y[valid])
    )
    classes = torch.tensor([True, True, True, True, False])  # a masked class leaves the denominator
    y = y.clamp(max=3)
    hidden = X.masked_fill(~classes, NAN)
    torch.testing.assert_close(mt.cross_entropy(hidden, y, mask=classes), F.cross_entropy(X[:, :4], y))


def test_losses_of_three_tensors() -> None:
    sign = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    rows = torch.tensor([True, True, False, True, False, True])
    hidden = X.masked_fill(~rows[:, None], NAN)
    out = mt.triplet_margin_loss(hidden, T, X.flip(0), mask=rows[:, None])
    torch.testing.assert_close(out, F.triplet_margin_loss(X[rows], T[rows], X.flip(0)[rows]))
    out = mt.cosine_embedding_loss(hidden, T, sign, mask=rows[:, None])
    torch.testing.assert_close(out, F.cosine_embedding_loss(X[rows], T[rows], sign[rows]))
    out = mt.margin_ranking_loss(hidden[:, 0], T[:, 0], sign, mask=rows)
    torch.testing.assert_close(out, F.margin_ranking_loss(X[rows, 0], T[rows, 0], sign[rows]))
    out = mt.gaussian_nll_loss(X.masked_fill(~M, NAN), T, torch.ones(6, 5), mask=M)
    torch.testing.assert_close(out, F.gaussian_nll_loss(X[M], T[M], torch.ones(int(M.sum()))))
    out = mt.multilabel_soft_margin_loss(hidden, (T > 0).float(), mask=rows[:, None])
    torch.testing.assert_close(out, F.multilabel_soft_margin_loss(X[rows], (T > 0).float()[rows]))
    with pytest.raises(ValueError, match=r"reduction must be one of \['mean', 'none', 'sum'\], got 'average'"):
        mt.mse_loss(X, T, reduction="average")


NORMS: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor], Tensor]]] = {
    "layer_norm": (lambda x, mask: mt.layer_norm(x, (5,), mask=mask), lambda x: F.layer_norm(x, (4,))),
    "rms_norm": (lambda x, mask: mt.rms_norm(x, (5,), mask=mask), lambda x: F.rms_norm(x, (4,))),
    "group_norm": (lambda x, mask: mt.group_norm(x, 2, mask=mask), lambda x: F.group_norm(x, 2)),
    "instance_norm": (lambda x, mask: mt.instance_norm(x, mask=mask), F.instance_norm),
    "batch_norm": (
        lambda x, mask: mt.batch_norm(x, None, None, training=True, mask=mask),
        lambda x: F.batch_norm(x, None, None, training=True),
    ),
    "local_response_norm": (
        lambda x, mask: mt.local_response_norm(x, 2, mask=mask),
        lambda x: F.local_response_norm(x, 2),
    ),
}


@pytest.mark.parametrize("dirt", [NAN, 1e30])
@pytest.mark.parametrize("name", NORMS)
def test_normalizations_ignore_padding(name: str, dirt: float) -> None:
    function, plain = NORMS[name]
    x = torch.randn(2, 4, 5, generator=GENERATOR)
    mask = torch.tensor([True] * 4 + [False])
    given = x.masked_fill(~mask, dirt).requires_grad_()
    out = function(given, mask)
    torch.testing.assert_close(out[..., :4], plain(x[..., :4]))
    assert (out[..., 4] == 0).all()
    (gradient,) = torch.autograd.grad(out.square().sum(), given)
    assert gradient.isfinite().all()
    assert (gradient[..., 4] == 0).all()


def test_batch_norm_updates_running_statistics() -> None:
    x, mask = torch.randn(2, 4, 5, generator=GENERATOR), torch.tensor([True] * 4 + [False])
    ours, theirs = (torch.zeros(4), torch.ones(4)), (torch.zeros(4), torch.ones(4))
    mt.batch_norm(x, *ours, training=True, mask=mask)
    F.batch_norm(x[..., :4], *theirs, training=True)
    torch.testing.assert_close(ours, theirs)


ONE = M[0]
A = X[0]
CASES: dict[str, tuple[Callable[[Tensor], Any], Callable[[Tensor], Any]]] = {
    "median": (lambda x: mt.median(x, 0, mask=ONE).values, torch.median),
    "nanmedian": (lambda x: mt.nanmedian(x, 0, mask=ONE).values, torch.nanmedian),
    "quantile": (lambda x: mt.quantile(x, 0.3, 0, mask=ONE), lambda v: torch.quantile(v, 0.3)),
    "quantiles": (
        lambda x: mt.quantile(x, torch.tensor([0.2, 0.9]), mask=ONE),
        lambda v: torch.quantile(v, torch.tensor([0.2, 0.9])),
    ),
    "nanquantile": (lambda x: mt.nanquantile(x, 0.3, 0, mask=ONE), lambda v: torch.quantile(v, 0.3)),
    "unique": (lambda x: mt.unique(x, mask=ONE), torch.unique),
    "unique_consecutive": (lambda x: mt.unique_consecutive(x, mask=ONE), torch.unique_consecutive),
    "mode": (lambda x: mt.mode(x, 0, mask=ONE).values, lambda v: v.mode().values),
    "max": (lambda x: mt.max(x, mask=ONE), torch.max),
    "min of a dim": (lambda x: mt.min(x, 0, mask=ONE).values, torch.min),
    "cummax": (lambda x: mt.cummax(x, 0, mask=ONE).values[ONE], lambda v: v.cummax(0).values),
    "dist": (lambda x: mt.dist(x, T[0], mask=ONE), lambda v: torch.dist(v, T[0][ONE])),
    "var_mean": (lambda x: mt.var_mean(x, 0, mask=ONE)[0], torch.var),
    "std_mean": (lambda x: mt.std_mean(x, 0, mask=ONE)[1], torch.mean),
    "aminmax": (lambda x: mt.aminmax(x, dim=0, mask=ONE).max, torch.amax),
    "nanmean": (lambda x: mt.nanmean(x, 0, mask=ONE), torch.nanmean),
    "nansum": (lambda x: mt.nansum(x, 0, mask=ONE), torch.nansum),
    "count_nonzero": (lambda x: mt.count_nonzero(x, mask=ONE), torch.count_nonzero),
}


@pytest.mark.parametrize("name", CASES)
def test_one_row(name: str) -> None:
    function, plain = CASES[name]
    torch.testing.assert_close(function(A.masked_fill(~ONE, NAN)), plain(A[ONE]))


def test_positions_lie_in_the_original_dimension() -> None:
    values, indices = mt.max(X.masked_fill(~M, NAN), 1, mask=M)
    rows = M.any(1)
    assert M.gather(1, indices[:, None])[rows].all()
    assert torch.equal(X.gather(1, indices[:, None])[rows, 0], values[rows])


def test_every_function_is_documented_and_public() -> None:
    from masked_tensor import functional

    for name in functional.__all__:
        assert getattr(mt, name) is getattr(functional, name)
        assert (getattr(functional, name).__doc__ or "").strip(), name
