"""A flat module must return the same for a batch as for each sequence alone: values, and gradients of parameters."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .. import MaskedTensor, flat
from ..extend.data import tree_leaves, tree_map
from .invisible import poison, scalar

LABELS = "labels"


def check_flat(module: nn.Module, *inputs: Any, rtol: float = 1e-4, atol: float = 1e-5, **named: Any) -> None:
    """Raise an error unless the flat ``module`` returns the same for a batch as for each of its sequences alone.

    ``mt.flat(module)`` checks itself with two short sequences, without gradients. This function uses your batch, with
    NaN in its padding: outputs must equal those of the plain module for each sequence, and gradients of parameters the
    sum of theirs. Afterwards, ``module`` is flat only if it was before.

    First set modules that draw random numbers to ``eval`` mode.

    Args:
        module (torch.nn.Module): The module to check, flat or not.
        *inputs (Any): Arguments of the module: at least one masked batch ``(B, T, ...)``, in any structure, and plain
            tensors ``(B, T, ...)``.
        rtol (float, optional): The relative tolerance. Default: 0.0001.
        atol (float, optional): The absolute tolerance. For gradients, it is multiplied by the largest gradient of any
            parameter if that is above 1. Default: 1e-5.
        **named (Any): Keyword arguments of the module. ``labels`` are left out, since a loss is a mean over all tokens.

    Raises:
        TypeError: ``module`` is not a module.
        ValueError: No input is a masked batch.
        AssertionError: An output or a gradient differs.
        UnsupportedOpError: ``mt.flat`` refuses the module.

    Example:
        >>> from masked_tensor.testing import check_flat
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        >>> check_flat(layer, mt.from_lengths(torch.randn(2, 5, 8), [5, 3]))
    """
    given = inputs, {name: value for name, value in named.items() if name != LABELS}
    batch = next((x for x in tree_leaves(given) if type(x) is MaskedTensor and x.dim() > 1), None)
    if batch is None:
        raise ValueError("check_flat needs a masked batch (B, T, ...) among the inputs: mt.from_lengths(data, lengths)")
    was_flat = hasattr(type(module), "flat_of")
    way = module.__dict__.get("flat_way")
    flat(module)
    try:
        together, gradients = _run(module, tree_map(_poisoned, given))
    finally:
        flat(module, False)
    try:
        _compare(module, given, batch, together, gradients, rtol, atol)
    finally:
        if was_flat:
            flat(module)
            module.__dict__["flat_way"] = way


def _compare(
    module: nn.Module, given: Any, batch: MaskedTensor, together: list[Tensor], gradients: list[Tensor], rtol: float,
    atol: float,
) -> None:  # fmt: skip
    """The plain module on each sequence alone, against what the flat one gave."""
    steps = batch.mask.flatten(2).any(2) if batch.dim() > 2 else batch.mask
    total = [torch.zeros_like(g) for g in gradients]
    for b, kept in enumerate(steps):
        if not kept.any():
            continue
        alone, own = _run(module, tree_map(partial(_sequence, b=b, kept=kept, shape=steps.shape), given))
        total = [a + g for a, g in zip(total, own, strict=True)]
        if len(alone) != len(together):
            raise AssertionError(f"sequence {b} alone gives {len(alone)} outputs, the batch {len(together)}")
        for place, (many, one) in enumerate(zip(together, alone, strict=True)):
            part = _row(many, b, kept)
            said = f"output {place} of sequence {b} of the batch is not that of the sequence alone: {{}}".format
            torch.testing.assert_close(part, one.detach(), rtol=rtol, atol=atol, equal_nan=True, msg=said)
    largest = max((float(g.abs().max()) for g in total if g.numel()), default=0.0)
    names = [name for name, p in module.named_parameters() if p.requires_grad]
    for name, got, wanted in zip(names, gradients, total, strict=True):
        text = f"the gradient of {name!r} differs by {(got - wanted).abs().max():.2g}"
        torch.testing.assert_close(got, wanted, rtol=rtol, atol=atol * max(largest, 1.0), msg=text)


def _run(module: nn.Module, given: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Floating outputs, and the gradients of the sum of their squares."""
    args, kwargs = given
    found = [x for x in tree_leaves(module(*args, **kwargs)) if isinstance(x, Tensor) and x.is_floating_point()]
    parameters = [p for p in module.parameters() if p.requires_grad]
    total = scalar(found) if parameters else None
    grads: Any = [None] * len(parameters)
    if total is not None:
        grads = torch.autograd.grad(total, parameters, allow_unused=True)
    return found, [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)]


def _poisoned(x: Any) -> Any:
    """NaN in the padding of what is padded."""
    return poison(x) if type(x) is MaskedTensor and x.layout is torch.strided and not x.is_packed else x


def _sequence(x: Any, b: int, kept: Tensor, shape: torch.Size) -> Any:
    """The steps of sequence ``b`` of an input, plain, as a batch of one."""
    if not isinstance(x, Tensor) or x.dim() < 2 or x.shape[:2] != shape:
        return x
    row = x[b].filled(0) if type(x) is MaskedTensor else x[b]
    return row[kept][None].detach()


def _row(x: Tensor, b: int, kept: Tensor) -> Tensor:
    """Sequence ``b`` of an output of the batch, as a batch of one."""
    if type(x) is MaskedTensor:
        return x[b].filled(torch.nan)[kept][None].detach()
    return x[b : b + 1].detach() if x.dim() else x.detach()
