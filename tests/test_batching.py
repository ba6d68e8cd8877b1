"""Batches of equal tokens: each sample once, the same steps on every rank, equal sums; resumable, in DataLoaders."""

import os
import random
import subprocess
import sys
from itertools import product
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import masked_tensor as mt
from masked_tensor.train import settings
from masked_tensor.train.batching import divide


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
    """Constant lengths cannot be dealt evenly if the ranks do not divide their number: one step takes what is left.

    Another one takes a sample that is longer than a batch is in the mean.
    """
    for each, many, n in product((8, 16, 32), (3, 20), (0, 5)) if ranks < 64 else ((8, 3, 0), (9, 3, 5)):
        lengths = KINDS[kind](max(100, ranks * each * many + n), torch.Generator().manual_seed(0))
        tokens = max(int(lengths.double().mean() * each), int(lengths.max()))
        sampler = mt.balanced_batches(lengths, tokens=tokens, ranks=ranks)
        order, cuts = sampler._make_plan()
        assert torch.equal(order.sort().values, torch.arange(len(lengths)))
        sums = torch.cat([torch.zeros(1), lengths[order].double().cumsum(0)])[cuts].diff().view(-1, ranks)
        apart = sums.amax(1) - sums.amin(1)
        assert apart.sum() <= lengths.max()
        huge = bool(lengths.max() > sums.mean())
        if (kind in SMOOTH and not huge) or (len(lengths) % ranks == 0 and kind == "constant"):
            assert (sums.amax(1) <= 1.02 * sums.mean(1)).all()
            assert sums.max() <= 1.15 * sums.mean()
        assert (sums.amax(1) > 1.02 * sums.mean(1)).sum() <= 1 + huge


PROGRAMS = int(os.environ.get("MASKED_TENSOR_SAMPLERS", "24"))


@pytest.mark.parametrize("kind", KINDS)
def test_no_batch_is_much_fuller_than_it_was_asked_for(kind: str) -> None:
    """However few the steps are: at most 1.2 times ``tokens`` and a sample; if all are short and differ, 1.2 times."""
    draw = random.Random(kind)
    for seed in range(PROGRAMS // 4):
        ranks, window = draw.choice([1, 2, 3, 8, 17]), draw.choice([1, 2, 16])
        many = draw.choice([ranks, ranks + 1, draw.randint(ranks, 100), draw.randint(ranks, 2000)])
        lengths = KINDS[kind](many, torch.Generator().manual_seed(seed))
        times = draw.choice([1.0, 1.1, 2.0, 4.0, 10.0])
        sampler = mt.balanced_batches(lengths, tokens=int(times * lengths.max()), ranks=ranks, window=window)
        order, cuts = sampler._make_plan()
        assert torch.equal(order.sort().values.long(), torch.arange(len(lengths)))
        assert len(cuts) == len(sampler) * ranks + 1
        assert (cuts.diff() > 0).all()
        most = torch.cat([torch.zeros(1), lengths[order].double().cumsum(0)])[cuts].diff().max()
        assert most <= 1.2 * sampler.tokens + (0 if kind in SMOOTH and times >= 4 else lengths.max())


@pytest.mark.parametrize(("n", "ranks"), [(8, 1), (9, 2), (100, 3), (1000, 8)])
def test_a_plan_does_not_depend_on_how_many_samples_are_placed_at_once(
    n: int, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = lengths_of(n, n).clamp(max=40)  # many are equal
    for options in ({}, {"drop_last": True}, {"window": 1}):
        whole = plans(lengths, ranks, tokens=90, **options)
        with monkeypatch.context() as patch:
            for name, value in {"SORTED_AT_ONCE": 7, "PLANNED": 5}.items():
                patch.setattr(settings, name, value)
            assert plans(lengths, ranks, tokens=90, **options) == whole
    for given in (lengths.tolist(), lengths.to(torch.uint8), lengths.int()):
        assert plans(given, ranks, tokens=90, window=1) == whole  # type: ignore[arg-type]


MEMORY = """
import resource, torch, masked_tensor as mt
list(mt.balanced_batches(torch.ones(1000).int(), tokens=8))
n, peak = 1 << 23, lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
lengths = torch.randint(1, 2049, (n,), dtype=torch.int32)
before = peak()
next(iter(mt.balanced_batches(lengths, tokens=1 << 15, ranks=8)))
print((peak() - before) / n)
"""


def test_a_plan_takes_little_memory() -> None:
    """At 100 million 13 bytes a sample; buffers of constant size count here.  A sort of all takes 32 and more."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 28


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
    loader = DataLoader(samples, batch_sampler=again, num_workers=workers, collate_fn=mt.collate)  # type: ignore[arg-type]
    next(iter(loader))
    assert len(list(loader)) == len(whole)
    for trained, _ in enumerate(loader, 1):
        if trained == 2:
            break  # a loader with workers has asked for more
    assert workers or again.state_dict()["step"] == trained or again.state_dict()["step"] == len(whole)
    other = made()
    other.load_state_dict({**again.state_dict(), "step": trained})
    assert list(other) == whole[trained:]


def restarted(old: mt.balanced_batches, **options: Any) -> mt.balanced_batches:
    """Another process that goes on with the state, as after a checkpoint."""
    new = mt.balanced_batches(old.lengths, tokens=old.tokens, ranks=old.ranks, window=old.window, **options)
    new.load_state_dict(old.state_dict())
    return new


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_each_sample_comes_once_an_epoch_whatever_a_program_does(seed: int) -> None:
    """Epochs with peeks, breaks, restarts, and restarts on other ranks."""
    draw = random.Random(seed)
    lengths = torch.randint(1, 100, (draw.randint(8, 200),), generator=torch.Generator().manual_seed(seed))
    options: dict[str, Any] = {"tokens": draw.choice([100, 150, 1000]), "window": draw.choice([2, 16]), "seed": seed}
    ranks = draw.randint(1, 8)
    for epoch in range(3):
        samples, seen = torch.arange(len(lengths)), []
        samplers = [mt.balanced_batches(lengths, ranks=ranks, rank=rank, **options) for rank in range(ranks)]
        while True:
            for sampler in samplers:
                sampler.set_epoch(epoch)  # as a loop over epochs does, also after a restart
            if draw.random() < 0.5:  # a look at the first batch
                next(iter(draw.choice(samplers)))
            given = [iter(sampler) for sampler in samplers]
            for _ in range(draw.choice([1, 2, draw.randint(1, len(samplers[0])), len(samplers[0]) + 1])):
                seen += [int(samples[i]) for each in given for i in next(each, [])]
            if draw.random() < 0.5 and not any(sampler._ended for sampler in samplers):
                next(iter(draw.choice(samplers)))
            left = samples[restarted(draw.choice(samplers)).left()]
            assert sorted([*seen, *left.tolist()]) == list(range(len(lengths)))
            if not len(left):
                assert [batch for sampler in samplers for batch in restarted(sampler)] == []
                break
            if draw.random() < 0.5:
                samplers = [restarted(sampler, rank=rank) for rank, sampler in enumerate(samplers)]
            else:
                samples, ranks = left, min(draw.randint(1, 8), len(left))
                some = [{"ranks": ranks, "rank": rank, **options} for rank in range(ranks)]
                samplers = [mt.balanced_batches(lengths[left], **each) for each in some]
        assert sorted(seen) == list(range(len(lengths)))


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    lengths = lengths_of(100)
    state = mt.balanced_batches(lengths, tokens=2048, ranks=2, epoch=5).state_dict()
    others: list[tuple[Any, dict[str, Any]]] = [
        (lengths, {"tokens": 2048, "ranks": 3}),
        (lengths, {"tokens": 2049, "ranks": 2}),
        (lengths, {"tokens": 2048, "ranks": 2, "drop_last": True}),
        (lengths, {"tokens": 2048, "ranks": 2, "window": 4}),
        (lengths[1:], {"tokens": 2048, "ranks": 2}),
        (lengths.flip(0), {"tokens": 2048, "ranks": 2}),
    ]
    for other, options in others:
        sampler = mt.balanced_batches(other, **options)
        with pytest.raises(ValueError, match=r"the state has .*, this sampler .*left\(\)"):
            sampler.load_state_dict(state)
        assert sampler.epoch == sampler.state_dict()["step"] == 0
    for wrong in ({**state, "step": 1000}, {**state, "step": -1}, {"epoch": 0, "seed": 0, "step": 0}):
        with pytest.raises(ValueError, match=r"the state has "):
            mt.balanced_batches(lengths, tokens=2048, ranks=2).load_state_dict(wrong)
    given = lengths.to(torch.int32)
    sampler = mt.balanced_batches(given, tokens=2048, ranks=2, rank=1)
    given.zero_()  # the sampler has its own
    sampler.load_state_dict(state)
    assert sampler.epoch == 5


def test_the_end_of_an_epoch_is_a_state() -> None:
    sampler = mt.balanced_batches([1] * 8, tokens=2)
    whole = list(sampler)
    again = restarted(sampler)
    ended = iter(again)
    assert [next(ended, None), next(ended, None)] == [None, None]
    again = restarted(sampler)
    assert (list(again), again.left().tolist()) == ([], [])
    assert list(again) == whole
    again = restarted(sampler)
    again.set_epoch(1)
    assert len(list(again)) == len(again.left()) + len(whole)


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
    other = made()
    other.load_state_dict(again.state_dict())  # at the end
    assert [numbers(batch) for batch in other] == whole
    next(iter(other))  # takes several batches, with workers
    given = iter(other)
    begun = [numbers(next(given))]
    again = made()
    again.load_state_dict(other.state_dict())
    assert begun + [numbers(batch) for batch in again] == whole


def test_an_epoch_has_the_fewest_steps_that_the_tokens_allow() -> None:
    """At most a tenth more than asked for in the mean; with one step fewer of each window there would be more."""
    for total, tokens, ranks, window in product((90, 1000, 12_345, 99_999), (10, 333), (1, 2, 7), (1, 4, 50)):
        windows, steps = divide(total, 10**9, tokens, ranks, window)
        assert 10 * total <= 11 * tokens * ranks * windows * steps
        assert (
            steps == 1
            or 10 * total > 11 * tokens * ranks * windows * (steps - 1)
            or steps == total // (tokens * ranks * windows)
        )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="rank must be from 0 to 1, got 2"):
        mt.balanced_batches([1, 2], tokens=2, ranks=2, rank=2)
    with pytest.raises(ValueError, match="3 ranks need as many samples"):
        mt.balanced_batches([1, 2], tokens=2, ranks=3)
    with pytest.raises(ValueError, match="from 1 to tokens=2, got 0 to 3"):
        mt.balanced_batches([0, 3], tokens=2)
