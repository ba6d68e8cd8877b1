"""Flat: training steps of transformers, half of the batch padding, each in five ways.

Plain is by hand: padded, with the mask that the model takes.  *Sorted by hand* cuts the batch by length into four
parts, each padded to its own longest.  Making the batch is part of every step.

``python -m benchmarks.flat [model ...] [--sizes tiny small] [--compiled]`` runs single cases.
"""

import argparse
import copy
from collections.abc import Callable, Sequence
from importlib.util import find_spec

import torch
from torch import Tensor, nn

import masked_tensor as mt

from .flat_models import Case, Size, bert, encoder, llama, plain
from .packed import check
from .timing import row, training_step

SIZES = {
    "tiny": Size("tiny", 2, 32, 8, 32),
    "small": Size("small", 2, 64, 16, 64),
    "ordinary": Size("ordinary", 4, 256, 16, 128),
}
LEAST = {"tiny": Size("tiny", 1, 32, 4, 8)}
GOALS = {"tiny": "1.2", "small": "0.74", "ordinary": "0.5"}
PARTS = 4  #: of a batch that is sorted by hand
MODELS: dict[str, Callable[[Size], Case]] = {
    "nn.TransformerEncoder": encoder,
    "F.scaled_dot_product_attention": plain,
    **({"BERT": bert, "Llama": llama} if find_spec("transformers") else {}),
}


def steps(case: Case, flat: nn.Module) -> dict[str, Callable[[], Tensor]]:
    """The losses to compute, all of one value, by one model and its flat copy."""
    model = case.model
    data, valid, targets = case.data, case.valid, case.targets
    lengths = valid.sum(1)
    whole = int(lengths.sum())
    parts = []
    for part in lengths.argsort().chunk(PARTS):
        longest = int(lengths[part].max())
        parts.append((part, longest, int(lengths[part].sum()) / whole))

    def by_length() -> Tensor:
        losses = [
            share * case.by_hand(model, data[part, :n], valid[part, :n], targets[part, :n]) for part, n, share in parts
        ]
        return torch.stack(losses).sum()

    return {
        "plain": lambda: case.by_hand(model, data, valid, targets),
        "sorted by hand": by_length,
        "masked": lambda: case.ours(model, case.masked(), targets).filled(0),  # type: ignore[attr-defined]
        "packed": lambda: case.ours(model, case.masked().packed(), targets).filled(0),  # type: ignore[attr-defined]
        "flat": lambda: case.ours(flat, case.masked(), targets).filled(0),  # type: ignore[attr-defined]
    }


def run(small: bool, names: Sequence[str] = (), sizes: Sequence[str] = (), rounds: int = 5) -> None:
    for title, size in (LEAST if small else SIZES).items():
        for name in names or [*MODELS][: 1 if small else None]:
            if sizes and title not in sizes:
                continue
            torch.manual_seed(0)
            case = MODELS[name](size)
            flat = mt.flat(copy.deepcopy(case.model))
            losses = steps(case, flat)
            about = f"{name}, {title} ({size.layers} x {size.width}, {size.sequences} x {size.time})"
            timed = {k: training_step(flat if k == "flat" else case.model, loss) for k, loss in losses.items()}
            row(about, timed, GOALS[title], rounds if title == "ordinary" else 5 * rounds)
            check(about, losses, 1e-3)


def compiled(small: bool) -> None:
    """The small ones again, each kind of step in graphs of its own; the loss is eager."""
    size = (LEAST if small else SIZES)["tiny"]
    for name in ("nn.TransformerEncoder", "F.scaled_dot_product_attention"):
        torch.manual_seed(0)
        torch.compiler.reset()
        case = MODELS[name](size)
        flat = mt.flat(copy.deepcopy(case.model))
        losses = steps(case, flat)
        for model in (case.model, flat):
            model.forward = torch.compile(model.forward)  # type: ignore[method-assign]  # under compile() torch skips its own
        timed = {k: training_step(flat if k == "flat" else case.model, loss) for k, loss in losses.items()}
        row(f"{name}, {size.name}, compiled", timed, rounds=15)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--sizes", nargs="*", choices=[*SIZES], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="one small size: does it run?")
    parser.add_argument("--compiled", action="store_true", help="compiled ones too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run(options.small, options.names, options.sizes, options.rounds)
    if options.compiled:
        compiled(options.small)


if __name__ == "__main__":
    main()
