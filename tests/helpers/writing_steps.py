"""The steps of random programs that write: into a masked tensor, and into its reference as if the mask were soft."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

import masked_tensor as mt

from .twins import Twin, basic_key, boolean, fresh, index, places_key


def assign_number(rng: random.Random, t: Twin) -> None:
    key, value = basic_key(rng, t.data.shape), float(rng.randint(-9, 9))
    t.x[key] = value
    t.data[key], t.mask[key] = value, True


def assign_tensor(rng: random.Random, t: Twin) -> None:
    key = basic_key(rng, t.data.shape)
    source = fresh(rng, t.data[key].shape, plain=rng.random() < 0.3)
    if rng.random() < 0.5:
        t.x[key] = source.x
    else:
        t.x[key].copy_(source.x)
    t.data[key], t.mask[key] = source.data, source.mask


def assign_where(rng: random.Random, t: Twin) -> None:
    where = fresh(rng, t.data.shape)
    key = mt.as_masked_tensor(torch.from_numpy(np.asarray(where.data > 0)), torch.from_numpy(where.mask))
    if not where.mask.ndim and not where.mask:  # torch reads a key of no dimensions as a number
        with pytest.raises(mt.MaskedValueError):
            t.x[key] = 4.0
        return
    t.x[key] = 4.0
    chosen = (where.data > 0) & where.mask
    t.data[chosen], t.mask[chosen] = 4.0, True


def assign_rows(rng: random.Random, t: Twin) -> None:
    if not t.data.ndim or not t.data.shape[0]:
        return
    key, places = index(rng, t.data.shape[0], unique=True)
    source = fresh(rng, (len(places), *t.data.shape[1:]), plain=rng.random() < 0.3)
    if rng.random() < 0.5:
        t.x[key] = source.x
    else:
        t.x.index_copy_(0, key, source.x)
    for k, place in enumerate(places):
        if place is not None:
            t.data[place], t.mask[place] = source.data[k], source.mask[k]


def assign_places(rng: random.Random, t: Twin) -> None:
    """Keys of several kinds at once: slices, new axes and integers, masked in part."""
    if t.data.ndim < 2 or not min(t.data.shape):
        return
    key, plain, known = places_key(rng, t, unique=True)
    source = fresh(rng, t.data[plain].shape, plain=rng.random() < 0.3)
    t.x[key] = source.x
    numbers = np.arange(t.data.size).reshape(t.data.shape)[plain]
    for where in np.argwhere(np.broadcast_to(known, numbers.shape)):
        place = np.unravel_index(numbers[tuple(where)], t.data.shape)
        t.data[place], t.mask[place] = source.data[tuple(where)], source.mask[tuple(where)]


def add_rows(rng: random.Random, t: Twin) -> None:
    if not t.data.ndim or not t.data.shape[0]:
        return
    key, places = index(rng, t.data.shape[0], unique=False)
    source = fresh(rng, (len(places), *t.data.shape[1:]))
    t.x.index_add_(0, key, source.x)
    for k, place in enumerate(places):
        if place is not None:
            old = np.where(t.mask[place], t.data[place], 0) + np.where(source.mask[k], source.data[k], 0)
            t.data[place], t.mask[place] = old, t.mask[place] | source.mask[k]


def add(rng: random.Random, t: Twin) -> None:
    key = basic_key(rng, t.data.shape)
    if rng.random() < 0.5:
        t.x[key] += 1
        t.data[key] += 1
        return
    other = fresh(rng, t.data[key].shape)
    t.x[key] += other.x
    t.data[key] += other.data
    t.mask[key] &= other.mask


def multiply(rng: random.Random, t: Twin) -> None:
    other = fresh(rng, t.data.shape[1:], plain=rng.random() < 0.3)
    t.x *= other.x
    t.data *= other.data
    t.mask &= other.mask


def fill(rng: random.Random, t: Twin) -> None:
    if rng.random() < 0.5:
        t.x.fill_(3)
        t.data[...] = 3
    else:
        t.x.zero_()
        t.data[...] = 0


def fill_masked(rng: random.Random, t: Twin) -> None:
    key, where, known = boolean(rng, t.data.shape)
    t.x.masked_fill_(key, 6)
    t.data[where] = 6
    t.mask[...] &= known


def fill_rows(rng: random.Random, t: Twin) -> None:
    if not t.data.ndim or not t.data.shape[0]:
        return
    key, places = index(rng, t.data.shape[0], unique=False)
    if rng.random() < 0.5:
        t.x[key] = 7.0
    else:
        t.x.index_fill_(0, key, 7.0)
    for place in places:
        if place is not None:
            t.data[place], t.mask[place] = 7.0, True


def scatter_masked(rng: random.Random, t: Twin) -> None:
    key, where, known = boolean(rng, t.data.shape)
    source = fresh(rng, t.data.shape, plain=rng.random() < 0.3)
    t.x.masked_scatter_(key, source.x)
    where, n = where & known, int((where & known).sum())
    t.data[where], t.mask[where] = source.data.reshape(-1)[:n], source.mask.reshape(-1)[:n]


def scatter_rows(rng: random.Random, t: Twin) -> None:
    """``scatter_`` along the first dimension, the same index for every column."""
    if not t.data.ndim or not min(t.data.shape):
        return
    key, places = index(rng, t.data.shape[0], unique=True)
    source = fresh(rng, (len(places), *t.data.shape[1:]), plain=rng.random() < 0.3)
    t.x.scatter_(0, _columns(key, source), source.x)
    for k, place in enumerate(places):
        if place is not None:
            t.data[place], t.mask[place] = source.data[k], source.mask[k]


def reduce_rows(rng: random.Random, t: Twin) -> None:
    """``scatter_add_`` and ``scatter_reduce_``: what is masked takes no part."""
    if not t.data.ndim or not min(t.data.shape):
        return
    key, places = index(rng, t.data.shape[0], unique=False)
    source = fresh(rng, (len(places), *t.data.shape[1:]))
    reduce, ufunc, identity = rng.choice([("sum", np.add, 0.0), ("amax", np.maximum, -np.inf)])
    if reduce == "sum" and rng.random() < 0.5:
        t.x.scatter_add_(0, _columns(key, source), source.x)
    else:
        t.x.scatter_reduce_(0, _columns(key, source), source.x, reduce)
    for k, place in enumerate(places):
        if place is not None:
            new = np.where(source.mask[k], source.data[k], identity)
            result = ufunc(np.where(t.mask[place], t.data[place], identity), new)
            t.data[place] = np.where(np.isinf(result), 0, result)
            t.mask[place] = t.mask[place] | source.mask[k]


def _columns(key: torch.Tensor, source: Twin) -> torch.Tensor:
    return key.reshape(-1, *(1,) * (source.data.ndim - 1)).expand(source.data.shape)


def put(rng: random.Random, t: Twin) -> None:
    if not t.data.size:
        return
    key, places = index(rng, t.data.size, unique=True)
    source = fresh(rng, (len(places),), plain=rng.random() < 0.3)
    t.x.put_(key, source.x)
    for k, place in enumerate(places):
        if place is not None:
            where = np.unravel_index(place, t.data.shape)
            t.data[where], t.mask[where] = source.data[k], source.mask[k]


def harden(rng: random.Random, t: Twin) -> None:
    t.family.hard = not t.family.hard
    if t.family.hard:
        t.x.harden_mask()
    else:
        t.x.soften_mask()


WRITES: list[Callable[[random.Random, Twin], None]] = [
    *(assign_number, assign_tensor, assign_where, assign_rows, assign_places, add_rows, add, multiply, fill),
    *(fill_masked, fill_rows, scatter_masked, scatter_rows, reduce_rows, put, harden),
]
