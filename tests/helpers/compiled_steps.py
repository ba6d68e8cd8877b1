"""Steps of random programs for the compiler: what writes into the input, reads the mask, or breaks the graph."""

import random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import masked_tensor as mt

from .packed_steps import Maker, Step, drawn, with_parameters


def _mask_of(x: Any) -> Tensor:
    return x.get_mask() if mt.is_masked_tensor(x) else torch.ones(x.shape, dtype=torch.bool)


def into_input(rng: random.Random, x: Tensor) -> Step:
    """A write that keeps the mask."""
    kind, other = rng.randrange(6), drawn(rng, x.shape[-1:])

    def write(x: Any) -> Any:
        if kind == 0:
            x.mul_(2)
        elif kind == 1:
            x += 1
        elif kind == 2:
            x.sin_()
        elif kind == 3:
            x[:, 1:].mul_(3)
        elif kind == 4:
            x.transpose(0, 1)[0].add_(other)
        else:
            x.masked_fill_(x > 1, 0.5)
        return x * 1 if kind % 2 else x

    return write


def into_view(rng: random.Random, x: Tensor) -> Step | None:
    """A write into a view of a new tensor that changes what is valid, seen in another view that is older or newer."""
    if x.dim() < 2:
        return None
    kind, other = rng.randrange(6), drawn(rng, x.shape)

    def write(x: Any) -> Any:
        y = x.double() * 1
        view = y.transpose(0, 1)
        if kind == 0:
            view[0] = 2.0
        elif kind == 1:
            y[:, -1:] = other[:, -1:]
        elif kind == 2:
            view[-1].copy_(y[:, 0])
        elif kind == 3:
            y[_mask_of(y) & (other > 0)] = 3.0
        elif kind == 4:
            y[0], y[-1] = y[-1].clone(), other[0]
        else:
            y.view(-1)[::2] *= mt.as_masked_tensor(other.view(-1), other.view(-1) > 0)[::2]
        return view.transpose(0, 1) + y

    return write


def of_mask(rng: random.Random, x: Tensor) -> Step:
    """Masks that are read, counted, and made inside of the graph."""
    kind, known = rng.randrange(7), drawn(rng, x.shape) > 0
    dim = rng.randrange(x.dim())

    def step(x: Any) -> Any:
        if kind == 0:
            return x.double() * _mask_of(x).double().cumsum(dim)
        if kind == 1:
            return x.double() + mt.count(x, dim, keepdim=True)
        if kind == 2:
            return mt.as_masked_tensor(mt.filled(x.double(), 1.0), _mask_of(x) & known)
        if kind == 3:
            return mt.as_masked_tensor(mt.filled(x.double(), torch.nan), _mask_of(x))
        if kind == 4:
            return mt.masked_where(known, x.double())
        if kind == 5:
            return mt.filled(x.double(), 0.25)
        return mt.masked_tensor(mt.filled(x.double(), 0.5), known | _mask_of(x))

    return step


def with_lengths(rng: random.Random, x: Tensor) -> Step | None:
    """Lengths that are known inside of the graph, in place of the mask."""
    if x.dim() < 2:
        return None
    kind = rng.randrange(3)

    def step(x: Any) -> Any:
        n = _mask_of(x).flatten(2).any(-1).sum(1) if x.dim() > 2 else _mask_of(x).sum(1)
        if kind == 0:
            return mt.from_lengths(mt.filled(x.double(), torch.nan), n) * 2
        if kind == 1:
            return mt.from_lengths(mt.filled(x.double(), 0.5), n).mean(1)
        return mt.from_lengths(mt.filled(x.double(), 0.5), n) + x

    return step


def under_meaning(rng: random.Random, x: Tensor) -> Step | None:
    """A setting that lasts for a few ops of the graph."""
    kind, other = rng.randrange(3), drawn(rng, x.shape)
    where = drawn(rng, x.shape) > 0
    if not x.dim() or (kind == 1 and x.dim() != 3):
        return None

    def step(x: Any) -> Any:
        b = mt.as_masked_tensor(other, where)
        if kind == 0:
            with mt.meaning(product="all"):
                y = x.double() @ other[..., :1].mT.reshape(-1)[: x.shape[-1]].expand(x.shape[-1])
            return y + (x.double() @ torch.ones(x.shape[-1], dtype=torch.float64))
        if kind == 1:
            with mt.meaning(convolution="any", renormalize=True):
                return F.avg_pool1d(x.double(), 2, 1)
        with mt.meaning(padding="tensor"):
            y = F.pad(x.double(), (0, 0, 1, 1)) if x.dim() > 1 else x
        return (x.double() * b).amax() + y

    return step


def series(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() < 2:
        return None
    dim = rng.randrange(x.dim())
    calls: list[Step] = [
        lambda x: mt.ffill(x.double(), dim),
        lambda x: mt.bfill(x.double(), dim),
        lambda x: x.double().diff(dim=dim),
        lambda x: x.double().roll(1, dim),
        lambda x: x.double().cumprod(dim),
        lambda x: x.double().median(dim).values,
        lambda x: x.double().kthvalue(1, dim).values,
        lambda x: F.pad(x.double(), (1, 0), value=2.0),
        lambda x: x.double().tril(),
        lambda x: x.double().std(dim, keepdim=True),
        lambda x: x.double().nanmean(dim),
        lambda x: (x.double() > 0).sum(dim),
        lambda x: x.double().index_select(dim, torch.tensor([0, 0])),
        lambda x: torch.einsum("ab...,ab...->a...", x.double(), x.double()),
    ]
    return rng.choice(calls)


def attended(rng: random.Random, x: Tensor) -> Step | None:
    if x.dim() != 3:
        return None
    w, causal = drawn(rng, (3, x.shape[-1], 4)).requires_grad_(), rng.random() < 0.5

    def step(x: Any) -> Any:
        q, k, v = (x.double() @ one for one in w)
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return with_parameters(step, w)


def breaking(rng: random.Random, x: Tensor) -> Step:
    """Two graphs, between which the tensor is handed over."""
    kind = rng.randrange(3)

    def step(x: Any) -> Any:
        view = x[..., :1]
        y = x.double() * 2
        torch._dynamo.graph_break()
        if kind == 0:
            y.mul_(2)
        return (view + y, y + view, y)[kind]

    return step


MASKED: list[Maker] = [
    into_view,
    into_view,
    of_mask,
    of_mask,
    of_mask,
    with_lengths,
    under_meaning,
    series,
    series,
    attended,
]
