"""Steps of random programs that a packed tensor and its strided form both run: each is made for a shape, then replayed.

A maker gets a source of choices and the shape (and dtype) it is made for, and returns a function of a tensor, or None
if the shape is not one for it.  What it needs beside the tensor is drawn once, so that both runs get the same.
"""

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Step = Callable[[Any], Any]
Maker = Callable[[random.Random, Tensor], Step | None]


def drawn(rng: random.Random, shape: Any, positive: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    x = torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
    return x.abs() + 0.5 if positive else x


def broadcastable(rng: random.Random, shape: Any) -> tuple[int, ...]:
    sizes = tuple(1 if rng.random() < 0.4 else n for n in shape)
    return sizes[rng.randint(0, len(sizes)) :] if rng.random() < 0.3 else sizes


def unary(rng: random.Random, x: Tensor) -> Step:
    names = "exp tanh sigmoid relu abs neg square sin erf cos logit frac floor isnan signbit isfinite"
    op = getattr(torch, rng.choice(names.split()))
    return lambda x: op(x.double())


def activation(rng: random.Random, x: Tensor) -> Step:
    names = "gelu silu elu leaky_relu softplus hardswish logsigmoid selu mish softsign"
    op = getattr(F, rng.choice(names.split()))
    return lambda x: op(x.double())


def number(rng: random.Random, x: Tensor) -> Step:
    op, value = rng.choice([torch.add, torch.mul, torch.sub, torch.div, torch.maximum, torch.pow]), rng.choice([2, 0.5])
    if op is torch.maximum:
        return lambda x: torch.maximum(x.double(), torch.tensor(value, dtype=torch.float64))
    return lambda x: op(x, value)


def plain_operand(rng: random.Random, x: Tensor) -> Step:
    other = drawn(rng, broadcastable(rng, x.shape))
    op = rng.choice([torch.add, torch.mul, torch.sub, torch.lt, torch.atan2, torch.hypot])
    return (lambda x: op(x, other)) if rng.random() < 0.7 else (lambda x: op(other, x))


def wider_operand(rng: random.Random, x: Tensor) -> Step:
    other = drawn(rng, (2, *x.shape))
    return lambda x: x * other


def parameter(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    w = drawn(rng, x.shape[-1:]).requires_grad_()
    return with_parameters(lambda x: x.double() * w, w)


def with_parameters(step: Step, *parameters: Tensor) -> Step:
    step.parameters = parameters  # type: ignore[attr-defined]
    return step


def rounding(step: Step) -> Step:
    """From here on a gradient is only as exact as a short dtype lets it be."""
    step.rounds = True  # type: ignore[attr-defined]
    return step


def permuted(rng: random.Random, x: Tensor) -> Step:
    dims = list(range(x.dim()))
    rng.shuffle(dims)
    return lambda x: x.permute(dims)


def transposed(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    a, b = rng.sample(range(x.dim()), 2)
    return lambda x: x.transpose(a, b)


def reshaped(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    kind, at = rng.random(), rng.randrange(x.dim() - 1)
    if kind < 0.4:
        return lambda x: x.reshape(*x.shape[:at], -1, *x.shape[at + 2 :])
    even = [d for d in range(x.dim()) if x.shape[d] % 2 == 0 and x.shape[d] > 0]
    if not even:
        return lambda x: x.reshape(-1)
    d = rng.choice(even)
    half = (2, -1) if rng.random() < 0.5 else (x.shape[d] // 2, 2)
    return lambda x: x.unflatten(d, half)


def unsqueezed(rng: random.Random, x: Tensor) -> Step:
    dim = rng.randint(0, x.dim())
    return lambda x: x.unsqueeze(dim)


def squeezed(rng: random.Random, x: Tensor) -> Step:
    return lambda x: x.squeeze()


def repeated(rng: random.Random, x: Tensor) -> Step:
    dim = rng.randint(0, x.dim())
    return lambda x: (
        x.unsqueeze(dim).expand(*x.shape[:dim], 3, *x.shape[dim:]).reshape(*x.shape[:dim], 3, *x.shape[dim:])
    )


def selected(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 3:
        return None
    dim = rng.randrange(x.dim())
    k = rng.randrange(-x.shape[dim], x.shape[dim])
    return lambda x: x.select(dim, k)


def sliced(rng: random.Random, x: Tensor) -> Step | None:
    dim = rng.randrange(x.dim())
    if x.shape[dim] < 2:
        return None
    start, step = rng.randrange(x.shape[dim] - 1), rng.randint(1, 2)
    key = (slice(None),) * dim + (slice(start, None, step),)
    return lambda x: x[key]


def halved(rng: random.Random, x: Tensor) -> Step:
    dim = rng.randrange(x.dim())
    return lambda x: x.chunk(2, dim)[0] * 2


def unbound(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 3:
        return None
    dim = rng.randrange(x.dim())
    return lambda x: x.unbind(dim)[-1].cos()


def filled_where(rng: random.Random, x: Tensor) -> Step:
    where = drawn(rng, x.shape) > 0
    return lambda x: x.double().masked_fill(where, -3.0)


def chosen(rng: random.Random, x: Tensor) -> Step:
    other, condition = drawn(rng, broadcastable(rng, x.shape)), drawn(rng, x.shape) > 0
    kind = rng.randrange(4)
    if kind == 0:
        return lambda x: torch.where(x.double() > 0, x.double(), other)
    if kind == 1:
        return lambda x: torch.where(condition, x.double(), other)
    if kind == 2:
        return lambda x: torch.where(condition, x.double(), x.double() * 2)
    return lambda x: torch.where(condition, x.double(), 0.0)


def cast(rng: random.Random, x: Tensor) -> Step:
    dtype = rng.choice([torch.float32, torch.float64, torch.bfloat16])
    return rounding(lambda x: x.to(dtype))


def copied(rng: random.Random, x: Tensor) -> Step:
    return rng.choice([lambda x: x.clone(), lambda x: x.contiguous(), lambda x: torch.ones_like(x) + x])


def with_itself(rng: random.Random, x: Tensor) -> Step:
    return rng.choice(
        [lambda x: x.double() * x, lambda x: x + x.sin(), lambda x: torch.maximum(x.double(), x.cos().double())]
    )


def turned(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2 or x.shape[0] != x.shape[1]:
        return None
    return lambda x: x + x.transpose(0, 1)


def with_strided(rng: random.Random, x: Tensor) -> Step:
    return lambda x: x.double() * x.double().flip(0)


def in_place(rng: random.Random, x: Tensor) -> Step:
    other = drawn(rng, broadcastable(rng, x.shape))
    kind = rng.randrange(5)

    def write(x: Any) -> Any:
        y = x.double() * 1
        if kind == 0:
            y.mul_(2)
        elif kind == 1:
            y.add_(other)
        elif kind == 2:
            y.relu_()
        elif kind == 3:
            y += x.flip(0)
        else:
            y.masked_fill_(y > 0, 1.5)
        return y

    return write


def written(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    kind = rng.randrange(5)

    def write(x: Any) -> Any:
        y = x.double() * 1
        if kind == 0:
            y[0] = 4.0
        elif kind == 1:
            early = y.transpose(0, 1)
            y.transpose(0, 1)[-1].fill_(2.0)
            return early * y.transpose(0, 1)
        elif kind == 2:
            view = y.view(-1)
            y[..., 0] *= 3
            return view + y.reshape(-1)
        elif kind == 3:
            y.flip(0)
            y[-1] = x.double()[0]
        else:
            row = y[:, 0]
            row.mul_(2)
        return y

    return write


CORE: list[Maker] = [
    unary,
    activation,
    number,
    plain_operand,
    wider_operand,
    parameter,
    permuted,
    transposed,
    reshaped,
    unsqueezed,
    squeezed,
    repeated,
    selected,
    sliced,
    halved,
    unbound,
    filled_where,
    chosen,
    cast,
    copied,
    with_itself,
    turned,
    with_strided,
    in_place,
    written,
]
STEPS: list[Maker] = [*CORE]
