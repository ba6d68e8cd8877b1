"""Pooling: padded batches against unpadded rows, masked entries against loops over windows, indices, unpooling."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import masked_tensor as mt
from masked_tensor import kernels, settings
from masked_tensor.api.modes import meaning
from masked_tensor.engine.tensor import pair_of
from masked_tensor.pair import Payload
from masked_tensor.rules import pool

from .laws import laws
from .test_conv import prefix

PAYLOADS = [float("nan"), float("inf"), 1e30]


def pools(dims):
    for kernel, stride, padding, ceil in itertools.product((1, 2, 3), (1, 2, 3), (0, 1), (False, True)):
        if 2 * padding > kernel:
            continue
        common = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
        yield getattr(nn, f"MaxPool{dims}d")(**common)
        yield getattr(nn, f"MaxPool{dims}d")(**common, dilation=2)
        for include in (False, True):
            yield getattr(nn, f"AvgPool{dims}d")(**common, count_include_pad=include)
        if dims > 1:
            yield getattr(nn, f"AvgPool{dims}d")(**common, divisor_override=2)
        if padding == 0:
            yield getattr(nn, f"LPPool{dims}d")(2, kernel, stride, ceil)


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedLossWarning")  # of windows that fit into no row
@pytest.mark.parametrize(("dims", "size"), [(1, 10), (2, 8), (3, 5)])
def test_padded_batch_equals_unpadded_rows(dims, size):
    generator = torch.Generator().manual_seed(0)
    for index, module in enumerate(list(pools(dims))[:: 1 if dims < 3 else 3]):
        # From 3 on: torch's own dilated pooling of one entry reads out of bounds, avg_pool3d wants a kernel's worth.
        lengths = torch.randint(3, size + 1, (3, dims), generator=generator).tolist()
        mask = prefix(lengths, *[size] * dims)
        clean = torch.randn(3, 2, *[size] * dims, generator=generator)
        leaf = mt.as_masked_tensor(torch.where(mask, clean, PAYLOADS[index % 3]), mask).requires_grad_()
        try:
            module(clean)
        except RuntimeError:
            continue
        y = module(leaf)
        y.sin().sum().backward()
        got, grad = pair_of(y), pair_of(leaf.grad)
        for row, reach in enumerate(lengths):
            box = clean[(slice(row, row + 1), slice(None), *[slice(n) for n in reach])].clone().requires_grad_()
            try:
                expected = module(box)
            except RuntimeError:
                expected = box.new_zeros(1, 2, *[0] * dims)
            inside = prefix([expected.shape[2:]], *got.data.shape[2:])[0].expand(got.data.shape[1:])
            assert torch.equal(got.mask[row], inside), (module, reach)
            torch.testing.assert_close(got.data[row][inside], expected.flatten(), msg=f"{module} {reach}")
            given = torch.zeros_like(clean[row])
            if expected.requires_grad:
                expected.sin().sum().backward()
                given[(slice(None), *[slice(n) for n in reach])] = box.grad[0]
            torch.testing.assert_close(grad.data[row], given)


def random_case(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < 0.6
    return torch.where(mask, torch.randn(shape, generator=generator), torch.nan), mask


def test_max_pool_over_masked_entries_against_a_loop():
    data, mask = random_case(4, 3, 12)
    x = mt.as_masked_tensor(data, mask)
    for kernel, stride, padding in [(3, 2, 1), (2, 2, 0), (3, 1, 1), (4, 3, 2)]:
        value, index = (pair_of(t) for t in F.max_pool1d(x, kernel, stride, padding, return_indices=True))
        assert torch.equal(value.mask, index.mask)
        for n, c, o in itertools.product(range(4), range(3), range(value.data.shape[-1])):
            window = [t for t in range(o * stride - padding, o * stride - padding + kernel) if 0 <= t < 12]
            span = kernel - 1 - 2 * padding
            core = range(o * stride, o * stride + span + 1) if span >= 0 else range(o * stride + span, o * stride + 1)
            seen = [bool(mask[n, c, t]) for t in core if 0 <= t < 12]
            assert bool(value.mask[n, c, o]) == (all(seen) if span >= 0 else any(seen))
            taps = [t for t in window if mask[n, c, t]]
            if value.mask[n, c, o] and taps:
                best = max(taps, key=lambda t: data[n, c, t])
                assert int(index.data[n, c, o]) == best
                assert float(value.data[n, c, o]) == float(data[n, c, best])


def tiled_data(kind, shape, dtype):
    """What tiles must not get wrong: ties, NaN, and the lowest value."""
    data = torch.randn(shape, dtype=dtype)
    if kind == "ties":
        return data.relu()
    if kind == "nan":
        return torch.where(torch.rand(shape) < 0.3, torch.nan, data)
    return torch.where(torch.rand(shape) < 0.6, -torch.inf, data.round()) if kind == "lowest" else data


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["scattered", "ties", "nan", "lowest"])
def test_tiles_are_the_plain_op(kind, dtype, monkeypatch):
    """Values, who gets the gradient, and its derivative."""
    torch.manual_seed(0)
    monkeypatch.setattr(settings, "RECORDED", 1)
    cases = [
        ((2, 2), (3, 4, 8, 10)),
        ((2, 3), (2, 3, 9, 11)),
        ((1, 4), (2, 3, 5, 9)),
        ((3, 1), (2, 7, 4)),
        ((5, 2), (2, 6, 4)),
    ]
    for kernel, shape in cases:
        data = tiled_data(kind, shape, dtype)
        plain, leaf = data.clone().requires_grad_(), data.clone().requires_grad_()
        x = mt.as_masked_tensor(data, torch.ones(shape, dtype=torch.bool)).requires_grad_()
        how = Payload.ANY, torch.ops.aten.max_pool2d.default, 2, [list(kernel), list(kernel), [0, 0], [1, 1]], False
        tiles = kernels.KERNELS["max_pool", "cpu"]
        assert (tiles.serves(leaf, pair_of(x).mask, *how) is None) == (max(kernel) <= 4)
        expected, y = F.max_pool2d(plain, kernel), F.max_pool2d(x, kernel)
        got = kernels.run("max_pool", pool.pool_filled, (leaf, pair_of(x).mask), *how)
        torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(pair_of(y).data, expected, rtol=0, atol=0, equal_nan=True)
        seed = torch.randn_like(expected)
        seed.view(-1)[0] = torch.inf
        expected.backward(seed)
        y.backward(seed)
        (again,) = torch.autograd.grad(got, leaf, seed.requires_grad_(), create_graph=True)
        for grad in (again, pair_of(x.grad).data):
            assert torch.equal(grad, plain.grad)
        if kind == "ties":
            (back,) = torch.autograd.grad(again, seed, torch.ones_like(again))
            assert torch.equal(back, torch.ones_like(seed))


def test_what_is_no_tile_is_an_error_of_torch(monkeypatch):
    monkeypatch.setattr(settings, "RECORDED", 1)
    wrong = [
        ((2, 2), (4, 4)),
        ((2, 2), (1, 2, 3, 4, 4)),
        ((2, 2), (2, 1, 4)),
        ((2, 0), (2, 4, 4)),
        ((2, 2, 2), (2, 4, 4)),
    ]
    for kernel, shape in wrong:
        for x in (torch.ones(shape), mt.masked_tensor(torch.ones(shape), torch.ones(shape, dtype=torch.bool))):
            with pytest.raises((RuntimeError, IndexError)):
                F.max_pool2d(x, kernel)


def test_masked_entries_in_tiles(monkeypatch):
    """The largest valid entry of each tile, and the gradient to it alone; of a tile that is all masked, nothing."""
    torch.manual_seed(0)
    monkeypatch.setattr(settings, "RECORDED", 1)
    for mask in (torch.rand(4, 3, 8, 6) < 0.5, (torch.rand(4, 1, 8, 6) < 0.5).expand(4, 3, 8, 6)):
        data = torch.where(mask, torch.randn(mask.shape, dtype=torch.float64), torch.nan)
        x = mt.as_masked_tensor(data, mask).requires_grad_()
        with meaning(convolution="any"):
            y = F.max_pool2d(x, 2)
        blocks = (
            torch.where(mask, data, -torch.inf).unflatten(3, (3, 2)).unflatten(2, (4, 2)).transpose(3, 4).flatten(4)
        )
        best, where = blocks.max(-1)
        assert torch.equal(pair_of(y).mask, best > -torch.inf)
        assert torch.equal(y.filled(-torch.inf), best)
        y.sum().backward()
        given = torch.zeros_like(blocks).scatter_(-1, where[..., None], (best > -torch.inf).double()[..., None])
        given = given.unflatten(4, (2, 2)).transpose(3, 4).flatten(4, 5).flatten(2, 3)
        assert torch.equal(pair_of(x.grad).data, given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_indices_never_name_a_masked_entry(dtype):
    """Valid entries that hold the lowest value win against masked ones."""
    low = -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min
    data, mask = torch.full((2, 2, 6, 6), low, dtype=dtype), random_case(2, 2, 6, 6)[1]
    with meaning(convolution="any"):
        value, index = F.max_pool2d(mt.as_masked_tensor(data, mask), 2, return_indices=True)
        chosen = mask.flatten(2).gather(2, pair_of(index).data.flatten(2)).view(value.shape)
        assert chosen[pair_of(value).mask].all()
    if dtype is not torch.int64:
        _, index = F.adaptive_max_pool2d(mt.as_masked_tensor(data, mask), 2, return_indices=True)
        chosen = mask.flatten(2).gather(2, pair_of(index).data.flatten(2)).view(2, 2, 2, 2)
        assert chosen[pair_of(index).mask].all()


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("output", [1, 2, 3])
def test_adaptive_pooling_over_the_valid_entries_of_each_region(dims, output):
    shape = (3, 2, *[5] * dims)
    data, mask = random_case(*shape, seed=dims)
    mask[0] = False
    rows = mask.flatten(2)[:, :, :1].view(3, 2, *[1] * dims)
    for pattern in (mask, mask[:, :1].expand(shape), rows.expand(shape)):
        clean = torch.where(pattern, data.nan_to_num(), torch.nan)
        leaf = mt.as_masked_tensor(clean, pattern).requires_grad_()
        mean = getattr(F, f"adaptive_avg_pool{dims}d")(leaf, output)
        top, index = getattr(F, f"adaptive_max_pool{dims}d")(leaf, output, return_indices=True)
        regions = [(i * 5 // output, -(-(i + 1) * 5 // output)) for i in range(output)]
        for n, c, *place in itertools.product(range(3), range(2), *[range(output)] * dims):
            cut = (n, c, *[slice(*regions[i]) for i in place])
            held = clean[cut][pattern[cut]]
            assert (
                bool(pair_of(mean).mask[(n, c, *place)]) == (len(held) > 0) == bool(pair_of(top).mask[(n, c, *place)])
            )
            if len(held):
                torch.testing.assert_close(pair_of(mean).data[(n, c, *place)], held.mean())
                best = pair_of(top).data[(n, c, *place)]
                assert best == held.max()
                assert clean[n, c].flatten()[pair_of(index).data[(n, c, *place)]] == best
        (mean.sum() + top.sum()).backward()
        grad = pair_of(leaf.grad).data
        assert torch.equal(grad[~pattern], torch.zeros(int((~pattern).sum())))
        torch.testing.assert_close(grad.sum(), 2.0 * pair_of(mean).mask.sum())


def test_global_average_ignores_padding():
    data, mask = random_case(4, 3, 7)
    y = pair_of(nn.AdaptiveAvgPool1d(1)(mt.as_masked_tensor(data, mask)))
    expected = torch.stack([torch.stack([data[n, c][mask[n, c]].mean() for c in range(3)]) for n in range(4)])
    torch.testing.assert_close(y.data[..., 0], expected)


def test_mean_over_valid_taps_under_any():
    data, mask = random_case(2, 2, 9)
    x = mt.as_masked_tensor(data, mask)
    with meaning(convolution="any"):
        y = pair_of(F.avg_pool1d(x, 3, 2, 1))
    for n, c, o in itertools.product(range(2), range(2), range(5)):
        taps = [t for t in range(2 * o - 1, 2 * o + 2) if 0 <= t < 9 and mask[n, c, t]]
        assert bool(y.mask[n, c, o]) == bool(taps)
        if taps:
            torch.testing.assert_close(y.data[n, c, o], data[n, c, taps].mean())


def test_all_true_is_the_plain_op():
    for module in [*pools(2), nn.FractionalMaxPool2d(2, 3), nn.AdaptiveAvgPool2d(3), nn.AdaptiveMaxPool2d(2)]:
        x = torch.randn(2, 3, 8, 8)
        for rule in ("core", "any", "all"):
            torch.manual_seed(0)
            expected = module(x)
            torch.manual_seed(0)
            with meaning(convolution=rule):
                y = pair_of(module(mt.as_masked_tensor(x, torch.ones_like(x, dtype=torch.bool))))
            if rule == "any" and isinstance(module, nn.AvgPool2d):
                continue  # the mean over the taps inside is another number at the edges
            assert y.mask.all(), (module, rule)
            torch.testing.assert_close(y.data, expected)


def test_fractional_pooling_takes_valid_taps_only():
    data, mask = random_case(2, 3, 9, 9)
    leaf = mt.as_masked_tensor(data, mask).requires_grad_()
    torch.manual_seed(0)
    value, index = F.fractional_max_pool2d(leaf, 2, output_size=4, return_indices=True)
    chosen = pair_of(index).data.flatten(2)
    valid = pair_of(value).mask.flatten(2)
    assert mask.flatten(2).gather(2, chosen)[valid].all()
    torch.testing.assert_close(data.flatten(2).gather(2, chosen)[valid], pair_of(value).data.flatten(2)[valid])
    value.sum().backward()
    assert torch.isfinite(pair_of(leaf.grad).data).all()


@pytest.mark.parametrize("dims", [2, 3])
def test_fractional_pooling_of_one_image_reads_the_first_samples(dims):
    op = getattr(F, f"fractional_max_pool{dims}d")
    x, samples = torch.rand(4, *[5] * dims), torch.rand(2, 4, dims)
    masked = [mt.as_masked_tensor(t, torch.ones(t.shape, dtype=torch.bool)) for t in (x, samples)]
    for given in ((masked[0], samples), (x, masked[1]), masked):
        value = op(given[0], 2, output_size=2, _random_samples=given[1])
        assert value.get_mask().all()
        torch.testing.assert_close(value.get_data(), op(x, 2, output_size=2, _random_samples=samples))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpool_padded_batch(dims):
    sizes, lengths = [6] * dims, [[6] * dims, [4] * dims, [2] * dims]
    mask, clean = prefix(lengths, *sizes), torch.randn(3, 2, *sizes)
    leaf = mt.as_masked_tensor(torch.where(mask, clean, torch.nan), mask).requires_grad_()
    pool, unpool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True), getattr(nn, f"MaxUnpool{dims}d")(2)
    y = unpool(*pool(leaf))
    got = pair_of(y)
    assert torch.equal(got.mask, mask.expand(got.mask.shape))
    for row, reach in enumerate(lengths):
        cut = (slice(row, row + 1), slice(None), *[slice(n) for n in reach])
        torch.testing.assert_close(got.data[cut], unpool(*pool(clean[cut])))
    y.square().sum().backward()
    assert torch.equal(pair_of(leaf.grad).data[~got.mask], torch.zeros(int((~got.mask).sum())))


def test_the_derivative_as_an_op():
    data, mask = random_case(2, 3, 6, 6)
    x = mt.as_masked_tensor(data, mask).requires_grad_()
    value, index = F.max_pool2d(x, 2, return_indices=True)
    value.sin().sum().backward()
    ahead = value.detach().cos()
    settings = ([2, 2], [2, 2], [0, 0], [1, 1], False)
    grad = torch.ops.aten.max_pool2d_with_indices_backward(ahead, x.detach(), *settings, index)
    assert torch.equal(pair_of(grad).mask, mask)
    torch.testing.assert_close(pair_of(grad).data, pair_of(x.grad).data)


test_law = laws("pool")


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("convolution", ["any", "all"])
def test_a_divisor_that_is_given_is_that_of_every_window(convolution: str, ceil_mode: bool, include: bool) -> None:
    mask = torch.rand(2, 3, 5, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    x = mt.as_masked_tensor(torch.randn(mask.shape).masked_fill(~mask, torch.nan), mask)
    for call, given in ((torch.nn.functional.avg_pool2d, x), (torch.nn.functional.avg_pool3d, x[:, None])):
        with mt.meaning(convolution=convolution):
            out = call(given, 2, 2, 1, ceil_mode, include, 3)
        torch.testing.assert_close(
            out.filled(0), call(given.filled(0), 2, 2, 1, ceil_mode, include, 3) * out.mask, equal_nan=True
        )
