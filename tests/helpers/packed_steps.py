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


def along(rng: random.Random, x: Tensor) -> Step | None:
    dim = rng.randrange(-x.dim(), x.dim())
    k = min(2, x.shape[dim])
    calls: list[Step] = [
        lambda x: x.double().softmax(dim),
        lambda x: x.double().log_softmax(dim),
        lambda x: x.double().cumsum(dim),
        lambda x: x.double().cummax(dim).values,
        lambda x: x.double().topk(k, dim).values,
        lambda x: x.double().sort(dim).values,
        lambda x: x.double().max(dim, keepdim=True).values,
        lambda x: x.double().argmax(dim),
        lambda x: F.normalize(x.double(), dim=dim),
    ]
    if x.shape[dim] % 2 == 0:
        calls.append(lambda x: F.glu(x.double(), dim))
    return rng.choice(calls)


def linear(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    n, m = x.shape[-1], rng.choice([1, 3, 4])
    w, b = drawn(rng, (m, n)).requires_grad_(), drawn(rng, (m,)).requires_grad_()
    kind = rng.randrange(4)
    if kind == 0 and x.dim() == 2:
        return with_parameters(lambda x: torch.addmm(b, x.double(), w.t()), w, b)
    if kind == 1 and x.dim() == 2:
        return with_parameters(lambda x: torch.mm(x.double(), w.t()), w)
    if kind == 2:
        return with_parameters(lambda x: x.double() @ w.t(), w)
    return with_parameters(lambda x: F.linear(x.double(), w, b), w, b)


def normalized(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    shape = x.shape[-rng.randint(1, min(2, x.dim() - 1)) :]
    w, b = drawn(rng, shape).requires_grad_(), drawn(rng, shape).requires_grad_()
    if rng.random() < 0.5:
        return with_parameters(lambda x: F.layer_norm(x.double(), shape, w, b), w, b)
    return with_parameters(lambda x: F.rms_norm(x.double(), shape, w, 1e-5), w)


def batch_normalized(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() not in (2, 3) or x.numel() <= x.shape[1]:
        return None
    w, b = drawn(rng, x.shape[1:2]).requires_grad_(), drawn(rng, x.shape[1:2]).requires_grad_()
    mean, var = torch.zeros(x.shape[1], dtype=torch.float64), torch.ones(x.shape[1], dtype=torch.float64)

    def step(x: Any) -> Any:
        running = mean.clone(), var.clone()
        y = F.batch_norm(x.double(), *running, w, b, training=True)
        return y * running[0].sum() + running[1].sum()

    return with_parameters(step, w, b)


def looked_up(rng: random.Random, x: Tensor) -> Step:
    table = drawn(rng, (5, rng.choice([1, 3]))).requires_grad_()
    if rng.random() < 0.3:
        return lambda x: F.one_hot((x.double().abs() * 100).long() % 5, 5) * 2.0
    return with_parameters(lambda x: F.embedding((x.double().abs() * 100).long() % 5, table), table)


def reduced(rng: random.Random, x: Tensor) -> Step:
    dims = tuple(rng.sample(range(-x.dim(), 0), rng.randint(1, x.dim())))
    keepdim = rng.random() < 0.5
    calls: list[Step] = [
        lambda x: x.double().sum(dims, keepdim),
        lambda x: x.double().mean(dims, keepdim),
        lambda x: x.double().amax(dims, keepdim),
        lambda x: x.double().logsumexp(dims, keepdim),
        lambda x: x.double().var(dims, correction=0, keepdim=keepdim),
        lambda x: x.double().norm(dim=dims, keepdim=keepdim),
        lambda x: (x.double() > 0.5).any(dims[0], keepdim),
        lambda x: x.double().prod(dims[0], keepdim),
        lambda x: x.double().sum(),
        lambda x: x.double().mean(),
        lambda x: x.double().max(),
        lambda x: x.double().norm(),
    ]
    return rng.choice(calls)


def lost(rng: random.Random, x: Tensor) -> Step:
    reduction = rng.choice(["none", "mean", "sum"])
    target = drawn(rng, broadcastable(rng, x.shape))
    op = rng.choice([F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss])
    if rng.random() < 0.4:
        return lambda x: op(x.double(), x.double().detach().sin() + 1, reduction=reduction)
    return lambda x: op(x.double(), target.expand(x.shape), reduction=reduction)


def classified(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    shape = (x.shape[0], *x.shape[2:])
    target = (drawn(rng, shape).abs() * 100).long() % x.shape[1]
    if rng.random() < 0.4:
        target[drawn(rng, shape) > 0.5] = -100
    weight = drawn(rng, x.shape[1:2], positive=True) if rng.random() < 0.3 else None
    reduction, smoothing = rng.choice(["none", "mean", "sum"]), rng.choice([0.0, 0.1])
    if rng.random() < 0.4:  # targets with the tensor's own mask
        return lambda x: F.cross_entropy(
            x.double(), x.double().argmax(1), weight, reduction=reduction, label_smoothing=smoothing
        )
    return lambda x: F.cross_entropy(x.double(), target, weight, reduction=reduction, label_smoothing=smoothing)


def joined(rng: random.Random, x: Tensor) -> Step:
    dim, plain = rng.randrange(-x.dim(), x.dim()), drawn(rng, x.shape)
    return rng.choice(
        [
            lambda x: torch.cat([x.double(), x.double() * 2], dim),
            lambda x: torch.stack([x.double(), x.double() * 2], dim),
            lambda x: torch.cat([x.double(), plain], dim),
        ]
    )


def convolved(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() != 3:
        return None
    k, d = rng.choice([1, 3, 5]), rng.choice([1, 2])
    groups = x.shape[1] if rng.random() < 0.3 else 1
    w, b = (
        drawn(rng, (2 * groups, x.shape[1] // groups, k)).requires_grad_(),
        drawn(rng, (2 * groups,)).requires_grad_(),
    )
    pad = rng.choice(["same", d * (k - 1) // 2])
    return with_parameters(lambda x: F.conv1d(x.double(), w, b, padding=pad, dilation=d, groups=groups), w, b)


def convolved_over_time(rng: random.Random, x: Tensor) -> Step | None:
    inner = convolved(rng, x.transpose(1, 2)) if x.dim() == 3 else None
    return inner and with_parameters(lambda x: inner(x.transpose(1, 2)).transpose(1, 2), *inner.parameters)


def gathered(rng: random.Random, x: Tensor) -> Step:
    dim = rng.randrange(-x.dim(), x.dim())
    return lambda x: x.double().gather(dim, x.double().argmax(dim, keepdim=True))


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
FORMS: list[Maker] = [
    along,
    linear,
    normalized,
    batch_normalized,
    looked_up,
    reduced,
    lost,
    classified,
    joined,
    gathered,
    convolved,
    convolved_over_time,
]
STEPS: list[Maker] = [*CORE, *FORMS, *FORMS]
