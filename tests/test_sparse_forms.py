"""Order statistics, scans, distances, norm layers and losses of sparse inputs, against loops over their elements."""

import itertools
import resource
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

import masked_tensor as mt
import masked_tensor.functional as masked
from masked_tensor import layouts
from masked_tensor.layouts.elements import canonical, same_pattern
from masked_tensor.testing import assert_close

from .helpers.examples import INPUTS, example, masks_of
from .matrix import check_pattern, compare
from .oracles import sparse as oracle
from .oracles.groups import EPS, parameters
from .test_functional_gradients import distinct, finite_dense
from .test_layouts import huge

NAN, INF = float("nan"), float("inf")
SPARSE = [name for name in INPUTS if not name.startswith("strided")]


def with_nan(x: Tensor) -> Tensor:
    """The example with one NaN among the stored values (of a hybrid or blocked one, in the first stored block)."""
    x = x.clone()
    (x._values() if x.layout is torch.sparse_coo else x.values()).view(-1)[0] = NAN
    return x


# ---------------------------------------------------------------------------------------------------- order statistics

QUANTILES = [(0.5, "linear"), (0.2, "lower"), (0.7, "higher"), (0.35, "nearest"), (0.9, "midpoint")]


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantile(name: str, layout: str) -> None:
    x = INPUTS[layout]() if name == "quantile" and layout != "csr" else with_nan(INPUTS[layout]())
    dense = x.to_dense()
    modes = itertools.cycle(QUANTILES)
    for dim in (None, *range(x.dim())):
        dims = tuple(range(x.dim())) if dim is None else (dim,)
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            q, kind = next(modes)

            def function(v: Tensor, q: float = q, kind: str = kind) -> Tensor:
                return getattr(torch, name)(v, q, interpolation=kind)  # type: ignore[no-any-return]

            keepdim = q > 0.5
            expected, valid = oracle.reduction(function, dense, mask, dims, keepdim, NAN)
            out = getattr(masked, name)(x, q, dim, keepdim=keepdim, interpolation=kind, mask=mask)
            compare(out, x, expected, valid, f"{name} {q} {kind} of {layout}, mask {mask_name}, dim {dim}")


@pytest.mark.parametrize("layout", SPARSE)
def test_several_quantiles_come_first(layout: str) -> None:
    x = INPUTS[layout]()
    share = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    for mask_name, dim, keepdim in itertools.product(("none", "coo", "row"), (None, 0, -1), (False, True)):
        mask = masks_of(tuple(x.shape))[mask_name]
        out = masked.quantile(x, share, dim, keepdim=keepdim, mask=mask).to_dense()
        assert out.shape[0] == 3
        for q, part in zip(share, out, strict=True):
            one = masked.quantile(x, q, dim, keepdim=keepdim, mask=mask)
            torch.testing.assert_close(part, one.to_dense() if one.dim() else one, msg=f"{mask_name} {dim}")


@pytest.mark.parametrize("layout", SPARSE)
def test_mode(layout: str) -> None:
    x = with_nan(INPUTS[layout]()) if layout in ("coo", "csr batched") else INPUTS[layout]()
    dense = x.to_dense()
    keepdim = False
    for dim in range(-1, x.dim() - 1):
        dims = (dim % x.dim(),)
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            keepdim = not keepdim
            what = f"mode of {layout}, mask {mask_name}, dim {dim}"
            values, indices = masked.mode(x, dim, keepdim=keepdim, mask=mask)
            expected, valid = oracle.reduction(oracle.most_frequent, dense, mask, dims, keepdim, NAN)
            compare(values, x, expected, valid, what)
            expected, valid = oracle.position(oracle.last_mode, dense, mask, dims, keepdim)
            compare(indices, x, expected, valid, what)


@pytest.mark.parametrize("layout", SPARSE)
def test_unique_consecutive(layout: str) -> None:
    for x in (INPUTS[layout](), with_nan(INPUTS[layout]())):
        dense = x.to_dense()
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            visible = oracle.shown(mask, tuple(x.shape))
            elements = torch.stack([dense[i] for i in visible if visible[i]])
            expected = torch.unique_consecutive(elements, return_counts=True)
            out = masked.unique_consecutive(x, return_counts=True, mask=mask)
            for a, b in zip(out, expected, strict=True):
                torch.testing.assert_close(a, b, equal_nan=True, msg=f"{layout}, mask {mask_name}")
        with pytest.raises(NotImplementedError, match=r"has no inverse; give it input\.to_dense"):
            masked.unique_consecutive(x, return_inverse=True)


def test_masks_that_repeat_are_never_spelled_out() -> None:
    """Positions among the valid ones, with a mask that varies in every subset of the dimensions."""
    generator = torch.Generator().manual_seed(5)
    shape = (3, 2, 4, 3)
    dense = torch.randint(-1, 2, shape, generator=generator).double()
    x = (dense * (torch.rand(shape, generator=generator) < 0.3)).to_sparse_coo()
    for small in itertools.product(*((1, n) for n in shape)):
        mask = torch.rand(small, generator=generator) < 0.6
        for given in (mask, mask.to_sparse_coo()):
            values = torch.masked_select(x.to_dense(), mask)
            out = masked.unique_consecutive(x, return_counts=True, mask=given)
            torch.testing.assert_close(out, torch.unique_consecutive(values, return_counts=True))
            for name, dim in itertools.product(("argmax", "argmin"), (None, 0, 2)):
                expected = getattr(masked, name)(x.to_dense(), dim, mask=mask)
                got = getattr(masked, name)(x, dim, mask=given)
                torch.testing.assert_close(got.to_dense() if got.dim() else got, expected)


# --------------------------------------------------------------------------------------------------------- norm layers


@pytest.mark.parametrize("layout", ["coo", "coo 3-d", "csr", "bsr", "csr batched"])
@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_running_statistics(name: str, layout: str) -> None:
    """Each row's (a batch's) statistics, averaged over the rows that have them; the variance needs two values."""
    x = INPUTS[layout]()
    dense, channels = x.to_dense(), x.shape[1]
    for mask_name in ("none", "coo", "strided"):
        mask = masks_of(tuple(x.shape))[mask_name]
        groups: dict[Any, list[Tensor]] = {}
        visible = oracle.shown(mask, tuple(x.shape))
        for index in set(oracle.pattern(x)[0]):
            if visible[index]:
                groups.setdefault(index[:2] if name == "instance_norm" else (0, index[1]), []).append(dense[index])
        mean, var = parameters(channels)
        var = var.exp()
        expected_mean, expected_var = mean.clone(), var.clone()
        for c in range(channels):
            rows = [torch.stack(v) for (_, channel), v in groups.items() if channel == c]
            several = [v for v in rows if v.numel() > 1]
            if rows:
                expected_mean[c] = 0.7 * mean[c] + 0.3 * torch.stack([v.mean() for v in rows]).mean()
            if several:
                expected_var[c] = 0.7 * var[c] + 0.3 * torch.stack([v.var() for v in several]).mean()
        form = getattr(masked, name)
        before = mean.clone(), var.clone()
        form(x, mean, var, None, None, True, 0.3, EPS, mask=mask)
        torch.testing.assert_close((mean, var), (expected_mean, expected_var), msg=f"{name} of {layout}, {mask_name}")
        mean, var = before
        out = form(x, mean, var, None, None, False, 0.3, EPS, mask=mask)
        along = (-1, *[1] * (x.dim() - 2))
        expected = (dense - mean.view(along)) / (var.view(along) + EPS).sqrt()
        flags = oracle.specified(x) & torch.tensor([*visible.values()]).view(x.shape)
        torch.testing.assert_close(out.to_dense(), torch.where(flags, expected, 0))


def test_norm_layers_refuse() -> None:
    x = INPUTS["coo"]()
    with pytest.raises(TypeError, match=r"must be plain strided tensors, got Tensor of layout torch\.sparse_coo"):
        masked.layer_norm(x, (6,), torch.ones(6).to_sparse_coo())
    with pytest.raises(RuntimeError, match=r"normalized_shape=\[5\], got an input of shape \[4, 6\]"):
        masked.layer_norm(x, (5,))
    with pytest.raises(RuntimeError, match=r"num_groups=4 must divide the number of channels, got shape \[4, 6\]"):
        masked.group_norm(x, 4)
    with pytest.raises(RuntimeError, match="evaluation needs running_mean and running_var"):
        masked.batch_norm(x, None, None)


# ------------------------------------------------------------------------------------------------------ dist and losses


def targets_of(x: Tensor) -> dict[str, Tensor]:
    """Tensors that go with ``x``: in its pattern and others, of its layout and others, of its shape and smaller."""
    dense = torch.where(x.to_dense().flip(-1) == 0, 0, 0.25 + x.to_dense().flip(-1).abs() / 4)
    own = layouts.values(canonical(x))
    found = {
        "same pattern": layouts.with_values(canonical(x), own / 8 + 0.5),
        "coo": dense.to_sparse_coo(),
        "strided": dense,
        "row": dense[(0,) * (x.dim() - 1)],
        "column": dense[..., :1] + 0.125,
        "scalar": torch.tensor(0.5, dtype=torch.float64),
    }
    return found | ({"csc": dense.to_sparse_csc()} if x.dim() == 2 else {})


def shown_pairs(
    x: Tensor, operands: list[Tensor], masks: list[Tensor | None]
) -> tuple[list[tuple[int, ...]], list[Tensor]]:
    """The indices that every mask shows, and the elements there of each operand, broadcast."""
    shape = tuple(x.shape)
    visible = [oracle.shown(mask, shape) for mask in masks]
    indices = [i for i in itertools.product(*map(range, shape)) if all(v[i] for v in visible)]
    wide = [t.to_dense().expand(shape) for t in operands]
    return indices, [torch.stack([t[i] for i in indices]) for t in wide]


F = torch.nn.functional


def kl_div(x: Tensor, y: Tensor, reduction: str, **options: Any) -> Tensor:
    """torch's own, which warns of its mean."""
    entries = F.kl_div(x, y, reduction="none", **options)
    return {"none": entries, "sum": entries.sum(), "mean": entries.mean()}[reduction]


LOSSES: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "mse": (masked.mse_loss, F.mse_loss),
    "l1": (masked.l1_loss, F.l1_loss),
    "smooth_l1": (
        lambda x, y, **k: masked.smooth_l1_loss(x, y, beta=0.5, **k),
        lambda x, y, **k: F.smooth_l1_loss(x, y, beta=0.5, **k),
    ),
    "huber": (
        lambda x, y, **k: masked.huber_loss(x, y, delta=0.5, **k),
        lambda x, y, **k: F.huber_loss(x, y, delta=0.5, **k),
    ),
    "kl_div": (masked.kl_div, kl_div),
    "kl_div log": (
        lambda x, y, **k: masked.kl_div(x, y, log_target=True, **k),
        lambda x, y, **k: kl_div(x, y, log_target=True, **k),
    ),
    "bce logits": (masked.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits),
    "poisson": (masked.poisson_nll_loss, F.poisson_nll_loss),
    "soft_margin": (masked.soft_margin_loss, F.soft_margin_loss),
    "hinge": (masked.hinge_embedding_loss, F.hinge_embedding_loss),
    "gaussian": (
        lambda x, y, **k: masked.gaussian_nll_loss(x, y, 0.5, full=True, **k),
        lambda x, y, **k: F.gaussian_nll_loss(x, y, torch.full_like(x, 0.5), full=True, **k),
    ),
}


CASES = [
    *itertools.product(["mse"], SPARSE),
    *zip(LOSSES, itertools.cycle(["coo uncoalesced", "csr", "bsc"]), strict=False),
]


@pytest.mark.parametrize(("name", "layout"), sorted(set(CASES)))
def test_losses(name: str, layout: str) -> None:
    form, plain = LOSSES[name]
    x = INPUTS[layout]()
    given = masks_of(tuple(x.shape))
    target_masks = itertools.cycle([None, given["column"], given["coo row"], given["strided"]])
    for target_name, y in targets_of(x).items():
        for mask_name, mask in given.items():
            target_mask = next(target_masks) if y.shape == x.shape else None
            what = f"{name} of {layout}, target {target_name}, mask {mask_name}"
            masking = {"mask": mask, "target_mask": target_mask}
            indices, (a, b) = shown_pairs(x, [x, y], [mask, target_mask])
            if not indices:
                continue
            for reduction in ("mean", "sum"):
                out = form(x, y, reduction=reduction, **masking)
                torch.testing.assert_close(out, plain(a, b, reduction=reduction), msg=lambda m, w=what: f"{w}: {m}")
                if y.shape == x.shape:
                    out = form(y, x, reduction=reduction, mask=mask, target_mask=target_mask)
                    expected = plain(b, a, reduction=reduction)
                    torch.testing.assert_close(out, expected, equal_nan=True, msg=lambda m, w=what: f"{w}: {m}")
            if name in ("mse", "l1", "smooth_l1", "huber", "kl_div") and y.shape == x.shape:
                out = form(x, y, reduction="none", **masking)
                check_pattern(out)
                expected = torch.zeros(x.shape, dtype=torch.float64)
                for index, value in zip(indices, plain(a, b, reduction="none"), strict=True):
                    expected[index] = value
                torch.testing.assert_close(out.to_dense(), expected, msg=lambda m, w=what: f"{w}: {m}")


@pytest.mark.parametrize("layout", ["coo", "csr", "bsc"])
def test_losses_with_more_operands(layout: str) -> None:
    x = INPUTS[layout]()
    for (target_name, y), mask_name in itertools.product(targets_of(x).items(), ("none", "coo", "row")):
        mask = masks_of(tuple(x.shape))[mask_name]
        for weight_name in ("coo", "strided", "row", "column"):
            weight = targets_of(x)[weight_name]
            _, (a, b, w) = shown_pairs(x, [x, y, weight], [mask])
            what = f"{target_name}, weight {weight_name}, mask {mask_name}"
            out = masked.binary_cross_entropy_with_logits(x, y, weight=weight, pos_weight=weight, mask=mask)
            torch.testing.assert_close(out, F.binary_cross_entropy_with_logits(a, b, weight=w, pos_weight=w), msg=what)
            out = masked.gaussian_nll_loss(x, y, weight, mask=mask)
            torch.testing.assert_close(out, F.gaussian_nll_loss(a, b, w), msg=what)
            out = masked.margin_ranking_loss(x, y, weight, margin=0.5, mask=mask)
            torch.testing.assert_close(out, F.margin_ranking_loss(a, b, w, margin=0.5), msg=what)


def test_binary_cross_entropy_of_probabilities() -> None:
    x = INPUTS["coo"]()
    share = layouts.with_values(x, layouts.values(x).abs() / 4)
    target, mask = targets_of(share)["coo"], masks_of((4, 6))["coo"]
    _, (a, b) = shown_pairs(share, [share, target], [mask])
    expected = F.binary_cross_entropy(a, b.clamp(max=1))
    out = masked.binary_cross_entropy(
        share, layouts.with_values(target, layouts.values(target).clamp(max=1)), mask=mask
    )
    torch.testing.assert_close(out, expected)


def test_batchmean_divides_by_the_rows_that_count() -> None:
    x, mask = INPUTS["csr"](), torch.tensor([[True], [False], [True], [False]])
    y = targets_of(x)["coo"]
    total = masked.kl_div(x, y, reduction="sum", mask=mask)
    for given in (mask, mask.to_sparse_coo()):
        torch.testing.assert_close(masked.kl_div(x, y, reduction="batchmean", mask=given), total / 2)
    total = masked.kl_div(x, y, reduction="sum")
    torch.testing.assert_close(masked.kl_div(x, y, reduction="batchmean"), total / 4)


def test_what_losses_refuse() -> None:
    x, y = INPUTS["coo"](), targets_of(INPUTS["coo"]())["coo"]
    with pytest.raises(NotImplementedError, match=r"would be dense; give it input.to_dense\(\)"):
        masked.binary_cross_entropy_with_logits(x, y, reduction="none")
    with pytest.raises(
        ValueError, match=r"must have one shape, to which strided ones broadcast, got \(4, 6\) and \(6,\)"
    ):
        masked.mse_loss(x, y.to_dense()[0].to_sparse_coo())
    for refused in (
        lambda: masked.multi_margin_loss(x, torch.zeros(4, dtype=torch.int64)),
        lambda: masked.multilabel_soft_margin_loss(x, y),
        lambda: masked.triplet_margin_loss(x, y, y),
    ):
        with pytest.raises(NotImplementedError, match=r"does not support torch.sparse_coo inputs; use in"):
            refused()


def test_a_loss_of_nothing() -> None:
    x, nothing = INPUTS["coo"](), torch.zeros(4, 6, dtype=torch.bool)
    for mask in (nothing, nothing.to_sparse_coo()):
        assert masked.mse_loss(x, x, mask=mask).isnan()
        assert masked.mse_loss(x, x, mask=mask, reduction="sum") == 0
        assert masked.l1_loss(x, x, mask=mask, fill_value=7.0) == 7
        assert masked.dist(x, x, mask=mask, fill_value=7.0) == 7


ORDERS = [0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf"), -1.0]


@pytest.mark.parametrize(("layout", "p"), sorted({*((n, 2.0) for n in SPARSE), *(("csr", p) for p in ORDERS)}))
def test_dist(layout: str, p: float) -> None:
    x = INPUTS[layout]()
    for y_name, y in targets_of(x).items():
        for mask_name, mask in masks_of(tuple(x.shape)).items():
            if y.shape == x.shape:
                _, (a, b) = shown_pairs(x, [x, y], [mask])
                what = f"{y_name}, {mask_name}"
                torch.testing.assert_close(masked.dist(x, y, p, mask=mask), torch.dist(a, b, p), msg=what)
                torch.testing.assert_close(masked.dist(y, x, p, mask=mask), torch.dist(a, b, p), msg=what)
    with pytest.raises(ValueError, match="dist with a sparse input does not broadcast"):
        masked.dist(x, torch.ones(6))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("dim", [0, 1])
def test_many_slices_and_few_values(layout: str, dim: int) -> None:
    """Then only the slices that store something are numbered; the strided form says what the others are."""
    shape = (5000, 3) if dim == 1 else (3, 5000)
    generator = torch.Generator().manual_seed(6)
    dense = torch.randint(-3, 4, shape, generator=generator).double() * (torch.rand(shape, generator=generator) < 0.02)
    dense[0, 0] = 2.0
    x, stored = dense.to_sparse(layout=getattr(torch, f"sparse_{layout}")), dense != 0
    mask = torch.rand(shape, generator=generator) < 0.02
    forms: list[Callable[..., Any]] = [
        lambda x, m, _: masked.quantile(x, 0.7, dim, mask=m),
        lambda x, m, _: masked.median(x, dim, mask=m).values,
        lambda x, m, _: masked.mode(x, dim, mask=m)[0],
        lambda x, m, _: masked.mode(x, dim, mask=m)[1],
        lambda x, m, _: masked.argmin(x, dim, mask=m),
        lambda x, m, _: masked.cross_entropy(x, torch.ones(shape[0]).long(), mask=m, reduction="sum"),
        lambda x, _, m: masked.cummax(x, dim, mask=m)[1],
        lambda x, _, m: masked.layer_norm(x, x.shape[-1:], mask=m),
        lambda x, _, m: masked.batch_norm(x, None, None, training=True, mask=m),
    ]
    for number, form in enumerate(forms):
        for given in (None, mask, mask.to_sparse_coo(), mask[:1], mask[:, :1]):
            plain = given.to_dense() if given is not None else torch.ones(1, 1, dtype=torch.bool)
            out, expected = form(x, given, given), form(dense, plain, plain & stored)
            out = out.to_dense() if layouts.is_sparse(out) else out
            torch.testing.assert_close(out, expected.nan_to_num(0, INF, -INF), equal_nan=True, msg=f"form {number}")


# ----------------------------------------------------------------------------------------------------------- gradients

SHARES = torch.tensor([0.0, 0.3, 0.75], dtype=torch.float64)


def beside(x: Tensor) -> Tensor:
    """Another tensor of the shape of ``x``, the same whatever ``x`` holds."""
    return distinct("coo 3-d").to_dense().reshape(-1)[: x.numel()].reshape(x.shape).to_sparse_coo()


FORMS: dict[str, Callable[..., Tensor]] = {
    "quantile": lambda x, mask: masked.quantile(x, 0.4, -1, mask=mask),
    "quantiles": lambda x, mask: masked.quantile(x, SHARES, 0, mask=mask),
    "nanquantile": lambda x, mask: masked.nanquantile(x, 0.8, -1, mask=mask),
    "mode": lambda x, mask: masked.mode(x, -1, mask=mask)[0],
    "unique_consecutive": lambda x, mask: masked.unique_consecutive(x, mask=mask),
    "cummax": lambda x, mask: masked.cummax(x, -1, mask=mask)[0],
    "cummin": lambda x, mask: masked.cummin(x, 0, mask=mask)[0],
    "layer_norm": lambda x, mask: masked.layer_norm(x, x.shape[-1:], mask=mask),
    "rms_norm": lambda x, mask: masked.rms_norm(x, x.shape[-2:], mask=mask),
    "group_norm": lambda x, mask: masked.group_norm(x, 2, mask=mask),
    "instance_norm": lambda x, mask: masked.instance_norm(x, mask=mask),
    "batch_norm": lambda x, mask: masked.batch_norm(x, None, None, training=True, mask=mask),
    "batch_norm in evaluation": lambda x, mask: masked.batch_norm(
        x, torch.zeros(x.shape[1]).double(), torch.ones(x.shape[1]).double(), mask=mask
    ),
    "local_response_norm": lambda x, mask: masked.local_response_norm(x, 3, 0.5, mask=mask),
    "dist": lambda x, mask: masked.dist(x, beside(x), 3.0, mask=mask),
    "mse": lambda x, mask: masked.mse_loss(x, beside(x), mask=mask),
    "mse of a target": lambda x, mask: masked.mse_loss(beside(x).to_dense()[0], x, target_mask=mask),
    "mse entries": lambda x, mask: masked.mse_loss(x, beside(x), mask=mask, reduction="none"),
    "cross_entropy": lambda x, mask: masked.cross_entropy(
        x, torch.ones((x.shape[0], *x.shape[2:]), dtype=torch.int64), mask=mask, fill_value=0.0
    ),
    "bce logits": lambda x, mask: masked.binary_cross_entropy_with_logits(x, beside(x).to_dense()[..., :1], mask=mask),
}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")  # inside gradcheck
@pytest.mark.parametrize(
    ("name", "layout"),  # each form on one layout with coordinates, and on one that is compressed
    [
        (name, layouts[number % 3])
        for number, name in enumerate(FORMS)
        for layouts in (["coo", "coo hybrid", "coo uncoalesced"], ["csr", "bsc", "csr hybrid"])
    ],
)
def test_gradcheck(name: str, layout: str) -> None:
    for mask_name in ("none", "coo"):
        x = distinct(layout)
        mask = masks_of(tuple(x.shape))[mask_name]
        options: dict[str, Any] = {"masked": True, "check_batched_grad": False, "check_undefined_grad": False}
        x.requires_grad_()
        assert gradcheck(lambda x: finite_dense(FORMS[name](x, mask)), (x,), **options), mask_name  # noqa: B023


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("name", FORMS)
def test_garbage_reaches_nothing(name: str, layout: str) -> None:
    """Stored values that the mask hides: no result and no gradient depends on them, and theirs is 0."""
    x = distinct(layout)
    visible = oracle.shown(masks_of(tuple(x.shape))["strided"], tuple(x.shape))
    hidden = torch.tensor([not visible[i] for i in oracle.pattern(x)[0]])
    assert hidden.any()
    for mask_name in ("strided", "coo"):
        mask = masks_of(tuple(x.shape))[mask_name]
        clean_out, clean_grad = through(name, x, mask)
        for dirt in (NAN, float("inf"), -1e30):
            dirty = layouts.with_values(x, torch.where(hidden, dirt, layouts.values(x)))
            out, grad = through(name, dirty, mask)
            torch.testing.assert_close(out, clean_out, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(grad, clean_grad, rtol=0, atol=0)
            assert (grad[hidden] == 0).all()


def through(name: str, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().requires_grad_()
    out = FORMS[name](x, mask)
    (grad,) = torch.autograd.grad(finite_dense(out).square().sum(), x)
    assert same_pattern(grad, x.detach())
    return finite_dense(out).detach(), layouts.values(grad)


@pytest.mark.parametrize("layout", ["coo", "csr batched", "bsc"])
def test_gradients_of_parameters_and_strided_operands(layout: str) -> None:
    x = distinct(layout)
    mask = masks_of(tuple(x.shape))["coo"]
    flags = oracle.specified(x) & mask.to_dense()  # what takes part in a norm layer
    for group in (x.shape[-1:], x.shape[-2:]):
        both = [p.requires_grad_() for p in parameters(*group)]
        sparse = finite_dense(masked.layer_norm(x, group, *both, mask=mask))
        strided = masked.layer_norm(x.to_dense(), group, *both, mask=flags)
        for a, b in zip(*(torch.autograd.grad(out.square().sum(), both) for out in (sparse, strided)), strict=True):
            torch.testing.assert_close(a, b)
    for name in ("strided", "row", "column", "scalar"):
        y = targets_of(x)[name].requires_grad_()
        losses = (masked.mse_loss(x, y, mask=mask), masked.mse_loss(x.to_dense(), y.expand(x.shape), mask=mask))
        first, second = (torch.autograd.grad(loss, y)[0] for loss in losses)
        torch.testing.assert_close(first, second)


# ------------------------------------------------------------------------------------ cost, dtypes, masked tensors


def test_a_million_by_a_million_stays_small() -> None:
    """One dense temporary would take 1e12 bytes and more; each of the three inputs takes 20 MB."""
    generator = torch.Generator().manual_seed(0)
    x, y, mask = huge(generator), huge(generator), huge(generator, torch.bool)
    row, column = (torch.rand(shape, generator=generator) < 0.5 for shape in ((1_000_000,), (1_000_000, 1)))
    weight = torch.ones(1_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    masked.quantile(x, torch.tensor([0.25, 0.5]), 1, mask=row)
    masked.mode(x, 0, mask=column)
    masked.unique_consecutive(x, return_counts=True, mask=row.to_sparse_coo())
    masked.argmax(x, mask=row)  # the row repeats a million times
    masked.cummax(x, 1, mask=mask)
    masked.layer_norm(x, (1_000_000,), weight, weight)
    masked.batch_norm(x, weight, weight, None, None, True, mask=column)
    masked.local_response_norm(x, 3)
    masked.dist(x, y, mask=mask)
    masked.binary_cross_entropy_with_logits(x, y, pos_weight=weight, mask=column, target_mask=mask)
    masked.mse_loss(x, y, reduction="none")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 800, f"{grown:.0f} MB"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.uint8])
def test_dtypes_are_those_of_the_strided_form(dtype: torch.dtype) -> None:
    dense = torch.tensor([[3, 0, 2, 0], [0, 0, 0, 1], [1, 1, 0, 3]]).to(dtype)
    mask = torch.tensor([[True, True, False, True], [True] * 4, [True, False, True, True]])
    stored = mask & (dense != 0)
    forms: dict[str, Callable[[Tensor], Any]] = {
        "mode": lambda x: masked.mode(x, 1, mask=mask),
        "unique_consecutive": lambda x: masked.unique_consecutive(x, return_counts=True, mask=mask),
        "cummax": lambda x: masked.cummax(x, 1, mask=stored),
    }
    if dtype.is_floating_point:
        forms |= {
            "layer_norm": lambda x: masked.layer_norm(x, (4,), mask=stored),
            "batch_norm": lambda x: masked.batch_norm(x, None, None, training=True, mask=stored),
            "mse": lambda x: masked.mse_loss(x, dense + 1, mask=mask),
            "dist": lambda x: masked.dist(x, torch.ones_like(dense), mask=mask),
        }
    for name, form in forms.items():
        got, expected = form(dense.to_sparse_coo()), form(dense)
        assert type(got) is type(expected)
        pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
        for a, b in pairs:
            torch.testing.assert_close(a.to_dense() if layouts.is_sparse(a) else a, b, msg=name)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0), (0, 0)])
@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse_coo, torch.Tensor.to_sparse_csr])
def test_nothing_stored_and_no_size(convert: Callable[[Tensor], Tensor], shape: tuple[int, int]) -> None:
    dense, x = torch.zeros(shape), convert(torch.zeros(shape))
    nothing = torch.zeros(shape, dtype=torch.bool)
    for mask in (None, nothing, nothing.to_sparse_coo(), ~nothing):
        plain = None if mask is None else mask.to_dense()
        for form in (
            lambda x, m: masked.unique_consecutive(x, mask=m),
            lambda x, m: masked.mse_loss(x, x, mask=m),
            lambda x, m: masked.binary_cross_entropy_with_logits(x, x, mask=m, reduction="sum"),
            lambda x, m: masked.dist(x, x, mask=m),
        ):
            torch.testing.assert_close(form(x, mask), form(dense, plain), equal_nan=True)
        statistics = [torch.zeros(shape[1]), torch.ones(shape[1])]
        for out in (
            masked.cummax(x, 1, mask=mask).indices,
            masked.layer_norm(x, shape[1:], mask=mask),
            masked.group_norm(x, 1, mask=mask),
            masked.batch_norm(x, *statistics, training=True, mask=mask),
            masked.mse_loss(x, x, mask=mask, reduction="none"),
        ):
            assert out.shape == shape
            assert out._nnz() == 0
        assert statistics[0].tolist() == [0.0] * shape[1]
        assert statistics[1].tolist() == [1.0] * shape[1]
        if shape[1] == 0:
            with pytest.raises(RuntimeError, match="must be non-empty"):
                masked.quantile(x, 0.5, mask=mask)
            with pytest.raises(IndexError, match="non-zero size"):
                masked.mode(x, 1, mask=mask)


@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_sparse_masked_tensors(convert: Callable[[Tensor], Tensor]) -> None:
    """What a sparse masked tensor does not store is masked out, so that every form equals that of the strided one."""
    data, mask = example(), masks_of((4, 6))["strided"]
    strided = mt.masked_tensor(data, mask)
    y = mt.masked_tensor(data.flip(0), data != 0)
    forms: dict[str, Callable[[Tensor], Any]] = {
        "quantile": lambda x: masked.quantile(x, 0.4, 1),
        "quantile of all": lambda x: masked.quantile(x, 0.4),
        "mode": lambda x: masked.mode(x, 0),
        "unique_consecutive": lambda x: masked.unique_consecutive(x, return_counts=True),
        "cummin": lambda x: masked.cummin(x, 1),
        "layer_norm": lambda x: masked.layer_norm(x, (6,)),
        "mse": lambda x: masked.mse_loss(x, y if x is strided else convert(y)),
        "mse with a mask": lambda x: masked.mse_loss(x, y if x is strided else convert(y), mask=mask[:1]),
        "mse entries": lambda x: masked.mse_loss(x, y if x is strided else convert(y), reduction="none"),
        "mse with a plain target": lambda x: masked.mse_loss(x, data),
        "mse of a plain input": lambda x: masked.mse_loss(data, x),
        "dist": lambda x: masked.dist(x, y if x is strided else convert(y)),
    }
    for name, form in forms.items():
        got, expected = form(convert(strided)), form(strided)
        pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
        for a, b in pairs:
            assert type(a) is mt.MaskedTensor, name
            assert_close(a.to_dense(), b)
            assert layouts.is_sparse(mt.get_data(a)) or a.dim() == 0 or name == "unique_consecutive", name


# -------------------------------------------------------------------------------------------------- losses of classes


@pytest.mark.parametrize("layout", ["coo", "coo 3-d", "csr", "bsc", "csr batched", "csr hybrid", "coo 1-d"])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_losses_of_classes(name: str, layout: str) -> None:
    """Against a loop over the samples that counts the valid classes of each; a masked class is impossible: inf."""
    x = example()[0].to_sparse_coo() if layout == "coo 1-d" else INPUTS[layout]()
    dim = min(x.dim() - 1, 1)
    samples = (*x.shape[:dim], *x.shape[dim + 1 :])
    generator = torch.Generator().manual_seed(4)
    target = torch.randint(x.shape[dim], samples, generator=generator)
    target_mask = torch.rand(samples, generator=generator) < 0.8 if samples else torch.tensor(True)
    weight = torch.rand(x.shape[dim], generator=generator).double() + 0.5
    given = {"none": None, "row": torch.rand(x.shape[-1:], generator=generator) < 0.7}
    if x.dim() > 1:
        given = masks_of(tuple(x.shape))
    form, dense = getattr(masked, name), x.to_dense()
    for (mask_name, mask), reduction in itertools.product(given.items(), ("mean", "sum", "none")):
        masking = {"weight": weight, "target_mask": target_mask, "reduction": reduction, "ignore_index": 1}
        visible = torch.tensor([*oracle.shown(mask, tuple(x.shape)).values()]).view(x.shape)
        total, entries, divisor = 0.0, torch.zeros(samples, dtype=torch.float64), 0.0
        for place in itertools.product(*map(range, samples)):
            scores, shown = (t.movedim(dim, -1)[place] for t in (dense, visible))
            c = int(target[place])
            if target_mask[place] and c != 1 and shown.any():
                own = scores[c] if shown[c] else -INF
                entries[place] = scores[shown].logsumexp(0) * (name == "cross_entropy") - own
                entries[place] *= weight[c]
                total, divisor = total + entries[place], divisor + weight[c]
        expected = {"none": entries, "sum": total, "mean": total / divisor if divisor else NAN}[reduction]
        dirty = torch.where(target_mask, target, 10**9)  # what lies under a mask names nothing
        out = form(x, dirty, mask=mask, **masking)
        what = f"{name} of {layout}, mask {mask_name}, {reduction}"
        torch.testing.assert_close(out, torch.as_tensor(expected).double(), equal_nan=True, msg=what)


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_losses_of_classes_have_gradients(name: str) -> None:
    target, weight = torch.tensor([0, 3, 5, 2]), torch.arange(1.0, 7.0, dtype=torch.float64)
    for layout, mask_name in itertools.product(("coo", "csr"), ("none", "coo", "column")):
        x, mask = distinct(layout), masks_of((4, 6))[mask_name]
        dense = x.to_dense()
        form = getattr(masked, name)
        results = [form(t.requires_grad_(), target, weight=weight, mask=mask) for t in (x, dense)]
        sparse, strided = (torch.autograd.grad(out, t)[0] for out, t in zip(results, (x, dense), strict=True))
        assert same_pattern(sparse, x.detach())
        torch.testing.assert_close(
            sparse.to_dense(), torch.where(mt.extend.specified_mask(x.detach()).to_dense(), strided, 0)
        )


def test_what_losses_of_classes_refuse() -> None:
    x, target = INPUTS["csr"](), torch.tensor([0, 3, 5, 2])
    for options in ({"target": x.to_dense()}, {"label_smoothing": 0.1}, {"target": target.to_sparse_coo()}):
        with pytest.raises(NotImplementedError, match=r"needs strided class indices, .* give it input.to_dense\(\)"):
            masked.cross_entropy(x, **{"target": target, **options})
    with pytest.raises(IndexError, match="Target 6 is out of bounds: there are 6 classes"):
        masked.nll_loss(x, target + 1)
    with pytest.raises(ValueError, match=r"got \(3,\) for scores of shape \(4, 6\)"):
        masked.nll_loss(x, target[:3])


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("convert", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_losses_of_sparse_masked_tensors_by_torchs_names(convert: Callable[[Tensor], Tensor], reduction: str) -> None:
    data, mask = example(), masks_of((4, 6))["strided"]
    strided = mt.masked_tensor(torch.where(mask, data, NAN), mask)
    other = mt.masked_tensor(torch.where(data == 0, NAN, data.flip(0)), data != 0)
    for loss in (F.mse_loss, F.huber_loss, F.binary_cross_entropy_with_logits, F.soft_margin_loss):
        for target in (other, data, data[0]):
            x, y = convert(strided).detach().requires_grad_(), strided.detach().requires_grad_()
            of_layout = convert(target) if target is other else target
            if target.shape != x.shape and loss is not F.mse_loss:
                continue  # torch refuses
            got, expected = loss(x, of_layout, reduction=reduction), loss(y, target, reduction=reduction)
            assert_close(got.to_dense(), expected)
            got.sum().backward()
            expected.sum().backward()
            assert_close(x.grad.to_dense(), y.grad)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_neighbouring_channels_are_those_of_one_sample(size: int) -> None:
    """Of even and odd sizes, more than there are channels, too."""
    for seed, shape in enumerate([(3, 4, 2), (2, 3, 3), (4, 1, 2), (2, 5, 1)]):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        x = x * (torch.rand(shape, generator=generator) < 0.7)
        found = masked.local_response_norm(x.to_sparse(), size, 0.5, 0.6, 1.5)
        expected = torch.nn.functional.local_response_norm(x, size, 0.5, 0.6, 1.5)
        torch.testing.assert_close(found.to_dense(), expected)
