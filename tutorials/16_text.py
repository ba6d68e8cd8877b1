"""
What does padding cost when a transformer reads text?
=====================================================

Time, and lines of code.  With a mask by hand, a model computes the padding and throws
the result away, and you have to apply the mask wherever words are mixed or counted.  A
masked tensor knows its padding, and a packed one does not compute it.  Neither needs
any mask code in the model.

The texts are already on your machine: they are the docstrings of PyTorch.  About half
of a batch is padding.  A transformer predicts which module a docstring comes from.  We
train it four times, from the same weights and on the same batches:

- **by hand**: a padded batch, a mask for attention, and a mean that skips the padding.
- **masked**: the batch is a masked tensor.
- **packed**: the batch is a masked tensor that does not store its padding.
- **flat**: the same batch, and the encoder is flat: ``mt.flat(net.encoder)``.  It runs
  on plain words, one text after another, and attention stays within each text.
"""

import inspect
import re
import time
from collections import Counter
from pathlib import Path

import pygal
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import rnn

import masked_tensor as mt

# The network is small: more threads would only wait for each other.
torch.set_num_threads(1)
torch.manual_seed(0)

# %%
# The texts
# ---------
# A text is a tensor of word numbers.  Each of the 1,000 most frequent words has its own
# number, and all other words share the number 0.  Long texts are truncated.

MODULES = [torch, nn, F, torch.distributions, torch.special]
LONGEST = 192  # words


def texts(module: object) -> list[list[str]]:
    documented = (inspect.getdoc(getattr(module, name)) for name in dir(module))
    words = [re.findall(r"[a-z]+", (text or "").lower()) for text in documented]
    return [w[:LONGEST] for w in words if len(w) >= 10]


documents = [(words, label) for label, m in enumerate(MODULES) for words in texts(m)]
frequent = Counter(word for words, _ in documents for word in words).most_common(1000)
number = {word: i for i, (word, _) in enumerate(frequent, 1)}
data = [(torch.tensor([number.get(w, 0) for w in ws]), y) for ws, y in documents]
data = [data[i] for i in torch.randperm(len(data))]
learn, held_out = data[:-200], data[-200:]
sizes = [len(words) for words, _ in data]
print(f"{len(data)} texts of {min(sizes)} to {max(sizes)} words")

# %%
# The network
# -----------
# Embeddings of words and positions, an encoder, and a mean over the words.


class Reader(nn.Module):
    """Scores of the modules for texts (batch, time)."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(1001, width)
        self.positions = nn.Parameter(0.1 * torch.randn(LONGEST, width))
        layer = nn.TransformerEncoderLayer(width, 4, 384, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, len(MODULES))

    def forward(self, ids: Tensor) -> Tensor:
        steps = self.words(ids) + self.positions[: ids.shape[1]]
        return self.head(self.encoder(steps).mean(1))


class ByHand(Reader):
    """The same network, with a mask in attention and in the mean."""

    def forward(self, ids: Tensor, padding: Tensor) -> Tensor:
        steps = self.words(ids) + self.positions[: ids.shape[1]]
        states = self.encoder(steps, src_key_padding_mask=padding)
        states = states.masked_fill(padding.unsqueeze(2), 0)
        return self.head(states.sum(1) / (~padding).sum(1, keepdim=True))


class Flat(Reader):
    """The same network with a flat encoder."""

    def __init__(self) -> None:
        super().__init__()
        mt.flat(self.encoder)


# %%
# Ways to make a batch
# --------------------


def by_hand(sequences: list[Tensor]) -> tuple[Tensor, Tensor]:
    ids = rnn.pad_sequence(sequences, batch_first=True)
    lengths = torch.tensor([len(s) for s in sequences])
    return ids, torch.arange(ids.shape[1]) >= lengths.unsqueeze(1)


def masked(sequences: list[Tensor]) -> tuple[Tensor]:
    return (mt.from_sequences(sequences),)


def packed(sequences: list[Tensor]) -> tuple[Tensor]:
    return (mt.from_sequences(sequences, packed=True),)


METHODS = {
    "by hand": (ByHand, by_hand),
    "masked": (Reader, masked),
    "packed": (Reader, packed),
    "flat": (Flat, packed),
}

# %%
# Training
# --------


def train(model_class: type[Reader], collate, steps: int = 20) -> tuple[Reader, list]:
    torch.manual_seed(0)
    net, losses = model_class(), []
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    for _ in range(steps):
        chosen = torch.randint(len(learn), (32,))
        sequences, labels = zip(*(learn[i] for i in chosen), strict=True)
        loss = F.cross_entropy(net(*collate(list(sequences))), torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return net.eval(), losses


@torch.no_grad()
def score(net: nn.Module, collate) -> float:
    """The share of the held-out texts whose module is right."""
    right = 0
    for i in range(0, len(held_out), 50):
        sequences, labels = zip(*held_out[i : i + 50], strict=True)
        predicted = net(*collate(list(sequences))).argmax(1)
        right += (predicted == torch.tensor(labels)).sum().item()
    return right / len(held_out)


seconds, losses, lines = {}, {}, {}
print(f"\n{'':10}{'trained in':>12}{'last loss':>11}{'accuracy':>10}{'lines':>7}")
for name, (model_class, collate) in METHODS.items():
    start = time.process_time()
    net, losses[name] = train(model_class, collate)
    seconds[name] = time.process_time() - start
    code = inspect.getsource(model_class.forward) + inspect.getsource(collate)
    lines[name] = len(code.splitlines()) - 2
    row = f"{losses[name][-1]:11.4f}{score(net, collate):10.1%}{lines[name]:7}"
    print(f"{name:10}{seconds[name]:10.1f} s{row}")

share = {name: taken / seconds["by hand"] for name, taken in seconds.items()}
print(
    f"\nPacked training took {share['packed']:.2f} of the time with a mask by hand,"
    f" flat training {share['flat']:.2f}, with {lines['by hand'] - lines['packed']}"
    " fewer lines and the same losses."
)

# %%
# What the table says
# -------------------
# All four learn the same: the losses agree at every step, up to rounding.  The masked
# batch costs about as much as the mask by hand.  The packed batch costs less, because
# the padding is not computed.  The flat encoder also runs no masked ops, which helps
# small networks most.  *Lines* counts ``forward`` and the function that makes the
# batch.
#
# Only the encoder is flat here.  The rest of the network counts positions by the size
# of the batch and computes a mean over time.  Neither is possible on plain tokens,
# where many texts share one row.  ``mt.flat(net)`` raises an error at the first call:

whole = mt.flat(Reader())
try:
    whole(*packed([data[0][0], data[1][0]]))
except mt.UnsupportedOpError as error:
    print(str(error)[:60])
else:
    raise AssertionError("it mixes the texts")

for name in METHODS:
    same = torch.tensor(losses[name]), torch.tensor(losses["by hand"])
    torch.testing.assert_close(*same, rtol=1e-2, atol=1e-3)
assert losses["packed"][-1] < 0.8 * losses["packed"][0]
assert lines["by hand"] - lines["packed"] == 4

# %%
# The picture
# -----------

chart = pygal.HorizontalBar(
    title="The same training, with the same losses",
    x_title="seconds of processor time",
    height=320,
    print_values=True,
    formatter=lambda value: f"{value:.1f}",
    show_legend=False,
    js=[],
)
chart.x_labels = list(seconds)
chart.add("seconds", list(seconds.values()))
if "__file__" in globals():  # a script; the documentation shows the picture itself
    picture = Path(__file__).with_suffix(".svg")
    chart.render_to_file(str(picture))
    print(f"saved {picture.name} beside this script")
