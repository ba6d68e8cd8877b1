"""Recurrent nets, tables, products, transforms, convolutions and norms of ``everyday.py``, at small ordinary sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from .everyday_case import Case, random_mask
from .everyday_models import steps
from .packed import batch
from .timing import Candidates

NAN = float("nan")


def recurrent(net: type[nn.RNNBase], wanted: str, dtype: torch.dtype) -> Candidates:
    """A net whose last cell state nobody reads, on sequences padded on the right; by hand the padded kernel."""
    model = net(64, 64, batch_first=True).to(dtype)
    valid, data = batch((16, 64), 0.5)[..., None], torch.randn(16, 64, 64, dtype=dtype)
    x, zeros, last = mt.masked_tensor(data, valid), data * valid, valid.sum((1, 2)) - 1
    rows, weight = torch.arange(16), valid / (valid.sum() * 64)

    def state(result: Any) -> Any:
        return (result[1][0] if net is nn.LSTM else result[1])[-1].square().mean()

    def all_steps(given: Tensor) -> Tensor:
        return (model(given)[0].square() * weight).sum().to(dtype)

    def last_step(given: Any) -> Any:
        return model(given)[0][rows, last].square().mean()

    if wanted == "all steps":
        return steps(
            model,
            {
                "plain": lambda: model(data)[0].square().mean(),
                "by hand": lambda: all_steps(zeros),
                "masked": lambda: model(x)[0].square().mean().filled(0),
            },
        )
    ours = last_step if wanted == "last step gathered" else lambda given: state(model(given))
    return steps(
        model,
        {
            "plain": lambda: last_step(data),
            "by hand": lambda: last_step(zeros),
            "masked": lambda: ours(x).filled(0),
        },
    )


def table(size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rows of 20, 30 % of which is missing."""
    return torch.randn(size // 20, 20, dtype=dtype), random_mask(size // 20, 20)


def covariance(size: int, dtype: torch.dtype, correlation: bool = False) -> Candidates:
    """Of the columns of a table, over the rows in which both are present."""
    data, seen = table(size, dtype)
    x = mt.masked_tensor(data, seen)

    def by_hand() -> Tensor:
        present = seen.to(dtype)
        centred = torch.where(seen, data - torch.where(seen, data, 0).sum(0) / present.sum(0), 0)
        number, sums = present.T @ present, centred.T @ present
        products = centred.T @ centred - sums * sums.T / number
        if not correlation:
            return products / (number - 1)
        squares = centred.square().T @ present - sums * sums / number
        return products / (squares * squares.T).sqrt()

    call: Callable[[Any], Any] = torch.corrcoef if correlation else torch.cov
    return {"plain": lambda: call(data.T), "by hand": by_hand, "masked": lambda: call(x.T)}


def median(size: int, dtype: torch.dtype) -> Candidates:
    """Of a table whose gaps are NaN already."""
    data, seen = table(size, dtype)
    gaps = torch.where(seen, data, NAN)
    x = mt.masked_invalid(gaps)
    return {
        "plain": lambda: data.median(0).values,
        "by hand": lambda: gaps.nanmedian(0).values,
        "masked": lambda: x.median(0).values,
    }


def distances(rows: int, dtype: torch.dtype) -> Candidates:
    """Of rows of 100, over the coordinates that both rows have."""
    (data, seen), (other, known) = ((torch.randn(rows, 100, dtype=dtype), random_mask(rows, 100)) for _ in range(2))
    x, y = mt.masked_tensor(data, seen), mt.masked_tensor(other, known)

    def by_hand() -> Tensor:
        a, b = torch.where(seen, data, 0), torch.where(known, other, 0)
        p, q = seen.to(dtype), known.to(dtype)
        return (a.square() @ q.T + p @ b.square().T - 2 * (a @ b.T)).clamp_min(0).sqrt()

    return {
        "plain": lambda: torch.cdist(data.float(), other.float()).to(dtype),
        "by hand": by_hand,
        "masked": lambda: torch.cdist(x.float(), y.float()).to(dtype),
    }


def rfft(rows: int, dtype: torch.dtype) -> Candidates:
    """Of signals of 512 samples, some of which are masked as a whole."""
    data, seen = torch.randn(rows, 512), random_mask(rows, 1).repeat(1, 512)
    x = mt.masked_tensor(data, seen)
    return {
        "plain": lambda: torch.view_as_real(torch.fft.rfft(data)),
        "by hand": lambda: torch.view_as_real(torch.fft.rfft(torch.where(seen, data, 0))),
        "masked": lambda: torch.view_as_real(torch.fft.rfft(x)),  # type: ignore[arg-type]
    }


def einsum(rows: int, dtype: torch.dtype) -> Candidates:
    """Scores of queries and keys of four heads."""
    (data, seen), (other, known) = (
        (torch.randn(8, rows, 4, 16, dtype=dtype), random_mask(8, rows, 4, 16)) for _ in range(2)
    )
    x, y = mt.masked_tensor(data, seen), mt.masked_tensor(other, known)
    scores: Callable[..., Any] = partial(torch.einsum, "bqhd,bkhd->bhqk")
    return {
        "plain": lambda: scores(data, other),
        "by hand": lambda: scores(torch.where(seen, data, 0), torch.where(known, other, 0)),
        "masked": lambda: scores(x, y),
    }


def convolution(dims: int, dtype: torch.dtype) -> Candidates:
    """One layer on padded rows, or on pixels that are masked at random, both ways."""
    sizes: tuple[int, ...] = ((128,), (32, 32), (12, 12, 12))[dims - 1]
    kind: Any = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    model = kind(16, 16, 3, padding=1).to(dtype)
    seen = batch((16, *sizes), 0.5)[:, None] if dims == 1 else random_mask(16, 1, *sizes, share=0.1)
    data = torch.randn(16, 16, *sizes, dtype=dtype)
    x, weight = mt.masked_tensor(data, seen), seen / (seen.sum() * 16)
    return steps(
        model,
        {
            "plain": lambda: model(data).square().mean(),
            "by hand": lambda: (model(torch.where(seen, data, 0)).square() * weight).sum().to(dtype),
            "masked": lambda: model(x).square().mean().filled(0),
        },
    )


def channels(dtype: torch.dtype) -> tuple[Tensor, Tensor, Any]:
    """A batch of 16 sequences of 128 steps and 32 channels, half of it padding."""
    seen, data = batch((16, 128), 0.5)[:, None], torch.randn(16, 32, 128, dtype=dtype)
    return data, seen, mt.masked_tensor(data, seen)


def group_norm(_: int, dtype: torch.dtype) -> Candidates:
    """Of 4 groups of channels, both ways."""
    data, seen, x = channels(dtype)
    model = nn.GroupNorm(4, 32).to(dtype)
    number, weight = seen.sum((1, 2), keepdim=True)[..., None] * 8, seen / (seen.sum() * 32)

    def by_hand() -> Tensor:
        groups, inside = data.unflatten(1, (4, 8)), seen[:, None]
        mean = torch.where(inside, groups, 0).sum((2, 3), keepdim=True) / number
        centred = torch.where(inside, groups - mean, 0)
        variance = centred.square().sum((2, 3), keepdim=True) / number
        result = (centred * (variance + model.eps).rsqrt()).flatten(1, 2)
        result = result * model.weight[:, None] + model.bias[:, None]
        return (result.square() * weight).sum().to(dtype)

    return steps(
        model,
        {
            "plain": lambda: model(data).square().mean(),
            "by hand": by_hand,
            "masked": lambda: model(x).square().mean().filled(0),
        },
    )


def batch_norm(_: int, dtype: torch.dtype) -> Candidates:
    """In training, with running statistics, both ways."""
    data, seen, x = channels(dtype)
    model = nn.BatchNorm1d(32).to(dtype)
    weight = seen / (seen.sum() * 32)

    def by_hand() -> Tensor:
        number = seen.sum()
        mean = torch.where(seen, data, 0).sum((0, 2), keepdim=True) / number
        centred = torch.where(seen, data - mean, 0)
        variance = centred.square().sum((0, 2), keepdim=True) / number
        with torch.no_grad():
            model.running_mean.lerp_(mean.flatten().to(dtype), 0.1)
            model.running_var.lerp_((variance * number / (number - 1)).flatten().to(dtype), 0.1)
        result = centred * (variance + model.eps).rsqrt() * model.weight[:, None] + model.bias[:, None]
        return (result.square() * weight).sum().to(dtype)

    return steps(
        model,
        {
            "plain": lambda: model(data).square().mean(),
            "by hand": by_hand,
            "masked": lambda: model(x).square().mean().filled(0),
        },
    )


TABLES = (20_000, 1_000_000)
WANTED = ("all steps", "last step gathered", "last state")
RECURRENT = [
    Case(f"{net.__name__}, padded on the right, {wanted}", "1.2", lambda _, d, s=(net, wanted): recurrent(*s, d))
    for net in (nn.LSTM, nn.GRU)
    for wanted in WANTED
]
CASES = [
    *RECURRENT,
    Case("covariance of a table's 20 columns", "1.3", covariance, TABLES, tolerance=0.1),
    Case("correlation of a table's 20 columns", "1.3", partial(covariance, correlation=True), TABLES, tolerance=0.1),
    Case("median per column of 20, gaps are NaN", "1.3", median, TABLES),
    Case("cdist, 100 x 100", "2", lambda _, dtype: distances(100, dtype), tolerance=0.1),
    Case("cdist, 1000 x 100", "2", lambda _, dtype: distances(1000, dtype), tolerance=0.1, heavy=True),
    Case("rfft, 256 x 512, rows masked", "2", lambda _, dtype: rfft(256, dtype), half=False),
    Case("einsum, scores of 8 x 32 x 4 x 16", "2", lambda _, dtype: einsum(32, dtype), tolerance=0.1),
    *(Case(f"conv{dims}d, both ways", "2", lambda _, dtype, dims=dims: convolution(dims, dtype)) for dims in (1, 2, 3)),
    Case("GroupNorm, padded, both ways", "2", group_norm),
    Case("BatchNorm, padded, both ways", "2", batch_norm),
]
