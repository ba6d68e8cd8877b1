"""Batches put together and cut: ``cat``, ``join``, ``from_documents``, a fixed length, and ``shift``.

Each is compared with what lists of the sequences give.  NaN lies under every mask.
"""

import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import masked_tensor as mt
from masked_tensor.testing import poison

NAN = float("nan")
SIDES = ("right", "left")


def sequences(lengths: list[int], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [(torch.arange(2 * n).view(n, 2) + 10 * k + 1).to(dtype) for k, n in enumerate(lengths)]


def batch(parts: list[Tensor], packed: bool, **options: object) -> mt.MaskedTensor:
    x = mt.from_sequences(parts, **options)  # type: ignore[arg-type]
    x = poison(x, NAN) if x.dtype.is_floating_point else x
    return x.packed() if packed else x


def same(x: list[Tensor], y: list[Tensor]) -> None:
    assert [a.tolist() for a in x] == [b.tolist() for b in y]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32, torch.bool, torch.complex64])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("packed", [False, True])
def test_cat_holds_the_sequences_of_all_batches(packed: bool, side: str, dtype: torch.dtype) -> None:
    first, second = sequences([3, 0, 1], dtype), sequences([5, 2], dtype)
    x = mt.cat([batch(p, packed, padding_side=side) for p in (first, second)], padding_side=side)
    assert (x.is_packed, x.dtype, x.shape) == (packed, dtype, (5, 5, 2))
    expected = mt.from_sequences([*first, *second], padding_side=side)
    assert x.mask.equal(expected.mask)
    assert x.filled(0).equal(expected.filled(0))


@pytest.mark.filterwarnings("ignore:.* joins valid features to masked steps")
def test_cat_pads_every_other_dimension() -> None:
    a, b = torch.ones(1, 2, 3), mt.masked_tensor(torch.zeros(2, 4, 1), torch.tensor([True, False, True, True])[:, None])
    x = mt.cat([a, b])
    assert x.shape == (3, 4, 3)
    assert x.mask[0].equal(torch.tensor([[True] * 3] * 2 + [[False] * 3] * 2))
    assert x.mask[1].equal(torch.tensor([[k, False, False] for k in (True, False, True, True)]))
    assert mt.cat([a, b], axis=-1).shape == (2, 4, 4)
    assert mt.cat([torch.zeros(0), torch.ones(2)]).tolist() == [1.0, 1.0]
    assert mt.cat([[1.0, None], torch.ones(1, dtype=torch.float64)]).dtype is torch.float64


@pytest.mark.parametrize("packed", [False, True])
def test_gradients_of_cat_and_join_reach_the_sequences(packed: bool) -> None:
    parts = [p.requires_grad_() for p in sequences([2, 1, 1, 3])]
    a, b = (mt.from_sequences(p, packed=packed) for p in (parts[:2], parts[2:]))
    weights = [torch.full_like(p, k + 1.0) for k, p in enumerate(parts)]
    for x, order in ((mt.cat([a, b]), (0, 1, 2, 3)), (mt.join(a, b), (0, 2, 1, 3))):
        weight = mt.from_sequences(
            [weights[k] for k in order]
            if len(x) == 4
            else [torch.cat([weights[0], weights[2]]), torch.cat([weights[1], weights[3]])]
        )
        found = torch.autograd.grad((x * weight).sum(), parts, retain_graph=True)
        same(list(found), weights)


@pytest.mark.parametrize("where", SIDES)
@pytest.mark.parametrize("packed", [False, True])
def test_join_is_a_sequence_after_the_other(packed: bool, where: str) -> None:
    lists = [sequences([3, 0, 1]), sequences([1, 2, 0]), sequences([2, 4, 0])]
    given = [batch(p, packed, padding_side=side) for p, side in zip(lists, ("left", "right", "left"), strict=True)]
    x = mt.join(*given, padding_side=where)
    expected = [torch.cat(parts) for parts in zip(*lists, strict=True)]
    assert x.is_packed == packed
    assert x.mask.equal(mt.from_sequences(expected, padding_side=where).mask)
    same(x.unpad(), expected)
    features = mt.join(*(g.unpacked().movedim(1, 2) for g in given), axis=2)
    same([s.T for s in features.unpad(dim=2)], expected)


def test_join_keeps_missing_steps_of_batches_that_know_their_lengths() -> None:
    a = mt.from_sequences([mt.masked_tensor([1.0, None]), torch.ones(1)], packed=True)
    b = mt.from_sequences([mt.masked_tensor([None, 2.0]), torch.ones(0)], packed=True)
    x = mt.join(a, b)
    assert x.tolist() == [[1.0, None, None, 2.0], [1.0, None, None, None]]
    assert x.lengths().tolist() == [4, 1]
    with pytest.raises(ValueError, match=r"x\.packed\(lengths=\[\.\.\.\]\)"):
        mt.join(mt.masked_tensor([[1.0, None, 2.0]]), a[:1])
    with pytest.raises(ValueError, match="may differ along dimension 1 alone"):
        mt.join(a, torch.ones(3, 2))
    with pytest.raises(TypeError, match="expects masked tensors, got list"):
        mt.join(a, [1.0])  # type: ignore[arg-type]


def test_torchs_cat_and_stack_of_other_lengths() -> None:
    a, b = (mt.from_sequences(sequences(n)) for n in ([3, 1], [2, 4]))
    with pytest.raises(RuntimeError, match=r"Sizes of tensors must match .*masked_tensor\.cat\(tensors, dim=0\) pads"):
        torch.cat([a, b])
    with pytest.raises(RuntimeError, match=r"equal size.*masked_tensor\.cat\(\[t\.unsqueeze\(1\) for t in tensors\]"):
        torch.stack([a, b], 1)
    with pytest.raises(RuntimeError, match=r"Tensors must have same number of dimensions: got 3 and 2$"):
        torch.cat([a, b[0]])
    joined = torch.cat([a.packed(), b.packed()])
    assert joined.is_packed
    assert joined.tolist() == mt.cat([a, b]).tolist()
    for dim in (0, 1, 3):
        stacked = torch.stack([a.packed(), b.packed()], dim)
        assert stacked.tolist() == mt.cat([a.unsqueeze(dim), b.unsqueeze(dim)], dim).tolist()


def test_packed_batches_of_one_length_stay_packed_in_cat() -> None:
    a, b = (mt.from_sequences(sequences([3, 1]), packed=p) for p in (True, False))
    for x in (torch.cat([a, a]), torch.cat([a, b]), mt.cat([a, a])):
        assert x.is_packed
        assert x.tolist() == torch.cat([b, b]).tolist()
    assert torch.cat([a, a]).lengths().tolist() == [3, 1, 3, 1]
    assert mt.cat([a, a], 2).is_packed


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_a_fixed_length_and_a_multiple(side: str, packed: bool) -> None:
    parts = sequences([3, 1])
    for options, steps in (({"length": 5}, 5), ({"pad_to_multiple_of": 4}, 4), ({"pad_to_multiple_of": 3}, 3)):
        x = mt.from_sequences(parts, padding_side=side, packed=packed, **options)  # type: ignore[arg-type]
        assert (x.shape, x.is_packed) == ((2, steps, 2), packed)
        assert x.mask[..., 0].equal(mt.lengths_to_mask([3, 1], steps).flip(1) if side == "left" else x.mask[..., 0])
        same(x.unpad(), parts)
        y = mt.collate([{"x": p, "y": k} for k, p in enumerate(parts)], padding_side=side, packed=packed, **options)
        assert y["x"].tolist() == x.tolist()
        assert y["y"].tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"a sequence of 3 steps does not fit length=2; cut it first"):
        mt.from_sequences(parts, length=2, packed=packed)


def test_a_length_for_each_key_and_of_other_sources() -> None:
    samples = [{"ids": torch.ones(n), "image": torch.ones(3, n)} for n in (2, 1)]
    y = mt.collate(samples, length={"ids": 8})
    assert (y["ids"].shape, y["image"].shape) == ((2, 8), (2, 3, 2))
    with pytest.raises(TypeError, match="length must be an int, got dict"):
        mt.collate([torch.ones(2)], length={"ids": 8})
    with pytest.raises(ValueError, match="give length= or pad_to_multiple_of=, not both"):
        mt.pad_sequence([torch.ones(2)], length=8, pad_to_multiple_of=8)
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    for packed in (False, True):
        assert mt.from_nested(nested, length=4, packed=packed).shape == (2, 4, 3)
        steps = torch.nn.utils.rnn.pack_sequence([torch.ones(2, 3), torch.ones(1, 3)])
        assert mt.from_nested(steps, pad_to_multiple_of=8, packed=packed).lengths().tolist() == [2, 1]
    assert mt.from_nested(nested.transpose(1, 2), length=4).shape == (2, 3, 4)
    assert mt.pad_sequence([torch.ones(2), torch.ones(1)], length=3).shape == (3, 2)


def test_no_sequences_are_an_empty_batch() -> None:
    for x, shape in (
        (mt.from_sequences([]), (0, 0)),
        (mt.from_sequences([], length=4, packed=True), (0, 4)),
        (mt.from_sequences([], dim=2, length=4), (0, 0, 4)),
        (mt.pad_sequence([]), (0, 0)),
    ):
        assert x.shape == shape
        assert x.unpad(dim=x.dim() - 1) == []
    assert mt.cat([mt.from_sequences([]), mt.from_sequences([torch.ones(2)])]).tolist() == [[1.0, 1.0]]


def test_documents_are_the_blocks_of_attention() -> None:
    positions = torch.tensor([[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3]])
    segments = mt.masked_tensor([[7, 7, 2, 2, 2, None], [3, 4, 4, None, 4, 4]])
    rows = torch.randn(2, 6, 2, 4, dtype=torch.float64, requires_grad=True)
    for ids in ({"position_ids": positions}, {"segment_ids": segments}):
        seen = mt.document_mask(**ids)  # type: ignore[arg-type]
        exists = seen[:, 0].any(2)
        x = rows.transpose(1, 2)
        whole = F.scaled_dot_product_attention(x, x, x, seen).transpose(1, 2)
        for packed in (False, True):
            d = mt.from_documents(rows, packed=packed, **ids).transpose(1, 2)  # type: ignore[arg-type]
            alone = F.scaled_dot_product_attention(d, d, d).transpose(1, 2)
            torch.testing.assert_close(torch.cat(alone.unpad()), whole[exists])
            ours, theirs = (
                torch.autograd.grad(y.sin().sum(), rows, retain_graph=True)[0] for y in (alone, whole[exists])
            )
            torch.testing.assert_close(ours, theirs)
    assert mt.from_documents(rows, segments).lengths().tolist() == [2, 3, 1, 2, 2]
    assert mt.from_documents(rows, position_ids=positions, padding_side="left", length=8).shape == (5, 8, 2, 4)
    causal = mt.document_mask(positions, is_causal=True)
    assert causal.equal(mt.document_mask(positions).tril())
    assert mt.document_mask([5, 5, 1]).tolist() == [[[True, True, False], [True, True, False], [False, False, True]]]


def test_documents_leave_out_padding_and_keep_missing_entries() -> None:
    rows = poison(mt.masked_tensor([[[1.0, None], [2.0, 3.0], [None, None], [4.0, 5.0]]]), NAN)
    x = mt.from_documents(rows, segment_ids=[[0, 0, 0, 1]])
    assert x.tolist() == [[[1.0, None], [2.0, 3.0]], [[4.0, 5.0], [None, None]]]
    kept = mt.from_documents(rows, segment_ids=mt.masked_tensor([[0, 0, 0, None]]), packed=True)
    assert kept.lengths().tolist() == [3]
    assert kept.tolist() == [[[1.0, None], [2.0, 3.0], [None, None]]]
    assert mt.from_documents(rows, mt.masked_tensor([[None] * 4]).long()).shape == (0, 0, 2)
    for wrong, error in (
        (lambda: mt.from_documents(rows), "either segment_ids or position_ids"),
        (lambda: mt.from_documents(rows, [[0.5] * 4]), "ids must be integers, got float32"),
        (lambda: mt.from_documents(rows, [[0] * 3]), "one id for each step"),
        (lambda: mt.document_mask(torch.zeros(1, 1, 1).long()), r"shape \(B, L\), or \(L,\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=error):
            wrong()


@pytest.mark.parametrize("periods", [-7, -2, -1, 0, 1, 2, 7])
def test_shift_is_that_of_pandas(periods: int) -> None:
    x = poison(mt.masked_tensor([[1.0, None], [None, 2.0], [3.0, 4.0], [5.0, None]]), NAN)
    frame = pd.DataFrame(x.tolist(), dtype="float64")
    expected = frame.shift(periods)
    ours = mt.shift(x, periods, 0)
    torch.testing.assert_close(ours.filled(NAN).double(), torch.tensor(expected.to_numpy()), equal_nan=True)
    by_mask = mt.shift(x.get_data(), periods, axis=0, mask=x.mask)
    torch.testing.assert_close(by_mask, ours.filled(NAN), equal_nan=True)
    assert mt.shift(torch.arange(4), periods, fill_value=-1).dtype is torch.int64


@pytest.mark.parametrize("packed", [False, True])
def test_shift_moves_nothing_into_padding(packed: bool) -> None:
    parts = sequences([3, 1])
    for side in SIDES:
        x = batch(parts, packed, padding_side=side)
        with pytest.raises(ValueError, match="Pass lengths="):
            mt.shift(x, 1, 1)
        for periods in (-1, 1, 2):
            ours = mt.shift(x, periods, 1, lengths=[3, 1], padding_side=side)
            alone = [mt.shift(mt.masked_tensor(p), periods, 0) for p in parts]
            assert ours.tolist() == mt.from_sequences(alone, padding_side=side).tolist()


def test_gradients_and_compiled_code_of_shift() -> None:
    data = torch.tensor([[1.0, NAN, 3.0]], requires_grad=True)
    mask = ~data.isnan()
    (grad,) = torch.autograd.grad(mt.shift(mt.as_masked_tensor(data, mask), 2, 1, lengths="full").sum(), data)
    assert grad.tolist() == [[1.0, 0.0, 0.0]]
    compiled = torch.compile(lambda d, m: mt.shift(d, 1, 1, mask=m, lengths="full"), backend="aot_eager")
    torch.testing.assert_close(compiled(data, mask), torch.tensor([[NAN, 1.0, NAN]]), equal_nan=True)


WIDE = torch.tensor([[True, False, True], [False, False, True]])
FORMS = {
    "sum": lambda x, m: mt.sum(x, 1, mask=m),
    "mean of all": lambda x, m: mt.mean(x, mask=m),
    "amax": lambda x, m: mt.amax(x, -1, mask=m),
    "var": lambda x, m: mt.var(x, 1, correction=0, mask=m),
    "median": lambda x, m: mt.median(x, 1, mask=m).values,
    "softmax": lambda x, m: mt.softmax(x, 1, mask=m),
    "cumsum": lambda x, m: mt.cumsum(x, 1, mask=m),
    "normalize": lambda x, m: mt.normalize(x, dim=1, mask=m),
    "argmin": lambda x, m: mt.argmin(x, 1, mask=m),
    "count": lambda x, m: mt.count(x, 1, mask=m),
    "count_nonzero": lambda x, m: mt.count_nonzero(x, 1, mask=m),
    "unique": lambda x, m: mt.unique(x, mask=m),
    "mse_loss": lambda x, m: mt.mse_loss(x, torch.ones(2, 3), mask=m),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_mask_that_is_wider_expands_the_input(name: str) -> None:
    for data in (torch.tensor([1.0, NAN, 3.0]), torch.tensor([[2.0]])):
        for x in (data.requires_grad_(), mt.as_masked_tensor(data, ~data.isnan())):
            wide = x.expand(2, 3)
            ours, theirs = FORMS[name](x, WIDE), FORMS[name](wide, WIDE)
            torch.testing.assert_close(ours, theirs)
            if ours.is_floating_point() and name != "unique":
                gradients = (torch.autograd.grad(y.sum(), data, allow_unused=True)[0] for y in (ours, theirs))
                torch.testing.assert_close(*gradients)
    with pytest.raises(ValueError, match="mask"):
        FORMS[name](torch.ones(4), WIDE)


def test_a_sequence_without_steps_is_no_packed_sequence() -> None:
    for x in (mt.masked_tensor([[1.0, 2.0], [None, None]]), batch(sequences([2, 0]), True)):
        for sort in (True, False):
            with pytest.raises(RuntimeError, match=r"\[1\] here; leave them out: x\[x\.lengths\(\) > 0\]"):
                x.to_packed_sequence(enforce_sorted=sort)
        assert x[x.lengths() > 0].to_packed_sequence().batch_sizes.tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_names_the_call_that_hides_keys() -> None:
    x = mt.as_masked_tensor(torch.randn(1, 2, 8, 16), torch.rand(1, 1, 8, 1) > 0.3)
    errors = NotImplementedError, torch._dynamo.exc.Unsupported  # which holds it
    with pytest.raises(errors, match=r"does not support masked tensors; use torch\.nn\.functional\.scaled_dot_product"):
        torch.compile(flex_attention, backend="eager", fullgraph=True)(x, x, x)
    plain, valid = torch.randn(1, 2, 8, 16), mt.lengths_to_mask([5], 8)
    block = create_block_mask(lambda b, h, i, j: valid[b, j], 1, None, 8, 8, device="cpu")
    ours = F.scaled_dot_product_attention(*(mt.as_masked_tensor(plain, valid[:, None, :, None]),) * 3)
    theirs = flex_attention(plain, plain, plain, block_mask=block)
    torch.testing.assert_close(ours.filled(0)[:, :, :5], theirs[:, :, :5])


def test_methods_of_ours_take_axis() -> None:
    x = mt.from_lengths(torch.ones(2, 3), [3, 1])
    assert x.count(axis=1, keepdims=True).tolist() == [[3], [1]]
    assert x.lengths(axis=1).tolist() == [3, 1]
    assert [len(row) for row in x.unpad(axis=1)] == [3, 1]
    assert x.to_nested(axis=1).offsets().tolist() == [0, 3, 4]
    assert mt.to_right(x, axis=1).tolist() == [[1.0] * 3, [None, None, 1.0]]
    assert mt.count(x=x, axis=0).tolist() == [2, 1, 1]


def test_count_nonzero_of_nothing_is_zero() -> None:
    x = poison(mt.masked_tensor([[None, None], [1.0, 0.0]]), NAN)
    full = [0, 1]
    for y in (x, x.packed(), mt.as_masked_tensor(torch.tensor([[0.0, 0.0], [5.0, 0.0]]).to_sparse())):
        for found in (y.count_nonzero(1), mt.count_nonzero(y, 1), torch.count_nonzero(y, dim=[1])):
            assert found.to_dense().tolist() == full
        assert y.count_nonzero().item() == 1
    assert mt.masked_tensor([None]).count_nonzero().item() == 0
    assert mt.count_nonzero(x, 1, min_count=1).tolist() == [None, 1]
    batch = mt.from_lengths(torch.ones(2, 3, 4), [3, 1]).packed()
    assert batch.count_nonzero(2).tolist() == [[4, 4, 4], [4, 0, 0]]
