"""Ops that work along time, or pick places of the grid, over packed rows: as the strided ones; nothing is spread."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt
from masked_tensor import MaskedTensor

from .helpers.harness import assert_same

B, T, C = 4, 6, 4
DRAWN = torch.Generator().manual_seed(0)
ROWS = {
    "prefix": torch.arange(T) < torch.tensor([[4], [6], [0], [1]]),
    "scattered": torch.rand(B, T, generator=DRAWN) < 0.6,
    "full": torch.ones(B, T, dtype=torch.bool),
}
OTHER = torch.rand(B, T, generator=DRAWN) < 0.5
LAST = torch.tensor([3, 5, 0, 1])
WEIGHT = torch.randn(C, generator=DRAWN).double()

OPS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: x.softmax(1),
    "log softmax": lambda x: x.transpose(1, 2).log_softmax(-1),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(dim=1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "group norm": lambda x: F.group_norm(x.transpose(1, 2), 2, WEIGHT, WEIGHT),
    "instance norm": lambda x: F.instance_norm(x.transpose(1, 2), weight=WEIGHT, bias=WEIGHT),
    "average pool": lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 1),
    "other mask": lambda x: x[OTHER],
    "own mask": lambda x: x[x.get_mask()[..., 0]],
    "last places": lambda x: x[torch.arange(B), LAST],
    "places of features": lambda x: x.unflatten(2, (2, 2)).transpose(2, 3)[OTHER],
}
OPS |= {
    "class token": lambda x: torch.cat([WEIGHT.expand(B, 1, C), x], 1),
    "cache": lambda x: torch.cat([x.transpose(1, 2).sin(), x.transpose(1, 2)[..., 1:]], -1),
    "masked part": lambda x: torch.cat([x, mt.masked_tensor(torch.ones(B, 2, C).double(), OTHER[:, :2, None])], 1),
    "after a class token": lambda x: torch.cat([WEIGHT.expand(B, 1, C), x], 1).softmax(-1)[:, 0],
}
PREFIX = {
    "sort": lambda x: x.sort(1, descending=True),
    "sort, stable": lambda x: torch.sort(x, stable=True, dim=1),
    "cummax": lambda x: x.cummax(1),
}
SPREAD = {
    "running statistics": lambda x: nn.InstanceNorm1d(C, track_running_stats=True).double()(x.transpose(1, 2)),
    "one sequence": lambda x: x[torch.tensor([1, 0])],
    "every second": lambda x: x[:, torch.tensor([0, 2])],
    "part of another dtype": lambda x: torch.cat([torch.ones(B, 1, C), x, x[:, :0]], 1),
    "batches": lambda x: torch.cat([x, x], 0),
    "along the batch": lambda x: x.cumsum(0),
    "another size": lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 2),
}


def given(rows: Tensor, packed: bool, scattered: bool = False) -> MaskedTensor:
    data = torch.randn(B, T, C, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    mask = rows[..., None] & (data > -0.5) if scattered else rows[..., None].expand(data.shape)
    x = mt.as_masked_tensor(data.masked_fill(~mask, math.nan), mask)
    return (x.packed() if packed else x).requires_grad_()


def outcome(op: Callable[[Any], Any], rows: Tensor, packed: bool, scattered: bool = False) -> tuple[list[Any], Any]:
    x = given(rows, packed, scattered)
    with mt.extend.packing_report() as report:
        out = op(x)
    parts = list(out) if isinstance(out, tuple) else [out]
    shown = parts[0].filled(0)
    (shown * torch.linspace(1, 2, shown.numel()).double().view(shown.shape)).sum().backward()
    return [*parts, x.grad], report


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", [*OPS, *PREFIX])
def test_along_time(name: str, rows: str) -> None:
    op = (OPS | PREFIX)[name]
    (actual, report), (expected, _) = (outcome(op, ROWS[rows], packed) for packed in (True, False))
    assert not report or (name in PREFIX and rows == "scattered")
    for a, e in zip(actual, expected, strict=True):
        assert_same(a, e, f"{name}, {rows}")


@pytest.mark.parametrize("name", [*OPS, *PREFIX, *SPREAD])
def test_masked_entries_and_what_has_no_rule(name: str) -> None:
    op = (OPS | PREFIX | SPREAD)[name]
    for rows, scattered in ((ROWS["prefix"], True), (ROWS["prefix"], False), (ROWS["full"] & False, False)):
        (actual, _), (expected, _) = (outcome(op, rows, packed, scattered) for packed in (True, False))
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e, name)


@pytest.mark.parametrize("name", ["softmax", "cumprod", "group norm", "other mask"])
def test_derivatives(name: str) -> None:
    def run(data: Tensor) -> Tensor:
        return OPS[name](mt.as_masked_tensor(data, ROWS["prefix"][..., None]).packed()).filled(0)

    data = torch.randn(B, T, C, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(run, [data], fast_mode=True)
    assert torch.autograd.gradgradcheck(run, [data], fast_mode=True)


@pytest.mark.parametrize("name", ["softmax", "cumsum", "other mask"])
def test_bfloat16(name: str) -> None:
    x = given(ROWS["prefix"], False).detach().bfloat16()
    actual, expected = (OPS[name](y) for y in (x.packed(), x))
    assert actual.dtype is torch.bfloat16
    torch.testing.assert_close(actual.filled(0), expected.filled(0), rtol=0.02, atol=0.02)


def test_errors_are_those_of_the_strided_form() -> None:
    for op in (lambda x: x[OTHER[:, :3]], lambda x: F.group_norm(x.transpose(1, 2), 3), lambda x: x[LAST, LAST + 9]):
        for packed in (True, False):
            with pytest.raises((IndexError, RuntimeError)):
                op(given(ROWS["prefix"], packed))
