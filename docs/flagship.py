"""The picture of docs/why.md: a speech model alone, in a padded batch, and on a masked tensor.

Wav2Vec2 of transformers, unmodified, small and with random weights, is given four recordings (noise, a quarter of a
second to a second).  Measured is how far its last states in a batch are from those it gives to each recording alone,
relative to the largest of these.  ``python docs/flagship.py`` draws ``docs/flagship.svg`` anew; tests/test_flagship.py
measures again and reads the picture.
"""

from pathlib import Path

import torch
from torch import Tensor

import masked_tensor as mt

PICTURE = Path(__file__).with_suffix(".svg")
LENGTHS = [16000, 12000, 8000, 4000]
WAYS = {"padded": "C1", "padded, with its attention_mask": "C0", "masked tensor": "C2"}


def wav2vec2() -> tuple[torch.nn.Module, list[Tensor]]:
    """The form of wav2vec2-base: a group norm over time in the feature extractor."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    torch.manual_seed(0)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    positions = {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
    config = Wav2Vec2Config(**small, **positions, conv_dim=(32,) * 7, feat_extract_norm="group")
    return Wav2Vec2Model(config).eval(), [torch.randn(n) for n in LENGTHS]


def bert() -> tuple[torch.nn.Module, list[Tensor]]:
    """A model that its own mask serves: padding reaches nothing but attention."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    model = BertModel(BertConfig(**small, vocab_size=100, max_position_embeddings=64)).eval()
    return model, [torch.randint(1, 100, (n // 250,)) for n in LENGTHS]


@torch.no_grad()
def differences(given: tuple[torch.nn.Module, list[Tensor]]) -> dict[str, list[float]]:
    """For each way to make a batch, how far each row is from itself alone."""
    model, waves = given
    alone = [model(wave[None]).last_hidden_state[0] for wave in waves]

    padded = torch.nn.utils.rnn.pad_sequence(waves, batch_first=True)
    lengths = torch.tensor([len(wave) for wave in waves])
    attention_mask = (torch.arange(int(lengths[0])) < lengths[:, None]).long()
    states = [
        model(padded),
        model(padded, attention_mask=attention_mask),
        model(mt.from_sequences(waves)),
    ]
    return {way: _differences(s.last_hidden_state, alone) for way, s in zip(WAYS, states, strict=True)}


def _differences(together: Tensor, alone: list[Tensor]) -> list[float]:
    rows = [(row[: len(one)], one) for row, one in zip(together, alone, strict=True)]
    plain = [(row.filled(torch.nan) if isinstance(row, mt.MaskedTensor) else row, one) for row, one in rows]
    return [((row - one).abs().max() / one.abs().max()).item() for row, one in plain]


def label(difference: float) -> str:
    """As it stands in the picture: rounding errors have no name."""
    return f"{difference:.0%}" if difference > 1e-4 else "< 0.001 %"


def draw(found: dict[str, list[float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "flagship", "font.size": 11, "font.family": "sans-serif"}
    figure, axes = plt.subplots(figsize=(6.2, 3.6), constrained_layout=True)
    for i, (way, color) in enumerate(WAYS.items()):
        places = [row + 0.27 * (i - 1) for row in range(4)]
        bars = axes.barh(places, found[way], 0.25, color=color, label=way)
        axes.bar_label(bars, [label(d) for d in found[way]], padding=4, fontsize=10)
    axes.set_yticks(range(4), [f"{n / 16000:g} s\n{1 - n / 16000:.0%} padding" for n in LENGTHS])
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.25 * max(map(max, found.values()))), xticks=[])
    axes.set_title("Wav2Vec2: how far is a recording in a batch from itself alone?", fontsize=11, loc="right")
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.legend(frameon=False, loc="upper right")
    figure.savefig(PICTURE, facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    draw(differences(wav2vec2()))
