"""Data at the door, small batches and small tables of ``everyday.py``: 30 % is missing, at random."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import masked_tensor as mt

from .everyday_case import FINITE, Case, random_mask
from .timing import Candidates

NAN = float("nan")


def table(rows: int, columns: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Any]:
    data, seen = torch.randn(rows, columns, dtype=dtype), random_mask(rows, columns)
    return data, seen, mt.masked_tensor(data, seen)


def both(data: Tensor, seen: Tensor) -> Tensor:
    """What by hand keeps: the data, 0 where it is missing; the mask is made as well."""
    return torch.where(seen, data, 0)


def from_pandas(rows: int, columns: int, _: int, dtype: torch.dtype) -> Candidates:
    """A DataFrame of float32, whose gaps are NaN."""
    import pandas

    data, seen, _x = table(rows, columns, torch.float32)
    frame = pandas.DataFrame(torch.where(seen, data, NAN).numpy())

    def by_hand() -> Tensor:
        values = torch.tensor(frame.to_numpy())
        return both(values, ~values.isnan())

    return {
        "plain": lambda: torch.tensor(frame.to_numpy()),
        "by hand": by_hand,
        "masked": lambda: mt.masked_invalid(frame),
    }


def from_arrow(rows: int, columns: int, _: int, dtype: torch.dtype) -> Candidates:
    """A table of float32 with nulls; by hand column by column."""
    import pyarrow

    data, seen, _x = table(rows, columns, torch.float32)
    named = {
        str(i): pyarrow.array(data[:, i].numpy(), mask=(~seen[:, i]).numpy(), from_pandas=False) for i in range(columns)
    }
    arrow, whole = pyarrow.table(named), pyarrow.table({k: v.fill_null(0) for k, v in named.items()})

    def by_hand() -> Tensor:
        values = torch.stack([torch.from_numpy(c.fill_null(0).to_numpy()) for c in arrow.columns], 1)
        valid = torch.stack(
            [torch.from_numpy(c.is_valid().to_numpy(zero_copy_only=False).copy()) for c in arrow.columns], 1
        )
        return both(values, valid)

    return {
        "plain": lambda: torch.stack([torch.tensor(c.to_numpy()) for c in whole.columns], 1),
        "by hand": by_hand,
        "masked": lambda: mt.masked_tensor(arrow),
    }


def from_lists(_: int, dtype: torch.dtype) -> Candidates:
    """100 lists of 10 numbers, some of them None."""
    data = torch.randn(100, 10)
    whole = data.tolist()
    rows = [[None if v < -0.5 else v for v in row] for row in whole]

    def by_hand() -> Tensor:
        values = torch.tensor([[NAN if v is None else v for v in row] for row in rows])
        return both(values, ~values.isnan())

    return {"plain": lambda: torch.tensor(whole), "by hand": by_hand, "masked": lambda: mt.masked_tensor(rows)}


def enter_and_leave(size: int, dtype: torch.dtype) -> Candidates:
    """``masked_tensor(data, mask).filled(0)``: both copy."""
    data, seen = torch.randn(size, dtype=dtype), random_mask(size)
    return {
        "plain": lambda: data.clone().clone(),
        "by hand": lambda: torch.where(seen.clone(), data, 0).clone(),
        FINITE: lambda: (data * seen.clone()).clone(),
        "masked": lambda: mt.masked_tensor(data, seen).filled(0),
    }


def samples(width: int, how: str, _: int, dtype: torch.dtype) -> Candidates:
    """64 samples: ``torch.stack`` of them, of ``x[i]`` as a Dataset gives them, ``list(x)`` or ``mt.collate``."""
    data, seen, x = table(64, width, dtype)
    parts, masks, ours = list(data), list(seen), list(x)
    if how == "stack":
        return {
            "plain": lambda: torch.stack(parts),
            "by hand": lambda: both(torch.stack(parts), torch.stack(masks)),
            "masked": lambda: torch.stack(ours),
        }
    if how == "collate":
        theirs = torch.utils.data.default_collate
        return {
            "plain": lambda: theirs(parts),
            "by hand": lambda: both(*theirs(list(zip(parts, masks, strict=True)))),
            "masked": lambda: mt.collate(ours),
        }
    if how == "list":
        return {
            "plain": lambda: list(data)[-1],
            "by hand": lambda: both(*list(zip(data, seen, strict=True))[-1]),
            "masked": lambda: list(x)[-1],
        }
    return {
        "plain": lambda: torch.stack([data[i] for i in range(64)]),
        "by hand": lambda: both(torch.stack([data[i] for i in range(64)]), torch.stack([seen[i] for i in range(64)])),
        "masked": lambda: torch.stack([x[i] for i in range(64)]),
    }


def shuffled(size: int, dtype: torch.dtype) -> Candidates:
    """``x[order]``: all rows of 20 in a random order."""
    data, seen, x = table(size // 20, 20, dtype)
    order = torch.randperm(size // 20)
    return {
        "plain": lambda: data[order],
        "by hand": lambda: both(data[order], seen[order]),
        "masked": lambda: x[order],
    }


def groups(shape: tuple[int, ...], number: int, op: str, _: int, dtype: torch.dtype) -> Candidates:
    """The mean of each group; a group without a valid entry is not there."""
    data, seen, index = torch.randn(shape, dtype=dtype), random_mask(*shape), torch.randint(number, shape[:1])
    x, wide = mt.masked_tensor(data, seen), index.reshape(-1, *[1] * (len(shape) - 1)).expand(shape)
    zeros = torch.zeros(number, *shape[1:], dtype=dtype)

    def mean(values: Tensor, weight: Tensor) -> Tensor:
        """In float32: bfloat16 counts to 256."""
        total, number = (zeros.float().index_add(0, index, added) for added in (values.float(), weight))
        return (total / number).to(dtype)

    def reduced(given: Any) -> Any:
        if op == "index_reduce":
            return zeros.index_reduce(0, index, given, "mean", include_self=False)
        if op == "scatter_reduce":
            return zeros.scatter_reduce(0, wide, given, "mean", include_self=False)
        return zeros.scatter_add(0, wide, given)

    if op == "scatter_add":
        return {
            "plain": lambda: reduced(data),
            "by hand": lambda: reduced(torch.where(seen, data, 0)),
            FINITE: lambda: reduced(data * seen),
            "masked": lambda: reduced(x),
        }
    return {
        "plain": lambda: reduced(data),
        "by hand": lambda: mean(torch.where(seen, data, 0), seen.float()),
        FINITE: lambda: mean(data * seen, seen.float()),
        "masked": lambda: reduced(x),
    }


def labels(backward: bool, extra: str, _: int, dtype: torch.dtype) -> Candidates:
    """Cross entropy of 512 x 10, 30 % of the labels masked."""
    scores = torch.randn(512, 10, dtype=dtype, requires_grad=backward)
    target, known = torch.randint(10, (512,)), random_mask(512)
    options: dict[str, Any] = {"weight": torch.rand(10, dtype=dtype)} if "weights" in extra else {}
    if "smoothing" in extra:
        options["label_smoothing"] = 0.1
    y = mt.masked_tensor(target, known)

    def step(loss: Callable[[], Tensor]) -> Callable[[], Tensor]:
        def run() -> Tensor:
            value = loss()
            if backward:
                value.backward()  # type: ignore[no-untyped-call]
                scores.grad = None
            return value.detach()

        return run

    return {
        "plain": step(lambda: F.cross_entropy(scores, target, **options)),
        "by hand": step(lambda: F.cross_entropy(scores, torch.where(known, target, -100), **options)),
        FINITE: step(lambda: F.cross_entropy(scores[known], target[known], **options)),
        "masked": step(lambda: F.cross_entropy(scores, y, **options).filled(0)),  # type: ignore[attr-defined]
    }


def invalid(size: int, dtype: torch.dtype) -> Candidates:
    data = torch.where(random_mask(size), torch.randn(size, dtype=dtype), NAN)

    def by_hand() -> Tensor:
        return both(data, data.isfinite())

    return {"plain": lambda: data.clone(), "by hand": by_hand, "masked": lambda: mt.masked_invalid(data)}


def cast(size: int, dtype: torch.dtype) -> Candidates:
    """To float64; by hand the mask stays as it is."""
    data, seen = torch.randn(size, dtype=dtype), random_mask(size)
    zeros, x = torch.where(seen, data, 0), mt.masked_tensor(data, seen)
    return {
        "plain": lambda: data.to(torch.float64),
        "by hand": lambda: (zeros.to(torch.float64), seen)[0],
        "masked": lambda: x.to(torch.float64),
    }


def min_max(rows: int, _: int, dtype: torch.dtype) -> Candidates:
    """Each of 20 columns from 0 to 1."""
    data, seen, x = table(rows, 20, dtype)

    def scaled(values: Any) -> Any:
        low = values.amin(0)
        return (values - low) / (values.amax(0) - low)

    def by_hand() -> Tensor:
        low = torch.where(seen, data, torch.inf).amin(0)
        high = torch.where(seen, data, -torch.inf).amax(0)
        return torch.where(seen, (data - low) / (high - low), 0)

    return {"plain": lambda: scaled(data), "by hand": by_hand, "masked": lambda: scaled(x)}


def fill_mean(rows: int, _: int, dtype: torch.dtype) -> Candidates:
    """Each gap becomes the mean of its column."""
    data, seen, x = table(rows, 20, dtype)
    return {
        "plain": lambda: torch.where(seen, data, data.mean(0)),
        "by hand": lambda: torch.where(seen, data, torch.where(seen, data, 0).sum(0) / seen.sum(0)),
        FINITE: lambda: torch.where(seen, data, (data * seen).sum(0) / seen.sum(0)),
        "masked": lambda: x.filled(x.mean(0).filled(0)),
    }


def any_valid(size: int, dtype: torch.dtype) -> Candidates:
    """``x.get_mask().any()``: the mask is handed out as a copy."""
    seen = random_mask(size)
    x = mt.masked_tensor(torch.randn(size, dtype=dtype), seen)
    return {"plain": lambda: seen.any(), "by hand": lambda: seen.any(), "masked": lambda: x.get_mask().any()}


def shown(_: int, dtype: torch.dtype) -> Candidates:
    """``repr`` of 100 x 20; by hand the gaps are NaN.  The texts differ, so that their lengths are not compared."""
    data, seen, x = table(100, 20, dtype)

    def text(value: Any) -> Tensor:
        return torch.tensor(float(len(repr(value)) > 0))

    return {
        "plain": lambda: text(data),
        "by hand": lambda: text(torch.where(seen, data, NAN)),
        "masked": lambda: text(x),
    }


TABLES = ((157, 64, "4"), (10_000, 8, "3"), (100_000, 20, "2"))
GROUPED = (((10_000,), 100), ((157, 64), 10), ((15_625, 64), 1000), ((1_000_000,), 1000))
CASES = [
    *(
        Case(f"from pandas, {rows:,} x {columns}", goal, partial(from_pandas, rows, columns), half=False)
        for rows, columns, goal in TABLES * bool(find_spec("pandas"))
    ),
    *(
        Case(f"from Arrow, {rows:,} x {columns}", goal, partial(from_arrow, rows, columns), half=False)
        for rows, columns, goal in TABLES * bool(find_spec("pyarrow"))
    ),
    Case("lists with None, 100 x 10", "3", from_lists, half=False),
    Case("masked_tensor(data, mask).filled(0)", "2", enter_and_leave, (1_000, 1_000_000)),
    *(
        Case(title.format(width=f"{width:,}"), goal, partial(samples, width, how))
        for how, title, goal in (
            ("stack", "stack of 64 samples of {width}", "2"),
            ("dataset", "x[i] and stack, 64 samples of {width}", "4"),
            ("list", "list(x), 64 samples of {width}", "3"),
            ("collate", "collate of 64 samples of {width}", "2"),
        )
        for width in (20, 10_000)
    ),
    Case("x[order], rows of 20", "2", shuffled, (10_000, 1_000_000)),
    *(
        Case(
            f"{op}, {' x '.join(f'{n:,}' for n in shape)} in {number:,} groups",
            "1.5",
            partial(groups, shape, number, op),
        )
        for op in ("scatter_reduce", "index_reduce", "scatter_add")
        for shape, number in (GROUPED if op != "scatter_add" else GROUPED[:1])
    ),
    *(
        Case(f"cross_entropy 512 x 10{extra}, {'both ways' if way else 'forward'}", "1.8", partial(labels, way, extra))
        for extra in ("", ", weights", ", smoothing", ", weights, smoothing")
        for way in (True, False)
    ),
    Case("masked_invalid", "1.5", invalid, (1_000, 1_000_000)),
    Case(".to(float64)", "3", cast, (1_000, 1_000_000)),
    Case("min-max of a table of 1000 x 20", "3", partial(min_max, 1000)),
    Case("min-max of a table of 50,000 x 20", "3", partial(min_max, 50_000)),
    Case("fill with the column mean, 1000 x 20", "3", partial(fill_mean, 1000)),
    Case("fill with the column mean, 50,000 x 20", "3", partial(fill_mean, 50_000)),
    Case("get_mask().any()", "2", any_valid, (1_000, 1_000_000)),
    Case("repr of 100 x 20", "2", shown, half=False),
]
