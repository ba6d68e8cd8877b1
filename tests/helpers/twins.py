"""A masked tensor and its slow reference: two numpy arrays, data and validity, whose views are numpy's views.

Under the mask lie NaN, inf or large numbers; the reference never looks there.
"""

import random
from dataclasses import dataclass, field

import numpy as np
import torch

import masked_tensor as mt
from masked_tensor import MaskedTensor


@dataclass(eq=False)
class Family:
    """What a tensor and its views share."""

    hard: bool = False  # padding can never become data


@dataclass(eq=False)
class Twin:
    """One value in both worlds."""

    x: MaskedTensor
    data: np.ndarray
    mask: np.ndarray
    family: Family = field(default_factory=Family)

    def __post_init__(self) -> None:
        self.data, self.mask = np.asarray(self.data), np.asarray(self.mask)  # 0-d results of numpy are numbers

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


def boolean(rng: random.Random, shape: tuple[int, ...]) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """A boolean key, half of them masked in part; which entries it names, and which of its entries are known."""
    where = fresh(rng, shape)
    chosen = np.asarray(where.data > 0)
    if rng.random() < 0.5 or not where.mask.ndim:  # torch reads a key of no dimensions as a number
        return torch.from_numpy(chosen), chosen, np.ones(shape, dtype=bool)
    payload = torch.from_numpy(np.where(where.mask, chosen, rng.random() < 0.5))
    return mt.as_masked_tensor(payload, torch.from_numpy(where.mask)), chosen & where.mask, where.mask


def places_key(rng: random.Random, t: Twin, unique: bool) -> tuple[tuple, tuple, np.ndarray]:
    """A key of several kinds for two dimensions or more, for torch and for numpy, and what of its result is known."""
    last = t.data.ndim - 1
    dim = rng.randrange(last + 1)
    key, places = index(rng, t.data.shape[dim], unique)
    plain = np.array([p or 0 for p in places])
    known = np.array([p is not None for p in places])
    kind = rng.choice(["slice", "pair", "new axis"])
    if dim == last:
        return (..., key), (..., plain), known
    after = (1,) * (last - dim)
    before = (slice(None),) * dim
    if kind == "new axis":
        return (*before, key, None), (*before, plain, None), known.reshape(-1, *after, 1)
    if kind == "pair":
        other = rng.randrange(t.data.shape[dim + 1])
        return (*before, key, other), (*before, plain, other), known.reshape(-1, *after[1:])
    return (*before, key), (*before, plain), known.reshape(-1, *after)
