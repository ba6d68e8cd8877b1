"""Indexing: masked indices, masked boolean keys, payloads out of range; no gradient to a row that was not named."""

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskedTensor
from masked_tensor.engine.tensor import pair_of
from masked_tensor.errors import MaskedValueError

from .laws import laws


def example(requires_grad: bool = False) -> MaskedTensor:
    mask = torch.tensor([[True, False, True], [False, True, True]])
    return mt.masked_tensor(torch.arange(6.0).view(2, 3), mask, requires_grad=requires_grad)


def with_masked(*values: int | None, payload: int = 10**9) -> MaskedTensor:
    """An index with ``payload`` where it is masked."""
    data = torch.tensor([payload if v is None else v for v in values])
    return mt.as_masked_tensor(data, torch.tensor([v is not None for v in values]))


@pytest.mark.parametrize("payload", [-100, 10**9, -1, 0])
def test_a_masked_index_gives_a_masked_result(payload) -> None:
    x, index = example(), with_masked(1, None, 0, payload=payload)
    assert x[index].tolist() == [[None, 4, 5], [None] * 3, [0, None, 2]]
    assert x[:, index].tolist() == [[None, None, 0], [4, None, None]]
    assert x[index, with_masked(2, 2, None)].tolist() == [5, None, None]
    assert x[[0, 1], with_masked(2, None)].tolist() == [2, None]
    assert x[index, None, 1:].tolist() == [[[4, 5]], [[None, None]], [[None, 2]]]
    assert x.index_select(0, index).tolist() == x[index].tolist()
    assert x.take(index).tolist() == [None, None, 0]
    wide = index.expand(2, 3)
    assert x.gather(1, wide).tolist() == [[None, None, 0], [4, None, None]]
    assert x.take_along_dim(wide, 1).tolist() == [[None, None, 0], [4, None, None]]
    table = torch.arange(4.0).view(2, 2)
    assert table[index].tolist() == [[2, 3], [None, None], [0, 1]]
    assert torch.nn.functional.one_hot(index, 2).tolist() == [[0, 1], [None, None], [1, 0]]


@pytest.mark.parametrize("payload", [-100, 10**9])
def test_no_gradient_goes_where_a_masked_entry_points(payload) -> None:
    table = torch.ones(2, 2, requires_grad=True)
    index = with_masked(1, None, None, payload=payload)
    for take in (
        lambda: table[index],
        lambda: table.index_select(0, index),
        lambda: table.gather(0, index[:, None].expand(3, 2)),
        lambda: torch.nn.functional.embedding(index, table),
    ):
        (grad,) = torch.autograd.grad(take().sum(), table)
        assert grad.tolist() == [[0, 0], [1, 1]]
    x = example(True)
    x[index].sum().backward()
    assert x.grad.tolist() == [[0, None, 0], [None, 1, 1]]


def test_a_masked_entry_of_a_boolean_key_selects_nothing() -> None:
    x = example()
    key = mt.as_masked_tensor(torch.tensor([True, True]), torch.tensor([False, True]))
    assert x[key].tolist() == [[None, 4, 5]]
    assert torch.arange(2)[key].tolist() == [1]
    assert x[x > 1].tolist() == [2, 4, 5]
    assert torch.masked_select(x, x > 1).tolist() == [2, 4, 5]
    assert x[x.get_mask()].tolist() == [0, 2, 4, 5]
    assert x[key, with_masked(None)].tolist() == [None]


def test_a_masked_key_of_no_dimensions_is_read_as_a_number() -> None:
    x = example()
    one, masked_one = mt.as_masked_tensor(torch.tensor(1), torch.tensor(True)), with_masked(None)[0]
    assert x[one].tolist() == x[1].tolist()
    assert x[..., one].tolist() == x[..., 1].tolist()
    assert x[one == 1].shape == (1, 2, 3)
    for key in (masked_one, (0, masked_one), mt.as_masked_tensor(torch.tensor(True), torch.tensor(False))):
        with pytest.raises(mt.MaskedValueError, match="the value is masked"):
            x[key]
    assert x[masked_one[None]].tolist() == [[None] * 3], "an index of one dimension reads a masked entry as masked"


def test_valid_indices_out_of_range_raise() -> None:
    x = example()
    for call in (
        lambda: x[with_masked(2, None)],
        lambda: x.index_select(0, with_masked(2, None)),
        lambda: x.take(with_masked(6, None)),
        lambda: x.gather(0, with_masked(2, None)[None]),
        lambda: x.index_copy(0, with_masked(2, None), torch.zeros(2, 3)),
        lambda: x.scatter(0, with_masked(2, None)[None], 1.0),
        lambda: x.index_fill(0, with_masked(2, None), 1.0),
    ):
        with pytest.raises((IndexError, RuntimeError), match=r"index|out of"):
            call()


def test_a_masked_entry_cannot_say_where_to_split() -> None:
    x = example()
    assert [p.shape[1] for p in x.tensor_split(with_masked(1, 2), 1)] == [1, 1, 1]
    with pytest.raises(MaskedValueError, match="tensor_split"):
        x.tensor_split(with_masked(1, None), 1)
    for output_size in (None, 2):
        with pytest.raises(MaskedValueError, match="repeat_interleave at the count"):
            x.repeat_interleave(with_masked(2, None), 0, output_size=output_size)
        with pytest.raises(MaskedValueError, match="repeat_interleave at the count"):
            torch.repeat_interleave(with_masked(2, None), output_size=output_size)
    places = torch.repeat_interleave(with_masked(2, 1))
    assert type(places) is mt.MaskedTensor
    assert places.tolist() == [0, 0, 1]
    assert x.repeat_interleave(with_masked(2, 1), 0).tolist() == x[torch.tensor([0, 0, 1])].tolist()


def test_masks_that_are_constant_stay_so() -> None:
    x = mt.masked_tensor(torch.randn(3, 4, 5), torch.tensor([True, False, True])[:, None, None])
    index = torch.tensor([0, 2])
    for result in (x[index], x.index_select(2, index), x[:, :, index], x[:, 1:], x.flip(2), x.repeat(1, 2, 1)):
        assert pair_of(result).mask.stride(2) == 0
    for result in (x.view(3, 20), x.reshape(3, 2, 10), torch.cat([x, x], 1), torch.stack([x, x])):
        assert pair_of(result).mask.stride(-1) == 0
        assert torch.equal(result.get_mask().any(-1), result.get_mask().all(-1))


@pytest.mark.parametrize("target", ["masked", "plain"])
@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8 is now deprecated")
def test_a_condition_of_bytes_is_one_of_bools(target: str) -> None:
    mask = torch.tensor([[True, False, True], [False, True, True]])
    x = mt.masked_tensor(torch.arange(6).view(2, 3), mask) if target == "masked" else torch.arange(6).view(2, 3)

    def keys(dtype: torch.dtype) -> list:
        where = mt.as_masked_tensor(torch.tensor([[1, 0, 1], [1, 1, 0]]).to(dtype), mask)
        return [where, (slice(None), where[1]), (0, where[1]), (slice(1, 2), where[0])]

    for ours, expected in zip(keys(torch.uint8), keys(torch.bool), strict=True):
        assert x[ours].tolist() == x[expected].tolist()
        y, z = x.clone(), x.clone()
        source = torch.arange(x[expected].shape.numel()).view(x[expected].shape) + 10
        y[ours], z[expected] = source, source
        assert y.tolist() == z.tolist()


def test_joins_take_plain_parts_as_valid() -> None:
    x, plain = example(), torch.full((1, 3), 7, dtype=torch.int32)
    assert torch.cat([x, plain]).tolist() == [[0, None, 2], [None, 4, 5], [7, 7, 7]]
    assert torch.cat([plain, x.double()]).dtype == torch.float64
    assert torch.vstack([plain, x]).tolist()[0] == [7, 7, 7]
    assert torch.stack([x[0], plain[0].float()]).tolist() == [[0, None, 2], [7, 7, 7]]
    assert torch.block_diag(x[:, :1], plain).tolist() == [[0, 0, 0, 0], [None, 0, 0, 0], [0, 7, 7, 7]]
    assert torch.cat([torch.empty(0), x]).tolist() == x.tolist()


test_law = laws("index")
