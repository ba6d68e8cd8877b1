"""Batches of equal tokens: each sample once, the same steps on every rank, equal sums; resumable, in DataLoaders."""

from itertools import product
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import masked_tensor as mt


def lengths_of(n: int, seed: int = 0) -> torch.Tensor:
    """As those of speech and text."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(n, generator=generator) * 0.8 + 5).exp().long().clamp(8, 1024)


def plans(lengths: torch.Tensor, ranks: int, **options: object) -> list[list[list[int]]]:
    """The batches of each rank."""
    return [list(mt.balanced_batches(lengths, ranks=ranks, rank=rank, **options)) for rank in range(ranks)]  # type: ignore[arg-type]


@pytest.mark.parametrize("ranks", [1, 2, 8])
@pytest.mark.parametrize("n", [8, 100, 1000, 8192])
def test_each_sample_once_and_the_same_steps_on_every_rank(n: int, ranks: int) -> None:
    lengths = lengths_of(n, n)
    found = plans(lengths, ranks, tokens=3000)
    assert len({len(batches) for batches in found}) == 1
    assert len(mt.balanced_batches(lengths, tokens=3000, ranks=ranks)) == len(found[0])
    assert sorted(i for batches in found for batch in batches for i in batch) == list(range(n))
    assert all(batch for batches in found for batch in batches)


KINDS = {
    "uniform": lambda n, draw: torch.randint(1, 1025, (n,), generator=draw),
    "lognormal": lambda n, draw: lengths_of(n),
    "exponential": lambda n, draw: (torch.empty(n).exponential_(generator=draw) * 100).long() + 1,
    "two lengths": lambda n, draw: torch.where(torch.rand(n, generator=draw) < 0.5, 20, 1000),
    "few short": lambda n, draw: torch.where(torch.rand(n, generator=draw) < 0.01, 20, 1000),
    "few long": lambda n, draw: torch.where(torch.rand(n, generator=draw) < 0.001, 1000, 50),
    "one huge": lambda n, draw: torch.cat([torch.full((n - 1,), 10), torch.tensor([160])]),
    "constant": lambda n, draw: torch.full((n,), 128),
}
SMOOTH = "uniform", "lognormal", "exponential"


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 64, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_waits_for_one_sample_at_most(kind: str, ranks: int) -> None:
    """Constant lengths cannot be dealt evenly if the ranks do not divide their number: one step takes what is left."""
    for each, many, n in product((8, 16, 32), (3, 20), (0, 5)) if ranks < 64 else ((8, 3, 0), (9, 3, 5)):
        lengths = KINDS[kind](max(100, ranks * each * many + n), torch.Generator().manual_seed(0))
        tokens = max(int(lengths.double().mean() * each), int(lengths.max()))
        sampler = mt.balanced_batches(lengths, tokens=tokens, ranks=ranks)
        order, cuts = sampler._make_plan()
        assert torch.equal(order.sort().values, torch.arange(len(lengths)))
        sums = torch.cat([torch.zeros(1), lengths[order].double().cumsum(0)])[cuts].diff().view(-1, ranks)
        apart = sums.amax(1) - sums.amin(1)
        assert apart.sum() <= lengths.max()
        if kind in SMOOTH or (len(lengths) % ranks == 0 and kind == "constant"):
            assert (sums.amax(1) <= 1.02 * sums.mean(1)).all()
            assert sums.max() <= 1.15 * sums.mean()
        assert (sums.amax(1) > 1.02 * sums.mean(1)).sum() <= 1


def test_hostile_lengths() -> None:
    for lengths in ([7] * 64, [1] * 63 + [1024], [1024] * 8, list(range(1, 65))):
        for ranks in (1, 3, 8):
            found = plans(torch.tensor(lengths), ranks, tokens=1024)
            assert sorted(i for batches in found for batch in batches for i in batch) == list(range(len(lengths)))
            assert len({len(batches) for batches in found}) == 1


def test_epochs_seeds_and_drop_last() -> None:
    lengths = lengths_of(1000)
    sampler = mt.balanced_batches(lengths, tokens=2000)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    second = list(sampler)
    assert second != first
    assert second == list(mt.balanced_batches(lengths, tokens=2000, epoch=1))
    assert list(mt.balanced_batches(lengths, tokens=2000, seed=1)) not in (first, second)
    kept = [i for batches in plans(lengths, 3, tokens=2000, drop_last=True) for batch in batches for i in batch]
    assert len(kept) == len(set(kept)) == 999
    steps = zip(*plans(torch.full((1003,), 5), 10, tokens=20, drop_last=True), strict=True)
    assert all(len({len(batch) for batch in step}) == 1 for step in steps)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_stops_and_goes_on(workers: int) -> None:
    samples = [torch.full((n,), float(n)) for n in lengths_of(60).tolist()]
    lengths = [len(sample) for sample in samples]
    made = lambda: mt.balanced_batches(lengths, tokens=2048, ranks=2, rank=1)  # noqa: E731
    whole = list(made())
    loader = DataLoader(samples, batch_sampler=made(), collate_fn=mt.collate, num_workers=workers)  # type: ignore[arg-type]
    assert [batch.count().item() for batch in loader] == [sum(lengths[i] for i in batch) for batch in whole]
    assert len(loader) == len(whole)
    sampler = made()
    given = iter(sampler)
    begun = [next(given) for _ in range(len(whole) // 2)]
    again = made()
    again.load_state_dict(sampler.state_dict())
    assert begun + list(again) == whole
    assert list(again) == whole  # the next time from the start


@pytest.mark.filterwarnings("default")  # importing it warns about names of torch
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_stops_and_goes_on(workers: int) -> None:
    """torchdata's, whose workers take batches before they are asked for."""
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    samples = [torch.full((n,), float(i)) for i, n in enumerate(lengths_of(60).tolist())]
    lengths = [len(sample) for sample in samples]

    def made() -> Any:
        sampler = mt.balanced_batches(lengths, tokens=2048, ranks=2, rank=1, epoch=3)
        return torchdata.StatefulDataLoader(
            samples, batch_sampler=sampler, collate_fn=mt.collate, num_workers=workers, snapshot_every_n_steps=1
        )

    def numbers(batch: Any) -> list[int]:
        return [int(row[0]) for row in batch.unpad()]

    whole = [list(batch) for batch in mt.balanced_batches(lengths, tokens=2048, ranks=2, rank=1, epoch=3)]
    loader = made()
    given = iter(loader)
    begun = [numbers(next(given)) for _ in range(len(whole) // 2)]
    again = made()
    again.load_state_dict(loader.state_dict())
    assert begun + [numbers(batch) for batch in again] == whole
    assert [numbers(batch) for batch in again] == whole  # the next time from the start


def test_refusals() -> None:
    with pytest.raises(ValueError, match="rank must be from 0 to 1, got 2"):
        mt.balanced_batches([1, 2], tokens=2, ranks=2, rank=2)
    with pytest.raises(ValueError, match="3 ranks need as many samples"):
        mt.balanced_batches([1, 2], tokens=2, ranks=3)
    with pytest.raises(ValueError, match="from 1 to tokens=2, got 0 to 3"):
        mt.balanced_batches([0, 3], tokens=2)
