"""Losses beyond the laws: NaN under the mask, out-of-range targets, micro-batches, nothing valid, modules."""

import itertools
import warnings
from functools import partial

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.kernels.losses import numerator, total_weight

from .helpers.harness import Masked, assert_same
from .laws import laws
from .oracles.cross_entropy import cross_entropy

NAN, INF = float("nan"), float("inf")
ENTRYWISE = {
    "mse": nn.MSELoss,
    "l1": nn.L1Loss,
    "smooth_l1": nn.SmoothL1Loss,
    "huber": nn.HuberLoss,
    "bce": nn.BCELoss,
    "bce_with_logits": nn.BCEWithLogitsLoss,
    "soft_margin": nn.SoftMarginLoss,
    "poisson": nn.PoissonNLLLoss,
    "hinge_embedding": nn.HingeEmbeddingLoss,
}


@pytest.mark.parametrize("bad", [NAN, INF, 1e30])
def test_mse_with_unknown_targets(bad):
    """A regression some of whose targets are masked: the gradient is that of the known targets."""
    torch.manual_seed(0)
    x, target = torch.randn(50, 3), torch.randn(50, 1)
    known = torch.rand(50, 1) < 0.6
    model, plain = nn.Linear(3, 1), nn.Linear(3, 1)
    plain.load_state_dict(model.state_dict())
    loss = F.mse_loss(model(x), mt.as_masked_tensor(target.masked_fill(~known, bad), known))
    expected = F.mse_loss(plain(x)[known], target[known])
    assert_same(loss, expected, "loss")
    loss.backward()
    expected.backward()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        assert type(a.grad) is torch.Tensor
        torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize("how", ["ignore_index", "masked target", "masked logits"])
@pytest.mark.parametrize("payload", [-100, 10**9, -(10**9)])
def test_cross_entropy_with_a_nan_row(how, payload):
    """The logits of a row that does not count may be NaN: every weight gradient stays finite and right."""
    torch.manual_seed(0)
    x, target = torch.randn(6, 3), torch.randint(4, (6,))
    ignored = torch.tensor([False, True, False, False, True, False])
    data = x.masked_fill(ignored[:, None], NAN)
    model, plain = nn.Linear(3, 4), nn.Linear(3, 4)
    plain.load_state_dict(model.state_dict())
    if how == "ignore_index":
        inner = model(mt.masked_tensor(x, torch.ones(6, 3, dtype=torch.bool)))
        logits = torch.where(ignored[:, None], NAN, inner)
        loss = F.cross_entropy(logits, target.masked_fill(ignored, payload), ignore_index=payload)
    elif how == "masked target":
        logits = torch.where(ignored[:, None], NAN, model(x))
        loss = F.cross_entropy(logits, mt.as_masked_tensor(target.masked_fill(ignored, payload), ~ignored))
    else:
        rows = mt.as_masked_tensor(data, (~ignored)[:, None].expand(6, 3))
        loss = F.cross_entropy(model(rows), target.masked_fill(ignored, payload), ignore_index=payload)
    expected = F.cross_entropy(plain(x)[~ignored], target[~ignored])
    assert_same(loss, expected, "loss")
    loss.backward()
    expected.backward()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)


def cases():
    options = itertools.product(
        [(7, 4), (3, 4, 5), (2, 4, 3, 2), (4,)],
        ["indices", "probabilities"],
        [False, True],
        [0.0, 0.2],
        ["none", "mean", "sum"],
    )
    return [pytest.param(*o, id="-".join(map(str, o))) for o in options]


@pytest.mark.parametrize(("shape", "kind", "weighted", "smoothing", "reduction"), cases())
def test_cross_entropy(shape, kind, weighted, smoothing, reduction):
    """Logits and targets, partly masked, against one sample at a time; gradients against that oracle's."""
    torch.manual_seed(0)
    dim = 0 if len(shape) == 1 else 1
    x = torch.randn(shape, dtype=torch.float64)
    valid = torch.rand(shape) < 0.8
    if kind == "indices":
        target = torch.randint(4, [s for d, s in enumerate(shape) if d != dim])
        target = torch.where(torch.rand(target.shape) < 0.1, 3, target)
        options = {"ignore_index": 3}
    else:
        target, options = torch.rand(shape, dtype=torch.float64), {}
    known = torch.rand(target.shape) < 0.8
    weight = torch.rand(4, dtype=torch.float64) if weighted else None
    options = {**options, "weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    leaf = x.clone().requires_grad_()
    expected = cross_entropy(None, Masked(leaf, valid), Masked(target, known), **options)
    bad = 10**9 if kind == "indices" else NAN
    given = mt.as_masked_tensor(x.masked_fill(~valid, NAN), valid).requires_grad_()
    loss = F.cross_entropy(given, mt.as_masked_tensor(target.masked_fill(~known, bad), known), **options)
    assert_same(loss, Masked(expected.data.detach(), expected.mask), "loss")
    loss.sum().backward()
    if expected.mask.any():
        expected.data[expected.mask].sum().backward()
    assert_same(given.grad, Masked(torch.zeros_like(x) if leaf.grad is None else leaf.grad, valid), "gradient")
    assert (pair_of(given.grad).data[~valid] == 0).all()


@pytest.mark.parametrize("name", ENTRYWISE)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_modules(name, reduction):
    """Input or target or both masked, NaN under the mask, against the loss of the valid entries."""
    torch.manual_seed(0)
    module = ENTRYWISE[name](reduction=reduction)
    x, target = torch.rand(8, 5), (torch.rand(8, 5) < 0.5).float()
    a, b = torch.rand(8, 5) < 0.7, torch.rand(8, 5) < 0.7
    for mask, masked_x, masked_target in ((a & b, True, True), (a, True, False), (b, False, True)):
        data = x.masked_fill(~a, NAN) if masked_x else x.clone()
        given = (mt.as_masked_tensor(data, a) if masked_x else data).requires_grad_()
        wanted = mt.as_masked_tensor(target.masked_fill(~b, NAN), b) if masked_target else target
        loss = module(given, wanted)
        leaf = x[mask].clone().requires_grad_()
        expected = module(leaf, target[mask])
        if reduction == "none":
            expected = Masked(torch.zeros(8, 5).masked_scatter(mask, expected.detach()), mask)
            assert_same(loss, expected, "loss")
            continue
        assert_same(loss, expected, "loss")
        loss.backward()
        expected.backward()
        gradient = torch.zeros(8, 5).masked_scatter(mask, leaf.grad)
        torch.testing.assert_close(pair_of(given.grad).data if masked_x else given.grad, gradient)


@pytest.mark.parametrize("name", ENTRYWISE)
def test_nothing_valid(name):
    x = torch.rand(3, requires_grad=True)
    loss = ENTRYWISE[name]()(x, mt.masked_tensor(torch.ones(3), torch.zeros(3, dtype=torch.bool)))
    assert not pair_of(loss).mask
    with pytest.warns(mt.MaskedLossWarning):
        loss.backward()
    assert (x.grad == 0).all()


@pytest.mark.parametrize("first", [False, True])
def test_one_of_several_roots_is_enough(first: bool) -> None:
    """Whichever of them is valid: a warning would be an error here."""
    x = torch.ones(2, requires_grad=True)
    roots = [(x * mt.as_masked_tensor(torch.ones(2), torch.full((2,), valid))).sum() for valid in (first, not first)]
    torch.autograd.backward(roots)
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_nothing_valid_in_cross_entropy(reduction):
    model = nn.Linear(3, 4)
    target = mt.as_masked_tensor(torch.full((2,), -(10**9)), torch.zeros(2, dtype=torch.bool))
    loss = F.cross_entropy(model(torch.full((2, 3), NAN)), target, reduction=reduction)
    assert not pair_of(loss).mask
    assert pair_of(loss).data == 0
    with pytest.warns(mt.MaskedLossWarning):
        loss.backward()
    assert (model.weight.grad[:, 0].isnan()).sum() in (0, 4)  # 0 * NaN happens in plain Linear, outside any mask
    assert (model.bias.grad == 0).all()


def test_numerators_and_denominators_add_up():
    """The mean over a batch is the sum of the parts' numerators over the sum of their denominators."""
    torch.manual_seed(0)
    x, target, known = torch.randn(9, 4), torch.randn(9, 4), torch.rand(9, 4) < 0.5
    whole = F.mse_loss(x, mt.as_masked_tensor(target, known))
    entries = (x - target) ** 2
    parts = [
        (numerator(e, k), total_weight(k, None, e.dtype)) for e, k in zip(entries.split(2), known.split(2), strict=True)
    ]
    top, bottom = (sum(p) for p in zip(*parts, strict=True))
    assert_same(whole, top / bottom, "loss")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_means_of_half_precision(dtype):
    """Sums are made in float32: neither the sum nor the count overflows or rounds away."""
    x = torch.full((100_000,), 3.0, dtype=dtype)
    mask = torch.ones(100_000, dtype=torch.bool)
    mask[:777] = False
    loss = F.mse_loss(mt.as_masked_tensor(x, mask), torch.zeros_like(x))
    assert loss.item() == 9


def test_range_checks_do_not_see_the_masked_out_data():
    mask = torch.tensor([True, False])
    x = mt.as_masked_tensor(torch.tensor([0.5, 7.0]), mask)
    assert_same(F.binary_cross_entropy(x, torch.tensor([1.0, NAN])), torch.tensor(0.5).log().neg(), "loss")
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(mt.as_masked_tensor(torch.tensor([7.0, 0.5]), mask), torch.ones(2))
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        F.cross_entropy(mt.masked_tensor(torch.ones(2, 3), torch.ones(2, 3) > 0), torch.tensor([0, 5]))


def test_a_broadcast_target():
    x = mt.masked_tensor(torch.ones(2, 3), torch.tensor([[True, False, True], [False] * 3]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's warning about the sizes
        assert_same(F.mse_loss(x, torch.tensor([0.0, NAN, 3.0])), torch.tensor(2.5), "loss")


def test_ctc_skips_masked_steps_and_labels():
    torch.manual_seed(0)
    raw = torch.randn(9, 3, 5, dtype=torch.float64)
    targets = torch.randint(1, 5, (3, 4))
    steps, known = torch.rand(9, 3) < 0.8, torch.rand(3, 4) < 0.7
    steps[:, 2] = False
    mask = steps[..., None].expand(raw.shape)
    x = mt.as_masked_tensor(raw.masked_fill(~mask, NAN), mask).requires_grad_()
    y = mt.as_masked_tensor(targets.masked_fill(~known, 10**9), known)
    loss = F.ctc_loss(x.log_softmax(-1), y, torch.full((3,), 9), torch.full((3,), 4))
    leaf = raw.clone().requires_grad_()
    parts = []
    for i in range(2):
        row, labels = leaf[:, i][steps[:, i]].log_softmax(-1), targets[i][known[i]]
        parts.append(F.ctc_loss(row, labels, torch.tensor([len(row)]), torch.tensor([len(labels)])))
    expected = torch.stack(parts).mean()
    assert_same(loss, expected, "loss")
    loss.backward()
    expected.backward()
    assert_same(x.grad, Masked(leaf.grad, mask), "gradient")


def test_batchmean_divides_by_the_rows_with_a_valid_entry():
    x, target = torch.rand(4, 3).log(), torch.rand(4, 3)
    rows = torch.tensor([True, True, True, False])[:, None].expand(4, 3)
    loss = F.kl_div(mt.as_masked_tensor(x, rows), target, reduction="batchmean")
    assert_same(loss, F.kl_div(x[:3], target[:3], reduction="batchmean"), "loss")


@pytest.mark.parametrize("name", ["cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_vmap(name, reduction):
    torch.manual_seed(0)
    x, mask = torch.randn(3, 6, 4), torch.rand(3, 6, 4) < 0.7
    target = torch.randint(4, (3, 6)) if name == "cross_entropy" else torch.randn(3, 6, 4)
    function = partial(getattr(F, name), reduction=reduction)
    out = torch.vmap(function)(mt.masked_tensor(x, mask), target)
    for got, row, valid, wanted in zip(out, x, mask, target, strict=True):
        assert_same(got, function(mt.masked_tensor(row, valid), wanted), "vmap")


@pytest.mark.parametrize("name", ["cross_entropy", "mse_loss", "kl_div", "nll_loss"])
def test_compiled(name):
    torch.manual_seed(0)
    x, mask = torch.randn(6, 4), torch.rand(6, 4) < 0.7
    target = torch.randint(4, (6,)) if name in ("cross_entropy", "nll_loss") else torch.rand(6, 4)
    function = getattr(F, name)
    a, b = (mt.as_masked_tensor(x.masked_fill(~mask, NAN), mask).requires_grad_() for _ in range(2))
    torch._dynamo.reset()
    options = {"reduction": "sum"} if name == "kl_div" else {}
    compiled = torch.compile(lambda x: function(x, target, **options), fullgraph=True, backend="aot_eager")
    out, expected = compiled(a), function(b, target, **options)
    assert_same(out, expected, "compiled")
    out.backward()
    expected.backward()
    assert_same(a.grad, b.grad, "gradient")


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="new in torch 2.13")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_chunked_linear_cross_entropy_is_the_two_in_turn(reduction) -> None:
    torch.manual_seed(0)
    x, mask = torch.randn(6, 3, dtype=torch.float64), torch.tensor([[1, 1, 1], [0, 0, 0], [1, 0, 1]] * 2).bool()
    layer, bias = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, dtype=torch.float64)
    target = mt.as_masked_tensor(torch.tensor([0, 9**9, 1, 2, 1, 3]), torch.tensor([1, 0, 1, 1, 1, 1]).bool())
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    losses, gradients = [], []
    for payload in (float("nan"), 1e30, None):
        given = x if payload is None else torch.where(mask, x, payload)
        leaves = [mt.as_masked_tensor(given, mask).requires_grad_(), layer.clone().requires_grad_()]
        leaves.append(bias.clone().requires_grad_())
        if payload is None:
            loss = F.cross_entropy(F.linear(*leaves), target, reduction=reduction)
        else:
            loss = F.linear_cross_entropy(
                leaves[0], leaves[1], target, linear_bias=leaves[2], reduction=reduction, options=options
            )
        loss.sum().backward()
        losses.append(loss.tolist())
        gradients.append([g.filled(0) if type(g) is mt.MaskedTensor else g for g in (v.grad for v in leaves)])
    assert losses[0] == losses[1] == losses[2]
    for found in gradients[:2]:
        torch.testing.assert_close(found, gradients[2])


SHAPES = {
    "target of one sample": lambda x: F.cross_entropy(x, torch.zeros(1, dtype=torch.int64)),
    "target of two dims": lambda x: F.cross_entropy(x, torch.zeros(3, 1, dtype=torch.int64)),
    "probabilities of one sample": lambda x: F.cross_entropy(x, torch.ones(1, 4)),
    "one class weight": lambda x: F.cross_entropy(x, torch.ones(3, 4), weight=torch.ones(1)),
    "nll": lambda x: F.nll_loss(x, torch.zeros(5, dtype=torch.int64)),
    "margin target": lambda x: F.multi_margin_loss(x, torch.zeros(1, dtype=torch.int64)),
    "margin weight": lambda x: F.multi_margin_loss(x, torch.zeros(3, dtype=torch.int64), weight=torch.ones(1)),
    "labels of one sample": lambda x: F.multilabel_margin_loss(x, torch.zeros(1, 4, dtype=torch.int64)),
    "too many labels": lambda x: F.multilabel_margin_loss(x, torch.zeros(3, 5, dtype=torch.int64)),
    "columns of a distance": lambda x: torch.cdist(x, torch.ones(2, 1), p=1.0),
    "rows of a distance": lambda x: F.pdist(x[None]),
    "one weight of a count": lambda x: torch.bincount(x[0].long(), torch.ones(1)),
    "one channel": lambda x: F.batch_norm(x[:, :1], torch.zeros(4), torch.ones(4), training=True),
    "one channel of an instance": lambda x: F.instance_norm(x[:, None], torch.zeros(4), torch.ones(4)),
    "ctc targets": lambda x: F.ctc_loss(x[:, None].expand(3, 2, 4), torch.ones(1, 2).long(), [3, 3], [2, 2]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_that_do_not_fit_are_refused_and_not_broadcast(name: str) -> None:
    for x in (torch.rand(3, 4), mt.masked_tensor(torch.rand(3, 4), torch.rand(3, 4) > 0.5)):
        with pytest.raises((RuntimeError, ValueError)):
            SHAPES[name](x)


def test_a_sample_without_a_batch_has_a_target_of_one_entry() -> None:
    x = mt.masked_tensor([0.0, 2.0, None])
    for target in (torch.tensor(1), torch.tensor([1])):
        for loss in (F.cross_entropy(x, target), F.nll_loss(x.log_softmax(0), target)):
            torch.testing.assert_close(loss.item(), F.cross_entropy(torch.tensor([0.0, 2.0]), torch.tensor(1)).item())


test_law = laws("loss")


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss"])
@pytest.mark.parametrize(
    "valid", [[True, False, True, True], [True] * 4, [False] * 4], ids=["scattered", "all", "nothing"]
)
def test_weights_that_count(name: str, reduction: str, valid: list[bool]) -> None:
    """A weighted loss is that of the entries that are valid alone, its gradients too; a mean divides by their weights.

    The three operands hide what is not valid from each other, whichever of them is masked.
    """
    mask = torch.tensor(valid)
    data = torch.rand(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    alone = [row[mask].requires_grad_() for row in data]
    expected = getattr(F, name)(alone[0], alone[1], weight=alone[2], reduction=reduction)
    for place in range(3):
        leaves = [row.masked_fill(~mask, NAN).requires_grad_() for row in data]
        operands = [mt.as_masked_tensor(x, mask) if i == place else x for i, x in enumerate(leaves)]
        loss = getattr(mt, name)(operands[0], operands[1], weight=operands[2], reduction=reduction)
        assert mt.is_masked_tensor(loss)
        if mask.any():
            torch.testing.assert_close(loss.compressed().reshape(expected.shape), expected)
        else:
            assert not loss.get_mask().any()
        ours = torch.autograd.grad(loss.sum(), leaves)
        theirs = torch.autograd.grad(expected.sum(), alone, retain_graph=True)
        for a, e in zip(ours, theirs, strict=True):
            assert not a[~mask].any()
            torch.testing.assert_close(a[mask], e)
    plain = getattr(mt, name)(*data[:2], weight=data[2], mask=mask, reduction=reduction, fill_value=-1.0)
    if reduction == "none":
        torch.testing.assert_close(plain[mask], expected)
    else:
        torch.testing.assert_close(plain.item(), expected.item() if mask.any() else -1.0)
