"""Normalization beyond the laws: padding invariance, running statistics, compact masks, special groups."""

import copy
from itertools import product

import pytest
import torch
from torch import nn
from torch.func import jacfwd, jacrev
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor import masks, settings
from masked_tensor.engine.tensor import pair_of
from masked_tensor.kernels import standardize as closed_form
from masked_tensor.pair import Pair, Payload
from masked_tensor.select import select
from masked_tensor.shared import standardize
from masked_tensor.testing import assert_close

from .helpers.harness import Masked, assert_same
from .laws import laws
from .oracles.normalize import local_response_norm

NAN = float("nan")


def padded(lengths, channels=5, dtype=torch.float64):
    """``(B, C, T)`` data with NaN in the padding, and its compact mask."""
    torch.manual_seed(0)
    lengths = torch.tensor(lengths)
    shape = (len(lengths), channels, int(lengths.max()))
    mask = (torch.arange(shape[2]) < lengths[:, None])[:, None].expand(shape)
    return torch.randn(shape, dtype=dtype).masked_fill(~mask, NAN), mask, lengths


def rows_of(x, lengths):
    """All valid rows of ``(B, C, T)`` as ``(sum of lengths, C)``."""
    return torch.cat([row[:, :n] for row, n in zip(x, lengths, strict=True)], 1).T


def random_parameters(module):
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    return module


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_over_padding_is_batch_norm_over_the_rows(momentum, affine):
    module = random_parameters(nn.BatchNorm1d(5, momentum=momentum, affine=affine).double())
    plain = copy.deepcopy(module)
    for lengths in ([9, 3, 1, 6], [2, 2], [4, 0, 7]):
        data, mask, lengths = padded(lengths)
        x = mt.as_masked_tensor(data, mask).requires_grad_()
        rows = rows_of(data, lengths).clone().requires_grad_()
        out, expected = module(x), plain(rows)
        assert pair_of(out).mask.stride() == mask.stride()
        torch.testing.assert_close(rows_of(pair_of(out).data, lengths), expected)
        out.pow(3).sum().backward()
        expected.pow(3).sum().backward()
        torch.testing.assert_close(rows_of(pair_of(x.grad).data, lengths), rows.grad)
        assert (pair_of(x.grad).data[~mask] == 0).all()
        for a, b in zip(module.parameters(), plain.parameters(), strict=True):
            assert type(a.grad) is torch.Tensor
            torch.testing.assert_close(a.grad, b.grad)
        for a, b in zip(module.buffers(), plain.buffers(), strict=True):
            torch.testing.assert_close(a, b)
    module.eval()
    plain.eval()
    torch.testing.assert_close(rows_of(pair_of(module(x)).data, lengths), plain(rows))


@pytest.mark.parametrize("count", [0, 1])
def test_batch_norm_with_nothing_to_learn_from(count):
    """No valid entry: no update; a single one: no estimate of the variance."""
    module = nn.BatchNorm1d(3)
    mask = torch.zeros(4, 3, 2, dtype=torch.bool)
    mask[:count, 1, 0] = True
    x = mt.as_masked_tensor(torch.full((4, 3, 2), NAN).masked_fill(mask, 2.0), mask).requires_grad_()
    out = module(x)
    assert_same(out, Masked(torch.zeros(4, 3, 2), mask), "output")
    out.filled(0).sum().backward()
    assert (pair_of(x.grad).data == 0).all()
    assert (module.weight.grad == 0).all()
    torch.testing.assert_close(module.running_mean, torch.tensor([0.0, 0.2 * count, 0.0]))
    assert (module.running_var == 1).all()


@pytest.mark.xfail(
    reason="nn.BatchNorm counts the batch in Python, on a plain tensor, before any op sees the mask", strict=True
)
def test_a_batch_with_nothing_valid_is_not_counted():
    module = nn.BatchNorm1d(3)
    module(mt.masked_tensor(torch.ones(4, 3), torch.zeros(4, 3, dtype=torch.bool)))
    assert module.num_batches_tracked == 0


def test_instance_norm_is_that_of_each_row():
    data, mask, lengths = padded([9, 3, 6])
    module = random_parameters(nn.InstanceNorm1d(5, affine=True, track_running_stats=True).double())
    plain = copy.deepcopy(module)
    out = module(mt.as_masked_tensor(data, mask))
    means, variances = [], []
    for row, result, n in zip(data, pair_of(out).data, lengths, strict=True):
        torch.testing.assert_close(result[:, :n], plain(row[None, :, :n])[0])
        means.append(row[:, :n].mean(1))
        variances.append(row[:, :n].var(1))
    torch.testing.assert_close(module.running_mean, 0.1 * torch.stack(means).mean(0))
    torch.testing.assert_close(module.running_var, 0.9 + 0.1 * torch.stack(variances).mean(0))
    module.eval()
    assert pair_of(module(mt.as_masked_tensor(data, mask))).data.masked_fill(~mask, 0).isfinite().all()


def test_group_norm_is_that_of_each_row():
    data, mask, lengths = padded([9, 3, 6], channels=6)
    module = random_parameters(nn.GroupNorm(2, 6).double())
    plain = copy.deepcopy(module)
    x = mt.as_masked_tensor(data, mask).requires_grad_()
    out = module(x)
    assert pair_of(out).mask.stride() == mask.stride()
    total = 0
    for row, result, n in zip(data, pair_of(out).data, lengths, strict=True):
        expected = plain(row[None, :, :n])
        torch.testing.assert_close(result[:, :n], expected[0])
        total = total + expected.pow(3).sum()
    out.pow(3).sum().backward()
    total.backward()
    for a, b in zip(module.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    assert (pair_of(x.grad).data[~mask] == 0).all()


@pytest.mark.parametrize("make", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("eps", [1e-5, 0.0])
def test_padded_rows_pass_through(make, eps):
    """Masks constant along the normalized dimension: torch's own values, a compact mask, finite weight gradients."""
    torch.manual_seed(0)
    mask = (torch.rand(4, 7, 1) < 0.5).expand(4, 7, 8)
    data = torch.randn(4, 7, 8)
    module = random_parameters(make(8, eps=eps))
    plain = copy.deepcopy(module)
    x = mt.as_masked_tensor(data.masked_fill(~mask, NAN), mask).requires_grad_()
    out = module(x)
    assert pair_of(out).mask.stride() == mask.stride()
    expected = plain(data[mask[..., 0]])
    torch.testing.assert_close(pair_of(out).data[mask[..., 0]], expected)
    out.pow(2).sum().backward()
    expected.pow(2).sum().backward()
    for a, b in zip(module.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    assert (pair_of(x.grad).data[~mask] == 0).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    torch.manual_seed(0)
    data, mask = (torch.randn(6, 300) + 30).to(dtype), torch.rand(6, 300) < 0.5
    for function in (F.layer_norm, F.rms_norm):
        out = function(mt.as_masked_tensor(data.masked_fill(~mask, NAN), mask), [300])
        assert out.dtype is dtype
        for row, valid, result in zip(data, mask, pair_of(out).data, strict=True):
            expected = function(row[valid].float(), [int(valid.sum())], eps=None if function is F.rms_norm else 1e-5)
            torch.testing.assert_close(result[valid].float(), expected, atol=2e-2, rtol=1e-2)


def test_a_valid_nan_stays_in_its_group():
    data, mask = torch.randn(3, 4), torch.tensor([True, True, True, False]).repeat(3, 1)
    data[0, 1] = NAN
    weight = torch.ones(4, requires_grad=True)
    x = mt.as_masked_tensor(data, mask).requires_grad_()
    out = F.layer_norm(x, [4], weight)
    assert pair_of(out).data[0, :3].isnan().all()
    assert pair_of(out).data[1:].isfinite().all()
    out.sum().backward()
    assert (pair_of(x.grad).data[~mask] == 0).all()
    assert weight.grad[3] == 0


def test_local_response_norm_of_padded_rows():
    data, mask, _ = padded([9, 3, 6])
    out = nn.LocalResponseNorm(3)(mt.as_masked_tensor(data, mask))
    assert_same(out, local_response_norm(None, Masked(data.masked_fill(~mask, 0), mask), 3), "output")


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_weight_norm(dim):
    torch.manual_seed(0)
    v, mask = torch.randn(4, 6, dtype=torch.float64), torch.rand(4, 6) < 0.6
    mask[0] = False
    size = {0: (4, 1), 1: (1, 6), -1: (1, 1)}[dim]
    g = torch.randn(size, dtype=torch.float64)
    out = torch._weight_norm(mt.as_masked_tensor(v.masked_fill(~mask, NAN), mask), g, dim)
    clean = v.masked_fill(~mask, 0)
    norm = clean.norm() if dim == -1 else clean.norm(dim=1 - dim, keepdim=True)
    assert_same(out, Masked(clean * (g / norm), mask), "weight norm")


@pytest.mark.parametrize("module", [nn.LayerNorm(6), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.InstanceNorm1d(4)])
def test_double_backward(module):
    torch.manual_seed(0)
    module = module.double()
    data, mask = torch.randn(3, 4, 6, dtype=torch.float64, requires_grad=True), torch.rand(3, 4, 6) < 0.6

    def function(data):
        return module(mt.as_masked_tensor(data, mask)).filled(0)

    assert torch.autograd.gradcheck(function, data, fast_mode=True)
    assert torch.autograd.gradgradcheck(function, data, fast_mode=True)


def test_wrong_shapes():
    x = mt.masked_tensor(torch.ones(2, 4), torch.tensor([True, False, True, True]))
    with pytest.raises(RuntimeError, match=r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\]"):
        F.layer_norm(x, [3])
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        F.group_norm(x, 3)


def test_vmap_over_layer_norm():
    torch.manual_seed(0)
    data, mask = torch.randn(3, 4, 6), torch.rand(3, 4, 6) < 0.6
    x, weight = mt.masked_tensor(data, mask), torch.randn(6)
    out = torch.vmap(lambda row: F.layer_norm(row, [6], weight))(x)
    assert_same(out, Masked(pair_of(F.layer_norm(x, [6], weight)).data, mask), "vmap")


# The closed form against the formula, which the tests above compare with plain torch.  Pieces are made small here, so
# that groups are cut, the last piece is shorter, and all of it fits a test.

GROUPS = {
    "rows": ((6, 7, 10), (2,), (1, 1, 10)),
    "two last dimensions": ((9, 5, 4), (1, 2), (1, 5, 4)),
    "channels of a batch": ((5, 9, 8), (0, 2), (1, 9, 1)),
    "columns": ((12, 10), (0,), (1, 10)),
    "channels of each sample": ((5, 3, 8), (2,), (1, 3, 1)),
    "groups of channels": ((5, 2, 3, 4), (2, 3), (1, 2, 3, 1)),
    "one row": ((1, 40), (1,), (1, 40)),
    "empty": ((3, 0, 4), (1, 2), (1, 1, 1)),
}


def compared(monkeypatch, shape, dims, parameters, payload, mask, dtype, centred, layout=None):
    """Results and gradients of both ways, every output with a gradient of its own."""
    torch.manual_seed(0)
    garbage = 0 if payload is Payload.ZERO else NAN
    data = torch.randn(shape, dtype=dtype).add_(3).masked_fill(~mask, garbage)
    if layout is not None:
        data = layout(data)
    weight, bias = (torch.randn(parameters, dtype=dtype) for _ in range(2))
    seeds, found = None, []
    for small in (0, 1 << 40):
        monkeypatch.setattr(settings, "FORMULA", small)
        leaves = [t.detach().requires_grad_() for t in (data, weight, bias)]
        x = Pair(leaves[0], mask, payload)
        result, s = standardize.standardize(x, dims, 1e-3, *leaves[1:], centred=centred)
        assert result.payload is Payload.ZERO
        outputs = [t for t in (result.data, s.mean, s.rstd) if t.requires_grad]
        if seeds is None:
            seeds = [torch.randn_like(t) for t in outputs]
            seeds[0].masked_fill_(~mask, 0)
        gradients = torch.autograd.grad(outputs, leaves, seeds)
        assert (gradients[0][~mask] == 0).all()
        assert (result.data[~mask] == 0).all()
        some = masks.any(mask, dims, True)
        found.append([result.data, *(t.masked_fill(~some, 0) for t in s[:3]), *gradients])
    return found


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("payload", Payload)
@pytest.mark.parametrize("groups", GROUPS)
def test_the_closed_form_is_the_formula(groups, payload, centred, monkeypatch):
    monkeypatch.setattr(settings, "PIECE", 30)
    monkeypatch.setattr(settings, "STRETCH", 2)
    shape, dims, parameters = GROUPS[groups]
    torch.manual_seed(1)
    mask = torch.rand(shape) < 0.6
    mask[:1] = False
    for valid in (mask, mask[..., :1].expand(shape), mask[:, :1].expand(shape) if len(shape) > 1 else mask):
        ours, theirs = compared(monkeypatch, shape, dims, parameters, payload, valid, torch.float64, centred)
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_closed_form_in_other_dtypes_and_layouts(dtype, monkeypatch):
    monkeypatch.setattr(settings, "PIECE", 300)
    shape, dims, parameters = (4, 6, 5, 7), (0, 2, 3), (1, 6, 1, 1)
    mask = torch.rand(shape) < 0.6
    layouts = [
        lambda t: t.to(memory_format=torch.channels_last),
        lambda t: t.new_full((*t.shape[:-1], 9), NAN)[..., :7].copy_(t),
        lambda t: t.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    ]
    tolerance = {"atol": 1e-5, "rtol": 1e-5} if dtype is torch.float32 else {"atol": 0.05, "rtol": 0.02}
    for layout in layouts:
        ours, theirs = compared(monkeypatch, shape, dims, parameters, Payload.ANY, mask, dtype, True, layout)
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert a.dtype is b.dtype or i in (1, 2, 3)  # small groups have their statistics in float64
            torch.testing.assert_close(a, b, check_dtype=False, **tolerance)


NORMS = {
    "layer norm": lambda x, w, b: F.layer_norm(x, x.shape[2:], w, b),
    "layer norm without parameters": lambda x, w, b: F.layer_norm(x, x.shape[2:]),
    "RMS norm": lambda x, w, b: F.rms_norm(x, x.shape[2:], w),
    "group norm": lambda x, w, b: F.group_norm(x, 2, w[:4], b[:4]),
    "instance norm": lambda x, w, b: F.instance_norm(x, weight=w[:4], bias=b[:4]),
    "batch norm": lambda x, w, b: F.batch_norm(x, None, None, w[:4], b[:4], training=True),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", NORMS)
def test_compiled_norms_are_the_eager_ones(name, dtype, monkeypatch):
    """The graph has one op for each direction, whose body is the closed form; also for other lengths of the batch."""
    monkeypatch.setattr(settings, "FORMULA", 0)
    torch._dynamo.reset()
    ran, eager = [], closed_form.forward
    monkeypatch.setattr(closed_form, "forward", lambda *args: ran.append(type(args[0])) or eager(*args))
    compiled = torch.compile(NORMS[name], fullgraph=True, backend="aot_eager", dynamic=True)
    torch.manual_seed(0)
    for rows in (3, 5):
        mask = torch.rand(rows, 4, 6) < 0.7
        mask[0, 0], mask[1] = False, False
        data = torch.randn(mask.shape, dtype=dtype).masked_fill(~mask, NAN)
        slope = torch.randn(mask.shape, dtype=dtype)

        def step(norm, data=data, mask=mask, slope=slope):
            x = mt.masked_tensor(data, mask, requires_grad=True)
            parameters = [torch.linspace(a, 2, 6, dtype=dtype).requires_grad_() for a in (0.5, -1)]
            result = norm(x, *parameters)
            result.filled(0).backward(slope)
            return result, x.grad, *(p.grad for p in parameters if p.grad is not None)

        expected = step(NORMS[name])
        ran.clear()
        for found, wanted in zip(step(compiled), expected, strict=True):
            assert_close(found, wanted, rtol=0, atol=0)
        assert ran == [torch.Tensor], "the graph has run the closed form once"


@pytest.mark.skipif(not hasattr(torch._dynamo.config, "trace_autograd_ops"), reason="torch.autograd.grad ends a graph")
@pytest.mark.parametrize("name", ["layer norm", "RMS norm", "batch norm"])
def test_a_graph_has_the_second_derivatives_of_norms(name, monkeypatch):
    """A penalty on gradients, all of it in one graph; autograd would leave out what an op has no derivative of."""
    monkeypatch.setattr(settings, "FORMULA", 0)
    torch._dynamo.reset()
    torch.manual_seed(0)
    mask = torch.rand(3, 4, 6) < 0.7
    mask[0, 0], mask[1] = False, False
    data = torch.randn(mask.shape, dtype=torch.float64).masked_fill(~mask, NAN)

    def penalty(data, w, b):
        x = mt.as_masked_tensor(data, mask)
        loss = NORMS[name](x, w, b).sin().sum().filled(0)
        (slope,) = torch.autograd.grad(loss, data, create_graph=True)
        return loss + (slope * slope).sum()

    found = []
    with torch._dynamo.config.patch(trace_autograd_ops=True):
        for function in (penalty, torch.compile(penalty, fullgraph=True, backend="aot_eager")):
            leaves = [data.clone(), *(torch.linspace(a, 2, 6, dtype=data.dtype) for a in (0.5, -1))]
            leaves = [leaf.requires_grad_() for leaf in leaves]
            found.append(torch.autograd.grad(function(*leaves), leaves, allow_unused=True, materialize_grads=True))
    for theirs, ours in zip(*found, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("groups", ["rows", "channels of a batch", "groups of channels"])
def test_derivatives_of_the_closed_form(groups, monkeypatch):
    monkeypatch.setattr(settings, "FORMULA", 0)
    shape, dims, parameters = GROUPS[groups]
    torch.manual_seed(0)
    data, mask = torch.randn(shape, dtype=torch.float64), torch.rand(shape) < 0.6
    mask[:1] = False
    leaves = [t.double().requires_grad_() for t in (data, torch.randn(parameters), torch.randn(parameters))]

    def function(data, weight, bias):
        poisoned = data.masked_fill(~mask, NAN)
        result, s = standardize.standardize(Pair(poisoned, mask), dims, 1e-3, weight, bias)
        return select(result.data, mask, 0), s.mean, s.rstd.masked_fill(~masks.any(mask, dims, True), 0)

    assert torch.autograd.gradcheck(function, leaves, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


def test_a_valid_nan_stays_in_its_group_in_the_closed_form(monkeypatch):
    monkeypatch.setattr(settings, "FORMULA", 0)
    test_a_valid_nan_stays_in_its_group()


@pytest.mark.parametrize("payload", Payload)
@pytest.mark.parametrize("lost", [NAN, float("inf")])
def test_the_weight_of_a_channel_of_masked_entries_knows_no_nan_of_its_group(lost, payload, monkeypatch):
    """Not the closed form, which takes the sums of a channel before it multiplies by what is NaN."""
    torch.manual_seed(0)
    monkeypatch.setattr(settings, "FORMULA", 0)
    data, mask = torch.randn(2, 2, 3, 8, dtype=torch.float64), torch.rand(2, 2, 3, 8) < 0.7
    mask[:, 0, 1] = False
    mask[0, 0, 0, 0] = True
    data[0, 0, 0, 0] = lost
    data = data.masked_fill(~mask, 0 if payload is Payload.ZERO else NAN)
    leaves = [t.requires_grad_() for t in (data, *torch.randn(2, 1, 2, 3, 1, dtype=torch.float64))]
    result, _ = standardize.standardize(Pair(data, mask, payload), (2, 3), 1e-3, *leaves[1:])
    assert (result.data[~mask] == 0).all()
    grads = torch.autograd.grad(result.data, leaves, torch.randn_like(data).masked_fill(~mask, 0))
    assert (grads[0][~mask] == 0).all()
    assert grads[0][1:].isfinite().all()
    assert grads[1][0, 0, :, 0].isnan().tolist() == [True, False, True]
    assert grads[1][0, 1].isfinite().all()
    assert grads[2].isfinite().all()


test_law = laws("normalize")


@pytest.mark.parametrize("norm", ["layer", "group", "batch", "instance"])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_a_weight_or_a_bias_alone_in_the_closed_form(norm, weighted, biased, monkeypatch):
    norms = {
        "layer": lambda x, w, b: F.layer_norm(x, (4, 3), w, b),
        "group": lambda x, w, b: F.group_norm(x, 2, w, b),
        "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        "instance": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    }
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(5, 4, 3, dtype=torch.float64, generator=generator)
    mask = torch.rand(5, 4, 3, generator=generator) < 0.7
    weight, bias = (torch.rand((4, 3) if norm == "layer" else 4, dtype=torch.float64) for _ in range(2))
    found = []
    for fused in (1 << 40, 1):
        monkeypatch.setattr(settings, "FUSED", fused)
        x = mt.as_masked_tensor(data.clone(), mask).requires_grad_()
        affine = [p.clone().requires_grad_() if used else None for p, used in ((weight, weighted), (bias, biased))]
        loss = (norms[norm](x, *affine) * torch.linspace(-1, 2, 60).view(5, 4, 3)).sum()
        found.append(torch.autograd.grad(loss, [t for t in (x, *affine) if t is not None]))
    for got, expected in zip(*found, strict=True):
        assert_close(got, expected)


TWICE = {
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": F.instance_norm,
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "rms_norm": lambda x: F.rms_norm(x, (3,)),
}


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_agree_in_every_mode(name: str) -> None:
    """Also where the mask is known to be constant, where torch's own kernel is wrong in forward mode."""
    draw = torch.Generator().manual_seed(0)
    x, weight = torch.randn(2, 2, 2, 3, generator=draw, dtype=torch.float64)
    for mask in (torch.tensor(True), torch.tensor([[[True]], [[False]]])):
        loss = lambda x: (TWICE[name](mt.as_masked_tensor(x, mask)) * weight).sum().filled(0)  # noqa: B023, E731
        expected = torch.autograd.functional.hessian(loss, x)
        for outer, inner in product((jacrev, jacfwd), repeat=2):
            torch.testing.assert_close(outer(inner(loss))(x), expected, msg=f"{outer.__name__}({inner.__name__})")
