"""Embedding, bags and one_hot: masked ids with payloads out of every range, against the valid ids alone."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

from .helpers.harness import Masked, assert_same
from .laws import laws

ROWS, WIDTH = 6, 3
PAYLOADS = (-100, 10**9, 0, 5)
IDS = torch.tensor([[1, 4, 1, 3], [2, 2, 5, 1], [3, 0, 0, 2]])
MASK = torch.tensor([[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)


def masked_ids(payload: int, mask=MASK):
    return mt.as_masked_tensor(IDS.masked_fill(~mask, payload), mask)


def weights() -> tuple[torch.Tensor, torch.Tensor]:
    table = torch.randn(ROWS, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return table.clone().requires_grad_(), table.clone().requires_grad_()


def assert_same_gradient(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert type(actual) is torch.Tensor
    assert actual.layout is expected.layout
    if actual.is_sparse:
        assert set(actual._indices()[0].tolist()) == set(expected._indices()[0].tolist()), "another row is named"
    torch.testing.assert_close(actual.to_dense(), expected.to_dense())


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding_idx": 1},
        {"padding_idx": -1},
        {"scale_grad_by_freq": True},
        {"scale_grad_by_freq": True, "padding_idx": 2},
        {"sparse": True},
        {"sparse": True, "padding_idx": 3},
        {"max_norm": 0.5},
        {"max_norm": 0.5, "norm_type": 1.0, "sparse": True},
    ],
)
def test_embedding(options, payload):
    weight, reference = weights()
    out = F.embedding(masked_ids(payload), weight, **options)
    expected = F.embedding(IDS[MASK], reference, **options)
    pair = pair_of(out)
    assert torch.equal(pair.mask, MASK.unsqueeze(-1).expand(out.shape))
    assert pair.mask.stride(-1) == 0
    torch.testing.assert_close(pair.data[MASK], expected)
    assert torch.equal(weight.detach(), reference.detach()), "a row that only a payload names was rescaled"
    out.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradient(weight.grad, reference.grad)


@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"scale_grad_by_freq": True}])
def test_each_row_may_be_that_of_padding(options: dict[str, bool]) -> None:
    """Row 0 and the last, too: no gradient of theirs, whichever ids are masked."""
    generator = torch.Generator().manual_seed(5)
    for padding_idx in range(-ROWS, ROWS):
        mask = torch.rand(IDS.shape, generator=generator) < 0.7
        mask |= padding_idx % ROWS == IDS
        weight, reference = weights()
        F.embedding(masked_ids(0, mask), weight, padding_idx, **options).square().sum().backward()
        F.embedding(IDS[mask], reference, padding_idx, **options).square().sum().backward()
        torch.testing.assert_close(weight.grad.to_dense(), reference.grad.to_dense())


def test_double_backward_by_frequency():
    weight, reference = weights()
    for table, call in ((weight, masked_ids(10**9)), (reference, IDS[MASK])):
        out = F.embedding(call, table, scale_grad_by_freq=True).pow(3).sum()
        (gradient,) = torch.autograd.grad(out, table, create_graph=True)
        gradient.square().sum().backward()
    torch.testing.assert_close(weight.grad, reference.grad)


def test_a_masked_table_gives_masked_rows():
    weight, _ = weights()
    known = torch.rand(ROWS, WIDTH, generator=torch.Generator().manual_seed(1)) < 0.6
    table = mt.as_masked_tensor(weight.detach().masked_fill(~known, torch.nan), known).requires_grad_()
    out = F.embedding(masked_ids(-100), table)
    assert_same(out, Masked(weight.detach()[IDS], known[IDS] & MASK.unsqueeze(-1)), "masked table")
    out.sum().backward()
    count = torch.zeros(ROWS, dtype=torch.float64).index_add_(0, IDS[MASK], torch.ones(4, dtype=torch.float64))
    torch.testing.assert_close(pair_of(table.grad).data, count.unsqueeze(-1) * known)
    assert_same(F.embedding(IDS, table), Masked(weight.detach()[IDS], known[IDS]), "plain ids")


def test_max_norm_of_a_masked_table_counts_valid_entries():
    weight, _ = weights()
    known = torch.rand(ROWS, WIDTH, generator=torch.Generator().manual_seed(1)) < 0.6
    table = mt.masked_tensor(weight.detach(), known)
    F.embedding(masked_ids(5), table, max_norm=0.5)
    zeros = torch.where(known, weight.detach(), 0)
    F.embedding(IDS[MASK], zeros, max_norm=0.5)
    assert_same(table, Masked(zeros, known), "max_norm")


def test_an_empty_table_serves_masked_ids():
    nothing = torch.zeros_like(MASK)
    out = F.embedding(masked_ids(10**9, nothing), torch.zeros(0, WIDTH))
    assert out.shape == (3, 4, WIDTH)
    assert not pair_of(out).mask.any()


def test_embedding_module_under_vmap_and_without_gradient():
    module = nn.Embedding(ROWS, WIDTH, dtype=torch.float64)
    expected = Masked(module.weight.detach()[IDS], MASK.unsqueeze(-1).expand(3, 4, WIDTH))
    with torch.no_grad():
        assert_same(module(masked_ids(-100)), expected, "no_grad")
    with torch.inference_mode():
        assert_same(module(masked_ids(-100)), expected, "inference mode")
    weights = torch.stack([module.weight.detach(), module.weight.detach() * 2])
    out = torch.vmap(lambda w: F.embedding(masked_ids(10**9), w))(weights)
    assert_same(out, Masked(weights[:, IDS], MASK[None, ..., None].expand(out.shape)), "vmap")


# ---------------------------------------------------------------------------------------------------------- bags


def bags_of_valid(flat: torch.Tensor, mask: torch.Tensor, starts: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """The valid ids alone, and where the bags begin among them."""
    return flat[mask], torch.tensor([int(mask[:start].sum()) for start in starts])


OPTIONS = [{}, {"padding_idx": 1}, {"sparse": True}, {"sparse": True, "padding_idx": 3}, {"scale_grad_by_freq": True}]


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize(("mode", "options"), list(itertools.product(["sum", "mean", "max"], OPTIONS)))
def test_embedding_bag(mode, options, payload):
    if mode == "max" and options.keys() & {"sparse", "scale_grad_by_freq"}:
        pytest.skip("torch has no such form")
    weight, reference = weights()
    out = F.embedding_bag(masked_ids(payload), weight, mode=mode, **options)
    ids, starts = bags_of_valid(IDS.flatten(), MASK.flatten(), [0, 4, 8])
    expected = F.embedding_bag(ids, reference, starts, mode=mode, **options)
    kept = MASK & (options.get("padding_idx", -1) != IDS)
    assert_same(out, Masked(expected.detach(), kept.any(1, keepdim=True).expand(3, WIDTH)), mode)
    out.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradient(weight.grad, reference.grad)


@pytest.mark.parametrize("include_last_offset", [False, True])
@pytest.mark.parametrize("payload", PAYLOADS)
def test_embedding_bag_with_offsets_and_sample_weights(payload, include_last_offset):
    weight, reference = weights()
    flat, mask = IDS.flatten(), MASK.flatten()
    starts = [0, 2, 2, 7]
    known = torch.rand(12, generator=torch.Generator().manual_seed(2)) < 0.7
    samples = torch.randn(12, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    given = mt.as_masked_tensor(samples.masked_fill(~known, torch.nan), known).requires_grad_()
    ends = [12] if include_last_offset else []
    x = mt.as_masked_tensor(flat.masked_fill(~mask, payload), mask)
    out = F.embedding_bag(
        x,
        weight,
        torch.tensor(starts + ends),
        mode="sum",
        per_sample_weights=given,
        include_last_offset=include_last_offset,
    )
    both = mask & known
    ids, begins = bags_of_valid(flat, both, starts)
    plain = samples[both].clone().requires_grad_()
    expected = F.embedding_bag(ids, reference, begins, mode="sum", per_sample_weights=plain)
    sizes = torch.tensor([int(both[a:b].sum()) for a, b in zip(starts, [*starts[1:], 12], strict=True)])
    valid = (sizes > 0) | torch.tensor([False, True, False, False])  # the second bag has no entries
    assert_same(out, Masked(expected.detach(), valid.unsqueeze(-1).expand(4, WIDTH)), "offsets")
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(weight.grad, reference.grad)
    gradient = pair_of(given.grad)
    torch.testing.assert_close(gradient.data[both], plain.grad)
    assert (gradient.data[~both] == 0).all()


def test_embedding_bag_max_norm_leaves_other_rows_alone():
    weight, reference = weights()
    F.embedding_bag(masked_ids(5), weight, max_norm=0.5)
    F.embedding_bag(IDS[MASK], reference, torch.tensor([0]), max_norm=0.5)
    assert torch.equal(weight.detach(), reference.detach())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_of_a_masked_table(mode):
    weight, _ = weights()
    known = torch.rand(ROWS, WIDTH, generator=torch.Generator().manual_seed(1)) < 0.6
    table = mt.as_masked_tensor(weight.detach().masked_fill(~known, torch.nan), known).requires_grad_()
    out = F.embedding_bag(masked_ids(10**9), table, mode=mode)
    data, valid = torch.zeros(3, WIDTH, dtype=torch.float64), torch.zeros(3, WIDTH, dtype=torch.bool)
    for bag, column in itertools.product(range(3), range(WIDTH)):
        ids = [i for i in IDS[bag][MASK[bag]].tolist() if known[i, column]]
        if ids:
            values = weight.detach()[ids, column]
            data[bag, column] = {"sum": values.sum(), "mean": values.mean(), "max": values.max()}[mode]
            valid[bag, column] = True
    assert_same(out, Masked(data, valid), mode)
    out.sum().backward()
    gradient = pair_of(table.grad).data
    assert gradient.isfinite().all()
    assert (gradient[~known] == 0).all()


def test_masked_offsets_are_refused():
    offsets = mt.masked_tensor(torch.tensor([0, 2]), torch.tensor([True, False]))
    with pytest.raises(NotImplementedError, match="masked: offsets"):
        F.embedding_bag(torch.tensor([1, 2, 3]), torch.randn(5, 2), offsets)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_one_hot(payload):
    out = F.one_hot(masked_ids(payload), ROWS)
    assert_same(out, Masked(F.one_hot(IDS, ROWS), MASK.unsqueeze(-1).expand(3, 4, ROWS)), "one_hot")
    assert F.one_hot(masked_ids(payload)).shape[-1] == IDS[MASK].max() + 1


test_law = laws("embedding")
