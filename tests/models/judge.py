"""One model, one padded batch: its outputs and gradients against those of each row alone."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import masked_tensor as mt

LENGTHS = (12, 7, 10)
Inputs = dict[str, Tensor]
#: How far values and gradients may be off, in units of the greatest value.  Where a model rounds more than that by
#: itself (a step in float32 inside of float64, weights that let errors grow), four times what its rounding makes.
LIMITS = {torch.float64: 1e-6, torch.float32: 2e-3, torch.bfloat16: 5e-2, torch.float16: 5e-2}


@dataclass(frozen=True)
class Verdict:
    """``exact``, ``helped`` (exact with the means that is named), ``refused``, ``differs``, ``not built``, or ``fails
    alone`` (the model itself, without us).
    """

    outcome: str
    detail: str = ""


def rows_of_ids(size: int, seed: int = 0, lengths: tuple[int, ...] = LENGTHS) -> list[Tensor]:
    """Random rows of tokens, none of them special."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(5, size, (1, n), generator=generator) for n in lengths]


def padded(rows: list[Tensor], garbage: float, dim: int = 1) -> Tensor:
    """The rows of a padded batch, and garbage under the mask."""
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
        expected = parameter_gradients(model, sum(_loss(y) for y in alone))
    except Exception as error:
        return Verdict("fails alone", short(error))
    if not all(x.isfinite().all() for x in [*alone, *expected.values()]):
        return Verdict("fails alone", f"what is not finite, in {alone[0].dtype}")
    try:
        states = call(model, batch)
    except mt.UnsupportedOpError as error:
        return Verdict("refused", str(error).split(" has no")[0])
    except Exception as error:
        return Verdict("refused", short(error))
    try:
        return _compared(model, states, alone, expected, lambda: _rounding(model, call, rows, expected))
    except Exception as error:
        return Verdict("refused", f"backward: {short(error)}")


def _loss(states: Tensor) -> Tensor:
    return (states * torch.arange(states.shape[-1], dtype=states.dtype).cos()).sum()  # whatever its length


def _compared(
    model: nn.Module,
    states: Tensor,
    alone: list[Tensor],
    expected: dict[str, Tensor],
    rounding: Callable[[], tuple[float, float]],
) -> Verdict:
    if not isinstance(states, mt.MaskedTensor):
        return Verdict("differs", "the mask was lost")
    worst = 0.0
    for i, y in enumerate(alone):
        places = (i, *(slice(0, n) for n in y.shape[1:]))
        if not states.get_mask()[places].all():
            return Verdict("differs", "a valid output is masked")
        if states[i].count() != y.numel():
            return Verdict("differs", "padding became valid")
        worst = max(worst, distance(states.get_data()[places].detach(), y[0].detach()))
    gradients = parameter_gradients(model, _loss(states))
    if any(isinstance(g, mt.MaskedTensor) for g in gradients.values()):
        return Verdict("differs", "a parameter has a masked gradient")
    far = max((distance(gradients[k], g) for k, g in expected.items()), default=0.0)
    limit = LIMITS[states.dtype]
    if worst <= limit and far <= limit:
        return Verdict("exact")
    if worst <= 20 * limit and far <= 20 * limit:
        values, slopes = rounding()
        if worst <= max(limit, 4 * values) and far <= max(limit, 4 * slopes):
            return Verdict(
                "exact", f"values by {worst:.1e}, gradients by {far:.1e}; rounding: {values:.1e}, {slopes:.1e}"
            )
    return Verdict("differs", f"gradients by {far:.1e}" if worst <= limit else f"values by {worst:.1e}")


class _Rounded(TorchDispatchMode):
    """Every new result is off by up to one unit in its last place, at random."""

    def __init__(self) -> None:
        super().__init__()
        self.random = torch.Generator().manual_seed(0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if (
            type(result) is Tensor
            and result.is_floating_point()
            and not any(r.alias_info for r in func._schema.returns)
        ):
            units = torch.rand(result.shape, dtype=result.dtype, generator=self.random) * 2 - 1
            result.mul_(1 + units * torch.finfo(result.dtype).eps)
        return result


def _rounding(
    model: nn.Module, call: Callable[[nn.Module, Inputs], Tensor], rows: list[Inputs], expected: dict[str, Tensor]
) -> tuple[float, float]:
    """By how much the rows alone are off, values and gradients, by rounding: the plain model's own.

    That is if each op rounds otherwise, or, for a model in float32, in float64.
    """
    exact = [call(model, row).detach() for row in rows]

    def off(other: nn.Module, given: list[Inputs]) -> tuple[float, float]:
        alone = [call(other, row) for row in given]
        gradients = parameter_gradients(other, sum(_loss(y) for y in alone))
        values = max(distance(y.detach(), x) for y, x in zip(alone, exact, strict=True))
        return values, max((distance(gradients[k], g) for k, g in expected.items()), default=0.0)

    with _Rounded():
        rounded = off(model, rows)
    try:
        doubles = [{k: x.double() if x.is_floating_point() else x for k, x in row.items()} for row in rows]
        double = off(copy.deepcopy(model).double(), doubles)
    except Exception:  # its own code cannot do float64
        return rounded
    return max(rounded[0], double[0]), max(rounded[1], double[1])


def parameter_gradients(model: nn.Module, loss: Any) -> dict[str, Tensor]:
    if not any(p.requires_grad for p in model.parameters()):
        return {}
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def distance(a: Tensor, b: Tensor) -> float:
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
