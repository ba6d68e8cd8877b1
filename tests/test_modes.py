"""Context managers."""

import io
import warnings
from typing import Any

import pytest
import torch

import masked_tensor as mt
from masked_tensor import MaskMismatchError, meaning
from masked_tensor.shared import strict_counts as of_strict

X = mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True])
Y = mt.masked_tensor([1.0, 2.0, 3.0], [True, True, True])


def test_different_masks_raise_on_request() -> None:
    with meaning(mismatch="raise"), pytest.raises(MaskMismatchError, match=r"as_masked_tensor.*filled"):
        X + Y
    assert (X + Y).tolist() == [2.0, None, 6.0]


def test_equal_masks_plain_operands_and_numbers_do_not() -> None:
    other = mt.masked_tensor([5.0, 5.0, 5.0], X.get_mask().clone())
    with meaning(mismatch="raise"):
        assert (X * other + torch.ones(3) + 1).tolist() == [7.0, None, 17.0]


def test_masks_are_compared_after_broadcasting() -> None:
    rows = mt.masked_tensor(torch.ones(2, 3), X.get_mask())
    with meaning(mismatch="raise"):
        assert (rows + X).count() == 4
        with pytest.raises(MaskMismatchError):
            rows + Y


def test_contexts_nest_and_end() -> None:
    with meaning(mismatch="raise"):
        with meaning(mismatch="and"):
            assert (X + Y).count() == 2
        with pytest.raises(MaskMismatchError):
            X - Y
    with pytest.raises(ZeroDivisionError), meaning(mismatch="raise"):
        raise ZeroDivisionError
    assert (X + Y).count() == 2


def test_the_gradient_is_not_concerned() -> None:
    x = mt.masked_tensor([1.0, 2.0, 3.0], [True, False, True], requires_grad=True)
    with meaning(mismatch="raise"):
        (x * x.exp() + x).sum().backward()
    assert x.grad.count() == 2


def test_another_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="'and', 'raise'"), meaning(mismatch="or"):
        pass


# -------------------------------------------------------------------------------------------------------------- strict

P, T = mt.masked_tensor([1.0, 2.0, None]), mt.masked_tensor([1.0, None, 3.0])


def loop(x: torch.Tensor) -> torch.Tensor:
    """A recurrence written by hand: what it adds up stays masked after its first masked entry."""
    state = torch.zeros(2)
    for t in range(x.shape[1]):
        state = 0.5 * state + x[:, t]
    return state


def cell(x: torch.Tensor) -> torch.Tensor:
    state = torch.zeros(2, 3)
    for t in range(x.shape[1]):
        state = torch.gru_cell(x[:, t, None], state, torch.ones(9, 1), torch.ones(9, 3))
    return state


BATCH = mt.from_lengths(torch.ones(2, 3), [3, 1])
CONVENIENCES = {
    "different masks": (lambda: P - T, MaskMismatchError),
    "a number into a plain tensor": (lambda: torch.zeros(2).add_(P.sum()), mt.MaskedWriteError),
    "an element of a plain tensor": (lambda: torch.zeros(2).__setitem__(0, P.mean()), mt.MaskedWriteError),
    "numel": (lambda: P.numel(), mt.MaskedSizeError),
    "nelement": (lambda: P.nelement(), mt.MaskedSizeError),
    "a state in a loop": (lambda: loop(BATCH), MaskMismatchError),
    "the state of a cell": (lambda: cell(BATCH), MaskMismatchError),
}


@pytest.mark.filterwarnings("ignore::masked_tensor.MaskedSizeWarning")
@pytest.mark.parametrize("name", CONVENIENCES)
def test_strict_makes_every_convenience_an_error(name: str) -> None:
    convenience, error = CONVENIENCES[name]
    convenience()
    with mt.strict(), pytest.raises(error):
        convenience()
    convenience()


HALF = mt.masked_tensor([[2.0, None], [4.0, None], [None, None]])
ALL = mt.masked_tensor(torch.ones(3, 2))
MADE = {
    "new_ones": lambda x: x.new_ones(len(x)),
    "new_full": lambda x: x.new_full((len(x),), 1.0),
    "int64": lambda x: x.new_ones(len(x), dtype=torch.int64),
    "converted": lambda x: x.new_ones(len(x)).double(),
    "doubled": lambda x: 2 * x.new_ones(len(x)),
    "moved": lambda x: x.new_ones(len(x)).unsqueeze(1).expand(3, 2).t()[0],
    "detached": lambda x: x.new_ones(len(x)).requires_grad_().clone().detach(),
    "of its size": lambda x: x.new_ones(x.shape)[:, 0],
    "a column": lambda x: x.new_ones(len(x), 1)[:, 0],
    "of bfloat16": lambda x: x.bfloat16().new_ones(len(x)),
    "packed": lambda x: mt.from_lengths(torch.ones(3, 2), [2, 2, 1 if x is HALF else 2]).packed().new_ones(3, 2)[:, 0],
}
AT = torch.tensor([0, 0, 1])
COUNTED = {
    "sum": lambda n: n.sum(),
    "sum along": lambda n: n.sum(0, keepdim=True),
    "mean times size": lambda n: n.reshape(3, 1).sum((0, 1)),
    "count_nonzero": torch.count_nonzero,
    "count": lambda n: mt.masked_tensor(n.count()),
    "cumsum": lambda n: n.cumsum(0),
    "scatter_add": lambda n: torch.zeros(2, dtype=n.dtype).scatter_add(0, AT, n),
    "scatter_add_": lambda n: n.new_zeros(2).scatter_add_(0, AT, n),
    "scatter_reduce": lambda n: n.new_zeros(2).scatter_reduce(0, AT, n, "sum"),
    "scatter(add)": lambda n: n.new_zeros(2).scatter(0, AT, n, reduce="add"),
    "index_add": lambda n: n.new_zeros(2).index_add(0, AT, n),
    "index_put": lambda n: n.new_zeros(2).index_put((AT,), n, accumulate=True),
    "segment_reduce": lambda n: torch.segment_reduce(n.double(), "sum", lengths=torch.tensor([2, 1])),
    "div": lambda n: torch.ones(3, dtype=n.dtype) / n,
    "div masked": lambda n: mt.masked_tensor(torch.ones(3, dtype=n.dtype)) / n,
}
HONEST = {
    "a target": lambda x: x.new_ones(3).scatter_add_(0, AT, torch.ones_like(x[:, 0])),
    "a target that is filled": lambda x: x.new_full((3,), -1.0).scatter_(0, AT, x[:, 0]),
    "compared": lambda x: x.new_ones(3) > 0,
    "the largest": lambda x: x.new_ones(3).amax(),
    "a mean": lambda x: x.new_ones(3).mean(),
    "joined": lambda x: torch.cat([x, x.new_ones(3, 2)]),
    "of another size": lambda x: x.new_ones(5).sum(),
    "a number": lambda x: x[:, 0].mean() / x.new_ones(()),
    "of zeros": lambda x: x.new_zeros(3).sum(),
    "with its mask": lambda x: torch.ones_like(x).sum(),
    "at masked places": lambda x: x.new_zeros(2).scatter_add_(
        0, mt.masked_tensor(AT, x.get_mask()[:, 0]), x.new_ones(3)
    ),
}


@pytest.mark.parametrize("counted", COUNTED)
@pytest.mark.parametrize("made", MADE)
def test_strict_does_not_count_what_new_ones_made(made: str, counted: str) -> None:
    def count(x: Any) -> Any:
        return COUNTED[counted](MADE[made](x))

    plainly = mt.get_data(count(HALF))
    with mt.strict():
        with pytest.raises(mt.MaskedSizeError, match=r"new_ones\(\) and new_full\(\)"):
            count(HALF)
        assert torch.equal(mt.get_data(count(ALL)), plainly)
        with pytest.raises(mt.MaskedSizeError):
            count(HALF)
    assert torch.equal(mt.get_data(count(HALF)), plainly)


@pytest.mark.parametrize("honest", HONEST)
def test_strict_lets_what_new_ones_made_be_used(honest: str) -> None:
    expected = HONEST[honest](HALF)
    with mt.strict():
        torch.testing.assert_close(HONEST[honest](HALF), expected)


def test_nothing_is_kept_of_what_new_ones_made() -> None:
    before = set(of_strict.KNOWN)  # what the tracebacks of other tests hold
    HALF.new_ones(3)
    assert before == of_strict.KNOWN
    with mt.strict():
        kept = HALF.new_ones(3)
        for _ in range(5):
            HALF.new_ones(3)
        assert len([known for known in of_strict.KNOWN - before if not known.expired()]) == 1
    assert kept.sum() == 3
    del kept
    ALL.sum()
    assert before >= of_strict.KNOWN


def test_strict_lets_honest_code_pass() -> None:
    layer = torch.nn.GRU(1, 2, batch_first=True)
    with mt.strict():
        p, t = mt.as_masked_tensor(P.get_data(), P.get_mask() & T.get_mask()), mt.as_masked_tensor(T, P.get_mask())
        assert ((p - t).abs().sum() / t.count()).item() == 0
        layer(BATCH.unsqueeze(-1))[0].square().mean().backward()
        assert loop(mt.from_lengths(torch.ones(2, 3), [3, 3])).count() == 2
        with mt.meaning(mismatch="and"):
            assert (P - T).count() == 1


# --------------------------------------------------------------------------------------------------------------- sizes


def test_numel_warns_once_for_each_place_that_asks() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(3):
            assert P.numel() == 3
        assert P.nelement() == 3
    assert [w.category for w in seen] == [mt.MaskedSizeWarning] * 2
    assert all(w.filename == __file__ for w in seen)
    assert "count()" in str(seen[0].message)


def test_sizes_that_torch_asks_for_do_not_warn() -> None:
    parameter = torch.nn.Parameter(mt.masked_tensor([1.0, 2.0, None]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for optimizer in (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad):
            parameter.sum().backward()
            optimizer([parameter], lr=0.1).step()
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        torch.nn.utils.parameters_to_vector([parameter])
        repr(parameter), bool(parameter.sum() > 0), parameter.sum().item()
        torch.utils.data.default_collate([P, T])
        torch.save(parameter, io.BytesIO())


def test_a_choice_that_was_not_entered_says_so() -> None:
    assert repr(mt.meaning(product="all")).startswith("<meaning(product='all'): applies inside a with statement")
    assert repr(mt.strict()).startswith("<strict(): applies inside a with statement")
