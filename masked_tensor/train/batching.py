"""A sampler for packed batches, with equal numbers of tokens per batch and the same plan on every rank."""

import ctypes
import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import Sampler

from ..extend.arguments import expect_int, names_arguments
from . import settings

_NUMBERS = ("tokens", "ranks", "rank", "seed", "epoch", "window")
Plan = tuple[Tensor, Tensor]  # all samples in the order of their batches, and where each batch starts


class balanced_batches(Sampler[list[int]]):
    """A batch sampler with about equal numbers of tokens in every batch, on all ranks and steps.

    A packed batch costs as much as its valid tokens, so each step takes as long as the rank with the most tokens. All
    ranks plan the same batches without communication. Samples are shuffled into windows of a few steps with similar
    lengths; within a window, the longest samples go to the emptiest batches, and batches of equal sums form a step.
    Each sample occurs once per epoch, and all ranks have the same number of steps.

    The differences between the fullest and the emptiest rank, summed over the steps of an epoch, are at most the
    longest sample if ``tokens`` is at least 4 times as long. For the lengths of speech or text, with 8 samples a batch
    or more, all steps are within 2 % of their mean.

    Each iterator starts the epoch anew, so ``next(iter(loader))`` does not consume a batch. Only a loaded state starts
    elsewhere, until an iterator has finished the epoch or another epoch is set. To continue with other lengths, tokens
    or ranks, see :meth:`left`.

    Args:
        lengths (Tensor or list of int): The number of tokens of each sample, ``(n,)``, any integer dtype, positive.
        tokens (int): The approximate number of tokens of a batch, on one rank at one step. The total is divided evenly,
            so a batch may have up to 1.2 times as many, plus one sample.
        ranks (int, optional): The number of ranks. Default: 1.
        rank (int, optional): The rank of this process. Default: 0.
        seed (int, optional): The seed of the order, the same on all ranks. Default: 0.
        epoch (int, optional): The first epoch, see :meth:`set_epoch`. Default: 0.
        drop_last (bool, optional): Leave out fewer than ``ranks`` samples, so that their number is divisible by
            ``ranks``. Default: False.
        window (int, optional): The number of steps that are planned together. A larger number makes batches more equal
            and less random. Default: 16.

    Raises:
        TypeError: ``tokens``, ``ranks``, ``rank`` or another number is not an integer.
        ValueError: A length is not positive, or above ``tokens``.
        ValueError: There are fewer samples than ranks.
        ValueError: ``rank`` is not below ``ranks``.

    Example:
        >>> lengths = [5, 1, 4, 2, 3, 3]
        >>> sampler = mt.balanced_batches(lengths, tokens=6)
        >>> sorted(sorted(lengths[i] for i in batch) for batch in sampler)
        [[1, 5], [2, 4], [3, 3]]

    See also:
        :func:`collate`.

    References:
        Longest processing time first: Graham, "Bounds on multiprocessing timing anomalies" (1969).
    """

    def __init__(
        self,
        lengths: Tensor | Sequence[int],
        *,
        tokens: int,
        ranks: int = 1,
        rank: int = 0,
        seed: int = 0,
        epoch: int = 0,
        drop_last: bool = False,
        window: int = 16,
    ) -> None:
        tokens, ranks, rank, seed, epoch, window = (
            expect_int(f"balanced_batches: {name}", value)
            for name, value in zip(_NUMBERS, (tokens, ranks, rank, seed, epoch, window), strict=True)
        )
        given = lengths.flatten() if isinstance(lengths, Tensor) else torch.tensor(lengths, dtype=torch.int64)
        self.tokens, self.ranks, self.rank, self.seed, self.epoch = tokens, ranks, rank, seed, epoch
        self.drop_last, self.window = drop_last, window
        n = given.numel()
        if not 0 <= rank < ranks:
            raise ValueError(f"rank must be from 0 to {ranks - 1}, got {rank}")
        if n < ranks:
            raise ValueError(f"{ranks} ranks need as many samples at least, got {n}")
        if int(given.min()) < 1 or int(given.max()) > tokens:
            raise ValueError(f"lengths must be from 1 to tokens={tokens}, got {int(given.min())} to {int(given.max())}")
        small = tokens <= torch.iinfo(torch.int32).max
        self.lengths = given.to("cpu", torch.int32 if small else torch.int64, copy=True)
        kept = n // ranks * ranks if drop_last else n
        total = sum(int(piece.sum()) for piece in given.split(settings.SORTED_AT_ONCE))  # a sum copies into int64
        self._windows, self._steps = divide(total, kept, tokens, ranks, window)
        self._plans: dict[tuple[int, int], Plan] = {}  # of one epoch
        self._rewind()

    @names_arguments
    def set_epoch(self, epoch: int) -> None:
        """Start an epoch with its own order; call it on all ranks.

        If the sampler is already in this epoch, its position does not change, so a loop over epochs may call this after
        :meth:`load_state_dict`.

        Args:
            epoch (int): The number of the epoch.

        Example:
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> first = list(sampler)
            >>> sampler.set_epoch(1)
            >>> first == list(sampler)
            False
        """
        if epoch != self.epoch:
            self.epoch = epoch
            self._rewind()

    def state_dict(self) -> dict[str, int]:
        """The position of the sampler after the batches that it has returned, for :meth:`load_state_dict`.

        A loader that prefetches (workers, accelerate) requests batches before they are used, so ``step`` is ahead;
        ``torchdata.stateful_dataloader.StatefulDataLoader`` accounts for this. With another loader, store the number of
        trained steps of the epoch: ``{**sampler.state_dict(), "step": trained}``.

        Returns:
            dict: The epoch, seed and step, and the settings that they belong to: a digest of the lengths, tokens, ranks
            and so on.

        Example:
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> whole, given = list(sampler), iter(sampler)
            >>> first, state = next(given), sampler.state_dict()
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> sampler.load_state_dict(state)
            >>> [first, *sampler] == whole
            True
        """
        return {"epoch": self.epoch, "seed": self.seed, "step": self._given, **self._fingerprint}

    @names_arguments
    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from a :meth:`state_dict`, with the same lengths, tokens and ranks.

        Args:
            state (dict): A result of :meth:`state_dict`, from any rank.

        Raises:
            ValueError: The state belongs to a sampler with other lengths, tokens, ranks, ``window`` or ``drop_last``.

        Example:
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> sampler.load_state_dict({**sampler.state_dict(), "epoch": 3, "step": 2})
            >>> len(list(sampler)), len(sampler)
            (2, 4)
        """
        fits = {**self._fingerprint, "step": min(max(0, state.get("step", -1)), len(self))}
        wrong = [name for name, value in fits.items() if state.get(name) != value]
        if wrong:
            its, ours = (", ".join(f"{name}={of.get(name)}" for name in wrong) for of in (state, fits))
            raise ValueError(
                f"the state has {its}, this sampler {ours}; load it into a sampler like its own, and make a new one of "
                "the lengths of what that has left()"
            )
        self.epoch, self.seed = state["epoch"], state["seed"]
        self._rewind(state["step"])

    def left(self) -> Tensor:
        """The samples of the epoch that no rank has seen yet: those after :meth:`state_dict`.

        Use it to continue an epoch with other ranks, tokens or samples: load the state into a sampler with the old
        settings, and create a new one from the remaining lengths. Its indices count within the remaining samples, as
        those of a ``Subset``. Samples left out by ``drop_last`` are not included.

        Returns:
            Tensor: Their indices, ``(n,)``, int64, in ascending order.

        Example:
            >>> old = mt.balanced_batches([5, 1, 4, 2, 3, 3], tokens=6)
            >>> seen = next(iter(old))
            >>> left = old.left()
            >>> sorted([*seen, *left.tolist()])
            [0, 1, 2, 3, 4, 5]
            >>> new = mt.balanced_batches(old.lengths[left], tokens=6, ranks=2, rank=1)
            >>> # DataLoader(Subset(samples, left.tolist()), batch_sampler=new, collate_fn=mt.collate)
        """
        order, cuts = self._make_plan()
        return order[cuts[self._given * self.ranks] :].long().sort().values

    def __len__(self) -> int:
        """The number of batches of an epoch, the same on every rank."""
        return self._windows * self._steps

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of this rank: of the whole epoch, or from where a state was loaded."""
        return _Batches(self)

    def _rewind(self, step: int = 0) -> None:
        self._start = self._given = step  # where iterators start; how many steps of the epoch were given out
        self._ended = False  # whether an iterator came to the end: the next one begins a new pass

    def _note(self, step: int) -> None:
        """An iterator gives out a step, or has come to the end."""
        if step == len(self):
            self._start, self._ended = 0, True
        else:
            self._given, self._ended = max(step + 1, 0 if self._ended else self._given), False

    def _make_plan(self) -> Plan:
        """The plan of the epoch, which is kept until another one begins."""
        key = self.epoch, self.seed
        if key not in self._plans:
            self._plans.clear()
            generator = torch.Generator().manual_seed((self.seed << 20) + self.epoch)
            shape = self._windows, self._steps, self.ranks
            self._plans[key] = plan_batches(self.lengths, *shape, self.drop_last, generator)
        return self._plans[key]

    @cached_property
    def _fingerprint(self) -> dict[str, int]:
        """What a position belongs to; of the lengths a digest."""
        size = self.lengths.numel() * self.lengths.element_size()
        digest = hashlib.sha256((ctypes.c_char * size).from_address(self.lengths.data_ptr())).hexdigest()
        names = ("tokens", "ranks", "window", "drop_last")
        return {
            "lengths": int(digest[:15], 16),
            "samples": len(self.lengths),
            **{name: getattr(self, name) for name in names},
        }


class _Batches(Iterator[list[int]]):
    """The batches of one rank; torchdata's loaders keep the state of an iterator beside that of its sampler."""

    def __init__(self, sampler: balanced_batches) -> None:
        self.sampler = sampler
        self.plan: Plan | None = None  # of the epoch in which the first batch was asked for
        self.step: int | None = None

    def __next__(self) -> list[int]:
        sampler = self.sampler
        if self.plan is None:
            self.plan = sampler._make_plan()
        step = self.state_dict()["step"]
        if self.plan is sampler._plans.get((sampler.epoch, sampler.seed)):  # no other epoch was begun since
            sampler._note(step)
        if step == len(sampler):
            self.step = step  # an iterator that has ended stays so
            raise StopIteration
        self.step = step + 1
        order, cuts = self.plan
        batch = step * sampler.ranks + sampler.rank
        return order[cuts[batch] : cuts[batch + 1]].tolist()

    def state_dict(self) -> dict[str, int]:
        return {"step": self.sampler._start if self.step is None else self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.step = state["step"]
        self.sampler._rewind(self.step)
        if self.step == len(self.sampler):
            self.sampler._note(self.step)


def divide(total: int, samples: int, tokens: int, ranks: int, window: int) -> tuple[int, int]:
    """The number of windows, and of steps of a window: batches have at most a tenth more than ``tokens`` in the mean.

    Each batch gets a sample, even if there are then too few steps.
    """
    budget = tokens * ranks
    windows = max(1, total // (budget * window))
    steps = max(1, total // (budget * windows))
    if 10 * total > 11 * budget * windows * steps:
        steps += 1
    return windows, min(steps, samples // (windows * ranks))


def plan_batches(
    lengths: Tensor, windows: int, steps: int, ranks: int, drop_last: bool, generator: torch.Generator
) -> Plan:
    """All samples in the order of their batches, and where each batch starts.

    Batch ``step * ranks + rank`` is that of a rank at a step.
    """
    small = torch.int32 if len(lengths) <= torch.iinfo(torch.int32).max else torch.int64
    order = torch.randperm(len(lengths), generator=generator, dtype=small)
    if drop_last:
        order = order[: len(order) // ranks * ranks]
    order = longest_first(order, lengths)  # each step frees the memory of the one before it
    order = deal_windows(order, windows, ranks, generator)
    chances = torch.rand(windows, steps, generator=generator)
    some = max(1, settings.PLANNED // order.shape[1])
    samples, counts, end = order.new_empty(order.numel()), [torch.zeros(1, dtype=torch.int64)], 0
    for part in zip(order.split(some), chances.split(some), strict=True):
        dealt, count = deal_batches(*part, lengths, ranks)
        samples[end : end + len(dealt)] = dealt
        counts.append(count)
        end += len(dealt)
    return samples[:end], torch.cat(counts).cumsum_(0)


def longest_first(order: Tensor, lengths: Tensor) -> Tensor:
    """``order`` by the lengths of its samples, longest first; equal ones stay in order.

    Many are counted and placed piece by piece, since a sort of all takes 24 bytes a sample.
    """
    if len(order) <= settings.SORTED_AT_ONCE:
        return order[lengths[order].argsort(descending=True, stable=True)]
    pieces, bins = order.split(settings.SORTED_AT_ONCE), int(lengths.max()) + 1
    counts = torch.zeros(bins, dtype=torch.int64)
    for piece in pieces:
        counts += torch.bincount(lengths[piece], minlength=bins)
    free = len(order) - counts.cumsum(0)  # where the next sample of each length comes
    result = torch.empty_like(order)
    for piece in pieces:
        its, by = lengths[piece].sort(descending=True, stable=True)
        counts = torch.bincount(its, minlength=bins)
        first = len(piece) - counts.cumsum(0)
        result[(free - first)[its] + torch.arange(len(piece))] = piece[by]
        free += counts
    return result


def deal_batches(sample: Tensor, chances: Tensor, lengths: Tensor, ranks: int) -> tuple[Tensor, Tensor]:
    """The samples of some windows in the order of their batches, and how many each batch has.

    The steps of a window come in the order of their ``chances``.
    """
    windows, bins = len(sample), chances.shape[1] * ranks
    kept = sample >= 0
    tokens = torch.where(kept, lengths[sample.clamp_min(0)], 0).long()
    load = torch.zeros(windows, bins, dtype=torch.int64)
    into = torch.empty(sample.shape, dtype=torch.int64)
    turn = (bins + 1) // 2 if bins > 16 else 1  # samples at a time
    for start in range(0, sample.shape[1], turn):  # the longest samples go to the emptiest batches
        part = tokens[:, start : start + turn]
        emptiest = load.argsort(dim=1, stable=True)[:, : part.shape[1]]
        into[:, start : start + turn] = emptiest
        load.scatter_add_(1, emptiest, part)
    rank = load.argsort(dim=1, stable=True).argsort(dim=1)  # batches of equal sums make a step
    step = chances.argsort(dim=1)
    place = step.gather(1, rank // ranks) * ranks + rank % ranks
    batch = (place.gather(1, into) + torch.arange(windows).unsqueeze(1) * bins)[kept]
    return sample[kept][batch.argsort(stable=True)], torch.bincount(batch, minlength=windows * bins)


def deal_windows(order: Tensor, windows: int, ranks: int, generator: torch.Generator) -> Tensor:
    """The samples of each window, longest first: ``(windows, samples)``, -1 where there is none.

    ``order`` has the longest sample first.  Of each ``windows * ranks`` samples of like length, every window gets
    ``ranks`` neighbours, by chance.  So all windows have about the same lengths, and each rank can have one of a kind.
    """
    turns = -(-len(order) // (windows * ranks))
    dealt, some = order.new_full((windows, turns, ranks), -1), max(1, settings.PLANNED // (windows * ranks))
    for turn in range(0, turns, some):
        part = order[turn * windows * ranks : (turn + some) * windows * ranks]
        part = F.pad(part, (0, -len(part) % (windows * ranks)), value=-1).view(-1, windows, ranks)
        by = torch.rand(part.shape[:2], generator=generator).argsort(dim=1)
        dealt[:, turn : turn + some] = part.gather(1, by.unsqueeze(2).expand_as(part)).transpose(0, 1)
    return dealt.flatten(1)
