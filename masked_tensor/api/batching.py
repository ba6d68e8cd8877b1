"""A sampler for packed batches: batches of equal numbers of tokens, planned alike on every rank."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.utils.data import Sampler


class balanced_batches(Sampler[list[int]]):
    """Batches of samples of different length with about equal numbers of tokens on every rank and at every step.

    A packed batch costs what is valid, so a step takes the time of the rank that has most tokens. All ranks plan the
    same batches without asking each other: samples are shuffled and cut into windows of some steps; those of a window
    are dealt to its batches in turns, the longest sample to the emptiest batch. Batches of equal sums make a step. Each
    sample comes once an epoch, and all ranks take the same number of steps.

    Args:
        lengths (Tensor or list of int): The number of tokens of each sample, ``(n,)``, any integer dtype, positive.
        tokens (int): About how many tokens a batch has, on one rank at one step; the total is divided evenly, so that
            it may be some percent more.
        ranks (int, optional): The number of ranks. Default: 1.
        rank (int, optional): Which of them this is. Default: 0.
        seed (int, optional): Of the order; the same on all ranks. Default: 0.
        epoch (int, optional): The epoch to begin with, see :meth:`set_epoch`. Default: 0.
        drop_last (bool, optional): Leave out samples so that all windows have the same number: fewer than there are
            windows. Default: False.
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
    n = lengths.numel() // windows * windows if drop_last else lengths.numel()
    order = torch.randperm(lengths.numel(), generator=generator)[:n]
    longest = (n + windows - 1) // windows  # samples of a window
    rounds = (longest + bins - 1) // bins
    size = rounds * bins
    padded = torch.full((size, windows), -1)  # position i of the shuffled samples goes to window i % windows
    padded.view(-1)[:n] = order
    sample = padded.T
    tokens_of = torch.where(sample >= 0, lengths[sample.clamp_min(0)], 0)
    tokens_of, by = tokens_of.sort(dim=1, descending=True, stable=True)
    sample = sample.gather(1, by)
    load = torch.zeros(windows, bins, dtype=torch.int64)
    into = torch.empty_like(sample)
    for turn in range(rounds):
        part = slice(turn * bins, (turn + 1) * bins)
        emptiest = load.argsort(dim=1, stable=True)  # the longest sample goes to the emptiest batch
        into[:, part] = emptiest
        load.scatter_add_(1, emptiest, tokens_of[:, part])
    rank = load.argsort(dim=1, stable=True).argsort(dim=1)  # batches of equal sums make a step
    step = torch.rand(windows, bins // ranks, generator=generator).argsort(dim=1)
    place = step.gather(1, rank // ranks) * ranks + rank % ranks
    batch = place.gather(1, into) + torch.arange(windows).unsqueeze(1) * bins
    kept = sample >= 0
    batch, sample = batch[kept], sample[kept]
    cuts = torch.bincount(batch, minlength=windows * bins).cumsum(0)
    return sample[batch.argsort(stable=True)], torch.cat([cuts.new_zeros(1), cuts])
