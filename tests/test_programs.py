"""Random programs of views, reads, writes and joins give what a slow pair of numpy arrays gives.

The reference holds data and validity as two numpy arrays; its views are numpy's views.  Every live tensor is compared
after every step, so that a write that reaches too far, or not far enough, is found at once.  The holes hold NaN, inf or
large numbers; the reference never looks there.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import masked_tensor as mt
from masked_tensor import MaskedTensor

PROGRAMS = 3000
STEPS = 8


@dataclass(eq=False)
class Twin:
    """One value in both worlds."""

    x: MaskedTensor
    data: np.ndarray
    mask: np.ndarray

    def differs(self) -> bool:
        seen = self.x.get_mask().numpy()
        values = self.x.filled(0.0).numpy()
        return not (np.array_equal(seen, self.mask) and np.array_equal(values, np.where(self.mask, self.data, 0.0)))


def fresh(rng: random.Random, shape: tuple[int, ...], plain: bool = False) -> Twin:
    """A new value; its mask may be constant along some dimensions (stride 0), its payload may be anything."""
    data = np.array([rng.randint(-9, 9) for _ in range(int(np.prod(shape)))], dtype=np.float64).reshape(shape)
    if plain:
        return Twin(torch.from_numpy(data.copy()), data, np.ones(shape, dtype=bool))  # type: ignore[arg-type]
    small = tuple(1 if rng.random() < 0.3 else n for n in shape)
    bits = np.array([rng.random() < 0.6 for _ in range(int(np.prod(small)))], dtype=bool).reshape(small)
    mask = torch.from_numpy(bits).expand(shape)
    payload = rng.choice([float("nan"), float("inf"), 1e30, None])
    values = torch.from_numpy(data.copy())
    x = mt.masked_tensor(values, mask)
    if payload is not None:
        x = mt.as_masked_tensor(torch.where(mask, values, payload), mask.clone() if rng.random() < 0.5 else mask)
    return Twin(x, data.copy(), mask.numpy().copy())


def basic_key(rng: random.Random, shape: tuple[int, ...], whole: bool = False) -> tuple:
    """Slices (with steps), integers and new axes."""
    key: list = []
    for size in shape[: rng.randint(0, len(shape))]:
        kind = rng.random()
        if kind < 0.3 and size and not whole:
            key.append(rng.randint(-size, size - 1))
        elif kind < 0.4:
            key += [None, slice(None)]
        else:
            start, stop = sorted((rng.randint(0, size), rng.randint(0, size)))
            key.append(slice(start, stop, rng.choice([None, 2])))
    return (*key, ...)


# ------------------------------------------------------------------------------------------- steps that make views


def by_key(rng: random.Random, t: Twin) -> Twin:
    key = basic_key(rng, t.data.shape)
    return Twin(t.x[key], t.data[key], t.mask[key])


def permuted(rng: random.Random, t: Twin) -> Twin:
    order = list(range(t.data.ndim))
    rng.shuffle(order)
    return Twin(t.x.permute(order), t.data.transpose(order), t.mask.transpose(order))


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


def index(rng: random.Random, size: int, unique: bool) -> tuple[torch.Tensor, list[int | None]]:
    """An integer index, half of them masked in part, with a payload out of range."""
    places: list[int | None] = [rng.randrange(size) for _ in range(rng.randint(1, 4))]
    if unique:
        places = list(dict.fromkeys(places))
    if rng.random() < 0.5:
        return torch.tensor(places), places
    places = [p if rng.random() < 0.6 else None for p in places]
    known = torch.tensor([p is not None for p in places])
    return mt.as_masked_tensor(torch.tensor([10**9 if p is None else p for p in places]), known), places


def gathered(rng: random.Random, t: Twin) -> Twin:
    if not t.data.ndim or not t.data.shape[0]:
        return t
    key, places = index(rng, t.data.shape[0], unique=False)
    result = t.x[key] if rng.random() < 0.5 else t.x.index_select(0, key)
    data = np.stack([t.data[p or 0] for p in places])
    mask = np.stack([t.mask[p] if p is not None else np.zeros_like(t.mask[0]) for p in places])
    return Twin(result, data, mask)


# ------------------------------------------------------------------------------------------------ steps that write


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


def fill(rng: random.Random, t: Twin) -> None:
    if rng.random() < 0.5:
        t.x.fill_(3)
        t.data[...], t.mask[...] = 3, True
    else:
        t.x.zero_()
        t.data[...], t.mask[...] = 0, True


def fill_masked(rng: random.Random, t: Twin) -> None:
    where = np.asarray(fresh(rng, t.data.shape).data > 0)
    t.x.masked_fill_(torch.from_numpy(where), 6)
    t.data[where] = 6


Step = Callable[[random.Random, Twin], Twin | None]
VIEWS: list[Step] = [by_key, permuted, unsqueezed, flat, part, diagonal]
VALUES: list[Step] = [doubled, rectified, joined, flipped, gathered]
WRITES: list[Step] = [assign_number, assign_tensor, assign_where, assign_rows, add_rows, add, fill, fill_masked]


@settings(max_examples=PROGRAMS, deadline=None)
@given(st.integers(0, 2**62))
def test_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    pool = [fresh(rng, tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))]
    program = []
    for _ in range(STEPS):
        target = rng.choice(pool)
        step = rng.choice(rng.choice([VIEWS, VIEWS, WRITES, WRITES, VALUES]))
        program.append(f"{step.__name__}({pool.index(target)})")
        result = step(rng, target)
        if result is not None:
            pool.append(result)
        for k, twin in enumerate(pool):
            assert not twin.differs(), f"tensor {k} after {program} (seed {seed})"


# -------------------------------------------------------------------------------------------------- with gradients


@dataclass(eq=False)
class Tracked:
    """A masked tensor, and the same program on plain data by torch's own autograd, with its validity beside it."""

    x: MaskedTensor
    data: torch.Tensor
    mask: torch.Tensor


def tracked_view(rng: random.Random, t: Tracked) -> Tracked:
    kind = rng.random()
    if kind < 0.5:
        key = basic_key(rng, tuple(t.data.shape))
        return Tracked(t.x[key], t.data[key], t.mask[key])
    if kind < 0.7:
        order = list(range(t.data.dim()))
        rng.shuffle(order)
        return Tracked(t.x.permute(order), t.data.permute(order), t.mask.permute(order))
    if kind < 0.85 and t.data.is_contiguous() and t.mask.is_contiguous() and t.x.is_contiguous():
        return Tracked(t.x.view(-1), t.data.view(-1), t.mask.view(-1))
    return Tracked(t.x.unsqueeze(0), t.data.unsqueeze(0), t.mask.unsqueeze(0))


def tracked_value(rng: random.Random, t: Tracked) -> Tracked:
    kind = rng.random()
    if kind < 0.4:
        return Tracked(t.x * 2, t.data * 2, t.mask.clone())
    if kind < 0.7:
        return Tracked(t.x * t.x, t.data * t.data, t.mask.clone())
    return Tracked(torch.stack([t.x, t.x]), torch.stack([t.data, t.data]), torch.stack([t.mask, t.mask]))


def tracked_write(
    rng: random.Random, t: Tracked, leaves: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
) -> None:
    kind, key = rng.random(), basic_key(rng, tuple(t.data.shape))
    source = fresh(rng, tuple(t.data[key].shape))
    mask = torch.from_numpy(np.asarray(source.mask))
    ours = source.x.requires_grad_()
    theirs = torch.from_numpy(np.asarray(source.data)).requires_grad_()
    leaves.append((ours, theirs, mask))
    if kind < 0.35:
        t.x[key] = ours * 3
        t.data[key], t.mask[key] = theirs * 3, mask
    elif kind < 0.55:
        t.x[key] += ours
        t.data[key] += theirs
        t.mask[key] &= mask
    elif kind < 0.7:
        t.x[key].mul_(ours)
        t.data[key] *= theirs
        t.mask[key] &= mask
    elif kind < 0.85:
        t.x[key] = 4.0
        t.data[key], t.mask[key] = 4.0, True
    else:
        t.x.mul_(2)
        t.data.mul_(2)


@settings(max_examples=PROGRAMS // 3, deadline=None)
@given(st.integers(0, 2**62))
def test_random_programs_with_gradients(seed: int) -> None:
    rng = random.Random(seed)
    start = fresh(rng, tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3))))
    mask = torch.from_numpy(start.mask)
    leaves = [(start.x.requires_grad_(), torch.from_numpy(start.data).requires_grad_(), mask)]
    pool = [Tracked(leaves[0][0] * 1, leaves[0][1] * 1, mask.clone())]
    program = []
    for _ in range(STEPS):
        target = rng.choice(pool)
        kind = rng.choice(["view", "view", "write", "write", "value"])
        program.append(f"{kind}({pool.index(target)})")
        if kind == "write":
            tracked_write(rng, target, leaves)
        else:
            pool.append((tracked_view if kind == "view" else tracked_value)(rng, target))
    what = f"{program} (seed {seed})"
    ours, theirs = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for k, t in enumerate(pool):
        assert torch.equal(t.x.get_mask(), t.mask), what
        ours = ours + (k + 1) * t.x.filled(0.0).sum()
        theirs = theirs + (k + 1) * torch.where(t.mask, t.data, 0).sum()
    torch.testing.assert_close(ours, theirs, msg=lambda m: f"{what}: {m}")
    try:
        theirs.backward()
    except RuntimeError as error:  # a value that backward needs was overwritten: torch refuses, and so may we
        if "modified by an inplace operation" not in str(error):
            raise
        return
    ours.backward()
    for x, plain, mask in leaves:
        a = torch.zeros(mask.shape, dtype=torch.float64) if x.grad is None else x.grad.filled(0.0)
        b = torch.zeros(mask.shape, dtype=torch.float64) if plain.grad is None else plain.grad
        torch.testing.assert_close(a, torch.where(mask, b, 0), msg=lambda m: f"{what}: {m}")
