"""Libraries that count entries in Python: each function that is replaced gives the number of the valid entries alone.

Each is run by default and in ``strict()``, strided and packed where there is a time axis, with garbage under the mask.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.extend.libraries import Place
from masked_tensor.integrations import accelerate, lightning, wrapping
from masked_tensor.integrations import places as libraries

from .helpers.counting import dispatched

NAN = float("nan")
VALID = torch.tensor([True, True, False, True, False, True])
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(params=["default", "strict"], autouse=True)
def setting(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each number is the same inside of ``strict()``."""
    with mt.strict() if request.param == "strict" else mt.meaning():
        yield


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.5


def rows(x: Tensor, valid: Tensor = VALID) -> Tensor:
    """The rows of which some are masked, with garbage in them."""
    mask = valid.view(-1, *[1] * (x.dim() - 1)).expand(x.shape)
    return mt.as_masked_tensor(x.masked_fill(~mask, NAN if x.is_floating_point() else -7), mask)


def close(found: Any, expected: Any) -> None:
    if mt.is_masked_tensor(found):
        assert found.get_mask().all()
        found = found.filled(NAN)
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.as_tensor(expected).double(), atol=1e-6, rtol=1e-6, check_dtype=False
    )


# --------------------------------------------------------------------------------------------------------------- torch

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse_loss": lambda x, t: F.mse_loss(x, t, weight=t + 1),
    "l1_loss": lambda x, t: F.l1_loss(input=x, target=t, weight=t + 1),
    "kl_div": lambda x, t: F.kl_div(x.log_softmax(1), t, reduction="batchmean"),
    "multilabel_soft_margin_loss": lambda x, t: F.multilabel_soft_margin_loss(x, (t > 1).double()),
    "sum of means": lambda x, t: F.multilabel_soft_margin_loss(x, (t > 1).double(), reduction="sum"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_torch(name: str) -> None:
    x, t = drawn(6, 3), drawn(6, 3, seed=1)
    close(LOSSES[name](rows(x), rows(t)), LOSSES[name](x[VALID], t[VALID]))


def test_losses_of_torch_are_scripted_as_before() -> None:
    scripted = torch.jit.script(torch.nn.KLDivLoss(reduction="batchmean"))
    x, t = drawn(6, 3), drawn(6, 3, seed=1)
    close(scripted(x.log(), t), F.kl_div(x.log(), t, reduction="batchmean"))


# -------------------------------------------------------------------------------------------------------- transformers


def _balancing(name: str) -> Callable[..., Any]:
    module = pytest.importorskip(f"transformers.models.{name}.modeling_{name}")
    return getattr(module, libraries.BALANCING_LOSS)


@pytest.mark.parametrize("form", ["strided", "packed", "other masks", "told", "keywords"])
@pytest.mark.parametrize("name", ["mixtral", "qwen2_moe", "nllb_moe"])
def test_balancing_loss(name: str, form: str) -> None:
    loss = _balancing(name)
    layers = tuple(drawn(6, 4, seed=k).requires_grad_() for k in range(3))
    batch = tuple(rows(x) for x in layers)
    expected = loss(tuple(x[VALID] for x in layers), 4, 2)
    if form == "packed":
        batch = tuple(x.view(2, 3, 4).packed().view(6, 4) for x in batch)
    if form == "other masks":
        batch = (*batch[:2], layers[2])
        whole = [x[VALID] for x in layers[:2]] + [layers[2]]
        expected = loss((torch.cat(whole),), 4, 2)
    if form == "told":
        told = torch.tensor([[1, 1, 1], [1, 1, 0]])
        close(loss(batch, 4, 2, told), loss(tuple(x[[0, 1, 3]] for x in layers), 4, 2))
        with pytest.raises(mt.MaskedSizeError, match="leave the attention_mask out"):
            loss(batch, 4, 2, told[:1])
    found = loss(gate_logits=batch, num_experts=4, top_k=2) if form == "keywords" else loss(batch, 4, 2)
    close(found, expected)
    of_both = [torch.autograd.grad(y, layers) for y in (found, expected)]
    torch.testing.assert_close(*of_both)
    assert all((g[~VALID] == 0).all() for g in of_both[0][:2])


def test_balancing_loss_of_product_keys() -> None:
    """Doge's router logits have two halves, before the tokens."""
    loss = _balancing("doge")
    layers = tuple(drawn(2, 6, 3, seed=k) for k in range(2))
    mask = VALID[None, :, None].expand(2, 6, 3)
    batch = tuple(mt.as_masked_tensor(x.masked_fill(~mask, NAN), mask) for x in layers)
    close(loss(batch, 9, 3, 2), loss(tuple(x[:, VALID] for x in layers), 9, 3, 2))


@pytest.mark.parametrize("setting", ["default"], indirect=True)
def test_balancing_loss_reads_no_value_and_is_compiled() -> None:
    loss, x = _balancing("mixtral"), rows(drawn(6, 4))
    assert not {"aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero"} & dispatched(lambda: loss((x,), 4, 2))
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: loss((x,), 4, 2), backend="aot_eager", fullgraph=True)
    close(compiled(drawn(6, 4)), loss((drawn(6, 4),), 4, 2))  # plain: no graph break


def test_router_loss() -> None:
    module = pytest.importorskip("transformers.models.switch_transformers.modeling_switch_transformers")
    x = drawn(2, 6, 4)
    both = torch.stack([VALID, VALID.flip(0)])[..., None].expand(x.shape)
    batch = mt.as_masked_tensor(x.masked_fill(~both, NAN), both)
    valid = torch.stack([x[0, VALID], x[1, VALID.flip(0)]])
    close(module.router_z_loss_func(batch), module.router_z_loss_func(valid))
    close(module.router_z_loss_func(batch.packed()), module.router_z_loss_func(valid))
    chosen = [y.argmax(-1) for y in (batch, valid)]
    close(*(module.load_balancing_loss_func(y, k) for y, k in zip((batch, valid), chosen, strict=True)))


@pytest.mark.parametrize("kind", ["last", "first", "cls_index"])
def test_summary_of_the_last_position(kind: str) -> None:
    """XLNet's head refuses rows that are padded behind."""
    module = pytest.importorskip("transformers.models.xlnet.modeling_xlnet")
    head = module.XLNetSequenceSummary(SimpleNamespace(summary_type=kind, num_labels=2))
    x = mt.from_lengths(drawn(2, 3, 4), [3, 2])
    for batch in (x, x.packed()):
        if kind == "first":
            close(head(batch), x.filled(0)[:, 0])
            continue
        with pytest.raises(mt.MaskedSizeError, match=r"XLNetSequenceSummary reads the last .*to_right\(input_ids\)"):
            head(batch)
    if kind == "last":
        close(head(mt.to_right(x)), torch.stack([x[0, 2], x[1, 1]]).filled(0))


# -------------------------------------------------------------------------------------------------------- torchmetrics


REGRESSION = [place for place in (*libraries.ENTRIES, *libraries.ROWS) if place.owner]


@pytest.mark.parametrize("place", REGRESSION, ids=lambda place: place.owner)
def test_metrics_of_torchmetrics(place: Place) -> None:
    """The class, one output and several; the functions are in test_metrics.py."""
    owner = getattr(pytest.importorskip("torchmetrics"), place.owner)
    several = place.owner in (
        "MeanSquaredError",
        "MeanAbsoluteError",
        "R2Score",
        "ExplainedVariance",
        "PearsonCorrCoef",
    )
    options = {"num_outputs": 2} if several and place.owner not in ("R2Score", "ExplainedVariance") else {}
    cases = [((6, 2), {})] if place.owner == "KLDivergence" else [((6,), {}), *([((6, 2), options)] * several)]
    for shape, given in cases:
        p, t = drawn(*shape), drawn(*shape, seed=1)
        made = [owner(**given).double() for _ in range(3)]
        made[0].update(p[VALID], t[VALID])
        made[1].update(rows(p), rows(t))
        made[2].update(rows(p), t)  # one side
        for metric in made[1:]:
            close(metric.compute(), made[0].compute())
    if options:
        partly = mt.masked_tensor([[1.0, None], [1.0, 2.0]])
        with pytest.raises(mt.MaskedSizeError, match=r"counts rows, .*each column: .*select_valid\(a\[:, j\]"):
            owner(**options).update(partly, torch.ones(2, 2))


def test_entries_of_one_output() -> None:
    functional = pytest.importorskip("torchmetrics").functional
    partly = mt.masked_tensor([[1.0, None], [1.0, 2.0]])
    close(functional.mean_squared_error(partly, torch.zeros(2, 2)), 2.0)
    close(functional.mean_absolute_error(preds=partly, target=torch.zeros(2, 2)), 4 / 3)


# -------------------------------------------------------------------------------------------------------------- ignite

IGNITE: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "MeanSquaredError": ((6, 2), {}),
    "MeanAbsoluteError": ((6,), {}),
    "RootMeanSquaredError": ((6,), {}),
    "MeanPairwiseDistance": ((6, 2), {}),
    "CosineSimilarity": ((6, 2), {}),
    "KLDivergence": ((6, 2), {}),
    "HSIC": ((6, 2), {}),
    "HitRate": ((6, 5), {"top_k": [2]}),
    "Loss": ((6, 2), {"loss_fn": F.mse_loss}),
    "R2Score": ((6,), {}),
    "MedianAbsoluteError": ((6,), {}),
}
LABELS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "classes": ((6, 3), (6,), {}),
    "pixels": ((6, 3, 2), (6, 2), {}),
    "binary": ((6, 2), (6, 2), {}),
    "multilabel": ((6, 3), (6, 3), {"is_multilabel": True}),
}


@pytest.mark.parametrize("name", IGNITE)
def test_metrics_of_ignite(name: str) -> None:
    """Over two batches, the second valid everywhere."""
    pytest.importorskip("ignite")
    metrics, more = (importlib.import_module(f"ignite.metrics{part}") for part in ("", ".regression"))
    owner = getattr(metrics, name, None) or getattr(more, name)
    shape, options = IGNITE[name]
    p, t = drawn(*shape), drawn(*shape, seed=1)
    made = [owner(**options) for _ in range(3)]
    for metric, first in zip(made, ((p[VALID], t[VALID]), (rows(p), rows(t)), (p, rows(t))), strict=True):
        metric.update(first)
        metric.update((p + 1, t))
    for metric in made[1:]:
        close(metric.compute(), made[0].compute())


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["Accuracy", "Precision", "Recall"])
def test_labels_of_ignite(name: str, kind: str) -> None:
    owner = getattr(pytest.importorskip("ignite.metrics"), name)
    shape, of_target, options = LABELS[kind]
    p, t = drawn(*shape), (drawn(*of_target, seed=1) > 1).long()
    p = p if len(shape) > len(of_target) else (p > 1).long()
    made = [owner(**options) for _ in range(2)]
    made[0].update((p[VALID], t[VALID]))
    made[1].update((rows(p), rows(t)))
    close(made[1].compute(), made[0].compute())
    if kind == "multilabel":
        with pytest.raises(mt.MaskedSizeError, match=f"{name} counts rows"):
            made[1].update((mt.masked_tensor([[1, None, 0]]), t[:1]))


# ------------------------------------------------------------------------------------------------- exact match by hand

PREDICTED, ANSWERS = (
    torch.tensor([[1, 2, 0], [0, 1, 2], [2, 2, 2], [1, 1, 1]]),
    torch.tensor([[1, 2, 1], [0, 0, 2], [0, 0, 0], [1, 1, 1]]),
)
KNOWN = torch.tensor([[True, True, False], [True, True, True], [False] * 3, [True, False, True]])


@pytest.mark.parametrize("name", ["multiclass_exact_match", "multilabel_exact_match"])
def test_exact_match_of_rows_that_are_valid_in_part(name: str) -> None:
    """Of four rows one has no entry; of the others two agree in all that are valid."""
    function = getattr(pytest.importorskip("torchmetrics.functional.classification"), name)
    labels, target = mt.as_masked_tensor(PREDICTED % 2, KNOWN), ANSWERS % 2
    line = "(labels == target).flatten(1).all(1).float().mean()"
    line = line if name.startswith("multiclass") else line.replace(".flatten(1)", "")
    with pytest.raises(mt.MaskedSizeError) as raised:
        function(labels, target, 3)
    assert str(raised.value).endswith(line)
    assert eval(line, {"labels": labels, "target": target}).isclose(torch.tensor(2 / 3)).item()


# ----------------------------------------------------------------------------------------------------------------- PyG

GROUPS = torch.tensor([0, 0, 0, 1, 1, 1])
AGGREGATIONS: dict[str, dict[str, Any]] = {
    "MeanAggregation": {},
    "VarAggregation": {},
    "StdAggregation": {},
    "PowerMeanAggregation": {"p": 2},
    "MedianAggregation": {},
    "QuantileAggregation": {"q": [0.2, 0.7]},
}


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_aggregations(name: str) -> None:
    """Also of features that are masked by themselves: each feature alone is the same."""
    made = getattr(pytest.importorskip("torch_geometric.nn"), name)(**AGGREGATIONS[name])
    x = drawn(6, 4)
    close(made(rows(x), GROUPS, dim_size=3), made(x[VALID], GROUPS[VALID], dim_size=3))  # the last has no member
    mask = drawn(6, 4, seed=2) > 0.9
    found = mt.filled(made(mt.as_masked_tensor(x.masked_fill(~mask, NAN), mask), GROUPS, dim_size=3), 0)
    for k in range(4):
        alone = made(x[mask[:, k], k : k + 1], GROUPS[mask[:, k]], dim_size=3)
        close(found.view(3, -1, 4)[:, :, k], alone.view(3, -1))


@pytest.mark.parametrize("name", ["GRUAggregation", "LSTMAggregation"])
def test_a_sequence_of_members_is_that_of_the_valid_ones(name: str) -> None:
    made = getattr(pytest.importorskip("torch_geometric.nn"), name)(4, 4).double()
    x = drawn(6, 4)
    close(made(rows(x), GROUPS), made(x[VALID], GROUPS[VALID]))


@pytest.mark.parametrize("setting", ["default"], indirect=True)
def test_a_dense_batch_of_nodes_takes_those_that_are_valid() -> None:
    """Inside of masked_factories() it raises, too; the message names the line that works."""
    made = pytest.importorskip("torch_geometric.nn").MemPooling(4, 4, heads=2, num_clusters=2).double()
    x = drawn(6, 4)
    for context in (nullcontext, mt.masked_factories):
        with context(), pytest.raises(mt.MaskedWriteError, match=r"masked_tensor.select_valid\(rows, labels, dim=1\)"):
            made(rows(x), GROUPS)
    close(made(*mt.select_valid(rows(x), GROUPS, dim=1))[0], made(x[VALID], GROUPS[VALID])[0])


def test_a_quantile_of_more_dimensions_is_refused() -> None:
    made = pytest.importorskip("torch_geometric.nn").MedianAggregation()
    with pytest.raises(mt.MaskedSizeError, match=r"MedianAggregation would count .*x.flatten\(1\)"):
        made(rows(drawn(6, 2, 2)), GROUPS, dim=0)


MEMBERS: dict[str, Callable[[Any], Any]] = {
    "VariancePreservingAggregation": lambda nn: nn.VariancePreservingAggregation(),
    "EquilibriumAggregation": lambda nn: nn.EquilibriumAggregation(4, 4, [4]),
    "LSTMAggregation": lambda nn: nn.LSTMAggregation(4, 3),
    "GRUAggregation": lambda nn: nn.GRUAggregation(4, 3),
    "MLPAggregation": lambda nn: nn.MLPAggregation(4, 3, 3, num_layers=1),
    "LCMAggregation": lambda nn: nn.LCMAggregation(4, 4),
    "SetTransformerAggregation": lambda nn: nn.SetTransformerAggregation(4, heads=2),
    "PatchTransformerAggregation": lambda nn: nn.PatchTransformerAggregation(4, 4, 2, 8, 1, heads=2),
    "GraphMultisetTransformer": lambda nn: nn.GraphMultisetTransformer(4, 2, heads=2),
    "DegreeScalerAggregation": lambda nn: nn.DegreeScalerAggregation(
        ["mean", "sum"], ["amplification"], torch.tensor([0, 2, 3])
    ),
    "MultiAggregation": lambda nn: nn.MultiAggregation(["mean", "std", "max"]),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_aggregations_that_count_members(name: str) -> None:
    nn = pytest.importorskip("torch_geometric.nn")
    torch.manual_seed(0)
    made, x = MEMBERS[name](nn).double().eval(), drawn(6, 4).requires_grad_()
    found, expected = made(rows(x), GROUPS), made(x[VALID], GROUPS[VALID])
    close(found, expected)
    close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected)))
    with pytest.raises(mt.MaskedSizeError, match="counts rows"):
        made(mt.as_masked_tensor(x, drawn(6, 4) > 1), GROUPS)


def test_members_by_their_ends() -> None:
    made, x = pytest.importorskip("torch_geometric.nn").VariancePreservingAggregation(), drawn(6, 4)
    expected = made(x[VALID], GROUPS[VALID])
    close(made(rows(x), ptr=torch.tensor([0, 3, 6])), expected)
    close(made(rows(x), GROUPS, torch.tensor([0, 3, 6])), expected)
    x = drawn(6, 2, 2)
    close(made(rows(x), GROUPS, dim=0), made(x[VALID], GROUPS[VALID], dim=0))
    close(made(rows(x).transpose(0, 1), GROUPS), made(x[VALID].transpose(0, 1), GROUPS[VALID]))


def test_scaled_messages_in_towers() -> None:
    """Between valid nodes: each message is valid, and has three dimensions."""
    torch.manual_seed(0)
    given = (4, 4, ["mean", "std", "max"], ["identity", "amplification"], torch.tensor([0, 2, 3]))
    made, x = pytest.importorskip("torch_geometric.nn").PNAConv(*given).double(), drawn(6, 4)
    edges = torch.tensor([[0, 1, 2, 3, 3, 0], [1, 0, 3, 2, 0, 3]])
    close(made(rows(x), VALID.nonzero().squeeze(1)[edges])[VALID], made(x[VALID], edges))


@pytest.mark.parametrize("setting", ["default"], indirect=True)  # each entry alone: the masks differ
def test_fused_sums_need_no_count() -> None:
    made = pytest.importorskip("torch_geometric.nn").MultiAggregation(["sum", "max"])
    x, mask = drawn(6, 4), drawn(6, 4, seed=2) > 0.9
    found = mt.filled(made(mt.as_masked_tensor(x.masked_fill(~mask, NAN), mask), GROUPS), 0).view(2, 2, 4)
    for k in range(4):
        close(found[..., k], made(x[mask[:, k], k : k + 1], GROUPS[mask[:, k]], dim_size=2))


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("form", ["strided", "packed", "gaps"])
def test_attention_over_graphs(form: str, told: bool) -> None:
    made = pytest.importorskip("torch_geometric.nn.attention.sgformer").SGFormerAttention(4, 2, 3)
    x = drawn(3, 5, 4).float().requires_grad_()  # it makes ones in float32
    valid = torch.arange(5) < torch.tensor([5, 3, 0])[:, None]
    if form == "gaps":
        valid = valid & (torch.arange(5) != 1)
    batch = mt.as_masked_tensor(x.masked_fill(~valid[..., None], NAN), valid[..., None].expand(3, 5, 4))
    batch = batch.packed() if form == "packed" else batch
    found = made(batch, valid) if told else made(batch)
    expected = torch.cat([made(x[i, valid[i]][None])[0] for i in range(3)])
    assert torch.equal(found.get_mask(), valid[..., None].expand(3, 5, 3))
    close(found[valid], expected)
    close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected)))


@pytest.mark.parametrize("setting", ["default"], indirect=True)  # strict() refuses the statistics beside the nodes
@pytest.mark.parametrize("name", ["GraphNorm", "InstanceNorm", "LayerNorm", "GraphSizeNorm", "PairNorm"])
def test_norms_of_graphs(name: str) -> None:
    owner = getattr(pytest.importorskip("torch_geometric.nn"), name)
    made = owner().double() if name in ("GraphSizeNorm", "PairNorm") else owner(4).double()
    x = drawn(6, 4).requires_grad_()
    for batch in (GROUPS, None):
        found, expected = made(rows(x), batch), made(x[VALID], batch if batch is None else batch[VALID])
        assert torch.equal(found.get_mask(), VALID[:, None].expand(6, 4))
        close(found[VALID], expected)
        close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected)))


def test_global_mean_pool() -> None:
    pool = pytest.importorskip("torch_geometric.nn").global_mean_pool
    x = drawn(6, 4)
    close(pool(rows(x), GROUPS), pool(x[VALID], GROUPS[VALID]))


# ------------------------------------------------------------------------------------------------ sentences and images


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("mode", ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_pooling_of_sentence_transformers(mode: str, side: str) -> None:
    name = "sentence_transformers.sentence_transformer.modules.pooling"
    pooling = pytest.importorskip(name).Pooling(4, mode)
    x, lengths = drawn(3, 5, 4), [5, 3, 2]
    alone = [pooling({"token_embeddings": x[i : i + 1, :n]})["sentence_embedding"] for i, n in enumerate(lengths)]
    batch = mt.from_lengths(x, lengths)
    batch = mt.to_right(batch) if side == "left" else batch
    own = batch.get_mask()[..., 0].long()
    for tokens in (batch, batch.packed()):
        for told in ({}, {"attention_mask": own}, {"attention_mask": torch.ones_like(own)}):
            features = {"token_embeddings": tokens, **told}
            assert pooling(features) is features
            assert features.keys() == {"token_embeddings", "sentence_embedding", *told}
            close(features["sentence_embedding"], torch.cat(alone))


def test_sigmoid_loss_of_open_clip() -> None:
    loss = pytest.importorskip("open_clip.loss").SigLipLoss()
    images, texts = drawn(6, 4).requires_grad_(), drawn(6, 4, seed=1)
    expected = loss(images[VALID], texts[VALID], 10.0, -1.0)
    for given in ((rows(images), rows(texts)), (rows(images), texts), (images, rows(texts))):
        found = loss(*given, 10.0, -1.0)
        close(found, expected)
        close(*(torch.autograd.grad(y, images, retain_graph=True)[0] for y in (found, expected)))
    with pytest.raises(mt.MaskedSizeError, match="masked pairs of other ranks"):
        loss._loss(rows(images), texts, 10.0, negative_only=True)
    with pytest.raises(mt.MaskedSizeError, match="SigLipLoss counts rows"):
        loss(mt.masked_tensor([[1.0, None]]), torch.ones(1, 2), 10.0, -1.0)


# ------------------------------------------------------------------------------------------- losses between two views

VIEWS: dict[str, tuple[str, str]] = {
    "ContrastiveLoss": ("monai.losses", "input"),
    "BarlowTwinsLoss": ("monai.losses", "input"),
    "VICRegLoss": ("pytorch_metric_learning.losses", "embeddings"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_losses_between_views(name: str) -> None:
    """The valid pairs, whichever side is masked."""
    module, first = VIEWS[name]
    loss = getattr(pytest.importorskip(module), name)()
    second = "ref_emb" if first == "embeddings" else "target"
    a, b = drawn(6, 4).requires_grad_(), drawn(6, 4, seed=1)
    expected = loss(**{first: a[VALID], second: b[VALID]})
    for one, other in ((rows(a), rows(b)), (rows(a), b), (a, rows(b))):
        found = loss(one, **{second: other})
        close(found, expected)
        close(*(torch.autograd.grad(y, a, retain_graph=True)[0] for y in (found, expected)))
    with pytest.raises(mt.MaskedSizeError, match=f"{name} counts rows"):
        loss(mt.masked_tensor([[1.0, None]]), **{second: torch.ones(1, 2)})


# ------------------------------------------------------------------------------------------------------ padded batches


@pytest.mark.parametrize("form", ["strided", "packed", "told", "told more"])
@pytest.mark.parametrize("experts", [2, 3])
def test_slots_of_experts(experts: int, form: str) -> None:
    """Also where the padded length is no multiple of the experts."""
    torch.manual_seed(0)
    made = pytest.importorskip("soft_moe_pytorch").DynamicSlotsSoftMoE(4, num_experts=experts).double()
    x, lengths = drawn(3, 5, 4).requires_grad_(), [5, 3, 2]
    batch = mt.from_lengths(x, lengths)
    valid = batch.get_mask()[..., 0]
    batch = mt.as_masked_tensor(x.masked_fill(~valid[..., None], NAN), batch.get_mask())
    given = {"told": valid, "told more": torch.ones_like(valid)}
    found = made(batch.packed() if form == "packed" else batch, mask=given.get(form))
    expected = torch.cat([made(x[i : i + 1, :n])[0] for i, n in enumerate(lengths)])
    assert torch.equal(found.get_mask(), batch.get_mask())
    close(found[valid], expected)
    close(*(torch.autograd.grad(y.square().sum(), x)[0] for y in (found, expected)))
    with pytest.raises(mt.MaskedSizeError, match="DynamicSlotsSoftMoE counts rows"):
        made(mt.as_masked_tensor(x, drawn(3, 5, 4) > 1))


def test_slots_of_images() -> None:
    made = pytest.importorskip("soft_moe_pytorch").DynamicSlotsSoftMoE(4, num_experts=3).double()
    x, valid = drawn(1, 4, 3, 3), torch.arange(9).view(3, 3) < 6
    batch = mt.as_masked_tensor(x.masked_fill(~valid, NAN), valid.expand(x.shape))
    found = made(batch)
    assert torch.equal(found.get_mask(), batch.get_mask())
    close(found[:, :, :2], made(x[:, :, :2]))


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")  # the library's own mask, where it gets none
@pytest.mark.parametrize("first", ["batch", "steps"])
@pytest.mark.parametrize("form", ["strided", "packed", "plain tags", "told", "told more"])
def test_random_fields(form: str, first: str) -> None:
    torch.manual_seed(0)
    crf = pytest.importorskip("torchcrf").CRF(3, batch_first=first == "batch").double()
    x, tags, lengths = drawn(3, 5, 3).requires_grad_(), torch.arange(15).view(3, 5) % 3, [5, 3, 2]
    valid = torch.arange(5) < torch.tensor(lengths)[:, None]
    given = [mt.from_lengths(v.masked_fill(~mask, bad), lengths) for v, mask, bad in (
        (x, valid[..., None], NAN), (tags, valid, -100))]  # fmt: skip
    if form == "packed":
        given = [v.packed() for v in given]
    if form == "plain tags":
        given[1] = tags
    mask = {"told": valid, "told more": torch.ones_like(valid)}.get(form)
    if first == "steps":
        given = [v.transpose(0, 1) for v in given]
        mask = None if mask is None else mask.T
    alone = [(x[i : i + 1, :n], tags[i : i + 1, :n]) for i, n in enumerate(lengths)]
    turned = [tuple(v if first == "batch" else v.transpose(0, 1) for v in one) for one in alone]
    scores = torch.cat([crf(*one, reduction="none") for one in turned])
    close(crf(*given, mask=mask, reduction="none"), scores)
    for reduction, expected in (("sum", scores.sum()), ("mean", scores.mean()), ("token_mean", scores.sum() / 10)):
        found = crf(*given, mask, reduction)
        close(found, expected)
        close(*(torch.autograd.grad(y, x, retain_graph=True)[0] for y in (found, expected)))
    assert crf.decode(given[0], mask) == [crf.decode(one[0])[0] for one in turned]


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")
def test_random_fields_with_gaps_are_refused() -> None:
    crf = pytest.importorskip("torchcrf").CRF(3, batch_first=True).double()
    x, tags = drawn(1, 4, 3), torch.zeros(1, 4, dtype=torch.int64)
    for gap in (0, 2):
        batch = mt.as_masked_tensor(x, (torch.arange(4) != gap)[None, :, None].expand(x.shape))
        with pytest.raises(mt.MaskedSizeError, match=r"CRF would score .*masked_tensor.to_left\(x\)"):
            crf(batch, tags)
    left = mt.to_right(mt.from_lengths(x, [3]))
    close(crf(mt.to_left(left), tags), crf(x[:, :3], tags[:, :3]))
    with pytest.raises(mt.MaskedSizeError, match="CRF counts rows"):
        crf.decode(mt.as_masked_tensor(x, x > 1))
    with pytest.raises(ValueError, match="first timestep"):
        crf.decode(mt.from_lengths(x, [0]))


# ---------------------------------------------------------------------------- means over ranks and over what is logged


def two_ranks(other: Tensor | None) -> Callable[..., None]:
    """``all_reduce`` of two ranks, of which the other has this loss, or no label."""
    theirs = torch.zeros(2) if other is None else torch.stack([other, torch.tensor(1.0)])

    def all_reduce(x: Tensor, op: Any = None, *args: Any, **kwargs: Any) -> None:
        assert type(x) is Tensor  # value and count go together
        x += theirs

    return all_reduce


@pytest.mark.parametrize("other", [None, torch.tensor(1.0)])
@pytest.mark.parametrize("here", [5.0, None])
def test_means_over_ranks(here: float | None, other: Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what stands in the libraries' place: they add up over two ranks, and divide by two."""
    all_reduce = two_ranks(other)

    def reduce(tensor: Any, reduction: str = "mean", scale: float = 1.0) -> Any:
        def one(x: Tensor) -> Tensor:
            x = x.clone()
            all_reduce(x)
            return x / 2

        return {key: [type(x)(one(x[0])) for x in value] for key, value in tensor.items()}

    def sync(result: Tensor, group: Any = None, reduce_op: Any = None) -> Tensor:
        assert reduce_op == torch.distributed.ReduceOp.SUM
        all_reduce(result)
        return result

    values = [x for x in (here, None if other is None else other.item()) if x is not None]
    loss = mt.as_masked_tensor(torch.tensor(NAN if here is None else here), torch.tensor(here is not None))
    found = accelerate._mean(reduce)({"loss": [loss]}, "mean")["loss"][0]
    logged = wrapping.with_masked(lightning._sync)(sync)(loss, reduce_op="mean")
    for mean in (found, logged):
        assert mean.tolist() == (sum(values) / len(values) if values else None)


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
@pytest.mark.parametrize("kind", ["mean", "max", "min", "sum"])
def test_a_batch_without_labels_in_the_log_of_lightning(package: str, kind: str) -> None:
    result = pytest.importorskip(f"{package}.trainer.connectors.logger_connector.result")
    meta = result._Metadata(fx="training_step", name="loss", on_step=True, on_epoch=True, reduce_fx=kind)
    meta.reduce_fx = getattr(torch, kind)
    meta.sync = result._Sync()
    metric = result._ResultMetric(meta, is_tensor=True)
    losses = mt.masked_tensor([1.0, None, 4.0])
    steps = []
    for loss, size in zip(losses.unbind(), (3, 5, 1), strict=True):
        metric.update(loss, size)
        steps.append(metric._forward_cache.item())
    assert steps[::2] == [1.0, 4.0]
    assert steps[1] != steps[1]  # NaN
    expected = {"mean": 7 / 4, "max": 4.0, "min": 1.0, "sum": 5.0}[kind]
    assert metric.compute().item() == expected
    metric.reset()
    metric.update(losses[1], 5)
    if kind == "mean":
        assert metric.compute().isnan()


def test_accelerate_on_one_rank() -> None:
    accelerator = pytest.importorskip("accelerate").Accelerator(cpu=True)
    found = accelerator.reduce({"a": mt.masked_tensor([5.0, None]), "b": [torch.tensor(2.0)]}, "mean")
    assert found["a"].tolist() == [5.0, None]
    assert found["b"][0].item() == 2.0
