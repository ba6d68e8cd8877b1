"""Training steps of whole models: plain on complete or padded data, masked, and what is kept for backward.

``plain`` of a padded batch is the modules on zero padding; that of the encoder has ``src_key_padding_mask``, and is
what is written by hand.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import masked_tensor as mt

from .timing import row, training_step

Losses = tuple[nn.Module, dict[str, Callable[[], Tensor]]]


def perceptron(size: int) -> Losses:
    """Three Linear, masked at random in the input and in the target."""
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))
    data, target = torch.randn(size, 64), torch.randn(size, 8)
    seen, known = torch.rand(size, 64) < 0.7, torch.rand(size, 8) < 0.7
    x, y = mt.masked_tensor(data, seen), mt.masked_tensor(target, known)

    def by_hand() -> Tensor:
        error = model(torch.where(seen, data, 0)) - torch.where(known, target, 0)
        return torch.where(known, error.square(), 0).sum() / known.sum()

    return model, {
        "plain": lambda: F.mse_loss(model(data), target),
        "by hand": by_hand,
        "masked": lambda: F.mse_loss(model(x), y).filled(0),  # type: ignore[attr-defined]
    }


def pixels(size: int) -> Losses:
    """Two blocks of convolution, batch norm, ReLU and pooling; pixels are missing at random."""
    model = nn.Sequential(
        *(m for n in (3, 16) for m in (nn.Conv2d(n, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip
    data, target, seen = torch.randn(size, 3, 32, 32), torch.randint(10, (size,)), torch.rand(size, 1, 32, 32) < 0.9
    x = mt.masked_tensor(data, seen)

    def masked() -> Tensor:
        with mt.meaning(convolution="any"):
            return F.cross_entropy(model(x), target).filled(0)  # type: ignore[attr-defined, no-any-return]

    def by_hand() -> Tensor:
        """A place is seen where the convolution or the pooling sees any; the statistics are of what is seen."""
        y, shown = torch.where(seen, data, 0), seen.to(data.dtype)
        for convolution, norm in ((model[0], model[1]), (model[4], model[5])):
            y, shown = convolution(y), F.max_pool2d(shown, 3, 1, 1)
            missing, number = shown == 0, shown.sum()
            y = y.masked_fill(missing, 0)
            mean = y.sum((0, 2, 3), keepdim=True) / number
            apart = (y - mean).masked_fill(missing, 0)
            y = apart * (apart.square().sum((0, 2, 3), keepdim=True) / number + norm.eps).rsqrt()
            y = (y * norm.weight[:, None, None] + norm.bias[:, None, None]).relu().masked_fill(missing, -torch.inf)
            y, shown = F.max_pool2d(y, 2), F.max_pool2d(shown, 2)
            y = y.masked_fill(shown == 0, 0)
        y = y.sum((2, 3)) / shown.sum((2, 3))
        return F.cross_entropy(model[-1](y), target)

    return model, {
        "plain": lambda: F.cross_entropy(model(data), target),
        "by hand": by_hand,
        "masked": masked,
    }


def padded(model: nn.Module, shape: tuple[int, ...], dim: int) -> tuple[Losses, Tensor]:
    """A model on a padded batch, about half of it padding along ``dim``; and the lengths."""
    data, lengths = torch.randn(shape), torch.randint(1, shape[dim] + 1, (shape[0],))
    lengths[0] = shape[dim]
    valid = torch.arange(shape[dim]) < lengths[:, None]
    mask = valid.view([n if d in (0, dim) else 1 for d, n in enumerate(shape)])
    x, zeros = mt.masked_tensor(data, mask), data * mask

    def loss(given: Tensor) -> Callable[[], Tensor]:
        return lambda: first(model(given)).square().mean()

    return (model, {"plain": loss(zeros), "masked": loss(x)}), lengths


def first(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    return output[0] if isinstance(output, tuple) else output


def convolutions(size: int) -> Losses:
    layers = (m for _ in range(4) for m in (nn.Conv1d(128, 128, 5, padding=2), nn.ReLU()))
    (model, losses), lengths = padded(nn.Sequential(*layers), (16, 128, size), 2)
    valid = (torch.arange(size) < lengths[:, None])[:, None]
    zeros, weight = torch.randn(16, 128, size) * valid, valid / (valid.sum() * 128)

    def by_hand() -> Tensor:
        y = zeros
        for layer in model:
            y = layer(y) * valid
        return (y.square() * weight).sum()

    return model, losses | {"by hand": by_hand}


def strided(size: int) -> Losses:
    model = nn.Sequential(
        nn.Conv1d(128, 128, 4, 2, 1), nn.ReLU(), nn.Conv1d(128, 128, 3, dilation=2, padding=2), nn.ReLU(),
        nn.ConvTranspose1d(128, 128, 4, 2, 1),
    )  # fmt: skip
    return padded(model, (16, 128, size), 2)[0]


def pictures(size: int) -> Losses:
    """Convolutions over pictures of different widths."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.AdaptiveAvgPool2d(1),
    )  # fmt: skip
    return padded(model, (16, 3, size, size), 3)[0]


def recurrent(size: int) -> Losses:
    """A bidirectional LSTM; by hand a packed sequence is sorted, packed and unpacked; ``packed`` packs rows."""
    net = nn.LSTM(128, 128, num_layers=2, bidirectional=True, batch_first=True)
    (model, losses), lengths = padded(net, (16, size, 128), 1)
    data, valid = torch.randn(16, size, 128), torch.arange(size) < lengths[:, None]

    def by_sequence() -> Tensor:
        packed = pack_padded_sequence(data, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(model(packed)[0], batch_first=True)[0].square().mean()

    def packed() -> Tensor:
        return model(mt.as_masked_tensor(data, valid[..., None]).packed())[0].square().mean()  # type: ignore[no-any-return]

    return model, losses | {"by hand": by_sequence, "packed": packed}


def transformer(size: int) -> Losses:
    """Four layers of width 256 with their own padding mask, 32 sequences."""
    layer = nn.TransformerEncoderLayer(256, 8, 1024, 0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    data, target, lengths = torch.randn(32, size, 256), torch.randn(32, size, 256), torch.randint(1, size + 1, (32,))
    valid = torch.arange(size) < lengths[:, None]
    x, zeros = mt.masked_tensor(data, valid[..., None]), data * valid[..., None]
    weight = valid[..., None] / (valid.sum() * 256)

    def loss(given: Tensor, **keywords: Tensor) -> Tensor:
        return ((model(given, **keywords) - target).square() * weight).sum()

    return model, {"plain": lambda: loss(zeros, src_key_padding_mask=~valid), "masked": lambda: loss(x)}


CASES: dict[str, tuple[Callable[[int], Losses], int, str]] = {
    "perceptron, batch 32": (perceptron, 32, "1.7"),
    "perceptron, batch 256": (perceptron, 256, "1.7"),
    "pixels missing, batch 16": (pixels, 16, "1.4"),
    "conv1d x 4, padded": (convolutions, 512, "1.1"),
    "strided conv1d, padded": (strided, 512, ""),
    "conv2d, padded": (pictures, 96, ""),
    "LSTM, padded": (recurrent, 128, "1.2"),
    "TransformerEncoder, padded": (transformer, 256, "1.15"),
}
WHOLE = ("perceptron, batch 32", "conv1d x 4, padded")  # compiled in one graph; the encoder is one of packed.py


def run(small: bool) -> None:
    for name, (make, size, goal) in CASES.items():
        torch.manual_seed(0)
        model, losses = make(min(size, 8) if small else size)
        steps = {kind: training_step(model, loss) for kind, loss in losses.items()}
        tiny = name.startswith("perceptron")
        row(name, steps, goal, rounds=31 if tiny else 5, calls=20 if tiny else 1, memory=losses)


def compiled(small: bool) -> None:
    for name in WHOLE:
        make, size, _ = CASES[name]
        torch.manual_seed(0)
        torch.compiler.reset()
        model, losses = make(min(size, 8) if small else size)
        steps = {kind: training_step(model, loss, True) for kind, loss in losses.items()}
        row(f"{name}, compiled", steps, "1.1", rounds=5)
