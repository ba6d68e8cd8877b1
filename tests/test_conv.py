"""Convolutions: padding invariance, the selectable rules against a loop over windows, partial convolution."""

import itertools
import random
import warnings

import pytest
import torch
import torch.nn.functional as F

import masked_tensor as mt
from masked_tensor.api.modes import meaning
from masked_tensor.engine.tensor import pair_of

from .laws import laws

PAYLOADS = [float("nan"), float("inf"), 1e30]


def prefix(lengths, *sizes):
    """The mask ``(N, 1, *sizes)`` of boxes that start at 0; ``lengths``: one size per row and dim."""
    mask = torch.ones((), dtype=torch.bool)
    for dim, size in enumerate(sizes):
        shape = [len(lengths), 1, *[size if d == dim else 1 for d in range(len(sizes))]]
        reach = torch.tensor([row[dim] for row in lengths])[:, None]
        mask = mask & (torch.arange(size) < reach).view(shape)
    return mask


def configurations(dims, count):
    """Random modules: (module factory arguments, transposed)."""
    rng = random.Random(dims)
    for _ in range(count):
        kernel, stride, dilation = (rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 2))
        padding = rng.choice([0, 0, 1, 2, "same", "valid"])
        transposed = isinstance(padding, int) and rng.random() < 0.4
        arguments = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        arguments["groups"] = rng.choice([1, 2])
        if padding == "same":
            arguments["stride"] = 1
        if transposed:
            arguments["output_padding"] = rng.randint(0, max(stride, dilation) - 1)
        kind = f"Conv{'Transpose' if transposed else ''}{dims}d"
        yield getattr(torch.nn, kind)(4, 6, **arguments)


@pytest.mark.parametrize(("dims", "size", "count"), [(1, 11, 120), (2, 9, 50), (3, 7, 12)])
def test_padded_batch_equals_unpadded_rows(dims, size, count):
    rng, checked = random.Random(0), 0
    for index, module in enumerate(configurations(dims, count)):
        lengths = [[rng.randint(1, size) for _ in range(dims)] for _ in range(2)]
        mask = prefix(lengths, *[size] * dims)
        clean = torch.randn(2, 4, *[size] * dims)
        x = torch.where(mask, clean, PAYLOADS[index % 3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch: "same" with an even kernel copies
            try:
                module(clean)
            except RuntimeError:
                continue  # the window does not fit
            leaf = mt.as_masked_tensor(x, mask).requires_grad_()
            y = module(leaf)
            y.square().sum().backward()
            expected, rows = [], []
            for row, reach in zip(clean, lengths, strict=True):
                row = row[(None, slice(None), *[slice(n) for n in reach])].clone().requires_grad_()
                rows.append(row)
                try:
                    expected.append(module(row))
                except RuntimeError:
                    expected.append(row.new_zeros(1, 6, *[0] * dims))
        got = pair_of(y)
        assert got.mask.stride(1) == 0, "a mask that is constant over channels stays so"
        for row, e in enumerate(expected):
            box = prefix([e.shape[2:]], *got.data.shape[2:])[0].expand(got.data.shape[1:])
            assert torch.equal(got.mask[row], box), (module, lengths[row])
            torch.testing.assert_close(got.data[row][box], e.flatten())
        grads = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        sum(e.square().sum() for e in expected).backward() if any(e.requires_grad for e in expected) else None
        for grad, p in zip(grads, module.parameters(), strict=True):
            torch.testing.assert_close(grad, torch.zeros_like(p) if p.grad is None else p.grad, rtol=1e-4, atol=1e-4)
        assert torch.equal(pair_of(leaf.grad).data[~mask.expand(x.shape)], torch.zeros(int((~mask).sum()) * 4))
        checked += 1
    assert checked > count // 2


def loop(x, mask, weight, bias, stride, padding, dilation, rule, renormalize):
    """conv1d over one row by a loop over windows: value and validity of each output."""
    channels, size = x.shape
    count = (size + 2 * padding - dilation * (weight.shape[-1] - 1) - 1) // stride + 1
    value, valid = torch.zeros(len(weight), count), torch.zeros(count, dtype=torch.bool)
    for o in range(count):
        places = [o * stride - padding + dilation * j for j in range(weight.shape[-1])]
        inside = [(j, t) for j, t in enumerate(places) if 0 <= t < size]
        seen = [mask[:, t] for _, t in inside]
        held = sum(weight[:, :, j] @ torch.where(mask[:, t], x[:, t], 0) for j, t in inside)
        taps = sum(int(m.sum()) for m in seen)
        if renormalize and taps:
            held = held * (channels * len(inside) / taps)
        value[:, o] = held + bias
        if rule == "any":
            valid[o] = not inside or any(m.any() for m in seen)
        elif rule == "all":
            valid[o] = all(m.all() for m in seen)
        else:
            span = dilation * (weight.shape[-1] - 1) - 2 * padding
            core = range(o * stride, o * stride + span + 1) if span >= 0 else range(o * stride + span, o * stride + 1)
            held_by = [bool(mask[:, t].any()) for t in core if 0 <= t < size]
            valid[o] = all(held_by) if span >= 0 else any(held_by)
    return value, valid


@pytest.mark.parametrize("renormalize", [False, True])
@pytest.mark.parametrize("rule", ["core", "any", "all"])
def test_rules_against_a_loop_over_windows(rule, renormalize):
    torch.manual_seed(0)
    for kernel, stride, padding, dilation in itertools.product((1, 2, 3), (1, 2), (0, 1, 3), (1, 2)):
        weight, bias = torch.randn(3, 2, kernel), torch.randn(3)
        clean = torch.randn(4, 2, 10)
        for mask in (torch.rand(4, 2, 10) < 0.6, (torch.rand(4, 1, 10) < 0.6).expand(4, 2, 10)):
            x = mt.as_masked_tensor(torch.where(mask, clean, torch.nan), mask)
            with meaning(convolution=rule, renormalize=renormalize):
                got = pair_of(F.conv1d(x, weight, bias, stride, padding, dilation))
            for row in range(4):
                value, valid = loop(clean[row], mask[row], weight, bias, stride, padding, dilation, rule, renormalize)
                assert torch.equal(got.mask[row], valid.expand(3, -1))
                torch.testing.assert_close(got.data[row][:, valid], value[:, valid])


@pytest.mark.parametrize("rule", ["any", "all"])
def test_transposed_rules_against_a_loop_over_inputs(rule):
    torch.manual_seed(0)
    for kernel, stride, padding, extra in itertools.product((1, 2, 3), (1, 2, 3), (0, 1), (0, 1)):
        if extra >= stride:
            continue
        weight, mask = torch.randn(2, 3, kernel), (torch.rand(1, 1, 6) < 0.6).expand(1, 2, 6)
        x = mt.as_masked_tensor(torch.where(mask, torch.randn(1, 2, 6), torch.nan), mask)
        try:
            F.conv_transpose1d(torch.zeros(1, 2, 6), weight, None, stride, padding, extra)
        except RuntimeError:
            continue
        with meaning(convolution=rule):
            got = pair_of(F.conv_transpose1d(x, weight, None, stride, padding, extra)).mask[0, 0]
        for o, valid in enumerate(got):
            seen = [bool(mask[0, 0, i]) for i in range(6) for j in range(kernel) if i * stride - padding + j == o]
            assert bool(valid) == (all(seen) if rule == "all" else not seen or any(seen)), (kernel, stride, padding, o)


def test_groups_have_their_own_validity():
    mask = torch.tensor([[[True], [False], [False], [False]]]).expand(1, 4, 5)
    x = mt.as_masked_tensor(torch.where(mask, torch.ones(1, 4, 5), torch.nan), mask)
    y = pair_of(F.conv1d(x, torch.ones(4, 2, 1), groups=2))
    assert y.mask[0, :, 0].tolist() == [True, True, False, False]
    assert y.data[0, :2].tolist() == [[1.0] * 5] * 2


def test_masked_weights_and_bias():
    weight = mt.as_masked_tensor(
        torch.tensor([[[1.0, torch.nan]], [[torch.nan, torch.nan]]]), torch.tensor([[[True, False]], [[False, False]]])
    ).requires_grad_()
    x = torch.arange(4.0)[None, None].requires_grad_()
    y = F.conv1d(x, weight)
    assert y.tolist() == [[[0.0, 1.0, 2.0], [None, None, None]]]
    y.sum().backward()
    assert weight.grad.tolist() == [[[3.0, None]], [[None, None]]]
    assert x.grad.tolist() == [[[1.0, 1.0, 1.0, 0.0]]]
    bias = mt.masked_tensor([1.0, 2.0], [True, False])
    assert F.conv1d(x, torch.ones(2, 1, 4), bias).tolist() == [[[7.0], [None]]]


@pytest.mark.parametrize("form", ["convolution", "_convolution", "_convolution_mode", "conv_tbc", "inference"])
def test_every_form_gives_the_same(form):
    torch.manual_seed(0)
    mask = torch.tensor([[True] * 5, [True, True, False, True, False]])[:, None].expand(2, 3, 5)
    x = mt.as_masked_tensor(torch.where(mask, torch.randn(2, 3, 5), torch.nan), mask)
    weight, bias = torch.randn(4, 3, 3), torch.randn(4)
    expected = pair_of(F.conv1d(x, weight, bias, padding=1))
    if form == "convolution":
        y = torch.convolution(x, weight, bias, [1], [1], [1], False, [0], 1)
    elif form == "_convolution":
        y = torch._convolution(x, weight, bias, [1], [1], [1], False, [0], 1, False, False, True, True)
    elif form == "_convolution_mode":
        y = torch._convolution_mode(x, weight, bias, [1], "same", [1], 1)
    elif form == "conv_tbc":
        y = torch.conv_tbc(x.permute(2, 0, 1), weight.permute(2, 1, 0), bias, 1).permute(1, 2, 0)
    else:
        with torch.inference_mode():
            y = F.conv1d(x, weight, bias, padding=1)
    got = pair_of(y)
    assert torch.equal(got.mask, expected.mask)
    torch.testing.assert_close(got.data[got.mask], expected.data[got.mask])


def test_unknown_rule_is_refused():
    with (
        pytest.raises(ValueError, match=r"convolution must be one of \('core', 'any', 'all'\), got 'some'"),
        meaning(convolution="some"),
    ):
        pass


def test_mask_arithmetic_under_autocast():
    """A window of 1001 taps is counted exactly in bfloat16."""
    mask = (torch.arange(1001) < 1000).expand(1, 1, 1001)
    x = mt.masked_tensor(torch.ones(1, 1, 1001), mask)
    with torch.autocast("cpu", torch.bfloat16), meaning(convolution="any", renormalize=True):
        y = F.conv1d(x, torch.ones(1, 1, 1001))
    assert y.dtype is torch.bfloat16
    assert float(y) == float(torch.tensor(1000.0 * 1001 / 1000).bfloat16())


test_law = laws("conv")
