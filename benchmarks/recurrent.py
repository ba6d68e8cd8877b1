"""Recurrent nets on padded batches: the way that was chosen, by the better of the two, for sizes drawn at random.

``python -m benchmarks.recurrent`` draws 30 nets and batches that are padded on the right, runs each as it is padded and
in pieces that end where rows do, forward and backward or forward alone, and prints how many times the better way the
chosen one takes.  The numbers of ``settings.NET_COSTS`` are to keep that below 1.2.
"""

import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

import masked_tensor as mt
from masked_tensor.shared.rows import sequences

KINDS: dict[str, type[nn.RNNBase]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
ROUNDS = 7


def draw() -> tuple[str, nn.RNNBase, mt.MaskedTensor, bool]:
    """What it is, the net, the batch, and whether it is trained."""
    steps, rows, width, inputs = (int(2 ** random.uniform(*r)) for r in ((3, 7), (1, 6), (3, 7.5), (3, 7.5)))
    least, train, kind = random.uniform(0, 1), random.random() < 0.7, random.choice(list(KINDS))
    lengths = [steps, *(max(1, int(random.uniform(least, 1) * steps)) for _ in range(rows - 1))]
    name = f"{kind} {inputs} to {width}, {rows} x {steps}, {len(set(lengths))} lengths, "
    name += f"{rows * steps - sum(lengths)} padded steps, {'training' if train else 'inference'}"
    batch = mt.from_lengths(torch.randn(rows, steps, inputs), lengths)
    return name, KINDS[kind](inputs, width, batch_first=True), batch, train


def once(net: nn.RNNBase, batch: mt.MaskedTensor, train: bool) -> float:
    """The time of one run."""
    start = time.process_time()
    with torch.set_grad_enabled(train):
        out = net(batch)[0]
        if train:
            out.backward(torch.ones(out.shape))
    return time.process_time() - start


def measure(net: nn.RNNBase, batch: mt.MaskedTensor, train: bool) -> tuple[bool, dict[bool, float]] | None:
    """Whether the padded way is chosen, and the time of each way; None if there is no choice."""
    choose: Callable[..., bool] = sequences.saves_time
    asked: list[bool] = []
    best = {True: float("inf"), False: float("inf")}

    def note(*given: Any) -> bool:
        asked.append(choose(*given))
        return asked[-1]

    try:
        sequences.saves_time = note
        once(net, batch, train)
        if not asked:
            return None
        for _ in range(ROUNDS):
            for padded in best:
                sequences.saves_time = partial(_always, padded)
                best[padded] = min(best[padded], once(net, batch, train))
    finally:
        sequences.saves_time = choose
    return asked[0], best


def _always(padded: bool, *given: Any) -> bool:
    return padded


def main(number: int, seed: int) -> None:
    random.seed(seed)
    torch.set_num_threads(1)
    worst = 0.0
    for _ in range(number):
        name, *given = draw()
        found: Any = measure(*given)
        if found is None:
            continue
        padded, best = found
        ratio = best[padded] / min(best.values())
        worst = max(worst, ratio)
        print(f"{ratio:5.2f}  {'padded' if padded else 'pieces'}  {name}", flush=True)
    print(f"worst {worst:.2f}")


if __name__ == "__main__":
    main(30, int(sys.argv[1]) if len(sys.argv) > 1 else 0)
