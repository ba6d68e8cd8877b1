"""Shape ops beyond the generated laws: made zeros, reinterpretation, masks reshaped without being spelled out."""

import itertools

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskedTensor, masks
from masked_tensor.engine.tensor import pair_of

from .helpers import database, harness
from .laws import PATTERNS, laws
from .oracles.shape import VIEWS

MASK = torch.tensor([[True, False, True], [False, True, True]])


def example() -> MaskedTensor:
    return mt.masked_tensor(torch.arange(6.0).view(2, 3), MASK)


def test_zeros_that_an_op_makes_are_valid() -> None:
    x = example()
    assert x.tril().tolist() == [[0, 0, 0], [None, 4, 0]]
    assert x.triu().tolist() == [[0, None, 2], [0, 4, 5]]
    assert torch.diag(x[0]).tolist() == [[0, 0, 0], [0, None, 0], [0, 0, 2]]


def test_the_gradient_formulas_of_views_put_their_zeros() -> None:
    row = example()[0]
    aten = torch.ops.aten
    assert aten.select_backward(row, (2, 3), 0, 1).tolist() == [[0, 0, 0], [0, None, 2]]
    assert aten.slice_backward(row, (5,), 0, 1, 4, 1).tolist() == [0, 0, None, 2, 0]
    assert aten.diagonal_backward(row, (3, 3), 0, 0, 1).tolist() == [[0, 0, 0], [0, None, 0], [0, 0, 2]]
    assert aten.trace_backward(row[1], (2, 2)).tolist() == [[None, 0], [0, None]]


@pytest.mark.parametrize("op", [torch.conj, torch.real, torch.resolve_conj, torch.resolve_neg])
def test_what_torch_gives_back_is_the_tensor_itself(op) -> None:
    x = example()
    plain = torch.ones(2)
    assert op(plain) is plain
    assert op(x) is x
    tracked = example().requires_grad_() * 1
    assert op(tracked) is tracked


def test_views_as_another_dtype() -> None:
    x = example()
    assert x.view(torch.int32).get_mask().tolist() == MASK.tolist()
    x.view(torch.int32)[0] = 0
    assert x.tolist() == [[0, 0, 0], [None, 4, 5]]


@pytest.mark.parametrize("payload", [float("nan"), 1e30])
def test_views_of_other_widths(payload) -> None:
    mask = torch.tensor([[True, False, True, True], [False, True, False, False]])
    x = mt.as_masked_tensor(torch.where(mask, torch.arange(8.0).view(2, 4), payload), mask)
    parts, wholes = x.view(torch.int16), x.view(torch.int64)
    assert parts.get_mask().tolist() == mask.repeat_interleave(2, 1).tolist()
    assert wholes.get_mask().tolist() == [[False, True], [False, False]]
    parts[0, 3] = 0
    assert x[0].tolist() == [0, None, 2, 3], "half a number is not a number"
    parts[0, 2] = 0
    assert x[0].tolist() == [0, 0, 2, 3]
    assert wholes.tolist()[0] == x.get_data().view(torch.int64)[0].tolist()
    wholes[1, 0] = 0
    assert x[1].tolist() == [0, 0, None, None]
    wholes[:, 1] = mt.as_masked_tensor(torch.tensor([7, 7]), torch.tensor([False, False]))
    assert x.tolist() == [[0, 0, None, None], [0, 0, None, None]]
    rows = mt.masked_tensor(torch.randn(3, 4), torch.tensor([[True], [False], [True]]))
    assert pair_of(rows.view(torch.int16)).mask.stride(1) == pair_of(rows.view(torch.int64)).mask.stride(1) == 0
    with pytest.raises(RuntimeError, match="must be divisible"):
        x[:, :3].view(torch.int64)


def test_a_masked_entry_with_a_valid_part() -> None:
    x = mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]])
    z = torch.view_as_complex(x)
    assert z.sum().tolist() == 3 + 4j, "the valid part of a masked entry is not 0"
    z.mul_(1j)
    assert x.tolist() == [[None, None], [-4, 3]], "it was overwritten with the masked entry"
    y = mt.masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]])
    y.view(torch.int64).add_(1)
    assert y[0].tolist() == [None, None]


def test_sizes_that_do_not_fit_raise_as_in_torch() -> None:
    x = example()
    for call in (
        lambda t: t.view(4),
        lambda t: t.expand(3, 3),
        lambda t: t.squeeze(7),
        lambda t: t.as_strided((9,), (1,)),
    ):
        with pytest.raises((RuntimeError, IndexError)) as plain:
            call(torch.zeros(2, 3))
        with pytest.raises(type(plain.value)):
            call(x)
    assert x.tolist() == example().tolist()


SHAPES = [((2, 3, 4), [(6, 4), (2, 12), (24,), (2, 3, 2, 2), (1, 2, 3, 4), (4, 6), (3, 8), (2, 1, 12), (-1,)])]
SHAPES += [((2, 1, 3), [(6,), (2, 3), (3, 2), (1, 6)]), ((1,), [(), (1, 1)]), ((), [(1,)]), ((2, 0, 3), [(0,), (3, 0)])]


@pytest.mark.parametrize(("shape", "news"), SHAPES, ids=str)
def test_masks_are_reshaped_without_being_spelled_out(shape, news) -> None:
    for constant in itertools.product([False, True], repeat=len(shape)):
        small = [1 if c else n for c, n in zip(constant, shape, strict=True)]
        mask = (torch.rand(small) < 0.5).expand(shape)
        for new in news:
            expected = mask.clone().reshape(new)
            result = masks.reshape(mask, expected.shape)
            assert torch.equal(result, expected)
            if all(constant) and mask.numel():
                assert masks.compact(result).numel() == 1


@pytest.mark.parametrize("split", [torch.split, torch.split_with_sizes, torch.unsafe_split_with_sizes])
def test_masked_entries_behind_sizes_that_were_counted_without_them(split) -> None:
    """They belong to the last part, so that the parts make the whole again; what leaves out a valid entry raises."""
    x = mt.masked_tensor([[1.0, None, 3.0, 4.0, None, None]], requires_grad=True)
    parts = split(x, [1, 3], 1)
    assert [p.tolist() for p in parts] == [[[1]], [[None, 3, 4, None, None]]]
    assert [p.tolist() for p in split(x, [4, 0], 1)] == [[[1, None, 3, 4]], [[None, None]]]
    torch.cat([parts[0], parts[1] * 2], 1).sum().backward()
    assert x.grad.tolist() == [[1, None, 2, 2, None, None]]
    for sizes in ([1, 2], [3], [7], [4, -1, 3], []):
        with pytest.raises(RuntimeError, match="split"):
            split(x.detach(), sizes, 1)


def test_scalars_and_empty_tensors() -> None:
    unknown, empty = (
        mt.masked_tensor(1.0, False),
        mt.masked_tensor(torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.bool)),
    )
    assert unknown.view(1).tolist() == [None]
    assert unknown.expand(2, 2).tolist() == [[None, None], [None, None]]
    assert empty.reshape(3, 0).shape == (3, 0)
    assert [p.shape for p in empty.unbind(1)] == [(0,)] * 3
    assert torch.cat([empty, example()]).tolist() == example().tolist()
    assert empty.t().flip(0).repeat(2, 1).shape == (6, 0)


@pytest.mark.parametrize("name", VIEWS.split())
def test_views_write_through(name: str) -> None:
    checked = 0
    for sample, pattern in itertools.product(database.samples(name), PATTERNS):
        case = harness.masked_case(sample, pattern, "first")
        if isinstance(case.args[0], harness.Masked):
            checked += harness.check_alias(case)
    assert checked, "no sample of the database makes a view that can be written to"


test_law = laws("shape")


def test_a_split_that_leaves_out_a_valid_entry_raises() -> None:
    """A split whose sizes are those of the valid entries gives what is masked to its last part."""
    x = mt.masked_tensor([1.0, 2.0, 3.0, None, None])
    assert [part.tolist() for part in x.split([2, 1])] == [[1, 2], [3, None, None]]
    for given, sizes in ((mt.masked_tensor([1.0, 2.0, 3.0, None, 5.0]), [2, 1]), (x, [2, 4]), (x, [2, 9])):
        with pytest.raises(RuntimeError, match="split_sizes to sum exactly to 5"):
            given.split(sizes)
