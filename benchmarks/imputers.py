"""The networks of docs/series.md beside those of PyPOTS, on recordings of speakers: ``python -m benchmarks.imputers``.

The data are those of tutorials/14_utterances.py: 640 utterances of 7 to 29 frames of 12 coefficients.  A share of the
entries is hidden at random.  An imputer is to say what they were; a classifier is to name the speaker.  Both sides have
the same sizes, batches, epochs and optimizer.  Without PyPOTS only ours are run.
"""

import argparse
import doctest
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt

ROOT = Path(__file__).parent.parent
STEPS, SIZE, WIDTH, BATCH, SPEAKERS = 29, 12, 32, 32, 9


def page_classes() -> dict[str, Any]:
    """The classes that the page defines, by name."""
    names: dict[str, Any] = {"nn": nn, "torch": torch, "F": F, "mt": mt}
    page = (ROOT / "docs/series.md").read_text()
    for example in doctest.DocTestParser().get_examples(page):
        if example.source.startswith("class "):
            exec(example.source, names)
    return names


def utterances(share: float) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Train and test: the whole series (NaN is padding), what is left of them, and the speakers."""
    sys.path.insert(0, str(ROOT / "tutorials"))
    from parts.utterances import read

    parts = read()
    every = torch.cat([series for series, _ in parts[0]])
    generator = torch.Generator().manual_seed(0)
    made = []
    for part in parts:
        series = [(frames - every.mean(0)) / every.std(0) for frames, _ in part]
        whole = nn.utils.rnn.pad_sequence([*series, torch.zeros(STEPS, SIZE)], True, float("nan"))[:-1]
        hidden = torch.rand(whole.shape, generator=generator) < share
        left = whole.masked_fill(hidden, float("nan"))
        made.append({"whole": whole, "left": left, "speakers": torch.tensor([speaker for _, speaker in part])})
    return made[0], made[1]


def train(model: nn.Module, data: dict[str, Tensor], loss_of: Callable[..., Tensor], epochs: int) -> nn.Module:
    adam = torch.optim.Adam(model.parameters(), 1e-3)
    x = mt.masked_invalid(data["left"])
    for _ in range(epochs):
        for chosen in torch.randperm(len(x)).split(BATCH):
            loss = loss_of(model, x[chosen], data["speakers"][chosen])
            adam.zero_grad()
            loss.backward()
            adam.step()
    return model.eval()


def hide(x: Tensor) -> tuple[Tensor, Tensor]:
    """What is shown to an imputer, and what is hidden from it for its loss."""
    hidden = x.get_mask() & (torch.rand(x.shape) < 0.2)
    return mt.as_masked_tensor(x.filled(0), x.get_mask() & ~hidden), mt.as_masked_tensor(x.filled(0), hidden)


def imputer_loss(model: nn.Module, x: Tensor, _: Tensor) -> Tensor:
    shown, hidden = hide(x)
    guess = model(shown)
    return F.l1_loss(guess, x) + F.l1_loss(guess, hidden)


def error(guess: Tensor, data: dict[str, Tensor]) -> float:
    """The mean absolute error over what was hidden."""
    hidden = data["left"].isnan() & ~data["whole"].isnan()
    return F.l1_loss(guess, mt.as_masked_tensor(data["whole"], hidden)).item()


class Speaker(nn.Module):
    """The state after the last frame, and a Linear."""

    def __init__(self, states: nn.Module, width: int) -> None:
        super().__init__()
        self.states, self.head = states, nn.Linear(width, SPEAKERS)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.states(x)[:, -1])


def ours(train_data: dict[str, Tensor], test: dict[str, Tensor], epochs: int) -> dict[str, float]:
    page, x = page_classes(), mt.masked_invalid(test["left"])
    torch.manual_seed(0)
    imputer = train(page["Imputer"](SIZE, WIDTH, STEPS), train_data, imputer_loss, epochs)
    classifier = Speaker(page["GRUD"](SIZE, 2 * WIDTH), 2 * WIDTH)
    train(classifier, train_data, lambda model, x, speakers: F.cross_entropy(model(x), speakers), epochs)
    with torch.no_grad():
        right = classifier(x).argmax(1) == test["speakers"]
        return {"imputer": error(imputer(x), test), "classifier": right.float().mean().item()}


def theirs(train_data: dict[str, Tensor], test: dict[str, Tensor], epochs: int) -> dict[str, float]:
    from pypots.classification import GRUD
    from pypots.imputation import SAITS

    torch.manual_seed(0)
    common = {"n_steps": STEPS, "n_features": SIZE, "batch_size": BATCH, "epochs": epochs, "verbose": False}
    saits = SAITS(**common, n_layers=1, d_model=WIDTH, n_heads=2, d_k=WIDTH // 2, d_v=WIDTH // 2, d_ffn=4 * WIDTH)
    saits.fit({"X": train_data["left"].numpy()})
    guess = torch.as_tensor(saits.impute({"X": test["left"].numpy()}))
    grud = GRUD(**common, n_classes=SPEAKERS, rnn_hidden_size=2 * WIDTH)
    grud.fit({"X": train_data["left"].numpy(), "y": train_data["speakers"].numpy()})
    named = torch.as_tensor(grud.predict({"X": test["left"].numpy()})["classification"])
    return {"imputer": error(guess, test), "classifier": (named == test["speakers"]).float().mean().item()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=100)
    epochs = parser.parse_args().epochs
    torch.set_num_threads(1)
    sides = {"here": ours} | ({"PyPOTS": theirs} if find_spec("pypots") else {})
    print(f"{'hidden':8}{'':10}{'error of an imputer':>22}{'right speakers by GRU-D':>26}{'seconds':>10}")
    for share in (0.3, 0.6):
        data = utterances(share)
        zeros = error(torch.zeros_like(data[1]["whole"]), data[1])
        last = mt.ffill(mt.masked_invalid(data[1]["left"]), 1, lengths="full").filled(0)
        print(f"{share:<8}{'zeros':10}{zeros:22.3f}")
        print(f"{share:<8}{'ffill':10}{error(last, data[1]):22.3f}")
        for side, run in sides.items():
            start = time.perf_counter()
            found = run(*data, epochs)
            seconds = time.perf_counter() - start
            print(f"{share:<8}{side:10}{found['imputer']:22.3f}{found['classifier']:26.3f}{seconds:10.1f}", flush=True)


if __name__ == "__main__":
    main()
