"""One model, one padded batch: its outputs and gradients against those of each row alone."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

LENGTHS = (12, 7, 10)
Inputs = dict[str, Tensor]


@dataclass(frozen=True)
class Verdict:
    """``exact``, ``refused``, ``differs``, ``not built`` or ``fails alone`` (the model itself, without us)."""

    outcome: str
    detail: str = ""


def rows_of_ids(size: int, seed: int = 0, lengths: tuple[int, ...] = LENGTHS) -> list[Tensor]:
    """Random rows of tokens, none of them special."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(5, size, (1, n), generator=generator) for n in lengths]


def padded(rows: list[Tensor], garbage: float, dim: int = 1) -> Tensor:
    """The rows of a batch with holes at their ends, and garbage under the mask."""
    longest = max(row.shape[dim] for row in rows)
    data, masks = [], []
    for row in rows:
        shape = list(row.shape)
        shape[dim] = longest - row.shape[dim]
        data.append(torch.cat([row, torch.full(shape, garbage, dtype=row.dtype)], dim))
        masks.append(torch.cat([torch.ones_like(row, dtype=torch.bool), torch.zeros(shape, dtype=torch.bool)], dim))
    return mt.as_masked_tensor(torch.cat(data), torch.cat(masks))


def first_states(outputs: Any) -> Tensor:
    """The states or scores of the model's output."""
    if isinstance(outputs, Tensor):
        return outputs
    for name in ("last_hidden_state", "logits", "prediction_outputs", "waveform", "spectrogram"):
        if getattr(outputs, name, None) is not None:
            return getattr(outputs, name)
    return outputs[0]


def judge(model: nn.Module, call: Callable[[nn.Module, Inputs], Tensor], rows: list[Inputs], batch: Inputs) -> Verdict:
    """Values and the gradient of every parameter; ``call`` gives the states ``(B, T, ...)``."""
    try:
        alone = [call(model, row) for row in rows]
        expected = _gradients(model, sum(_loss(y) for y in alone))
    except Exception as error:
        return Verdict("fails alone", short(error))
    try:
        states = call(model, batch)
    except mt.UnsupportedOpError as error:
        return Verdict("refused", str(error).split(" has no")[0])
    except Exception as error:
        return Verdict("refused", short(error))
    try:
        return _compared(model, states, alone, expected)
    except Exception as error:
        return Verdict("refused", f"backward: {short(error)}")


def _loss(states: Tensor) -> Tensor:
    return (states * torch.linspace(-1, 1, states.shape[-1], dtype=states.dtype)).sum()


def _compared(model: nn.Module, states: Tensor, alone: list[Tensor], expected: dict[str, Tensor]) -> Verdict:
    if not isinstance(states, mt.MaskedTensor):
        return Verdict("differs", "the mask was lost")
    worst = 0.0
    for i, y in enumerate(alone):
        places = (i, *(slice(0, n) for n in y.shape[1:]))
        if not states.get_mask()[places].all():
            return Verdict("differs", "a valid output is masked")
        if states[i].count() != y.numel():
            return Verdict("differs", "padding became valid")
        worst = max(worst, _distance(states.get_data()[places].detach(), y[0].detach()))
    gradients = _gradients(model, _loss(states))
    if any(isinstance(g, mt.MaskedTensor) for g in gradients.values()):
        return Verdict("differs", "a parameter has a masked gradient")
    far = max((_distance(gradients[k], g) for k, g in expected.items()), default=0.0)
    limit = 1e-6 if states.dtype is torch.float64 else 2e-3 if states.dtype is torch.float32 else 5e-2
    if not worst <= limit:
        return Verdict("differs", f"values by {worst:.1e}")
    return Verdict("exact") if far <= limit else Verdict("differs", f"gradients by {far:.1e}")


def _gradients(model: nn.Module, loss: Any) -> dict[str, Tensor]:
    if not any(p.requires_grad for p in model.parameters()):
        return {}
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def _distance(a: Tensor, b: Tensor) -> float:
    """The greatest difference, in units of the greatest value (of 1, at least: what is 0 up to rounding stays so)."""
    if not a.numel():
        return 0.0
    difference = (a - b).abs().max().item() / max(1.0, b.abs().max().item())
    return difference if difference == difference else float("inf")


def short(error: Exception) -> str:
    """The error on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:110]}"


def takes(model: nn.Module, name: str) -> bool:
    """Whether the model's forward has an argument of that name."""
    return name in inspect.signature(model.forward).parameters
