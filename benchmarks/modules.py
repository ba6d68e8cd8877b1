"""Training steps of padded module stacks: MaskedTensor against the plain modules on the same padded data.

``python -m benchmarks.modules [--only conv1d lstm] [--rounds 9] [--compile]``.  Both steps run in one process,
interleaved; the ratio is that of the medians.  Half of every batch is padding.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn

from masked_tensor import masked_tensor

from .timing import medians, training_step


def conv1d() -> nn.Module:
    return nn.Sequential(*(part for _ in range(4) for part in (nn.Conv1d(128, 128, 5, padding=2), nn.ReLU())))


def strided() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(128, 128, 4, 2, 1), nn.ReLU(), nn.Conv1d(128, 128, 3, dilation=2, padding=2), nn.ReLU(),
        nn.ConvTranspose1d(128, 128, 4, 2, 1),
    )  # fmt: skip


def conv2d() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.AdaptiveAvgPool2d(1),
    )  # fmt: skip


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.net = kind(128, 128, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[0]  # type: ignore[no-any-return]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.MultiheadAttention(256, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


SHAPES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "conv1d": (conv1d, (16, 128, 512), 2),
    "strided": (strided, (16, 128, 512), 2),
    "conv2d": (conv2d, (16, 3, 96, 96), 3),
    "attention": (Attention, (32, 256, 256), 1),
    "lstm": (lambda: Recurrent(nn.LSTM), (16, 128, 128), 1),
    "gru": (lambda: Recurrent(nn.GRU), (16, 128, 128), 1),
}


def steps(name: str, compiled: bool) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """The plain and the masked training step, with equal parameters and data."""
    make, shape, dim = SHAPES[name]
    torch.manual_seed(0)
    module, data = make(), torch.randn(shape)
    lengths = torch.randint(1, shape[dim] + 1, (shape[0],))
    valid = torch.arange(shape[dim]) < lengths[:, None]
    mask = valid.view([n if d in (0, dim) else 1 for d, n in enumerate(shape)])
    x, padded = masked_tensor(data, mask), data * mask

    def loss(given: Tensor) -> Callable[[], Tensor]:
        return lambda: module(given).square().mean()

    return training_step(module, loss(padded), compiled), training_step(module, loss(x), compiled)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    for name in options.only:
        if options.compile and name in ("lstm", "gru"):
            continue  # dynamo refuses plain recurrent nets
        pair = dict(zip(("plain", "masked"), steps(name, options.compile), strict=True))
        plain, masked = medians(pair, options.rounds).values()
        print(f"{name:8} plain {plain:.4f} s, masked {masked:.4f} s, ratio {masked / plain:.3f}", flush=True)


if __name__ == "__main__":
    main()
