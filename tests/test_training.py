"""A masked tensor is an ordinary autograd citizen: optimizers, hooks, accumulation, checkpoint, double backward."""

import copy
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.testing import assert_close

OPTIMIZERS = sorted(
    name
    for name, value in vars(torch.optim).items()
    if inspect.isclass(value) and issubclass(value, torch.optim.Optimizer) and value is not torch.optim.Optimizer
)


def batch(requires_grad: bool = False) -> tuple[MaskedTensor, MaskedTensor]:
    """Eight rows of four measurements; masked entries in both inputs (whole rows and single cells) and targets."""
    generator = torch.Generator().manual_seed(0)
    data, target = torch.randn(8, 4, generator=generator), torch.randn(8, 2, generator=generator)
    mask, known = torch.rand(8, 4, generator=generator) < 0.7, torch.rand(8, 2, generator=generator) < 0.7
    mask[3] = False
    nan = torch.tensor(float("nan"))
    x = mt.as_masked_tensor(torch.where(mask, data, nan), mask)
    return x.requires_grad_(requires_grad), mt.as_masked_tensor(torch.where(known, target, nan), known)


def model(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)).to(dtype)


def loss_of(net: nn.Module) -> torch.Tensor:
    x, y = batch()
    return F.mse_loss(net(x), y)


def gradients(net: nn.Module) -> list[torch.Tensor]:
    grads = [p.grad for p in net.parameters()]
    assert all(type(g) is torch.Tensor and g.isfinite().all() for g in grads)
    return [g.clone() for g in grads]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_takes_a_step(name: str) -> None:
    net = model()
    if name == "Muon":  # takes matrices only
        parameters = [p for p in net.parameters() if p.dim() == 2]
    elif name == "SparseAdam":
        pytest.skip("SparseAdam takes sparse gradients only: tested with nn.Embedding(sparse=True)")
    else:
        parameters = list(net.parameters())
    optimizer = getattr(torch.optim, name)(parameters, lr=0.01)
    before = [p.detach().clone() for p in parameters]

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(net)
        loss.backward()
        return loss

    first = float(closure())
    for _ in range(5):
        optimizer.step(closure)
    assert all(p.isfinite().all() for p in parameters)
    assert any(not torch.equal(a, b) for a, b in zip(before, parameters, strict=True))
    assert float(closure()) < first


def test_sparse_adam_with_masked_ids() -> None:
    table = nn.Embedding(5, 3, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    ids = mt.as_masked_tensor(torch.tensor([1, 10**9, 3]), torch.tensor([True, False, True]))
    before = table.weight.detach().clone()
    table(ids).square().sum().backward()
    optimizer.step()
    changed = (table.weight != before).any(1)
    assert changed.tolist() == [False, True, False, True, False]


def test_clip_grad_norm_and_accumulation() -> None:
    net = model()
    loss_of(net).backward()
    once = gradients(net)
    loss_of(net).backward()
    for a, b in zip(gradients(net), once, strict=True):
        torch.testing.assert_close(a, 2 * b)
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1e-3)
    assert type(norm) is torch.Tensor
    assert norm.isfinite()
    total = torch.cat([g.flatten() for g in gradients(net)]).norm()
    torch.testing.assert_close(total, torch.tensor(1e-3), rtol=1e-3, atol=0)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(use_reentrant: bool) -> None:
    net = model()
    loss_of(net).backward()
    expected = gradients(net)
    net.zero_grad()
    x, y = batch(requires_grad=True)
    F.mse_loss(checkpoint(net, x, use_reentrant=use_reentrant), y).backward()
    for a, b in zip(gradients(net), expected, strict=True):
        torch.testing.assert_close(a, b)
    assert type(x.grad) is MaskedTensor


LAYERS = {
    "linear": nn.Linear(4, 4),
    "layer norm": nn.LayerNorm(4),
    "convolution": nn.Conv1d(5, 5, 3, padding=1),
    "encoder": nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True),
    "gru": nn.GRU(4, 4, batch_first=True),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("policy", [CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE])
def test_selective_checkpoint(layer: str, policy: CheckpointPolicy) -> None:
    """Rules do not write into results that are kept; of a GRU torch's own ops do, of plain tensors, too."""

    def loss(x: torch.Tensor) -> torch.Tensor:
        y = LAYERS[layer](x)
        return ((y[0] if isinstance(y, tuple) else y) * x).square().sum()

    def contexts() -> Any:
        return create_selective_checkpoint_contexts(lambda *_, **__: policy, allow_cache_entry_mutation=layer == "gru")

    found = []
    for run in (loss, lambda x: checkpoint(loss, x, use_reentrant=False, context_fn=contexts)):
        x = mt.from_lengths(torch.linspace(-1, 1, 40).view(2, 5, 4), [5, 3]).requires_grad_()
        found.append(torch.autograd.grad(run(x), [x, *LAYERS[layer].parameters()]))
    for got, expected in zip(*found, strict=True):
        assert_close(got, expected)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_of_residual_blocks(use_reentrant: bool) -> None:
    block = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU())
    x, _ = batch(requires_grad=True)

    def run(layer: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        block.zero_grad()
        h = x * 2  # a result that each of the blocks uses twice
        for _ in range(2):
            h = layer(h) + h
        h.square().mean().backward()
        return gradients(block)

    def residual(h: torch.Tensor) -> torch.Tensor:
        return block(h) * h

    expected = run(residual)
    found = run(lambda h: checkpoint(residual, h, use_reentrant=use_reentrant))
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_double_backward_through_a_model() -> None:
    net = model(torch.float64)
    x, y = (v.double() for v in batch())
    x.requires_grad_()
    loss = F.mse_loss(net(x), y)
    (gx,) = torch.autograd.grad(loss, x, create_graph=True)
    assert type(gx) is MaskedTensor
    gx.square().sum().backward()
    found = gradients(net)

    step = 1e-6
    weight = net[0].weight

    def penalty() -> torch.Tensor:
        inputs = batch()[0].double().requires_grad_()
        (g,) = torch.autograd.grad(F.mse_loss(net(inputs), y), inputs)
        return g.square().sum().filled(0)

    with torch.no_grad():
        weight[2, 1] += step
    up = penalty()
    with torch.no_grad():
        weight[2, 1] -= 2 * step
    down = penalty()
    torch.testing.assert_close(found[0][2, 1], (up - down) / (2 * step), rtol=1e-4, atol=1e-8)


def test_tensor_and_module_hooks_and_retain_grad() -> None:
    net = model()
    seen = []
    handle = net[1].register_forward_hook(lambda module, args, out: seen.append(type(out)))
    full = net[2].register_full_backward_hook(lambda module, gi, go: seen.append(type(gi[0])))
    x, y = batch(requires_grad=True)
    hidden = net[0](x)
    hidden.retain_grad()
    hidden.register_hook(lambda g: seen.append(type(g)))
    F.mse_loss(net[3](net[2](net[1](hidden))), y).backward()
    assert seen == [MaskedTensor] * 3
    assert type(hidden.grad) is MaskedTensor
    assert type(x.grad) is MaskedTensor
    masked = ~x.grad.get_mask()
    assert (x.grad.get_data()[masked] == 0).all()
    handle.remove()
    full.remove()


def test_a_hook_that_returns_a_plain_gradient_is_masked() -> None:
    x = mt.masked_tensor(torch.ones(3), torch.tensor([True, False, True]), requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: torch.full((3,), float("nan")).where(torch.tensor([False, True, False]), torch.ones(3)))
    w = torch.ones(3, requires_grad=True)
    (y * w).sum().backward()
    assert x.grad.tolist() == [2.0, None, 2.0]
    assert w.grad.tolist() == [2.0, 0.0, 2.0]


def test_backward_with_a_plain_gradient_counts_zero_at_masked_entries() -> None:
    w = torch.ones(3, requires_grad=True)
    x = mt.masked_tensor(torch.ones(3), torch.tensor([True, False, True]))
    (x * w).backward(torch.tensor([1.0, float("nan"), 3.0]))
    assert w.grad.tolist() == [1.0, 0.0, 3.0]


def test_nothing_valid_gives_a_masked_loss_and_zero_gradients() -> None:
    net = model()
    x, _ = batch()
    loss = F.mse_loss(net(x), mt.masked_tensor(torch.full((8, 2), float("nan")), torch.zeros(8, 2, dtype=torch.bool)))
    assert not loss.get_mask()
    with pytest.warns(mt.MaskedLossWarning):
        loss.backward()
    assert all((g == 0).all() for g in gradients(net))


def test_a_parameter_with_masked_entries_is_stepped() -> None:
    parameter = nn.Parameter(mt.masked_tensor(torch.ones(3), torch.tensor([True, False, True])))
    assert type(parameter) is MaskedTensor
    assert isinstance(parameter, nn.Parameter)
    optimizer = torch.optim.AdamW([parameter], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (parameter * torch.tensor([1.0, float("nan"), 2.0])).sum().backward()
        optimizer.step()
    values = parameter.detach().tolist()
    assert values[1] is None
    assert values[0] < 1 > values[2]


def test_a_value_used_twice_adds_both_gradients() -> None:
    # Below autograd the two gradients would meet under the AND rule, and the first would be lost.
    x = mt.masked_tensor(torch.ones(2), torch.tensor([True, True]), requires_grad=True)
    other = mt.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    (x.sum() + (x * other).sum()).backward()
    assert x.grad.tolist() == [2.0, 1.0]


def test_deepcopied_model_and_amp_grad_scaler() -> None:
    net = copy.deepcopy(model())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(net)
    loss.backward()
    assert len(gradients(net)) == 6


def test_gradients_of_plain_and_masked_parameters_are_clipped_together() -> None:
    plain = nn.Parameter(torch.ones(3))
    masked = nn.Parameter(mt.masked_tensor([1.0, None, 3.0]))
    (plain * masked).square().sum().backward()
    norm = nn.utils.clip_grad_norm_([plain, masked], 0.1)
    total = torch.tensor([2.0, 18.0, 2.0, 6.0]).norm()
    torch.testing.assert_close(norm.item(), total.item())
    torch.testing.assert_close(plain.grad, torch.tensor([2.0, 0.0, 18.0]) * 0.1 / total)
    assert masked.grad.tolist() == [pytest.approx(0.2 / total.item()), None, pytest.approx(0.6 / total.item())]


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(mt.masked_tensor([1.0, None, 3.0]))
        self.register_buffer("shift", mt.masked_tensor([None, 2.0, 3.0]))


def test_a_module_made_on_meta_is_materialised_and_loaded() -> None:
    state = Scale().state_dict()
    net = Scale().to("meta").to_empty(device="cpu")
    assert isinstance(net.weight, nn.Parameter)
    assert net.weight.count() == net.shift.count() == 0, "nothing is known yet"
    net.load_state_dict(state)
    for name, value in net.state_dict().items():
        assert torch.equal(value, state[name])


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in SqrtBackward")
def test_anomaly_detection_sees_valid_gradients_only() -> None:
    with torch.autograd.set_detect_anomaly(True):
        net = model()
        loss_of(net).backward()
        gradients(net)
        x = mt.masked_tensor([0.0, None, 4.0], requires_grad=True)
        with pytest.raises(RuntimeError, match="returned nan values"):
            (x.sqrt() * 0).sum().backward()


DETACHED = {
    "itself": lambda x: x,
    "row": lambda x: x[0],
    "same shape": lambda x: x.view(2, 3),
    "transposed": lambda x: x.t(),
    "copied": lambda x: x.t().reshape(6),
    "detached": lambda x: x.detach(),
    "view of detached": lambda x: x.detach()[0],
    "detached view": lambda x: x[0].detach(),
}


def test_detach_in_place() -> None:
    x = mt.masked_tensor([1.0, None, 3.0], requires_grad=True)
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert not y.requires_grad
    (y.requires_grad_() * 3).sum().backward()
    assert (x.grad, y.grad.tolist()) == (None, [3, None, 3])
    z = x * 2
    with pytest.raises(RuntimeError, match="a view of a masked tensor cannot be detached in place"):
        z[:2].detach_()
    for packed, view in itertools.product((False, True), DETACHED):
        h = mt.masked_tensor([[1.0, 2.0, None], [4.0, None, None]], requires_grad=True)
        expected, ours = (DETACHED[view](t * 2) for t in (h.get_data(), h.packed() if packed else h))
        try:
            expected.detach_()
        except RuntimeError:
            with pytest.raises(RuntimeError, match="a view of a masked tensor cannot be detached in place"):
                ours.detach_()
        else:
            assert not ours.detach_().requires_grad
    assert not x.detach_().requires_grad
    with torch.inference_mode():
        assert z.clone().detach_().tolist() == [2, None, 6]


def test_two_losses_go_back_through_one_wrapped_input() -> None:
    data = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    x = mt.as_masked_tensor(data, torch.tensor([True, False, True]))
    rows = x.view(3, 1)[:2]
    x.square().sum().backward()
    rows.square().sum().backward()
    assert data.grad.tolist() == [4, 0, 6]


FOREACH = [
    n for n in OPTIMIZERS if "foreach" in inspect.signature(getattr(torch.optim, n)).parameters and n != "Adafactor"
]


@pytest.mark.parametrize("name", FOREACH)
def test_masked_and_plain_parameters_are_stepped_by_lists(name: str) -> None:
    masked, valid = nn.Parameter(mt.masked_tensor([1.0, None, 2.0])), nn.Parameter(torch.tensor([1.0, 2.0]))
    for first, second in ((masked, nn.Parameter(torch.ones(2))), (valid, nn.Parameter(torch.ones(2)))):
        optimizer = getattr(torch.optim, name)([first, second], lr=0.1, foreach=True)
        for _ in range(3):
            optimizer.zero_grad()
            ((first - 0.3).square().sum() + second.square().sum()).backward()
            nn.utils.clip_grad_norm_([first, second], 0.5, foreach=True)
            optimizer.step()
    torch.testing.assert_close(masked.detach().compressed(), valid.detach())


def test_ops_on_lists_are_the_ops_on_their_elements() -> None:
    x = mt.masked_tensor([3.0, None, 4.0], requires_grad=True)
    norm, scaled = torch._foreach_norm([x])[0], torch._foreach_mul([x, torch.ones(2)], 2.0)
    assert norm.item() == 5
    assert (scaled[0].tolist(), type(scaled[1])) == ([6, None, 8], torch.Tensor)
    scaled[0].square().mean().backward()
    assert x.grad.tolist() == [12, None, 16]
    with torch.inference_mode():
        assert torch._foreach_add([x], 1.0)[0].tolist() == [4, None, 5]


@pytest.mark.parametrize("dropout", [F.dropout, F.alpha_dropout, F.feature_alpha_dropout, F.dropout1d])
def test_a_dropout_in_place_that_drops_nothing_writes_nothing(dropout):
    for p, training in ((0.5, False), (0.0, True)):
        x = mt.masked_tensor(torch.randn(2, 3, 3), torch.rand(2, 3, 3) < 0.7).requires_grad_()
        y = x.softmax(-1)
        version = y._version
        assert dropout(y, p, training, inplace=True) is y
        assert y._version == version
        (y * y).sum().backward()  # softmax has saved y
        assert x.grad is not None
