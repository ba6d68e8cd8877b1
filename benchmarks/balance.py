"""Packed batches over many ranks, simulated: how long a plan takes, how equal its steps are, what that saves.

``python -m benchmarks.balance`` plans an epoch of 10 million samples for up to 1,024 ranks, with lengths as those of
speech and text (log-normal, 8 to 1,024 tokens).  A packed step takes the time of its fullest rank: what a sampler loses
is the largest sum of tokens of a step over the mean sum, minus one.  ``attention`` is the same of squared lengths.
"""

import argparse
import time

import torch
from torch import Tensor

import masked_tensor as mt

SAMPLES, RANKS, ROWS = 10_000_000, (8, 64, 256, 1024), 16


def lengths_of(samples: int) -> Tensor:
    """Log-normal lengths."""
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(samples, generator=generator) * 0.8 + 5).exp_().long().clamp_(8, 1024)


def sums(values: Tensor, order: Tensor, cuts: Tensor, ranks: int) -> Tensor:
    """The sum of each batch: ``(steps, ranks)``."""
    total = torch.cat([values.new_zeros(1), values[order].cumsum(0)])
    return total[cuts].diff().view(-1, ranks).double()


def describe(name: str, lengths: Tensor, order: Tensor, cuts: Tensor, ranks: int) -> float:
    """Prints what a plan loses; gives the part of time that waits for the fullest rank."""
    tokens = sums(lengths, order, cuts, ranks)
    attention = sums(lengths.square(), order, cuts, ranks)
    apart, most = tokens.amax(1) / tokens.mean(1), tokens.max() / tokens.mean()
    print(
        f"  {name:9s} {len(tokens):7d} steps; fullest rank / mean {apart.mean():.4f}, worst step {apart.max():.4f}; "
        f"attention {(attention.amax(1) / attention.mean(1)).mean():.2f}; peak / mean {most:.3f}"
    )
    return float(tokens.mean(1).sum() / tokens.amax(1).sum())


def simulate(lengths: Tensor, ranks: int) -> None:
    budget = int(lengths.double().mean() * ROWS)
    sampler = mt.balanced_batches(lengths, tokens=max(budget, int(lengths.max())), ranks=ranks)
    start = time.process_time()
    order, cuts = sampler._make_plan()
    spent = time.process_time() - start
    assert torch.equal(order.sort().values, torch.arange(len(lengths)))  # each sample once
    print(f"{ranks} ranks, {len(lengths)} samples, {sampler.tokens} tokens a batch: planned in {spent:.1f} s")
    busy = describe("balanced", lengths, order, cuts, ranks)
    whole = len(lengths) // (ROWS * ranks) * ROWS * ranks
    shuffled = torch.randperm(len(lengths))[:whole]
    random = describe("random", lengths, shuffled, torch.arange(0, whole + 1, ROWS), ranks)
    print(
        f"  busy {busy:.1%} of the time instead of {random:.1%}: an epoch takes {random / busy:.3f} of it", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Packed batches over many ranks, simulated.")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--ranks", type=int, nargs="*", default=RANKS)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    lengths = lengths_of(options.samples)
    for ranks in options.ranks:
        simulate(lengths, ranks)


if __name__ == "__main__":
    main()
