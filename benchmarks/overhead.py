"""What the host does before a GPU has anything to do: microseconds per op, layer and step, at sizes that cost nothing.

``python -m benchmarks.overhead`` runs models of the depth of BERT-base and Llama 7B with features of size 8 on the CPU,
where the kernels take next to no time.  What is left is the time in which the host launches them, on a GPU as well: a
GPU hides it behind kernels that take longer.  Packed batches are given one call of attention for all sequences, as on a
GPU.  The table is that of docs/cost_cuda.md.
"""

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import masked_tensor as mt
from masked_tensor.kernels.attention import cuda as attention_cuda

ROUNDS = 15
Run = Callable[[Tensor], object]


class Llama(nn.Module):
    """A layer as those of Llama 7B: RMS norms, projections without bias, a gated unit."""

    def __init__(self, width: int = 8, heads: int = 2, inner: int = 16) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width, False), nn.Linear(width, width, False)
        self.gate, self.up, self.down = (nn.Linear(*s, False) for s in [(width, inner)] * 2 + [(inner, width)])

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.qkv(self.norms[0](x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def encoder(layers: int) -> nn.Module:
    """Layers as those of BERT-base."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def step(model: nn.Module) -> Run:
    """Forward and backward."""

    def run(x: Tensor) -> None:
        model(x).square().mean().backward()

    return run


def programs() -> dict[str, Run]:
    linear, norm, bert, llama = nn.Linear(8, 8), nn.LayerNorm(8), encoder(1), Llama()
    return {
        "`x + x`": lambda x: x + x,
        "`Linear`": linear,
        "`LayerNorm`": norm,
        "`x.mean(1)`": lambda x: x.mean(1),
        "a layer of BERT, forward": bert,
        "a layer of BERT, forward and backward": step(bert),
        "a layer of Llama, forward": llama,
        "a layer of Llama, forward and backward": step(llama),
        "a layer of BERT, forward and backward, compiled": step(torch.compile(encoder(1))),
        "a layer of Llama, forward and backward, compiled": step(torch.compile(Llama())),
        "BERT-base, 12 layers, forward and backward": step(encoder(12)),
        "Llama 7B, 32 layers, forward and backward": step(nn.Sequential(*(Llama() for _ in range(32)))),
    }


def inputs() -> dict[str, Tensor]:
    """A batch of two sequences."""
    sequences = [torch.randn(3, 8), torch.randn(2, 8)]
    padded = nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    return {
        "plain": padded,
        "masked": mt.from_lengths(padded, [3, 2]),
        "packed": mt.from_sequences(sequences, packed=True),
    }


def one_call(
    q: Tensor, k: Tensor, v: Tensor, queries: object, keys: object, dropout: float, causal: bool, scale: float
) -> Tensor:
    """In the place of a GPU's kernel, as one call: what it computes is not what the kernel would."""
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale).transpose(0, 1)


def microseconds(run: Run, given: dict[str, Tensor]) -> dict[str, float]:
    """The median of each, in turns."""
    times: dict[str, list[float]] = {name: [] for name in given}
    for x in given.values():
        run(x)
    for _ in range(ROUNDS):
        for name, x in given.items():
            start, calls = time.process_time(), 0
            while time.process_time() - start < 0.02 or not calls:
                run(x)
                calls += 1
            times[name].append((time.process_time() - start) / calls)
    return {name: 1e6 * statistics.median(each) for name, each in times.items()}


def main() -> None:
    torch.set_num_threads(1)
    attention_cuda.DEVICES = ("cpu",)
    attention_cuda.choose_kernel = lambda *_: one_call  # type: ignore[assignment]  # a stand-in for a GPU's
    print("| on the host, microseconds | plain | masked | packed |\n|---|---:|---:|---:|")
    for name, run in programs().items():
        found = microseconds(run, inputs())
        print(f"| {name} | {' | '.join(f'{found[kind]:,.0f}' for kind in ('plain', 'masked', 'packed'))} |")


if __name__ == "__main__":
    main()
