"""
Do I have to pass lengths and padding masks through my whole model?
====================================================================

No: put the lengths into the tensor once.  The test is simple and strict: each sequence of a padded batch must get what
it gets alone, with nothing padded, from a model that was not changed.  Zero padding fails it in almost every layer.
"""

import torch
from torch import nn

import masked_tensor as mt

torch.manual_seed(0)
lengths = [9, 4, 1, 6]
sequences = [torch.randn(n, 8) for n in lengths]

# One call pads and masks.  What lies in the padding does not matter, so let it be the worst there is.
batch = mt.pad_sequence(sequences, batch_first=True, padding_value=float("nan"))
zeros = nn.utils.rnn.pad_sequence(sequences, batch_first=True)
print(f"{tuple(batch.shape)}: {batch.count().item()} of {batch.numel()} entries valid")
assert batch.count((1, 2)).tolist() == [8 * n for n in lengths]
assert batch.get_mask().stride(-1) == 0, "the mask holds one byte per step, however many features there are"


class Channels(nn.Module):
    """A layer for (batch, channels, time), used on (batch, time, channels)."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x.transpose(1, 2)).transpose(1, 2)


class LastStates(nn.Module):
    """A bidirectional LSTM that returns its outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 4, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Mean(nn.Module):
    """The mean over time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1, keepdim=True)


def encoder() -> nn.Module:
    return nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, enable_nested_tensor=False
    )


MODELS = {
    "Linear, ReLU, Linear": lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)),
    "mean over time": lambda: nn.Sequential(nn.Linear(8, 8), Mean()),
    "two convolutions": lambda: Channels(nn.Conv1d(8, 8, 3, padding=1), nn.GELU(), nn.Conv1d(8, 8, 3, padding=1)),
    "GroupNorm": lambda: Channels(nn.GroupNorm(2, 8)),
    "bidirectional LSTM": LastStates,
    "TransformerEncoder": encoder,
}


def worst(outputs: torch.Tensor, model: nn.Module) -> float:
    """The largest difference from what each sequence gives alone."""
    difference = 0.0
    for i, sequence in enumerate(sequences):
        alone = model(sequence.unsqueeze(0))[0]
        difference = max(difference, (outputs[i, : len(alone)] - alone).abs().max().item())
    return difference


print(f"\n{'difference from the sequence alone':36}{'zero padding':>14}{'masked':>14}")
for name, make in MODELS.items():
    model = make().eval()
    with torch.no_grad():
        plain, masked = worst(model(zeros), model), worst(model(batch), model)
    print(f"{name:36}{plain:14.1e}{masked:14.1e}")
    assert masked < 1e-5

# And in training: the gradients of a padded batch are those of the sequences one by one.
model = encoder()
model(batch).square().sum().backward()
padded = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
for sequence in sequences:
    model(sequence.unsqueeze(0)).square().sum().backward()
for gradient, parameter in zip(padded, model.parameters(), strict=True):
    torch.testing.assert_close(gradient, parameter.grad, rtol=1e-4, atol=1e-5)
print("\nThe gradients of the padded batch are those of the sequences one by one.")
