"""What an error names is written: the line of the message works, and gives what was computed by hand.

The wording stands in test_errors.py.  Each case here is a call that raises, the line that its message names (it must
stand there), that line as code, and its result.
"""

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn, tensor

import masked_tensor as mt
from masked_tensor.integrations.wrapping import valid_rows

NAN = float("nan")
RAISED = (RuntimeError, TypeError, ValueError, AttributeError, IndexError, UserWarning)  # a warning is an error here


class Way(NamedTuple):
    named: str  #: what the message says, word for word
    raises: Callable[[], Any]
    instead: Callable[[], Any]
    result: Any  #: what ``tolist()`` gives, or the value


def table() -> mt.MaskedTensor:
    """With garbage under the mask."""
    mask = tensor([[True, True, False], [True, False, True]])
    return mt.as_masked_tensor(tensor([[1.0, 2.0, NAN], [4.0, 1e30, 6.0]]), mask)


def row() -> mt.MaskedTensor:
    return mt.as_masked_tensor(tensor([1.0, NAN, 3.0]), tensor([True, False, True]))


def gap() -> mt.MaskedTensor:
    """Three steps beside two, whose first is missing."""
    return mt.masked_tensor([[[1.0], [None], [3.0]], [[None], [5.0], [None]]])


def leaf() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def written(target: Any, write: Callable[[Any], Any]) -> Any:
    write(target)
    return target


def gradient(x: torch.Tensor, y: torch.Tensor) -> Any:
    y.sum().backward()
    return x.grad


ROWS, VALID = torch.arange(12.0).view(4, 3), tensor([True, True, True, False])
TARGET = mt.as_masked_tensor(tensor([1, 7, 3, -9]), VALID)
SPARSE = torch.sparse_coo_tensor(tensor([[0, 1], [1, 0]]), tensor([2.0, 3.0]), (2, 2), check_invariants=True)

EDGES = SPARSE.to_dense() > 0


def adaptive() -> nn.Module:
    torch.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(3, 9, [2, 5], div_value=1.0)


WAYS = {
    # ------------------------------------------------------------------------------------------------ making
    "a mask of zeros and ones": Way(
        "mask != 0 for zeros and ones",
        lambda: mt.masked_tensor(torch.ones(2), tensor([1.0, 0.0])),
        lambda: mt.masked_tensor(torch.ones(2), tensor([1.0, 0.0]) != 0),
        [1, None],
    ),
    "an additive mask": Way(
        "mask == 0 for an additive mask of 0 and -inf",
        lambda: mt.masked_tensor(torch.ones(2), tensor([0.0, -torch.inf])),
        lambda: mt.masked_tensor(torch.ones(2), tensor([0.0, -torch.inf]) == 0),
        [1, None],
    ),
    "a mask without features": Way(
        "use mask.unsqueeze(-1)",
        lambda: mt.masked_tensor(torch.ones(2, 3, 4), tensor([[True] * 3, [True, False, False]])),
        lambda: mt.masked_tensor(torch.ones(2, 3, 4), tensor([[True] * 3, [True, False, False]]).unsqueeze(-1)).sum(),
        16,
    ),
    "a mask without channels": Way(
        "use mask.unsqueeze(1)",
        lambda: mt.masked_tensor(torch.ones(2, 3, 4, 5), torch.ones(2, 4, 5, dtype=torch.bool)),
        lambda: mt.masked_tensor(torch.ones(2, 3, 4, 5), torch.ones(2, 4, 5, dtype=torch.bool).unsqueeze(1)).count(),
        120,
    ),
    "a condition of numbers": Way(
        "use condition.bool()",
        lambda: mt.masked_where(tensor([1.0, 0.0]), torch.ones(2)),
        lambda: mt.masked_where(tensor([1.0, 0.0]).bool(), torch.ones(2)),
        [None, 1],
    ),
    "counts for a mask": Way(
        "such as mask > 0",
        lambda: mt.masked_tensor(torch.ones(2), tensor([0, 3])),
        lambda: mt.masked_tensor(torch.ones(2), tensor([0, 3]) > 0),
        [None, 1],
    ),
    "a list to wrap": Way(
        "use masked_tensor(data, mask)",
        lambda: mt.as_masked_tensor([1.0, 2.0], [True, False]),
        lambda: mt.masked_tensor([1.0, 2.0], [True, False]),
        [1, None],
    ),
    "the class itself": Way(
        "as_masked_tensor(data, mask) to wrap it",
        lambda: mt.MaskedTensor(torch.ones(2), VALID[2:]),
        lambda: mt.as_masked_tensor(torch.ones(2), VALID[2:]),
        [1, None],
    ),
    "lengths first": Way(
        "from_lengths(padded, lengths)",
        lambda: mt.from_lengths([1, 2], torch.ones(2, 2)),
        lambda: mt.from_lengths(torch.ones(2, 2), [1, 2]),
        [[1, None], [1, 1]],
    ),
    "a sequence longer than length": Way(
        "cut it first (sequence[:2])",
        lambda: mt.from_sequences([torch.ones(3), torch.ones(1)], length=2),
        lambda: mt.from_sequences([torch.ones(3)[:2], torch.ones(1)], length=2),
        [[1, 1], [1, None]],
    ),
    "sequences of different lengths": Way(
        "masked_tensor.cat(tensors, dim=0) pads to the longest",
        lambda: torch.cat([mt.masked_tensor(torch.ones(1, 2)), torch.ones(1, 3)]),
        lambda: mt.cat([mt.masked_tensor(torch.ones(1, 2)), torch.ones(1, 3)], dim=0),
        [[1, 1, None], [1, 1, 1]],
    ),
    # ----------------------------------------------------------------------------------------------- leaving
    "numpy()": Way("x.filled(value).numpy()", lambda: row().numpy(), lambda: row().filled(0).numpy(), [1, 0, 3]),
    "numpy() to numpy.ma": Way("x.to_numpy_ma()", lambda: row().numpy(), lambda: row().to_numpy_ma(), [1, None, 3]),
    "asarray": Way("x.tolist()", lambda: np.asarray(row()), lambda: row().tolist(), [1, None, 3]),
    "asarray with NaN": Way(
        "x.filled(value), such as float('nan')",
        lambda: np.asarray(row()),
        lambda: np.nanmean(np.asarray(row().filled(float("nan")))).tolist(),
        2,
    ),
    "asarray of a metric": Way(
        "masked_tensor.select_valid(x, y)",
        lambda: np.abs(np.asarray(row())),
        lambda: mt.select_valid(row(), torch.zeros(3))[0],
        [1, 3],
    ),
    "numpy.mean": Way("use x.mean()", lambda: np.mean(row()), lambda: row().mean(), 2),
    "DLPack": Way("x.compressed()", lambda: torch.from_dlpack(row()), lambda: row().compressed(), [1, 3]),
    "DLPack of a filled one": Way(
        "x.filled(value)", lambda: torch.from_dlpack(row()), lambda: torch.from_dlpack(row().filled(9)), [1, 9, 3]
    ),
    "apply_": Way(
        "apply it to x.compressed()",
        lambda: row().apply_(lambda v: v + 1),
        lambda: row().compressed().apply_(lambda v: v + 1),
        [2, 4],
    ),
    "item() of a batch without labels": Way(
        "loss.filled(0).item()", lambda: row()[1].item(), lambda: row()[1].filled(0).item(), 0
    ),
    "bool()": Way("use x.filled(value)", lambda: bool(row()[1]), lambda: bool(row()[1].filled(0)), False),
    "float()": Way("use x.filled(value)", lambda: float(row()[1]), lambda: float(row()[1].filled(0)), 0),
    "filled('mean')": Way(
        "torch.where(x.mask, x, x.mean(0))",
        lambda: table().filled("mean"),
        lambda: torch.where(table().mask, table(), table().mean(0)),
        [[1, 2, 6], [4, 2, 6]],
    ),
    "filled with a masked tensor": Way(
        "x.filled(value.filled(0))",
        lambda: row().filled(row().flip(0)),
        lambda: row().filled(row().filled(0)),
        [1, 0, 3],
    ),
    "filled with a masked tensor, masked where both are": Way(
        "torch.where(x.mask, x, value)",
        lambda: row().filled(row().flip(0)),
        lambda: torch.where(row().mask, row(), row().flip(0)),
        [1, None, 3],
    ),
    "an op without a masked meaning": Way(
        "x.filled(value)", lambda: torch.hash_tensor(row()), lambda: row().filled(2), [1, 2, 3]
    ),
    # ------------------------------------------------------------------------------------------------ writing
    "into a plain tensor": Way(
        "Write x.filled(value)",
        lambda: torch.zeros(3).add_(row()),
        lambda: torch.zeros(3).add_(row().filled(0)),
        [1, 0, 3],
    ),
    "into a target that is masked": Way(
        "as_masked_tensor(target, True)",
        lambda: torch.zeros(3).add_(row()),
        lambda: mt.as_masked_tensor(torch.zeros(3), True).add_(row()),
        [1, None, 3],
    ),
    "code of others": Way(
        "call it inside masked_factories()",
        lambda: written(torch.zeros(3), lambda t: t.copy_(row())),
        lambda: mt.masked_factories()(lambda: written(torch.zeros(3), lambda t: t.copy_(row())))(),
        [1, None, 3],
    ),
    "rows by their labels": Way(
        "masked_tensor.select_valid(rows, labels, dim=1)",
        lambda: adaptive()(ROWS, TARGET),
        lambda: (
            adaptive()(*mt.select_valid(ROWS, TARGET, dim=1)).output.tolist()
            == adaptive()(ROWS[:3], tensor([1, 7, 3])).output.tolist()
        ),
        True,
    ),
    "the mask": Way(
        "as_masked_tensor(x, mask) masks more entries",
        lambda: setattr(row(), "mask", VALID[1:]),
        lambda: mt.as_masked_tensor(row(), tensor([False, True, True])),
        [None, None, 3],
    ),
    "the mask, valid": Way(
        "x[key] = value makes entries valid",
        lambda: setattr(row(), "mask", VALID[1:]),
        lambda: written(row(), lambda x: x.__setitem__(1, 2.0)),
        [1, 2, 3],
    ),
    "t_ of what is tracked": Way(
        "use x = x.t(...)",
        lambda: (mt.as_masked_tensor(torch.ones(1, 2, requires_grad=True), True) * 2).t_(),
        lambda: (mt.as_masked_tensor(torch.ones(1, 2, requires_grad=True), True) * 2).t(),
        [[2], [2]],
    ),
    "a copy outside of the graph": Way(
        "masked_tensor.as_masked_tensor(data, mask) to keep the gradient",
        lambda: mt.masked_tensor(leaf(), VALID[2:]),
        lambda: gradient(data := leaf(), mt.as_masked_tensor(data, VALID[2:])),
        [1, 0],
    ),
    "deepcopy of a result": Way(
        "use x.detach() first",
        lambda: copy.deepcopy(mt.as_masked_tensor(leaf(), True) * 2),
        lambda: copy.deepcopy((mt.as_masked_tensor(leaf(), True) * 2).detach()),
        [2, 2],
    ),
    # --------------------------------------------------------------------------------------------------- time
    "ffill of a batch": Way(
        "Pass lengths=[...]",
        lambda: mt.ffill(gap(), 1),
        lambda: mt.ffill(gap(), 1, lengths=[3, 2]).squeeze(2),
        [[1, 1, 3], [None, 5, None]],
    ),
    "ffill without padding": Way(
        "lengths='full'",
        lambda: mt.ffill(gap(), 1),
        lambda: mt.ffill(gap(), 1, lengths="full").squeeze(2),
        [[1, 1, 3], [None, 5, 5]],
    ),
    "ffill of a packed batch": Way(
        "x.packed(lengths=[...])",
        lambda: mt.ffill(gap(), 1),
        lambda: mt.ffill(gap().packed(lengths=[3, 2]), 1).squeeze(2),
        [[1, 1, 3], [None, 5, None]],
    ),
    "unpad of rows with gaps": Way(
        "x.packed(lengths=[...])",
        lambda: gap().unpad(),
        lambda: [part.squeeze(1).tolist() for part in gap().packed(lengths=[3, 2]).unpad()],
        [[1, None, 3], [None, 5]],
    ),
    "unpad, what is valid": Way(
        "[row.compressed() for row in x]",
        lambda: gap().unpad(),
        lambda: [part.compressed().tolist() for part in gap()],
        [[1, 3], [5]],
    ),
    "times that are masked": Way(
        "give it one by index.filled(value)",
        lambda: mt.rolling(row(), 2, index=mt.masked_tensor([0.0, None, 2.0])).sum(),
        lambda: mt.rolling(row(), 2, index=mt.masked_tensor([0.0, None, 2.0]).filled(1.0), min_periods=1).sum(),
        [1, 1, 3],
    ),
    # ------------------------------------------------------------------------------------------------- sparse
    "a rule that is missing": Way(
        "use x.to_dense()",
        lambda: mt.as_masked_tensor(SPARSE).cov(),
        lambda: mt.as_masked_tensor(SPARSE).to_dense(),
        [[None, 2], [3, None]],
    ),
    "a functional form that is missing": Way(
        "use input.to_dense() and the same mask",
        lambda: mt.logaddexp(SPARSE, SPARSE),
        lambda: (
            mt.logaddexp(SPARSE.to_dense(), SPARSE.to_dense(), input_mask=EDGES, other_mask=EDGES)
            .sub(math.log(2))
            .mul(1e3)
            .round()
        ),
        [[-math.inf, 2000], [3000, -math.inf]],
    ),
    # ------------------------------------------------------------------------------------------------- losses
    "sum of losses": Way(
        "masked_tensor.total(a, b) adds up the losses that exist",
        lambda: (mt.as_masked_tensor(leaf(), False).sum() + leaf().sum()).backward(),
        lambda: gradient(data := leaf(), mt.total(mt.as_masked_tensor(leaf(), False).sum(), (3 * data).sum())),
        [3, 3],
    ),
    "total of a list": Way(
        "write total(*losses)",
        lambda: mt.total([row().sum(), row()[1]]),
        lambda: mt.total(*[row().sum(), row()[1]]),
        4,
    ),
    "total of a dict": Way(
        "write total(*losses.values())",
        lambda: mt.total({"a": row().sum()}),
        lambda: mt.total(*{"a": row().sum()}.values()),
        4,
    ),
    "different masks": Way(
        "fill one with x.filled(value)",
        lambda: mt.meaning(mismatch="raise")(lambda: row() + row().flip(0)[[1, 0, 2]])(),
        lambda: mt.meaning(mismatch="raise")(lambda: row() + row().flip(0)[[1, 0, 2]].filled(0))(),
        [1, None, 4],
    ),
    "a scatter of a condition": Way(
        "call .long() on it for positions 0 and 1",
        lambda: row().scatter(0, tensor([True, False]), torch.ones(2)),
        lambda: row().scatter(0, tensor([True, False]).long(), tensor([7.0, 8.0])),
        [8, 7, 3],
    ),
}


def plain(x: Any) -> Any:
    return x.tolist() if hasattr(x, "tolist") else x


@pytest.mark.parametrize("name", WAYS)
def test_the_line_that_a_message_names_works(name: str) -> None:
    way = WAYS[name]
    with pytest.raises(RAISED) as raised:
        way.raises()
    assert way.named in str(raised.value), str(raised.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain(way.instead()) == way.result


def test_rows_of_images() -> None:
    known = tensor([[True, True, False], [True, True, True], [False] * 3, [True, False, True]])
    a, b = mt.as_masked_tensor(torch.rand(4, 1, 3), known[:, None]), torch.rand(4, 1, 3)
    with pytest.raises(mt.MaskedSizeError, match=r"a\[keep\] and b\[keep\] with keep = a.get_mask"):
        valid_rows("PSNR", a, b)
    keep = a.get_mask().flatten(1).all(1)
    given = valid_rows("PSNR", a[keep], b[keep])
    assert [x.shape for x in given] == [(1, 1, 3)] * 2
    assert torch.equal(given[1], b[1:2])


def test_an_adaptive_softmax_of_masked_rows() -> None:
    """It counts the rows that it wrote, and torch's words are of labels out of range: docs/limits.md has the line."""
    rows = mt.as_masked_tensor(torch.where(VALID[:, None], ROWS, torch.nan), VALID[:, None].expand(4, 3))
    with pytest.raises(RuntimeError, match="Target values should be in"):
        adaptive()(rows, TARGET)
    found, wanted = adaptive()(*mt.select_valid(rows, TARGET, dim=1)), adaptive()(ROWS[:3], tensor([1, 7, 3]))
    assert found.output.tolist() == wanted.output.tolist()
    assert found.loss.item() == wanted.loss.item()
