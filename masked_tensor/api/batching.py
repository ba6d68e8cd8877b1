"""A sampler for packed batches: batches of equal numbers of tokens, planned alike on every rank."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.utils.data import Sampler


class balanced_batches(Sampler[list[int]]):
    """Batches of samples of different length with about equal numbers of tokens on every rank and at every step.

    A packed batch costs what is valid, so a step takes the time of the rank that has most tokens. All ranks plan the
    same batches without asking each other. Samples are dealt by chance to windows of some steps, of which all get about
    the same lengths; those of a window are dealt to its batches in turns, the longest samples to the emptiest batches.
    Batches of equal sums make a step. Each sample comes once an epoch, and all ranks take the same number of steps.

    The differences between the fullest and the emptiest rank, added up over all steps of an epoch, are at most the
    longest sample if ``tokens`` is 4 times as long: one step takes what cannot be divided. With lengths as those of
    speech or text, 8 samples a batch and more, all steps are within 2 % of their mean.

    Args:
        lengths (Tensor or list of int): The number of tokens of each sample, ``(n,)``, any integer dtype, positive.
        tokens (int): About how many tokens a batch has, on one rank at one step; the total is divided evenly, so that
            it may be some percent more.
        ranks (int, optional): The number of ranks. Default: 1.
        rank (int, optional): Which of them this is. Default: 0.
        seed (int, optional): Of the order; the same on all ranks. Default: 0.
        epoch (int, optional): The epoch to begin with, see :meth:`set_epoch`. Default: 0.
        drop_last (bool, optional): Leave out fewer than ``ranks`` samples, so that their number is a multiple of
            ``ranks``. Default: False.
        window (int, optional): How many steps are planned together; more make sums more equal, and batches less random.
            Default: 16.

    Raises:
        ValueError: There are fewer samples than ranks, a length is not positive or above ``tokens``, or ``rank`` is
            not below ``ranks``.

    Example:
        >>> lengths = [5, 1, 4, 2, 3, 3]
        >>> sampler = mt.balanced_batches(lengths, tokens=6)
        >>> sorted(sorted(lengths[i] for i in batch) for batch in sampler)
        [[1, 5], [2, 4], [3, 3]]

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
        self.lengths = torch.as_tensor(lengths, dtype=torch.int64).flatten()
        self.tokens, self.ranks, self.rank, self.seed, self.epoch = tokens, ranks, rank, seed, epoch
        self.drop_last, self.window = drop_last, window
        n = self.lengths.numel()
        if not 0 <= rank < ranks:
            raise ValueError(f"rank must be from 0 to {ranks - 1}, got {rank}")
        if n < ranks:
            raise ValueError(f"{ranks} ranks need as many samples at least, got {n}")
        if int(self.lengths.min()) < 1 or int(self.lengths.max()) > tokens:
            raise ValueError(
                f"lengths must be from 1 to tokens={tokens}, got {int(self.lengths.min())} to {int(self.lengths.max())}"
            )
        self._start = 0  # the step to go on with
        self._plan: tuple[int, int, Tensor, Tensor] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Begins another epoch, with another order; to be called on all ranks.

        Args:
            epoch (int): Its number.

        Example:
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> first = list(sampler)
            >>> sampler.set_epoch(1)
            >>> first == list(sampler)
            False
        """
        self.epoch, self._start = epoch, 0

    def state_dict(self) -> dict[str, int]:
        """Where the sampler stands, for :meth:`load_state_dict`: after the batches that it has given out.

        Returns:
            dict: Epoch, seed and step.

        Example:
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> whole, given = list(sampler), iter(sampler)
            >>> first, state = next(given), sampler.state_dict()
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> sampler.load_state_dict(state)
            >>> [first, *sampler] == whole
            True
        """
        return {"epoch": self.epoch, "seed": self.seed, "step": self._start}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on where :meth:`state_dict` was taken: with the same lengths, tokens and ranks.

        Args:
            state (dict): What :meth:`state_dict` gave, on any rank.

        Example:
            >>> sampler = mt.balanced_batches([1] * 8, tokens=2)
            >>> sampler.load_state_dict({"epoch": 3, "seed": 0, "step": 2})
            >>> len(list(sampler)), len(sampler)
            (2, 4)
        """
        self.epoch, self.seed, self._start = state["epoch"], state["seed"], state["step"]

    def __len__(self) -> int:
        """The number of batches of an epoch, the same on every rank."""
        return (len(self._make_plan()[1]) - 1) // self.ranks

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of this rank, from where the sampler stands."""
        steps = range(self._start, len(self))
        order, cuts = self._make_plan()
        for step in steps:
            batch = step * self.ranks + self.rank
            self._start = step + 1
            yield order[cuts[batch] : cuts[batch + 1]].tolist()
        self._start = 0

    def _make_plan(self) -> tuple[Tensor, Tensor]:
        """The plan of the epoch, which is kept until another one begins."""
        if self._plan is None or self._plan[:2] != (self.epoch, self.seed):
            generator = torch.Generator().manual_seed((self.seed << 20) + self.epoch)
            order, cuts = plan_batches(self.lengths, self.tokens, self.ranks, self.window, self.drop_last, generator)
            self._plan = self.epoch, self.seed, order, cuts
        return self._plan[2:]


def plan_batches(
    lengths: Tensor, tokens: int, ranks: int, window: int, drop_last: bool, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """All samples in the order of their batches, and where each batch starts.

    Batch ``step * ranks + rank`` is that of a rank at a step.
    """
    steps = max(1, int(lengths.sum()) // (tokens * ranks))
    windows = max(1, steps // window)
    bins = steps // windows * ranks  # batches of a window
    order = torch.randperm(lengths.numel(), generator=generator)
    if drop_last:
        order = order[: len(order) // ranks * ranks]
    sample = deal_windows(order[lengths[order].argsort(descending=True, stable=True)], windows, ranks, generator)
    tokens_of = torch.where(sample >= 0, lengths[sample.clamp_min(0)], 0)
    load = torch.zeros(windows, bins, dtype=torch.int64)
    into = torch.empty_like(sample)
    turn = (bins + 1) // 2 if bins > 16 else 1  # samples at a time
    for start in range(0, sample.shape[1], turn):  # the longest samples go to the emptiest batches
        part = tokens_of[:, start : start + turn]
        emptiest = load.argsort(dim=1, stable=True)[:, : part.shape[1]]
        into[:, start : start + turn] = emptiest
        load.scatter_add_(1, emptiest, part)
    rank = load.argsort(dim=1, stable=True).argsort(dim=1)  # batches of equal sums make a step
    step = torch.rand(windows, bins // ranks, generator=generator).argsort(dim=1)
    place = step.gather(1, rank // ranks) * ranks + rank % ranks
    batch = place.gather(1, into) + torch.arange(windows).unsqueeze(1) * bins
    kept = sample >= 0
    batch, sample = batch[kept], sample[kept]
    cuts = torch.bincount(batch, minlength=windows * bins).cumsum(0)
    return sample[batch.argsort(stable=True)], torch.cat([cuts.new_zeros(1), cuts])


def deal_windows(order: Tensor, windows: int, ranks: int, generator: torch.Generator) -> Tensor:
    """The samples of each window, longest first: ``(windows, samples)``, -1 where there is none.

    ``order`` has the longest sample first.  Of each ``windows * ranks`` samples of like length, every window gets
    ``ranks`` neighbours, by chance.  So all windows have about the same lengths, and each rank can have one of a kind.
    """
    turns = -(-len(order) // (windows * ranks))
    padded = torch.full((turns, windows, ranks), -1)
    padded.view(-1)[: len(order)] = order
    by = torch.rand(turns, windows, generator=generator).argsort(dim=1)
    return padded.gather(1, by.unsqueeze(2).expand_as(padded)).transpose(0, 1).flatten(1)
