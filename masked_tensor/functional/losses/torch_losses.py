"""Torch's losses that divide by a size, or by the sum of all weights: a masked tensor gets the functional form."""

import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from ... import functional
from ...callers import line_of_user
from ...engine.dynamo import mark_opaque
from ...engine.tensor import MaskedTensor
from ...patches.places import TORCH_LOSSES, WRITTEN_LOSSES, rebind, wrap_when_imported

_MAY_DIVIDE: dict[str, Callable[[Any, Any], bool]] = {  # by all weights, by all rows, by all classes; asked first
    "mse_loss": lambda args, kwargs: len(args) > 5 or kwargs.get("weight") is not None,
    "l1_loss": lambda args, kwargs: len(args) > 5 or kwargs.get("weight") is not None,
    "kl_div": lambda args, kwargs: len(args) > 4 or kwargs.get("reduction") == "batchmean",
    "multilabel_soft_margin_loss": lambda args, kwargs: True,
}
_DIVIDES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "mse_loss": lambda given: given["weight"] is not None and given["reduction"] == "mean",
    "l1_loss": lambda given: given["weight"] is not None and given["reduction"] == "mean",
    "kl_div": lambda given: given["reduction"] == "batchmean",
    "multilabel_soft_margin_loss": lambda given: True,
}


def _run_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    form: Callable[..., Tensor] = getattr(functional, function.__name__)
    arguments, divides, may = signature(function), _DIVIDES[function.__name__], _MAY_DIVIDE[function.__name__]
    fit = _of_one_shape if function.__name__ in ("mse_loss", "l1_loss") else tuple

    def run(*args: Any, **kwargs: Any) -> Tensor:
        if not may(args, kwargs):
            return function(*fit(args), **kwargs)
        for x in args:
            if type(x) is MaskedTensor:
                break
        else:
            if not kwargs or MaskedTensor not in map(type, kwargs.values()):
                return function(*args, **kwargs)
        bound = arguments.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        average, reduce = given["size_average"], given["reduce"]
        if average is not None or reduce is not None:  # which torch warns of
            given["reduction"] = "none" if reduce is False else "sum" if average is False else "mean"
        if not divides(given):
            return function(*args, **kwargs)
        return form(**{name: x for name, x in given.items() if name not in ("size_average", "reduce")})

    run.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]  # TorchScript compiles
    run.__original_fn = function  # type: ignore[attr-defined]  # this one
    mark_opaque(run)
    return run


def _of_one_shape(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Broadcasts input and target, with torch's warning: torch would name this file, which calls it."""
    if len(args) < 2 or not isinstance(args[0], Tensor) or not isinstance(args[1], Tensor):
        return args
    shape, target = args[0].shape, args[1].shape
    if shape == target:
        return args
    warnings.warn(
        f"Using a target size ({target}) that is different to the input size ({shape}). This will likely lead to "
        "incorrect results due to broadcasting. Please ensure they have the same size.",
        stacklevel=line_of_user(),
    )
    return *torch.broadcast_tensors(args[0], args[1]), *args[2:]


def _run_at_once(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The form where the shapes are those that need no thought; packed batches and compiled code take torch's steps."""

    def run(
        input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
    ) -> Tensor:
        if not torch.compiler.is_compiling() and reduction in ("none", "mean", "sum"):
            given = [x for x in (input, target, var) if type(x) is MaskedTensor]
            spread = (input.shape, input.shape[:-1], (*input.shape[:-1], 1)) if given else ()
            fits = not isinstance(var, Tensor) or var.shape in spread
            if given and fits and input.shape == target.shape and not any(x.is_packed for x in given):
                loss: Tensor = functional.gaussian_nll_loss(input, target, var, full, eps, reduction)
                return loss
        plain: Tensor = function(input, target, var, full, eps, reduction)
        return plain

    return run


wrap_when_imported(TORCH_LOSSES, _run_form)
wrap_when_imported(WRITTEN_LOSSES, _run_at_once)
rebind(WRITTEN_LOSSES)
rebind(TORCH_LOSSES)
