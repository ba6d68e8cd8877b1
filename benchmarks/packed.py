"""Packed rows: training steps of padded batches; plain is by hand: padded, with the mask that the model takes.

The mask is ``src_key_padding_mask`` or ``attention_mask``, or a product after each layer.  Packing is part of every
step.
``python -m benchmarks.packed [name ...] [--rounds 5] [--small] [--device cuda] [--compiled]`` runs single cases.
"""

import argparse
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from masked_tensor import as_masked_tensor

from . import timing
from .packed_models import ByHand, Conformer
from .timing import FAILED, row, training_step

Loss = Callable[[], Tensor]
Case = tuple[nn.Module, dict[str, Loss]]


def batch(shape: tuple[int, int], padding: float) -> Tensor:
    """A mask ``(B, T)`` of prefixes with that share of padding, the longest without any, the others of any length."""
    size, length = shape
    rest = (size * (1 - padding) - 1) / (size - 1)  # the mean of the others
    fractions = torch.linspace(rest - min(rest, 1 - rest), rest + min(rest, 1 - rest), size - 1)
    lengths = (fractions * length).round().clamp_min(1).long()[torch.randperm(size - 1)]
    return torch.arange(length) < torch.cat([torch.tensor([length]), lengths])[:, None]


def encoder(padding: float, small: bool) -> Case:
    """``nn.TransformerEncoder``, 4 layers of width 256, 32 sequences of up to 256 places."""
    return encoder_of((8, 64, 64, 2) if small else (32, 256, 256, 4), padding)


def bert_base(padding: float, small: bool) -> Case:
    """As wide and deep as BERT-base: 12 layers of width 768, 32 sequences of up to 512 places, float32."""
    return encoder_of((8, 64, 64, 2) if small else (32, 512, 768, 12), padding)


def bert_large(padding: float, small: bool) -> Case:
    """As wide and deep as BERT-large: 24 layers of width 1024, 64 sequences of up to 512 places, bfloat16."""
    return encoder_of((8, 64, 64, 2) if small else (64, 512, 1024, 24), padding, torch.bfloat16)


def encoder_of(shape: tuple[int, int, int, int], padding: float, dtype: torch.dtype = torch.float32) -> Case:
    """``nn.TransformerEncoder`` for ``(sequences, places, width, layers)``, with heads of width 64 at most."""
    size, length, width, layers = shape
    valid, data = batch((size, length), padding), torch.randn(size, length, width, dtype=dtype)
    target = torch.randn_like(data)
    layer = nn.TransformerEncoderLayer(width, max(8, width // 64), 4 * width, 0.0, batch_first=True, dtype=dtype)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    padded, weight = data * valid[..., None], valid[..., None] / (valid.sum() * width)

    def plain() -> Tensor:
        error = model(padded, src_key_padding_mask=~valid).float() - target
        return (error.square() * weight).sum()

    def loss(x: Any) -> Any:
        return F.mse_loss(model(x).float(), target.float())

    return model, {"plain": plain} | ragged(loss, padded, valid[..., None])


def tagger(padding: float, small: bool) -> Case:
    """Embedding, two layers with norms, cross entropy over ragged targets."""
    size, length, width = (8, 64, 64) if small else (32, 256, 256)
    valid = batch((size, length), padding)
    tokens, tags = torch.randint(0, 5000, (size, length)), torch.randint(0, 32, (size, length))
    hidden = [nn.Linear(width, 4 * width), nn.GELU(), nn.LayerNorm(4 * width), nn.Linear(4 * width, width), nn.GELU()]
    model = nn.Sequential(nn.Embedding(5000, width), *hidden, nn.LayerNorm(width), nn.Linear(width, 32))

    def plain() -> Tensor:
        return F.cross_entropy(model(tokens).flatten(0, 1), tags.masked_fill(~valid, -100).flatten())

    def loss(x: Any) -> Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), tags.flatten())

    return model, {"plain": plain} | ragged(loss, tokens, valid)


def conformer(padding: float, small: bool) -> Case:
    """Three Conformer blocks of width 144."""
    size, length, width = (4, 64, 32) if small else (16, 256, 144)
    return blocks([Conformer(width) for _ in range(3)], (size, length, width), padding)


def by_hand(padding: float, small: bool) -> Case:
    """Two blocks of width 256 with attention written by hand."""
    size, length, width = (8, 64, 64) if small else (32, 256, 256)
    return blocks([ByHand(width) for _ in range(2)], (size, length, width), padding)


def blocks(layers: list[nn.Module], shape: tuple[int, int, int], padding: float) -> Case:
    """Blocks ``block(x, hidden)`` one after the other; the plain ones are told where the padding is."""
    valid, data = batch(shape[:2], padding), torch.randn(shape)
    model = nn.ModuleList(layers)

    def run(x: Any, hidden: Tensor | None = None) -> Any:
        for block in model:
            x = block(x, hidden)
        return x

    padded, weight = data * valid[..., None], valid[..., None] / (valid.sum() * shape[2])

    def plain() -> Tensor:
        return (run(padded, ~valid).square() * weight).sum()

    return model, {"plain": plain} | ragged(lambda x: run(x).square().mean(), padded, valid[..., None])


def stack(padding: float, small: bool) -> Case:
    """Four convolutions over time, same length."""
    size, length, width = (8, 64, 32) if small else (32, 256, 128)
    valid, data = batch((size, length), padding)[:, None], torch.randn(size, width, length)
    convolutions = (nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.ReLU()) for _ in range(4))
    model = nn.Sequential(*convolutions)
    padded, weight = data * valid, valid / (valid.sum() * width)

    def plain() -> Tensor:
        x = padded
        for layer in model:
            x = layer(x) * valid
        return (x.square() * weight).sum()

    return model, {"plain": plain} | ragged(lambda x: model(x).square().mean(), padded, valid, (0, 2))


def recurrent(padding: float, small: bool) -> Case:
    """A bidirectional LSTM over a packed sequence, as torch has it."""
    size, length, width = (8, 32, 32) if small else (32, 128, 128)
    valid, data = batch((size, length), padding), torch.randn(size, length, width)
    model = nn.LSTM(width, width, batch_first=True, bidirectional=True)
    padded, weight = data * valid[..., None], valid[..., None] / (valid.sum() * 2 * width)

    def plain() -> Tensor:
        return (model(padded)[0].square() * weight).sum()

    return model, {"plain": plain} | ragged(lambda x: model(x)[0].square().mean(), padded, valid[..., None])


def language(name: str, padding: float, small: bool) -> Case:
    """A small model of transformers, with its own attention mask or none at all."""
    import transformers

    size, length, width, layers = (4, 32, 64, 2) if small else (16, 192, 256, 4)
    valid, tokens = batch((size, length), padding), torch.randint(5, 1000, (size, length))
    common = {"vocab_size": 1000, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 4}
    more = {
        "Bert": {"intermediate_size": 4 * width, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
        "Llama": {"intermediate_size": 3 * width, "num_key_value_heads": 2},
        "Qwen3": {"intermediate_size": 3 * width, "num_key_value_heads": 2, "head_dim": width // 4},
        "GPT2": {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
    }[name]
    config = getattr(transformers, f"{name}Config")(**common, **more, use_cache=False)
    model = getattr(transformers, f"{name}Model")(config)
    weight = valid[..., None] / (valid.sum() * width)

    def plain() -> Tensor:
        output = model(input_ids=tokens, attention_mask=valid.long()).last_hidden_state
        return (output.square() * weight).sum()

    def loss(x: Any) -> Tensor:
        return model(input_ids=x).last_hidden_state.square().mean()

    return model, {"plain": plain} | ragged(loss, tokens, valid)


def ragged(loss: Any, data: Tensor, valid: Tensor, dims: tuple[int, int] = (0, 1)) -> dict[str, Loss]:
    """The same loss of a masked and of a packed tensor."""

    def masked() -> Tensor:
        return loss(as_masked_tensor(data, valid)).filled(0)  # type: ignore[no-any-return]

    def packed() -> Tensor:
        return loss(as_masked_tensor(data, valid).packed(dims)).filled(0)  # type: ignore[attr-defined, no-any-return]

    return {"masked": masked, "packed": packed}


LANGUAGE = ("Bert", "Llama", "GPT2", "Qwen3") if find_spec("transformers") else ()
CASES: dict[str, tuple[Any, tuple[float, ...]]] = {
    "encoder": (encoder, (0.5, 0.75, 0.0)),
    "tagger": (tagger, (0.5, 0.75)),
    "conformer": (conformer, (0.55,)),
    "by hand": (by_hand, (0.5,)),
    "stack": (stack, (0.5,)),
    "recurrent": (recurrent, (0.5,)),
    **{name: (lambda p, s, n=name: language(n, p, s), (0.5,)) for name in LANGUAGE},
}
LARGE: dict[str, tuple[Any, tuple[float, ...]]] = {  #: on a GPU, where the host is slower than kernels of small models
    "BERT-base": (bert_base, (0.5,)),
    "BERT-large": (bert_large, (0.5,)),
}


GOALS = {
    ("encoder", 0.5): "0.46",
    ("encoder", 0.75): "0.25",
    ("encoder", 0.0): "1.03",
    ("tagger", 0.5): "0.52",
    ("conformer", 0.55): "0.52",
    ("stack", 0.5): "0.8",
    ("recurrent", 0.5): "0.95",
    **{(name, 0.5): "0.62" for name in LANGUAGE},
}


def run(small: bool, names: Sequence[str] = (), rounds: int = 5) -> None:
    cases = CASES | LARGE
    for name in names or (cases if timing.DEVICE == "cuda" else CASES):
        make, shares = cases[name]
        for share in shares:
            torch.manual_seed(0)
            model, losses = make(share, small)
            title = f"{name}, {share:.0%} padding"
            steps: dict[str, Callable[[], object]] = {k: training_step(model, v) for k, v in losses.items()}
            row(title, steps, GOALS.get((name, share), ""), rounds, memory=dict(losses))
            if name != "recurrent" and not any(title in what for what in FAILED):  # it reads the padding first
                check(title, losses, 1e-2 if name == "BERT-large" else 1e-3)


def check(title: str, losses: dict[str, Loss], tolerance: float) -> None:
    """All kinds give one value, or it is said at the end."""
    values = {kind: loss().item() for kind, loss in losses.items()}
    if any(abs(value - values["plain"]) > tolerance * abs(values["plain"]) for value in values.values()):
        FAILED.append(f"{title}: the losses differ: {values}")


def compiled(small: bool) -> None:
    """An encoder again, each kind of step in graphs of its own; packing lies between them and is part of the step."""
    cases = {"encoder": encoder} | ({"BERT-base": bert_base} if timing.DEVICE == "cuda" else {})
    for name, make in cases.items():
        torch.manual_seed(0)
        torch.compiler.reset()
        model, losses = make(0.5, small)
        model.forward = torch.compile(model.forward)  # type: ignore[method-assign]  # torch skips its own under compile()
        row(f"{name}, 50% padding, compiled", {k: training_step(model, v) for k, v in losses.items()}, "0.46", rounds=5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[*CASES, *LARGE, []])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    timing.DEVICE = options.device
    timing.settle()
    run(options.small, options.names, options.rounds)
    if options.compiled:
        compiled(options.small)


if __name__ == "__main__":
    main()
