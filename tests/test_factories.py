"""Fresh tensors that masked results are written into: what ``new_*`` makes, and torch's own code that relies on it."""

import pytest
import torch
from torch import nn

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of

NAN = float("nan")


def example(requires_grad: bool = False) -> mt.MaskedTensor:
    x = mt.as_masked_tensor(torch.tensor([[1.0, 2.0], [3.0, NAN]]), torch.tensor([[True, True], [True, False]]))
    return x.requires_grad_(requires_grad)


NEW = {
    "new_zeros": lambda x: x.new_zeros(2, 3),
    "new_ones": lambda x: x.new_ones((2, 3), dtype=torch.float64),
    "new_full": lambda x: x.new_full((2, 3), 7.0),
    "new_empty": lambda x: x.new_empty(2, 3),
    "new_empty_strided": lambda x: x.new_empty_strided((2, 3), (1, 2)),
    "new": lambda x: x.new(2, 3),
    "new of a size": lambda x: x.new(torch.Size([2, 3])),
}


CASES = [(example(), make) for make in NEW.values()]
CASES += [(mt.as_masked_tensor(torch.eye(3).to_sparse()), make) for name, make in NEW.items() if name[-1] in "sly"]


@pytest.mark.parametrize(("x", "make"), CASES)
def test_new_ones_are_valid_everywhere(x, make) -> None:
    fresh = make(x)
    expected = make(torch.zeros(2))
    assert type(fresh) is mt.MaskedTensor
    assert (fresh.shape, fresh.dtype, fresh.stride()) == (expected.shape, expected.dtype, expected.stride())
    assert pair_of(fresh).mask.all()
    assert pair_of(fresh).mask.untyped_storage().nbytes() == 1  # a mask of one byte until something is written


def test_data_gives_a_plain_tensor() -> None:
    assert type(example().new_tensor([1.0])) is torch.Tensor
    assert type(example().new([1.0, 2.0])) is torch.Tensor


@pytest.mark.parametrize("make", ["new_zeros", "new_empty"])
def test_masked_results_are_written_into_them(make) -> None:
    x = example(requires_grad=True)
    y = getattr(x, make)(2, 3)
    y[:, :2] = x * 2
    y[:, 2] = x[:, 0].exp()
    assert y.tolist()[1][:2] == [6.0, None]
    y.sin().sum().backward()
    valid = torch.tensor([1.0, 2.0, 3.0])
    expected = 2 * (2 * valid).cos() + torch.tensor([1.0, 0, 1]) * valid.exp().cos() * valid.exp()
    torch.testing.assert_close(pair_of(x.grad).data[pair_of(x.grad).mask], expected)
    assert pair_of(x.grad).data[1, 1] == 0


def test_the_inverse_of_a_permutation_with_masked_entries_has_masked_entries() -> None:
    """How experts of a mixture put their rows back; an index that was never written would be out of range."""
    scores = mt.masked_tensor([3, None, 1, 2, None])
    order = scores.argsort()
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(5)
    assert inverse.tolist() == [2, None, 0, 1, None]
    assert scores[order][inverse].tolist() == scores.tolist()


def test_torch_pads_sequences_with_valid_constants() -> None:
    x = example(requires_grad=True)
    for side, expected in (("right", [[1, 2], [3, 5]]), ("left", [[1, 2], [5, 3]])):
        padded = nn.utils.rnn.pad_sequence([x[0], x[1, :1]], True, padding_value=5.0, padding_side=side)
        assert padded.tolist() == expected
    padded = nn.utils.rnn.pad_sequence([x[1], torch.ones(3)])
    assert padded.tolist() == [[3, 1], [None, 1], [0, 1]]
    padded.square().sum().backward()
    assert x.grad.filled(0).tolist() == [[0, 0], [6, 0]]


def test_adaptive_softmax() -> None:
    """torch's module writes what each cluster of classes gives into ``new_empty``."""
    torch.manual_seed(0)
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0).double()
    rows, target = torch.randn(4, 8, dtype=torch.float64), torch.tensor([1, 7, 12, 3])
    mask = torch.tensor([True, True, True, False])
    x = mt.as_masked_tensor(torch.where(mask[:, None], rows, NAN), mask[:, None])
    output, loss = module(x, target)
    loss.backward()
    grads = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    expected, mean = module(rows[:3], target[:3])
    mean.backward()
    torch.testing.assert_close(output, mt.as_masked_tensor(torch.cat([expected, expected[:1]]), mask))
    torch.testing.assert_close(loss.item(), mean.item())
    for g, p in zip(grads, module.parameters(), strict=True):
        torch.testing.assert_close(g, p.grad)
    torch.testing.assert_close(module.log_prob(x).filled(0)[:3], module.log_prob(rows[:3]))
    assert module.log_prob(x).count() == 60


@pytest.mark.parametrize("increasing", [False, True])
def test_vander(increasing) -> None:
    x = example(requires_grad=True)[1]
    powers = torch.vander(x, 3, increasing).tolist()
    assert [row[:: 1 if increasing else -1] for row in powers] == [[1, 3, 9], [1, None, None]]
    assert torch.vander(x.detach().long()).dtype is torch.int64
    for n in (None, 0, 1, 5):
        assert torch.vander(x, n, increasing).shape == torch.vander(torch.ones(2), n, increasing).shape
    data = torch.tensor([2.0, NAN, 3.0], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, False, True])
    torch.vander(mt.as_masked_tensor(data, mask), 4, increasing).sin().sum().backward()
    plain = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    torch.linalg.vander(plain, N=4).sin().sum().backward()
    assert data.grad[1] == 0
    torch.testing.assert_close(data.grad[mask], plain.grad)


FACTORIES = {
    "zeros": lambda: torch.zeros(2, 3),
    "ones": lambda: torch.ones((2, 3), dtype=torch.int64),
    "full": lambda: torch.full((2, 3), 7),
    "empty": lambda: torch.empty(2, 3),
    "empty_strided": lambda: torch.empty_strided((2, 3), (1, 2)),
    "zeros_like": lambda: torch.zeros_like(torch.tensor([1.0])),
    "full_like": lambda: torch.full_like(torch.tensor([1.0]), 2.0),
    "new_ones": lambda: torch.tensor([1.0]).new_ones(3),
    "new_empty_strided": lambda: torch.tensor([1.0]).new_empty_strided((2, 3), (1, 2)),
}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES.keys())
def test_masked_factories(make) -> None:
    with mt.masked_factories():
        made = make()
    assert type(made) is mt.MaskedTensor
    assert type(make()) is torch.Tensor
    assert (made.shape, made.dtype, made.stride()) == (make().shape, make().dtype, make().stride())
    assert pair_of(made).mask.all()


WRITES = {
    "+=": lambda t, m: t.__iadd__(m),
    "*=": lambda t, m: t.__imul__(m),
    "add_": lambda t, m: t.add_(m, alpha=2),
    "copy_": lambda t, m: t.copy_(m),
    "setitem": lambda t, m: t.__setitem__(slice(None), m),
    "setitem, a part": lambda t, m: t.__setitem__(0, m[1]),
    "setitem, by a mask": lambda t, m: t.__setitem__(torch.tensor([True, False]), m[:1]),
    "index_copy_": lambda t, m: t.index_copy_(0, torch.tensor([1, 0]), m),
    "scatter_": lambda t, m: t.scatter_(0, torch.zeros(2, 3, dtype=torch.int64), m),
    "index_add_": lambda t, m: t.index_add_(dim=0, index=torch.tensor([1, 0]), source=m),
    "out=": lambda t, m: torch.mul(m, 2, out=t),
    "addmm_": lambda t, m: t.addmm_(m[:, :2], m),
    "lists": lambda t, m: torch.cat([m[:1], m[1:]], out=t),
}
EVERYWHERE = {
    "made": lambda: torch.full((2, 3), 3.0),
    "computed": lambda: torch.zeros(2, 3) + 3.0,
    "chosen": lambda: torch.where(torch.zeros(2, 3) > 1, torch.zeros(2, 3), torch.full_like(torch.ones(2, 3), 3.0)),
    "given": lambda: mt.masked_tensor(torch.full((2, 3), 3.0), torch.ones(2, 3, dtype=torch.bool)),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("everywhere", EVERYWHERE)
def test_masked_factories_let_valid_tensors_be_written_into_plain_ones(everywhere: str, write: str) -> None:
    def start() -> torch.Tensor:
        return torch.arange(6.0).reshape(2, 3)

    target, expected, kept = start(), start(), start()
    WRITES[write](expected, torch.full((2, 3), 3.0))
    with mt.masked_factories():
        valid = EVERYWHERE[everywhere]()
        assert type(valid) is mt.MaskedTensor
        WRITES[write](target, valid)
        padded = mt.masked_tensor(torch.full((2, 3), 3.0), torch.tensor([[True], [True]]) & (torch.arange(3) < 2))
        with pytest.raises(mt.MaskedWriteError):
            WRITES[write](kept, padded)
        with mt.strict(), pytest.raises(mt.MaskedWriteError):
            WRITES[write](kept, valid)
    with pytest.raises(mt.MaskedWriteError):
        WRITES[write](kept, valid)
    assert torch.equal(target, expected)
    assert torch.equal(kept, start())


def test_masked_factories_leave_the_rest_alone() -> None:
    x = example()
    with mt.masked_factories():
        assert torch.zeros_like(x).tolist() == [[0, 0], [0, None]]  # the mask of x
        assert type(torch.tensor([1.0])) is type(torch.arange(3)) is torch.Tensor
        assert torch.zeros(2, 2, out=(room := torch.tensor([[1.0, 2], [3, 4]]))) is room
        assert torch.zeros(2, 2, layout=torch.sparse_coo).layout is torch.sparse_coo
        leaf = torch.zeros(2, requires_grad=True)
        assert leaf.is_leaf
        assert leaf.requires_grad
        mean, std = torch.std_mean(x)  # rules make room of their own
        assert mean.count() == std.count() == 1


def test_gradients_through_masked_factories() -> None:
    """Also of losses that are differentiated inside, by ``torch.autograd.grad`` and by ``backward``."""
    x = example(requires_grad=True)
    with mt.masked_factories():
        room = torch.zeros(3, 2, 2)
        room[1] = x
        room[2] = torch.softmax(x * 2, -1)
        room[0, 0, 0] = 1.0
        (first,) = torch.autograd.grad(room.sin().sum(), x, retain_graph=True)
        room.sin().sum().backward()
    y = example(requires_grad=True)
    (torch.softmax(y * 2, -1).sin() + y.sin()).sum().backward()
    torch.testing.assert_close(first, y.grad)
    torch.testing.assert_close(x.grad, y.grad)


def test_masked_factories_are_left_by_an_error() -> None:
    with pytest.raises(RuntimeError), mt.masked_factories():
        torch.zeros(2) + torch.zeros(3)
    assert type(torch.zeros(2)) is torch.Tensor


def test_masked_factories_compiled() -> None:
    @torch.compile(fullgraph=True, backend="aot_eager")
    def stacked(x):
        room = torch.zeros(2, *x.shape)
        room[0] = x
        return room

    with mt.masked_factories():
        assert stacked(example()).tolist() == [[[1, 2], [3, None]], [[0, 0], [0, 0]]]
