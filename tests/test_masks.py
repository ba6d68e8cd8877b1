"""The mask algebra: right on every shape and stride, and compact."""

import itertools

import pytest
import torch

from masked_tensor import fill, masks, settings, shapes
from masked_tensor.api.copies import mask_copies
from masked_tensor.masks import bits, known
from masked_tensor.masks.reshaping import reshape_constant
from masked_tensor.masks.strides import lay_out_as

SHAPES = [
    (), (0,), (1,), (7,), (8,), (5000,), (4096,), (3, 0), (0, 3), (1, 1), (2, 3, 4), (70, 64), (70, 61), (300, 40),
    (3, 5, 999), (2, 4096), (600, 8), (600, 7), (520, 3, 8), (31, 248), (9, 2056), (1, 8 * 37 * 41),
]  # fmt: skip


def variants(shape):
    generator = torch.Generator().manual_seed(0)
    mask = torch.rand(shape, generator=generator) < 0.5
    yield mask
    yield torch.ones(shape, dtype=torch.bool)
    yield torch.zeros((), dtype=torch.bool).expand(shape)
    yield mask.mT.contiguous().mT if len(shape) > 1 else mask.flip(0) if shape else mask
    if len(shape) > 1:
        yield mask[..., :1].expand(shape)
        yield mask[:1].expand(shape)
        yield torch.cat([mask, mask], -1)[..., shape[-1] // 2 : shape[-1] // 2 + shape[-1]]
        yield torch.stack([mask, mask], -1)[..., 1]


def dims_of(ndim):
    yield None
    for n in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), n)
    if ndim:
        yield -1


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_count_any_all(shape, keepdim):
    for mask in variants(shape):
        for dim in dims_of(len(shape)):
            expected = torch.sum(mask, dim, keepdim=keepdim, dtype=torch.int64)
            count = masks.count(mask, dim, keepdim)
            assert count.dtype is torch.int64
            assert torch.equal(count, expected)
            all_dims = tuple(range(len(shape))) if dim is None else dim
            assert torch.equal(masks.any(mask, dim, keepdim), torch.any(mask, all_dims, keepdim))
            assert torch.equal(masks.all(mask, dim, keepdim), torch.all(mask, all_dims, keepdim))


def test_no_byte_overflows_when_everything_is_true():
    for shape in [(1 << 20,), (1024, 1024), (4, 300, 1000)]:
        mask = torch.ones(shape, dtype=torch.bool)
        for dim in dims_of(len(shape)):
            assert torch.equal(masks.count(mask, dim), torch.sum(mask, dim, dtype=torch.int64))


def test_reductions_stay_compact():
    mask = (torch.rand(3, 5, 1) < 0.5).expand(3, 5, 400)
    assert masks.any(mask, 2).stride() == (5, 1)
    assert masks.any(mask, 1).stride(1) == 0
    assert masks.any(mask, 1, True).stride(2) == 0
    assert masks.count(mask, 1).stride(1) == 0
    assert torch.equal(masks.count(mask, (1, 2)), mask.sum((1, 2)))


def test_both_stays_compact_and_does_nothing_for_the_same_mask():
    a = (torch.rand(3, 5, 1) < 0.5).expand(3, 5, 400)
    assert masks.logical_and(a, a) is a
    assert masks.logical_and(a, a.view_as(a)) is a
    b = (torch.rand(3, 1, 1) < 0.5).expand(3, 5, 400)
    assert masks.logical_and(a, b).stride(2) == 0
    assert torch.equal(masks.logical_and(a, b), a & b)
    row = torch.rand(400) < 0.5
    assert torch.equal(masks.logical_and(a, row), a & row)


def test_same_is_a_static_fact():
    a = torch.rand(4, 4) < 0.5
    assert masks.same_memory(a, a.view(4, 4))
    assert not masks.same_memory(a, a.clone())
    assert not masks.same_memory(a, a.t())
    assert not masks.same_memory(a[:2], a[2:])


def test_compact_fit_full_first():
    a = torch.rand(3, 1) < 0.5
    wide = masks.expand_to(a, (2, 3, 4))
    assert wide.shape == (2, 3, 4)
    assert masks.compact(wide).shape == (1, 3, 1)
    assert masks.compact(a) is a
    everywhere = masks.full((5, 6), torch.device("cpu"))
    assert everywhere.untyped_storage().nbytes() == 1
    assert everywhere.all()
    assert not masks.full((5, 6), torch.device("cpu"), False).any()
    assert masks.is_constant(wide, (0, 2))
    assert not masks.is_constant(wide, (0, 1))
    assert masks.first_slice(wide, [0, 2]).shape == (1, 3, 1)


@pytest.mark.parametrize(
    ("dim", "ndim", "expected"),
    [
        (None, 3, (0, 1, 2)),
        ((), 2, (0, 1)),
        (-1, 3, (2,)),
        ((2, -3), 3, (0, 2)),
        (0, 0, ()),
        (-1, 0, ()),
        (None, 0, ()),
    ],
)
def test_canonical_dims(dim, ndim, expected):
    assert shapes.canonical_dims(dim, ndim) == expected


@pytest.mark.parametrize(("dim", "ndim"), [(3, 3), (-4, 3), ((0, 5), 2), (1, 0)])
def test_canonical_dims_out_of_range(dim, ndim):
    with pytest.raises(IndexError, match="Dimension out of range"):
        shapes.canonical_dims(dim, ndim)


def test_canonical_dims_twice():
    with pytest.raises(RuntimeError, match="multiple times"):
        shapes.canonical_dims((0, -2), 2)


@pytest.mark.parametrize("shape", [(), (5,), (70, 64), (3, 5, 7), (2, 3, 4, 5), (1, 70, 1, 61), (0, 3)], ids=str)
def test_a_mask_is_laid_out_in_the_order_of_its_data(shape, monkeypatch):
    monkeypatch.setattr(settings, "FEW", 0)
    for counted in (0, 1 << 17):  # by way of bits, and not
        monkeypatch.setattr(settings, "COUNTED", counted)
        for mask in variants(shape):
            for order in itertools.permutations(range(len(shape))):
                data = torch.empty([shape[d] for d in order]).permute([order.index(d) for d in range(len(shape))])
                laid = lay_out_as(mask, data)
                assert torch.equal(laid, mask)
                small = masks.compact(laid).permute(order)
                assert small.numel() == masks.compact(mask).numel()
                falls = [stride for size, stride in zip(small.shape, small.stride(), strict=True) if size > 1]
                assert falls == sorted(falls, reverse=True)
                assert laid is mask or 0 not in data.shape


@pytest.mark.parametrize("shape", [(0, 3), (8, 1), (1, 8), (65, 64), (3, 40, 17), (2, 3, 16, 8)], ids=str)
def test_bits(shape):
    mask = torch.rand(shape) < 0.5
    assert torch.equal(bits.transpose(mask), mask.mT)
    assert bits.transpose(mask).is_contiguous()
    for part in (mask, mask.mT, mask[..., 1:], mask.flatten()[3:]):
        packed = bits.pack_bits(part)
        assert packed.numel() == -(-part.numel() // 8)
        assert torch.equal(bits.unpack_bits(packed, 0, part.numel()).view(part.shape), part)
        if part.numel() > 9:
            assert torch.equal(bits.unpack_bits(packed, 9, part.numel() - 9), part.flatten()[9:])


def test_reduced_shape():
    assert shapes.reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)
    assert shapes.reduced_shape((2, 3, 4), (0, 2), False) == (3,)


def test_lengths_to_mask():
    lengths = torch.tensor([[0, 2], [3, 1]])
    mask = masks.lengths_to_mask(lengths)
    assert mask.shape == (2, 2, 3)
    assert torch.equal(mask.sum(-1), lengths)
    assert masks.lengths_to_mask(lengths, 5).shape == (2, 2, 5)


@pytest.mark.parametrize("function", [masks.count, masks.any, masks.all])
def test_vmap(function):
    mask = torch.rand(3, 70, 64) < 0.5
    assert torch.equal(torch.vmap(lambda m: function(m, 1))(mask), function(mask, 2))
    assert torch.equal(torch.vmap(lambda m: function(m, 0), in_dims=2)(mask), function(mask, 0).t())


def test_a_dimension_of_size_one_may_have_any_stride():
    mask = torch.rand(64, 64) < 0.5
    odd = mask.unsqueeze(-1).transpose(1, 2)  # contiguous, of strides (64, 1, 1)
    for dim in (0, 1, 2, (1, 2), None):
        every = tuple(range(3)) if dim is None else dim
        assert torch.equal(masks.count(odd, dim), torch.sum(odd, every))
        assert torch.equal(masks.any(odd, dim), torch.any(odd, every))
        assert torch.equal(masks.all(odd, dim), torch.all(odd, every))


def test_two_shapes_broadcast_as_in_torch() -> None:
    sizes = [shape for n in range(4) for shape in itertools.product((0, 1, 2, 3), repeat=n)]
    for a, b in itertools.product(sizes, sizes):
        try:
            expected = tuple(torch.broadcast_shapes(a, b))
        except RuntimeError:
            with pytest.raises(RuntimeError):
                shapes.broadcast_two(a, b)
        else:
            assert shapes.broadcast_two(a, b) == expected


def test_a_reshaped_mask_is_the_same_mask_and_stays_constant() -> None:
    generator = torch.Generator().manual_seed(0)
    sizes = (1, 2, 3, 4, 6)
    copied = 0
    for _ in range(600):
        shape = [
            sizes[i]
            for i in torch.randint(5, (int(torch.randint(1, 5, (), generator=generator)),), generator=generator)
        ]
        small = [n if torch.rand((), generator=generator) < 0.5 else 1 for n in shape]
        mask = (torch.rand(small, generator=generator) < 0.5).expand(shape)
        if len(shape) > 1 and torch.rand((), generator=generator) < 0.3:
            mask = mask.transpose(0, 1)
        new, rest = [], mask.numel()
        while rest > 1:
            divisors = [n for n in range(1, rest + 1) if rest % n == 0]
            new.append(divisors[int(torch.randint(len(divisors), (), generator=generator))])
            rest //= new[-1]
        found = masks.reshape(mask, new)
        assert found.shape == tuple(new)
        assert torch.equal(found, mask.reshape(new))
        if 0 in mask.stride():
            step_by_step = reshape_constant(mask, tuple(new))
            assert found.stride() == step_by_step.stride()
            assert masks.same_memory(found, step_by_step) or found.data_ptr() != mask.data_ptr()
            copied += found.data_ptr() != mask.data_ptr()
    assert copied > 20


def test_masks_of_runs_are_joined_by_words():
    """Either one may be constant along any dimension, and lie anywhere in memory: large ones are joined by words."""
    g = torch.Generator().manual_seed(0)

    def mask(shape: list[int], start: int) -> torch.Tensor:
        small = [n if torch.rand((), generator=g) < 0.6 else 1 for n in shape]
        flat = torch.rand(start + torch.Size(small).numel(), generator=g) > 0.5
        return flat[start:].view(small).expand(shape)

    for shape in ([300, 40, 1], [300, 40, 2], [300, 10, 3], [40, 40, 8], [9, 50, 5, 8], [2000, 12], [9000]):
        assert torch.Size(shape).numel() >= settings.FEW
        for start in (0, 1, 8, 0, 3, 0):
            a, b = mask(shape, start), mask(shape, 0)
            versions = a._version, b._version
            found = masks.logical_and(a, b)
            assert (a._version, b._version) == versions  # nothing is written into a mask that others hold
            assert found.equal(a & b)
            assert found.equal(masks.logical_and(b, a))


def test_lengths_out_of_range_are_none_or_all_steps():
    for lengths in (torch.tensor([-3, 0, 1, 199, 200, 201, 999] * 9), torch.randint(0, 99, (9, 9), dtype=torch.uint8)):
        for size in (0, 1, 200):
            assert masks.lengths_to_mask(lengths, size).equal(torch.arange(size) < lengths[..., None])


def test_lengths_that_are_fractions_are_compared_as_they_are():
    for rows in (2, 4000):
        lengths = torch.tensor([2.5, 1.0]).repeat(rows // 2)
        assert torch.equal(masks.lengths_to_mask(lengths, 4), torch.arange(4) < lengths[:, None])


def test_the_memory_of_expanded_data_has_one_bool_for_each_element():
    for size in (2, 5):
        data = torch.arange(12.0).view(3, 4).t()[:, :1].expand(4, size)
        mask = torch.tensor([True, False, True, True])[:, None].expand(4, size)
        assert masks.storage_mask(mask, data).tolist() == [True, False, True, True]


def test_what_is_noted_of_a_mask_is_noted_of_it_alone():
    """Also where another mask has come to have the identity of one that is gone."""
    small = torch.rand(1, 7, generator=torch.Generator().manual_seed(0)) < 0.6
    for mask in (small.clone(), small.clone().expand(3, 7)):
        masks.note_facts(mask)
        assert known.number(mask) == int(mask.sum())
        assert known.any_along(mask, None, False).item()
        other = torch.zeros(3, 7).bool()
        assert known.number(other) is None
        known.KNOWN[id(other)] = known.KNOWN[id(mask)]
        assert known.number(other) is None
        assert known.any_along(other, None, False) is None
        del known.KNOWN[id(other)]


def test_large_copies_are_compared_where_their_words_lie():
    mask = torch.rand(8 * settings.FEW, generator=torch.Generator().manual_seed(0)) < 0.5
    shifted = torch.cat([mask[:8], mask])[8:]
    changed = mask.clone()
    changed[-1] ^= True
    assert mask_copies._equal(mask, shifted)
    assert not mask_copies._equal(mask, changed)
    assert not mask_copies._equal(mask, torch.cat([mask[:1], mask])[1:]), "not where a word would be read beside it"


def test_large_tensors_are_filled_by_masks_of_any_shape():
    data = torch.rand(600, 700, generator=torch.Generator().manual_seed(0))
    for mask in (data[:, :1] < 0.5, data[:1] < 0.5, data < 0.5, data.t()[:700, :600].t() < 0.5):
        for given in (data, data.t().contiguous().t(), data[:, ::2].repeat_interleave(2, 1)):
            for value in (0.0, -1.5):
                assert torch.equal(fill.fill_outside(given, mask, value), torch.where(mask, given, value))


def test_large_masks_that_are_constant_along_other_dimensions_meet():
    draw = torch.rand(120, 90, generator=torch.Generator().manual_seed(0)) < 0.5
    assert draw.numel() >= settings.FEW
    a, b = draw[..., None].expand(120, 90, 3), draw.roll(1, 0)[..., None].expand(120, 90, 3)
    for other in (b, draw[:1, :, None].expand(120, 90, 3)):
        assert torch.equal(masks.logical_and(a, other), a & other)
        assert masks.logical_and(a, other).stride(2) == 0
