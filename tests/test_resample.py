"""Padding, interpolation, sampling and folding: padded batches against unpadded rows, masked entries against loops."""

import itertools
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

from .laws import laws
from .test_conv import prefix

PAYLOADS = [float("nan"), float("inf"), 1e30]


def boxes(function, dims, size, index=0, left=False, channels=2, lowest=3):
    """Runs ``function`` on a padded batch and on each unpadded row; compares values, masks and gradients."""
    generator = torch.Generator().manual_seed(index)
    lengths = torch.randint(lowest, size + 1, (3, dims), generator=generator).tolist()
    mask, clean = prefix(lengths, *[size] * dims), torch.randn(3, channels, *[size] * dims, generator=generator)
    clean = torch.where(mask, clean, PAYLOADS[index % 3])
    flips = tuple(range(2, 2 + dims)) if left else ()
    leaf = mt.as_masked_tensor(clean.flip(flips), mask.flip(flips)).requires_grad_()
    y = function(leaf)
    y.sin().sum().backward()
    got, grad = pair_of(y), pair_of(leaf.grad)
    assert got.mask.stride(1) == 0, "a mask that is constant over channels stays so"
    for row, reach in enumerate(lengths):
        cut = (slice(row, row + 1), slice(None), *[slice(n) for n in reach])
        box = clean[cut].flip(flips).clone().requires_grad_()
        expected = function(box)
        inside = prefix([expected.shape[2:]], *got.data.shape[2:])[0].expand(got.data.shape[1:])
        inside = inside.flip([f - 1 for f in flips])
        assert torch.equal(got.mask[row], inside), (reach, got.mask[row].int(), inside.int())
        torch.testing.assert_close(got.data[row][inside], expected.flatten())
        expected.sin().sum().backward()
        given = torch.zeros_like(clean[row : row + 1])
        given[(slice(None), *cut[1:])] = box.grad.flip(flips)
        torch.testing.assert_close(grad.data[row], given[0].flip([f - 1 for f in flips]))


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding_is_attached_to_the_rows_ends(dims, mode, left):
    for index, sides in enumerate([(1, 1), (2, 0), (0, 2), (2, 1), (-1, 2)]):
        pad = [*sides, 1, 2, 0, 1][: 2 * dims]
        value = {"value": 7.5} if mode == "constant" else {}
        boxes(partial(F.pad, pad=pad, mode=mode, **value), dims, 6, index, left)


def test_constant_padding_keeps_inner_masked_entries_and_crops():
    x = mt.masked_tensor([[1.0, 2.0, 3.0, 4.0, 5.0]], [[True, False, True, True, False]])
    assert F.pad(x, (1, 2), value=9.0).tolist() == [[9.0, 1.0, None, 3.0, 4.0, 9.0, 9.0, None]]
    assert F.pad(x, (-1, 1), value=9.0).tolist() == [[None, 3.0, 4.0, 9.0, None]]
    assert F.pad(x, (0, -2)).tolist() == [[1.0, None, None]], "cropped at the row's own end"
    empty = mt.masked_tensor([[1.0, 2.0]], [[False, False]])
    assert F.pad(empty, (1, 1)).tolist() == [[None] * 4]


def test_border_padding_of_a_row_with_masked_entries():
    x = mt.masked_tensor([[[1.0, 2.0, 3.0, 4.0, 5.0]]], [[[True, False, True, True, False]]])
    assert F.pad(x, (2, 2), mode="reflect").tolist() == [[[3.0, None, 1.0, None, 3.0, 4.0, 3.0, None, None]]]
    assert F.pad(x, (1, 2), mode="replicate").tolist() == [[[1.0, 1.0, None, 3.0, 4.0, 4.0, 4.0, None]]]
    assert F.pad(x, (1, 1), mode="circular").tolist() == [[[4.0, 1.0, None, 3.0, 4.0, 1.0, None]]]
    short = mt.masked_tensor([[[1.0, 2.0, 3.0, 4.0]]], [[[True, True, False, False]]])
    assert F.pad(short, (2, 0), mode="reflect").tolist() == [[[None, 2.0, 1.0, 2.0, None, None]]]
    with pytest.raises(RuntimeError, match=r"[Pp]adding size should be less than"):
        F.pad(short, (4, 0), mode="reflect")


@pytest.mark.parametrize("kind", ["ZeroPad2d", "ConstantPad2d", "ReflectionPad2d", "ReplicationPad2d", "CircularPad2d"])
def test_padding_modules_before_an_unpadded_convolution(kind):
    """Pad by 1 and convolve without padding: what the padded convolution gives."""
    torch.manual_seed(0)
    module = nn.Sequential(getattr(nn, kind)(1, *([3.0] if kind == "ConstantPad2d" else [])), nn.Conv2d(2, 3, 3))
    boxes(module, 2, 6)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolution_modules_with_their_own_padding(mode):
    torch.manual_seed(0)
    boxes(nn.Conv1d(2, 3, 3, padding=1, padding_mode=mode), 1, 7)
    boxes(nn.Conv2d(2, 3, 3, padding=1, stride=2, padding_mode=mode), 2, 7, 1)


@pytest.mark.parametrize("factor", [2.0, 3.0, 1.5, 0.5])
@pytest.mark.parametrize(
    ("mode", "dims"),
    [("nearest", 1), ("nearest", 2), ("nearest", 3), ("nearest-exact", 2), ("linear", 1), ("bilinear", 2),
     ("trilinear", 3), ("bicubic", 2)],
)  # fmt: skip
def test_interpolation_by_a_factor(mode, dims, factor):
    for index in range(3):
        boxes(lambda x: F.interpolate(x, scale_factor=factor, mode=mode), dims, 6, index)


@pytest.mark.parametrize("factor", [0.5, 0.7, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_aligned_corners_by_a_factor_are_those_of_each_row(mode, factor):
    dims = {"linear": 1, "trilinear": 3}.get(mode, 2)
    for index in range(3):
        boxes(lambda x: F.interpolate(x, scale_factor=factor, mode=mode, align_corners=True), dims, 6, index)
    boxes(nn.Upsample(scale_factor=factor, mode=mode, align_corners=True), dims, 6)


def test_aligned_corners_beside_masked_entries():
    x = mt.masked_tensor([[[1.0, None, 3.0, 4.0, None]]])
    y = F.interpolate(x, scale_factor=2, mode="linear", align_corners=True)
    assert y.get_mask()[0, 0].tolist() == [True, True, False, False, True, True, True, True, False, False]
    assert [y[0, 0, i].item() for i in (0, 1, 7)] == [1.0, 1.0, 4.0]
    image = torch.randint(0, 256, (1, 3, 4, 5), dtype=torch.uint8)
    padded = mt.masked_tensor(F.pad(image, (0, 2)), F.pad(torch.ones(1, 3, 4, 5, dtype=torch.bool), (0, 2)))
    y = F.interpolate(padded, scale_factor=2, mode="bilinear", align_corners=True)
    expected = F.interpolate(image.float(), scale_factor=2, mode="bilinear", align_corners=True).round()
    torch.testing.assert_close(y[..., :10].filled().float(), expected, atol=1, rtol=0)
    assert y.count() == expected.numel()


def test_aligned_corners_by_a_factor_with_antialias_are_refused_and_the_ways_out_run():
    rows = [torch.rand(1, 6, 6), torch.rand(1, 6, 4)]
    x = mt.from_sequences(rows, dim=3)
    how = {"scale_factor": 0.5, "mode": "bilinear", "antialias": True}
    with pytest.raises(mt.UnsupportedOpError, match=r"align_corners=False, or resample each row alone \(x.unpad"):
        F.interpolate(x, align_corners=True, **how)
    assert F.interpolate(x, align_corners=False, **how)[1].shape == (1, 3, 3)
    parts = [F.interpolate(row[None], align_corners=True, **how) for row in x.unpad(dim=3)]
    for part, row in zip(parts, rows, strict=True):
        torch.testing.assert_close(part[0], F.interpolate(row[None], align_corners=True, **how)[0])


def test_linear_weights_are_renormalised_over_valid_neighbours():
    x = mt.masked_tensor([[[1.0, 9.0, 3.0, 4.0]]], [[[True, False, True, True]]])
    y = F.interpolate(x, scale_factor=2, mode="linear")
    assert y.tolist() == [[[1.0, 1.0, None, None, 3.0, 3.25, 3.75, 4.0]]]
    y = F.interpolate(x, size=7, mode="linear", align_corners=True)
    assert y.tolist() == [[[1.0, None, None, 3.0, 3.0, 3.5, 4.0]]]


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_constant_image_with_masked_entries_stays_constant(mode, antialias):
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(4, 1, 9, 9, generator=generator) < 0.6
    x = mt.as_masked_tensor(torch.where(mask, 5.0, torch.nan).expand(4, 2, 9, 9), mask.expand(4, 2, 9, 9))
    x.requires_grad_()
    for size in (4, 13):
        y = F.interpolate(x, size=(size, size), mode=mode, antialias=antialias)
        got = pair_of(y)
        torch.testing.assert_close(got.data[got.mask], torch.full_like(got.data[got.mask], 5.0))
        y.square().sum().backward()
        assert torch.isfinite(pair_of(x.grad).data).all()


def test_all_true_is_the_plain_op():
    x, grid = torch.randn(2, 3, 6, 6), torch.rand(2, 5, 5, 2) * 2.4 - 1.2
    ones = mt.as_masked_tensor(x, torch.ones_like(x, dtype=torch.bool))
    for mode, align, antialias in itertools.product(("bilinear", "bicubic"), (False, True), (False, True)):
        settings = {"size": (4, 9), "mode": mode, "align_corners": align, "antialias": antialias}
        got = pair_of(F.interpolate(ones, **settings))
        assert got.mask.all()
        torch.testing.assert_close(got.data, F.interpolate(x, **settings))
    for mode, border, align in itertools.product(
        ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
    ):
        got = pair_of(F.grid_sample(ones, grid, mode, border, align))
        assert got.mask.all()
        torch.testing.assert_close(got.data, F.grid_sample(x, grid, mode, border, align))


def test_grid_sample_with_masked_entries_and_masked_coordinates():
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(2, 1, 6, 6, generator=generator) < 0.7
    data = torch.where(mask, torch.full((2, 3, 6, 6), 2.0), torch.nan)
    x = mt.as_masked_tensor(data, mask.expand(data.shape)).requires_grad_()
    coordinates = torch.rand(2, 5, 5, 2, generator=generator) * 1.6 - 0.8
    known = torch.rand(2, 5, 5, 1, generator=generator) < 0.8
    grid = mt.as_masked_tensor(torch.where(known, coordinates, torch.inf), known.expand(2, 5, 5, 2)).requires_grad_()
    y = F.grid_sample(x, grid, align_corners=False)
    got = pair_of(y)
    nearest = F.grid_sample(mask.float(), coordinates, mode="nearest", align_corners=False)
    assert torch.equal(got.mask, ((nearest > 0.5) & known.movedim(-1, 1)).expand(got.mask.shape))
    torch.testing.assert_close(got.data[got.mask], torch.full_like(got.data[got.mask], 2.0))
    y.square().sum().backward()
    assert torch.isfinite(pair_of(x.grad).data).all()
    assert torch.isfinite(pair_of(grid.grad).data).all()


def test_affine_grid():
    theta = mt.as_masked_tensor(torch.eye(2, 3)[None].clone(), torch.tensor([[[True] * 3, [True, False, True]]]))
    theta.requires_grad_()
    y = F.affine_grid(theta, [1, 1, 3, 3], align_corners=False)
    assert pair_of(y).mask[0, 0, 0].tolist() == [True, False]
    expected = F.affine_grid(torch.eye(2, 3)[None], [1, 1, 3, 3], align_corners=False)
    torch.testing.assert_close(pair_of(y).data[..., 0], expected[..., 0])
    y.sum().backward()
    assert pair_of(theta.grad).data[0, 1].tolist() == [0.0] * 3


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"), [(3, 1, 1, 1), (2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 0, 2)]
)
def test_unfold_product_fold_is_a_convolution(kernel, stride, padding, dilation):
    torch.manual_seed(0)
    weight = torch.randn(3, 2, kernel, kernel)
    mask = torch.rand(2, 1, 7, 7) < 0.7
    x = mt.as_masked_tensor(torch.where(mask, torch.randn(2, 2, 7, 7), torch.nan), mask.expand(2, 2, 7, 7))
    expected = pair_of(F.conv2d(x, weight, None, stride, padding, dilation))
    columns = F.unfold(x, kernel, dilation, padding, stride)
    got = pair_of(torch.matmul(weight.flatten(1), columns))
    assert torch.equal(got.mask, expected.mask.flatten(2))
    torch.testing.assert_close(got.data[got.mask], expected.data.flatten(2)[got.mask])
    turned = pair_of(F.fold(columns, (7, 7), kernel, dilation, padding, stride))
    identity = torch.eye(2 * kernel * kernel).view(2 * kernel * kernel, 2, kernel, kernel)
    extra = 7 - ((expected.data.shape[-1] - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1)
    grid = columns.view(2, -1, *expected.data.shape[2:])
    again = pair_of(F.conv_transpose2d(grid, identity, None, stride, padding, extra, 1, dilation))
    torch.testing.assert_close(turned.data[turned.mask], again.data[turned.mask])


def test_fold_of_a_padded_batch():
    boxes(lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1), 2, 6)
    boxes(lambda x: F.fold(F.unfold(x, 2, stride=2), [n // 2 * 2 for n in x.shape[2:]], 2, stride=2), 2, 6)


def test_channels_with_their_own_masks():
    mask = torch.tensor([True, False]).view(1, 2, 1, 1).expand(1, 2, 4, 4)
    x = mt.as_masked_tensor(torch.where(mask, torch.ones(1, 2, 4, 4), torch.nan), mask)
    assert pair_of(F.unfold(x, 2)).mask[0, :, 0].tolist() == [True] * 4 + [False] * 4
    ragged = mask & (torch.arange(4) < 3)
    x = mt.as_masked_tensor(torch.where(ragged, torch.ones(1, 2, 4, 4), torch.nan), ragged)
    assert pair_of(F.unfold(x, 2)).mask[0, :, 2].tolist() == [False] * 8
    assert pair_of(F.pad(x, (0, 1))).mask[0, :, 0].tolist() == [[True] * 4 + [False], [False] * 5]


def test_nearest_by_a_factor_promises_nothing_of_what_it_moved_beyond_a_row():
    y = F.interpolate(mt.masked_tensor([[[1.0, 2.0, 3.0, None]]]), scale_factor=0.5)
    assert y.tolist() == [[[1.0, None]]]
    assert y.sum().item() == 1.0


test_law = laws("resample")


@pytest.mark.parametrize("shape", [(2, 1, 4, 5), (1, 1, 4, 5), (2, 3, 4, 5), (2, 3, 1, 5), (2, 3, 4, 1)])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_of_any_memory_has_the_strides_of_the_plain_result(mode, antialias, shape):
    """Channels last of one channel, too, where the strides of the sizes of 1 are torch's own."""
    for order in itertools.permutations(range(4)):
        x = torch.rand([shape[i] for i in order]).permute([order.index(i) for i in range(4)])
        plain = F.interpolate(x, (7, 8), mode=mode, antialias=antialias).stride()
        for mask in (torch.rand(shape) < 0.7, torch.ones(shape[:2]).bool().view(*shape[:2], 1, 1).expand(shape)):
            result = F.interpolate(mt.as_masked_tensor(x, mask), (7, 8), mode=mode, antialias=antialias)
            assert result.stride() == plain, (order, mask.stride())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("align_corners", [False, True])
def test_positions_are_those_of_the_images_precision(dtype, align_corners):
    """Where half an entry's distance is rounded otherwise in float32 and in float64, validity follows the image's."""
    differs = 0
    for size, to in itertools.product(range(2, 40), range(2, 40)):
        resized = partial(F.interpolate, size=to, mode="linear", align_corners=align_corners)
        at = {kind: resized(torch.arange(size, dtype=kind).view(1, 1, -1)).flatten() for kind in (dtype, OTHER[dtype])}
        here, there = ((place + 0.5).floor().long() for place in at.values())
        if torch.equal(here, there):
            continue
        differs += 1
        entry = here[here != there][0]
        mask = torch.arange(size) == entry
        x = mt.masked_tensor(torch.ones(1, 1, size, dtype=dtype), mask.view(1, 1, -1))
        assert torch.equal(resized(x).get_mask().flatten(), mask[here]), (size, to)
    assert differs > 3


OTHER = {torch.float32: torch.float64, torch.float64: torch.float32}
