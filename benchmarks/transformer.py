"""A padded TransformerEncoder training step: MaskedTensor against ``src_key_padding_mask``, eager and compiled.

``python -m benchmarks.transformer [--layers 4] [--rounds 5] [--dropout 0] [--compile]``.  Both steps run in one
process, interleaved; the ratio is that of the medians.
"""

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn

from masked_tensor import masked_tensor

from .timing import medians, training_step

BATCH, TIME, WIDTH, HEADS, HIDDEN = 32, 256, 256, 8, 1024


def steps(layers: int, dropout: float, compiled: bool) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """The plain and the masked training step, with equal parameters and data."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, dropout, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    lengths = torch.randint(1, TIME + 1, (BATCH,))
    valid = torch.arange(TIME) < lengths[:, None]
    data, target = torch.randn(BATCH, TIME, WIDTH), torch.randn(BATCH, TIME, WIDTH)
    x, hidden = masked_tensor(data, valid.unsqueeze(-1)), ~valid
    padded = data * valid.unsqueeze(-1)
    weight = valid.unsqueeze(-1) / (valid.sum() * WIDTH)

    def plain_loss() -> Tensor:
        return ((model(padded, src_key_padding_mask=hidden) - target).square() * weight).sum()

    def masked_loss() -> Tensor:
        return ((model(x) - target).square() * weight).sum()

    return training_step(model, plain_loss, compiled), training_step(model, masked_loss, compiled)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    plain, masked = steps(options.layers, options.dropout, options.compile)
    a, b = medians({"plain": plain, "masked": masked}, options.rounds).values()
    print(f"plain {a:.3f} s, masked {b:.3f} s, ratio {b / a:.3f}")


if __name__ == "__main__":
    main()
