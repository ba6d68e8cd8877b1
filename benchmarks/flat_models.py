"""The models of ``benchmarks.flat`` and ``benchmarks.models_cuda``, and a batch for each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import masked_tensor as mt

from .packed import batch

TAGS = 9


@dataclass(frozen=True)
class Size:
    """Layers of a width, and sequences of up to ``time`` steps."""

    name: str
    layers: int
    width: int
    sequences: int
    time: int
    vocabulary: int = 1000
    dropout: float = 0.0


class Plain(nn.Module):
    """Blocks that call ``F.scaled_dot_product_attention``, as people write them."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        width = size.width
        self.heads = max(2, width // 32)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({
                "before": nn.LayerNorm(width),
                "project": nn.Linear(width, 3 * width),
                "mix": nn.Linear(width, width),
                "feed": feed_forward(width),
            })
            for _ in range(size.layers)
        )  # fmt: skip

    def forward(self, x: Any, seen: Tensor | None = None) -> Any:
        for block in self.blocks:
            heads = block["project"](block["before"](x)).unflatten(-1, (3, self.heads, -1))  # type: ignore[index]
            q, k, v = (y.transpose(1, 2) for y in heads.unbind(-3))
            y = F.scaled_dot_product_attention(q, k, v, seen)
            x = x + block["mix"](y.transpose(1, 2).flatten(2))  # type: ignore[index]
            x = x + block["feed"](x)  # type: ignore[index]
        return x


def feed_forward(width: int) -> nn.Module:
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


@dataclass(frozen=True)
class Case:
    """A model, what is asked of it by hand for plain data with a mask, and what for a masked batch."""

    model: nn.Module
    data: Tensor  #: (B, T) or (B, T, C)
    valid: Tensor  #: (B, T)
    by_hand: Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]  #: model, data, mask, targets: the loss
    ours: Callable[[nn.Module, Any, Tensor], Tensor]  #: model, batch, targets: the loss
    targets: Tensor

    def masked(self) -> Any:
        """The batch as masked tensor."""
        x: Any = self.data
        return mt.from_lengths(x, self.valid.sum(1))


def encoder(size: Size) -> Case:
    """``nn.TransformerEncoder``."""
    heads = max(2, size.width // 32)
    layer = nn.TransformerEncoderLayer(size.width, heads, 4 * size.width, size.dropout, batch_first=True)
    model = nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False)
    return of_features(model, size, lambda m, x, valid: m(x, src_key_padding_mask=~valid))


def plain(size: Size) -> Case:
    """A module with torch's function for attention."""
    return of_features(Plain(size), size, lambda m, x, valid: m(x, valid[:, None, None]))


def of_features(model: nn.Module, size: Size, call: Callable[[nn.Module, Tensor, Tensor], Tensor]) -> Case:
    valid = batch((size.sequences, size.time), 0.5)
    data = torch.randn(size.sequences, size.time, size.width)

    def by_hand(m: nn.Module, x: Tensor, valid: Tensor, targets: Tensor) -> Tensor:
        error = (call(m, x, valid).float() - targets).square()
        return error.masked_fill(~valid[..., None], 0).sum() / (valid.sum() * x.shape[2])

    def ours(m: nn.Module, x: Any, targets: Tensor) -> Tensor:
        return F.mse_loss(m(x).float(), targets)

    return Case(model, data.masked_fill(~valid[..., None], 0), valid, by_hand, ours, torch.randn_like(data))


def bert(size: Size) -> Case:
    """``BertForTokenClassification``."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=size.vocabulary, hidden_size=size.width, num_hidden_layers=size.layers,
        intermediate_size=4 * size.width, num_attention_heads=max(2, size.width // 64), num_labels=TAGS,
        hidden_dropout_prob=size.dropout, attention_probs_dropout_prob=size.dropout,
    )  # fmt: skip
    return of_words(transformers.BertForTokenClassification(config), size)


def llama(size: Size) -> Case:
    """``LlamaForTokenClassification``, with fewer heads for keys than for queries."""
    import transformers

    heads = max(2, size.width // 64)
    config = transformers.LlamaConfig(
        vocab_size=size.vocabulary, hidden_size=size.width, num_hidden_layers=size.layers,
        intermediate_size=3 * size.width, num_attention_heads=heads, num_key_value_heads=heads // 2, num_labels=TAGS,
        use_cache=False, pad_token_id=0, classifier_dropout=size.dropout,
    )  # fmt: skip
    return of_words(transformers.LlamaForTokenClassification(config), size)


def of_words(model: Any, size: Size) -> Case:
    valid = batch((size.sequences, size.time), 0.5)
    words = torch.randint(5, size.vocabulary, (size.sequences, size.time)).masked_fill(~valid, 0)
    tags = torch.randint(0, TAGS, words.shape)

    def by_hand(m: nn.Module, x: Tensor, valid: Tensor, targets: Tensor) -> Tensor:
        scores = m(input_ids=x, attention_mask=valid.long()).logits.flatten(0, 1).float()
        return F.cross_entropy(scores, targets.masked_fill(~valid, -100).flatten())

    def ours(m: nn.Module, x: Any, targets: Tensor) -> Tensor:
        return F.cross_entropy(m(input_ids=x).logits.flatten(0, 1).float(), targets.flatten())

    return Case(model, words, valid, by_hand, ours, tags)
