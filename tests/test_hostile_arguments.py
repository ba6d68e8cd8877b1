"""Arguments that no call can mean, in each place of each functional form: a named error, torch's own, or a result.

Python's own words for a wrong type inside ("has no len()", "tuple index out of range") do not leave the package, and
the arguments are afterwards what they were.  ``MASKED_TENSOR_HOSTILE=1`` tries all of them in all places, by default
every 31st.
"""

import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import masked_tensor as mt
from masked_tensor import functional

from .helpers.hostile import HOSTILE, fault

EVERY = 1 if os.environ.get("MASKED_TENSOR_HOSTILE") else 31


def batch() -> Any:
    return mt.masked_tensor([[1.0, None, 4.0], [3.0, 5.0, 2.0]])


def plain() -> Tensor:
    return torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 2.0]])


def classes() -> Tensor:
    return torch.tensor([0, 2])


def image() -> Any:
    return mt.as_masked_tensor(torch.ones(2, 3, 4), torch.arange(24).view(2, 3, 4) % 5 > 0)


def signs() -> Tensor:
    return torch.tensor([1, -1])


def labels() -> Tensor:
    return torch.tensor([[0, 2, -1], [1, -1, -1]])


def queries() -> Tensor:
    return torch.ones(1, 2, 3)


#: The arguments that a call needs, by their names.
USUAL: dict[str, Callable[[], Any]] = {
    "input": batch,
    "dim": lambda: 1,
    "target": plain,
    "other": plain,
    "input1": plain,
    "input2": plain,
    "q": lambda: 0.5,
    "window": lambda: 2,
    "distribution": lambda: torch.distributions.Normal(0.0, 1.0),
    "value": plain,
    "mask": lambda: torch.tensor([True, False, True]),
    "source": lambda: torch.ones(6),
    "query": queries,
    "key": queries,
    "anchor": plain,
    "positive": plain,
    "negative": plain,
    "running_mean": lambda: torch.zeros(3),
    "running_var": lambda: torch.ones(3),
    "normalized_shape": lambda: [3],
    "num_groups": lambda: 1,
    "size": lambda: 3,
    "var": plain,
}
#: Arguments that one call has otherwise, or besides.
OWN: dict[str, dict[str, Callable[[], Any]]] = {
    **{
        key: {"lengths": lambda: "full", "dim": lambda: 1}
        for key in ("ffill", "bfill", "interpolate", "rolling", "shift")
    },
    **{key: {"target": classes} for key in ("cross_entropy", "nll_loss", "multi_margin_loss")},
    **{key: {"input": image} for key in ("instance_norm", "local_response_norm", "group_norm")},
    "masked_fill": {"value": lambda: 0.0},
    "masked_scatter_": {"input": plain},
    "masked_fill_": {"input": plain, "value": lambda: 0.0},
    "cosine_embedding_loss": {"target": signs},
    "multilabel_margin_loss": {"target": labels},
    "scaled_dot_product_attention": {"value": queries},
    "binary_cross_entropy": {"input": lambda: torch.full((2, 3), 0.5), "target": lambda: torch.full((2, 3), 0.5)},
}


NAMES = sorted(functional.__all__)


def usual(name: str, parameter: inspect.Parameter) -> tuple[bool, Any]:
    """Whether the argument is given, and what."""
    make = OWN.get(name, {}).get(parameter.name)
    if make is None and parameter.default is inspect.Parameter.empty:
        make = USUAL[parameter.name]
    return make is not None, None if make is None else make()


def right(name: str) -> dict[str, Any]:
    """The arguments of a call that succeeds."""
    parameters = inspect.signature(getattr(mt, name)).parameters.values()
    return {p.name: usual(name, p)[1] for p in parameters if usual(name, p)[0]}


def calls(name: str) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Each place of a call, and each hostile argument: its name, and a maker."""
    for place in inspect.signature(getattr(mt, name)).parameters:
        for what, hostile in HOSTILE.items():
            yield place, what, hostile


def fault_of(name: str, place: str, hostile: Callable[[], Any]) -> str | None:
    arguments = right(name) | {place: hostile()}
    return fault(
        lambda: getattr(mt, name)(**arguments), arguments, lambda key: name.endswith("_") or key.startswith("running_")
    )


def test_the_calls_are_right() -> None:
    for name in NAMES:
        getattr(mt, name)(**right(name))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
def test_hostile_arguments(part: int) -> None:
    every = [(name, *call) for name in NAMES for call in calls(name)][part :: 4 * EVERY]
    found = [
        f"{name}({place}={what}): {reason}"
        for name, place, what, hostile in every
        if (reason := fault_of(name, place, hostile)) is not None
    ]
    assert not found, f"{len(found)} of {len(every)}\n" + "\n".join(found)


BATCH = mt.from_lengths(torch.ones(2, 3), [3, 2])
INTEGERS: dict[str, Callable[[Any], Any]] = {
    "count": lambda i: batch().count(i),
    "mt.count": lambda i: mt.count(batch(), i),
    "mean": lambda i: mt.mean(batch(), dim=i),
    "sum": lambda i: batch().sum((i,)),
    "median": lambda i: mt.median(batch(), i),
    "cumsum": lambda i: mt.cumsum(batch(), i),
    "ffill": lambda i: mt.ffill(batch(), i, lengths="full", limit=i),
    "shift": lambda i: mt.shift(batch(), i, i, lengths="full"),
    "rolling": lambda i: mt.rolling(batch(), i, i, lengths="full", min_periods=i, step=i).mean(),
    "interpolate": lambda i: mt.interpolate(batch(), i, lengths="full", max_gap=i),
    "rank": lambda i: mt.rankdata(batch(), dim=i),
    "from_lengths": lambda i: mt.from_lengths(torch.ones(2, 3), [3, 2], dim=i),
    "lengths": lambda i: mt.lengths(BATCH, i),
    "unpad": lambda i: mt.unpad(BATCH, i),
    "to_left": lambda i: mt.to_left(BATCH, i),
    "to_right": lambda i: mt.to_right(BATCH, i),
    "pad": lambda i: mt.pad_sequence([torch.ones(2)], length=i + 4),
    "cat": lambda i: mt.cat([batch(), batch()], i),
    "join": lambda i: mt.join(BATCH, BATCH, dim=i),
    "collate": lambda i: mt.collate([batch()], dim=i - 1),
    "lengths_to_mask": lambda i: mt.lengths_to_mask([1, 2], i + 2),
    "packed": lambda i: mt.packed(BATCH, (i - 1, i)),
    "batches": lambda i: [*mt.balanced_batches([1, 2, 3], tokens=i + 9, ranks=i, rank=i - 1, window=i)],
    "statistics": lambda i: mt.RunningStatistics(i + 2).update(batch()).mean,
    "select": lambda i: mt.select_valid(batch(), dim=i)[0],
    "last": lambda i: mt.LastValid(i + 2, limit=i).update(batch()).features,
    "topk": lambda i: batch().topk(i, i)[0],
    "min_count": lambda i: mt.sum(batch(), i, min_count=i),
    "quantile": lambda i: mt.quantile(batch(), 0.5, i),
    "std": lambda i: mt.std(batch(), i, correction=i),
    "softmax": lambda i: batch().softmax(i),
    "size": lambda i: batch().size(i),
    "layer_norm": lambda i: mt.layer_norm(batch(), [i + 2]),
    "groups": lambda i: mt.group_norm(image(), i),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_numpy_are_integers(name: str) -> None:
    for one in (np.int64(1), np.int32(1), np.uint8(1)):
        assert repr(INTEGERS[name](one)) == repr(INTEGERS[name](1))


def test_a_number_of_numpy_is_not_the_wrong_argument() -> None:
    x = mt.masked_tensor([1.0, None, 3.0])
    for window in (np.int64(2), np.array(2)):
        with pytest.raises(TypeError, match="argument 'dim' must be int, not object"):
            mt.rolling(x, window, object())
