"""What is asked of a model of images, whatever package it is of: what masked images do to it.

*Whole*: images that are valid everywhere give what plain images give, in eval and in train mode, every parameter's
gradient and every buffer included.  *Beside*: an image that is masked altogether (NaN under the mask) changes nothing
of those beside it.  *Pixels*: with missing pixels, under ``meaning(convolution="any", renormalize=True)``, nothing
depends on what lies under the mask, and gradients are finite.  *Half*: an image half as wide as the batch, padded, is
what it is alone and cropped: what is valid of its outputs (scores, maps and tokens alike) is, in order, what the image
alone gives, and so is every parameter's gradient.  *Padded*: the scores alone, of an image whose height and width are
smaller by 32.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

import masked_tensor as mt

from .judge import Verdict, short

LIMIT = 1e-6
SINGLE = ("efficientvit_mit",)  # computes a part in float32, by itself: ten times the limit


#: Contexts, by name: the first in which an image is what it is alone is named.
MEANS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "": nullcontext,
    'meaning(product="all")': lambda: mt.meaning(product="all"),
    'meaning(padding="tensor")': lambda: mt.meaning(padding="tensor"),
    "masked_factories()": mt.masked_factories,
}


def outputs(model: nn.Module, images: Tensor) -> list[Tensor]:
    """Every tensor that the model gives."""
    found = model(images)
    return [found] if isinstance(found, Tensor) else [y for y in found if isinstance(y, Tensor)]


def whole(model: nn.Module, images: Tensor) -> Verdict:
    """As plain images, values, gradients and what batch norms keep; random draws are the same, too."""
    masked = mt.as_masked_tensor(images, torch.ones(images.shape, dtype=torch.bool))
    start = copy.deepcopy(model.state_dict())
    for training in (False, True):
        found = []
        for given in (images, masked, images * (1 + 1e-15)):
            found.append(_run(_set(model, training), given))
            model.load_state_dict(start)
        worst, own = _farthest(found[1], found[0]), _farthest(found[2], found[0])
        if not worst[0] <= max(_limit(model), 10 * own[0]):  # some networks blow up what is rounding
            return Verdict("differs", f"{'train' if training else 'eval'}: {worst[1]} by {worst[0]:.1e}")
    return Verdict("exact", f"rounding becomes {own[0]:.0e}" if 10 * own[0] > LIMIT else "")


def beside(model: nn.Module, images: Tensor) -> Verdict:
    """The others are as without the second image, which is masked altogether."""
    between = torch.full_like(images[:1], torch.nan)
    mask = torch.tensor([True, False, True, True]).view(4, *[1] * (images.dim() - 1))
    masked = mt.as_masked_tensor(torch.cat([images[:1], between, images[1:]]), mask)
    expected = _run(_set(model), images)
    found = _run(_set(model), masked, torch.tensor([0, 2, 3]))
    worst = _farthest(found, expected)
    if not worst[0] <= max(_limit(model), 10 * _farthest(_run(_set(model), images * (1 + 1e-15)), expected)[0]):
        return Verdict("differs", f"{worst[1]} by {worst[0]:.1e}")
    valid = next(y for y in outputs(model, masked) if mt.is_masked_tensor(y))[1].get_mask()
    kind = "valid" if valid.all() else "a part is valid" if valid.any() else ""
    return Verdict("exact", kind)


def pixels(model: nn.Module, images: Tensor) -> Verdict:
    """A third of the pixels is missing: the same values, masks and gradients for NaN and for 1e30 under the mask."""
    mask = torch.rand(3, 1, *images.shape[2:], generator=torch.Generator().manual_seed(1)) > 1 / 3
    with mt.meaning(convolution="any", renormalize=True):
        found = [
            _run(_set(model), mt.as_masked_tensor(images.masked_fill(~mask, garbage), mask), seen=_filled)
            for garbage in (torch.nan, 1e30)
        ]
    if not all(y.isfinite().all() for k, y in found[0].items() if k.startswith(("output", "gradient"))):
        return Verdict("differs", "not finite")
    worst = _farthest(found[1], found[0])
    if not worst[0] <= _limit(model):
        return Verdict("differs", f"{worst[1]} by {worst[0]:.1e}")
    with torch.no_grad(), mt.meaning(convolution="any", renormalize=True):
        y = next(y for y in outputs(model, mt.as_masked_tensor(images, mask)) if mt.is_masked_tensor(y))
    part = 100 * y.count().item() / max(y.get_mask().numel(), 1)
    return Verdict("exact" if part else "differs", "" if part == 100 else f"{part:.0f} % valid")


def padded(model: nn.Module, images: Tensor) -> Verdict:
    """An image whose last 32 columns and rows are padding, as the smaller image alone."""
    size = images.shape[-1] - 32
    small = images[:1, :, :size, :size].contiguous()
    try:
        with torch.no_grad():
            expected = outputs(model.eval(), small)[0]
    except Exception:
        return Verdict("one size")
    mask = torch.zeros(images.shape, dtype=torch.bool)
    mask[:1, :, :size, :size] = True
    mask[1:] = True
    with torch.no_grad():
        y = outputs(model, mt.as_masked_tensor(images.masked_fill(~mask, torch.nan), mask))[0]
    if y.shape[1:] != expected.shape[1:]:
        return Verdict("maps")
    if not y.get_mask()[0].all():
        return Verdict("differs", "a valid output is masked")
    worst = _distance(y.get_data()[:1], expected)
    return Verdict("exact") if worst <= LIMIT else Verdict("differs", f"values by {worst:.1e}")


def half(model: nn.Module, x: Tensor) -> Verdict:
    """``exact``, ``helped`` by the context that is named, ``one size`` (it takes no such image), or ``differs``."""
    width = x.shape[-1] // 2
    width = -(-width // 32) * 32 if width > 32 else width  # which most strides divide
    narrow = x[:1, ..., :width].contiguous()
    try:
        with mock.patch.object(nn.functional, "batch_norm", _batch_norm):
            expected = _first(model, narrow)
            own = _farthest(_first(model, narrow * (1 + 1e-15)), expected)[0]  # what is rounding
    except Exception as error:
        return Verdict("one size", short(error))
    mask = torch.ones(x[:2].shape, dtype=torch.bool)
    mask[0, ..., width:] = False
    batch = mt.as_masked_tensor(x[:2].masked_fill(~mask, torch.nan), mask)
    seen = []
    for name, context in MEANS.items():
        try:
            with context():
                seen.append(_compared(_first(model, batch), expected, max(_limit(model), 10 * own)))
        except Exception as error:
            seen.append(Verdict("refused", short(error)))
        if seen[-1].outcome == "exact":
            return Verdict("helped", name) if name else seen[-1]
    return seen[0]


_torch_batch_norm = nn.functional.batch_norm


def _batch_norm(
    x: Tensor,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """By its formula in eval mode: torch's own backward misreads gradients of transposed strides."""
    if training:
        return _torch_batch_norm(x, mean, var, weight, bias, training, momentum, eps)
    shape = (1, -1, *[1] * (x.dim() - 2))
    y = (x - mean.view(shape)) / (var.view(shape) + eps).sqrt()
    return y if weight is None else y * weight.view(shape) + bias.view(shape)  # type: ignore[no-any-return]


def _compared(found: dict[str, Tensor], expected: dict[str, Tensor], limit: float) -> Verdict:
    for name, y in expected.items():
        if name.startswith("output") and found[name].shape != y.shape:
            more = found[name].numel() > y.numel()
            return Verdict("differs", "padding is valid" if more else "a valid output is masked")
    for part in ("output", "gradient"):
        far, name = _farthest(*({k: y for k, y in of.items() if k.startswith(part)} for of in (found, expected)))
        if not far <= limit:
            return Verdict("differs", f"{'values' if part == 'output' else name} by {far:.1e}")
    return Verdict("exact")


def _first(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The valid entries of each output of the first image, in order, and the gradients of a sum over them."""
    torch.manual_seed(1)
    _set(model).zero_grad()
    found = [y[0].compressed() if mt.is_masked_tensor(y) else y[0].flatten() for y in outputs(model, x)]
    found = [y for y in found if y.is_floating_point()]
    loss: Any = sum((y * torch.arange(len(y), dtype=y.dtype).cos()).sum() for y in found)
    if loss.requires_grad:
        loss.backward()
    gradients = {f"gradient of {k}": p.grad.clone() for k, p in model.named_parameters() if p.grad is not None}
    return {f"output {i}": y.detach() for i, y in enumerate(found)} | gradients


def _limit(model: nn.Module) -> float:
    single = next(model.parameters()).dtype == torch.float32
    return LIMIT * (1000 if single else 10 if type(model).__module__.endswith(SINGLE) else 1)


def _set(model: nn.Module, training: bool = False) -> nn.Module:
    """In its mode, with nothing that it keeps of an earlier run (biases, with their graph)."""
    return model.train().train(training)


def _run(
    model: nn.Module, images: Tensor, rows: Tensor | None = None, seen: Callable[[Tensor], Tensor] | None = None
) -> dict[str, Tensor]:
    """Outputs, gradients of a loss over them, and buffers; of a masked batch, plain and valid, or it is an error."""
    torch.manual_seed(1)
    model.zero_grad()
    found = [y if rows is None else y[rows] for y in outputs(model, images)]
    sum((y * torch.linspace(-1, 1, y.shape[-1], dtype=y.dtype)).sum() for y in found).backward()
    values = {f"output {i}": (seen or _plain)(y) for i, y in enumerate(found)}
    gradients = {f"gradient of {k}": _plain(p.grad).clone() for k, p in model.named_parameters() if p.grad is not None}
    return values | gradients | {k: b.clone() for k, b in model.named_buffers() if b.is_floating_point()}


def _plain(y: Tensor) -> Tensor:
    if not mt.is_masked_tensor(y):
        return y.detach()
    if not y.get_mask().all():
        raise ValueError("a valid output is masked")
    return y.get_data().detach()


def _filled(y: Tensor) -> Tensor:
    """What is valid, and the mask."""
    if not mt.is_masked_tensor(y):
        return y.detach()
    return torch.stack([y.detach().filled(0), y.get_mask().to(y.dtype)])


def _farthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> tuple[float, str]:
    """The greatest difference, and of what; gradients that are 0 up to rounding are compared with the others."""
    if found.keys() != expected.keys():
        return float("inf"), f"{next(iter(found.keys() ^ expected.keys()))}, which one of them has,"
    scale = max(
        (g.abs().max().item() for k, g in expected.items() if k.startswith("gradient") and g.numel()), default=0.0
    )
    far = [(_distance(found[k], y, 1e-6 * scale * k.startswith("gradient")), k) for k, y in expected.items()]
    return max(far, key=lambda pair: (pair[0] != pair[0], pair[0]))


def _distance(a: Tensor, b: Tensor, floor: float = 0.0) -> float:
    if not b.numel() or torch.equal(a, b):
        return 0.0
    return (a - b).abs().max().item() / max(floor, b.abs().max().item(), 1e-300)
