"""The steps of random programs that make a view or a new value, of a masked tensor and of its reference."""

import random
from collections.abc import Callable

import numpy as np
import torch

from .twins import Twin, basic_key, boolean, fresh, index, places_key

# ------------------------------------------------------------------------------------------- steps that make views


def by_key(rng: random.Random, t: Twin) -> Twin:
    key = basic_key(rng, t.data.shape)
    return Twin(t.x[key], t.data[key], t.mask[key])


def permuted(rng: random.Random, t: Twin) -> Twin:
    order = list(range(t.data.ndim))
    rng.shuffle(order)
    return Twin(t.x.permute(order), t.data.transpose(order), t.mask.transpose(order))


def transposed(rng: random.Random, t: Twin) -> Twin:
    if t.data.ndim > 2:
        return Twin(t.x.mT, t.data.swapaxes(-1, -2), t.mask.swapaxes(-1, -2))
    return Twin(t.x.t(), t.data.T, t.mask.T)


def unbound(rng: random.Random, t: Twin) -> Twin:
    if not t.data.ndim or not min(t.data.shape):
        return t
    dim = rng.randrange(t.data.ndim)
    k = rng.randrange(t.data.shape[dim])
    key = (slice(None),) * dim + (k, ...)
    return Twin(t.x.unbind(dim)[k], t.data[key], t.mask[key])


def unsqueezed(rng: random.Random, t: Twin) -> Twin:
    dim = rng.randint(0, t.data.ndim)
    return Twin(t.x.unsqueeze(dim), np.expand_dims(t.data, dim), np.expand_dims(t.mask, dim))


def flat(rng: random.Random, t: Twin) -> Twin:
    if not (t.x.is_contiguous() and t.data.flags.c_contiguous and t.mask.flags.c_contiguous):
        return t
    shape = rng.choice([(-1,), (1, -1), (*t.data.shape, 1)]) if t.data.size else t.data.shape
    return Twin(t.x.view(shape), t.data.reshape(shape), t.mask.reshape(shape))


def part(rng: random.Random, t: Twin) -> Twin:
    if not t.data.ndim:
        return t
    dim = rng.randrange(t.data.ndim)
    parts = t.x.chunk(2, dim) if rng.random() < 0.5 else t.x.split(1, dim)
    k = rng.randrange(len(parts))
    start = sum(p.shape[dim] for p in parts[:k])
    key = (slice(None),) * dim + (slice(start, start + parts[k].shape[dim]),)
    return Twin(parts[k], t.data[key], t.mask[key])


def diagonal(rng: random.Random, t: Twin) -> Twin:
    if t.data.ndim != 2 or t.data.shape[0] != t.data.shape[1]:
        return t
    return Twin(t.x.diagonal(), np.einsum("ii->i", t.data), np.einsum("ii->i", t.mask))


# ---------------------------------------------------------------------------------------- steps that make new values


def doubled(rng: random.Random, t: Twin) -> Twin:
    return Twin(t.x * 2, np.asarray(t.data * 2), t.mask.copy())


def rectified(rng: random.Random, t: Twin) -> Twin:
    return Twin(t.x.relu(), np.asarray(np.maximum(t.data, 0)), t.mask.copy())


def joined(rng: random.Random, t: Twin) -> Twin:
    other = fresh(rng, t.data.shape, plain=rng.random() < 0.5)
    if not t.data.ndim or rng.random() < 0.5:
        return Twin(torch.stack([t.x, other.x]), np.stack([t.data, other.data]), np.stack([t.mask, other.mask]))
    dim = rng.randrange(t.data.ndim)
    joined = [np.concatenate([a, b], dim) for a, b in ((t.data, other.data), (t.mask, other.mask))]
    return Twin(torch.cat([t.x, other.x], dim), *joined)


def flipped(rng: random.Random, t: Twin) -> Twin:
    dims = [d for d in range(t.data.ndim) if rng.random() < 0.5]
    return Twin(t.x.flip(dims), np.array(np.flip(t.data, dims)), np.array(np.flip(t.mask, dims)))


def gathered(rng: random.Random, t: Twin) -> Twin:
    if not t.data.ndim or not t.data.shape[0]:
        return t
    key, places = index(rng, t.data.shape[0], unique=False)
    result = t.x[key] if rng.random() < 0.5 else t.x.index_select(0, key)
    data = np.stack([t.data[p or 0] for p in places])
    mask = np.stack([t.mask[p] if p is not None else np.zeros_like(t.mask[0]) for p in places])
    return Twin(result, data, mask)


def looked_up(rng: random.Random, t: Twin) -> Twin:
    if t.data.ndim < 2 or not min(t.data.shape):
        return t
    key, plain, known = places_key(rng, t, unique=False)
    data, mask = t.data[plain], t.mask[plain]
    return Twin(t.x[key], data, mask & np.broadcast_to(known, mask.shape))


def chosen(rng: random.Random, t: Twin) -> Twin:
    key, where, known = boolean(rng, t.data.shape)
    result = t.x[key] if t.data.ndim and rng.random() < 0.5 else t.x.masked_select(key)
    return Twin(result, t.data[where & known], t.mask[where & known])


def filled(rng: random.Random, t: Twin) -> Twin:
    key, where, known = boolean(rng, t.data.shape)
    return Twin(t.x.masked_fill(key, 5.0), np.where(where, 5.0, t.data), t.mask & known)


def either(rng: random.Random, t: Twin) -> Twin:
    key, where, known = boolean(rng, t.data.shape)
    other = fresh(rng, t.data.shape, plain=rng.random() < 0.3)
    mask = np.asarray(known & np.where(where, t.mask, other.mask))
    return Twin(torch.where(key, t.x, other.x), np.where(where, t.data, other.data), mask)


Step = Callable[[random.Random, Twin], Twin]
VIEWS: list[Step] = [by_key, permuted, transposed, unsqueezed, flat, part, unbound, diagonal]
VALUES: list[Step] = [doubled, rectified, joined, flipped, gathered, looked_up, chosen, filled, either]
