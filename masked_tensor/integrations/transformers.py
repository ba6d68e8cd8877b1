"""transformers: side losses of a mixture of experts over the valid tokens, and heads that read the last position."""

import inspect
from inspect import BoundArguments
from typing import Any

import torch
from torch import Tensor

from .. import MaskedSizeError, MaskedTensor
from ..extend.libraries import Place, replace, when_each_imported
from .places import BALANCING_LOSS, MODELS, ROUTER_LOSS, SUMMARY
from .wrapping import Function, call, data_of, has_masked, mask_of, with_masked


def _balancing(function: Function) -> Function:
    """The layers' logits as those of one layer, with 0 at masked tokens, and with the mask that the function knows.

    No value is read.  The layers may differ in what is masked.
    """
    names = tuple(inspect.signature(function).parameters)

    def run(gate_logits: Any, *args: Any, **kwargs: Any) -> Any:
        if type(gate_logits) is not tuple or not has_masked(gate_logits):
            return function(gate_logits, *args, **kwargs)
        given = {**dict(zip(names[1:], args, strict=False)), **kwargs}
        told, device = given.get("attention_mask"), gate_logits[0].device
        valid = [_valid_tokens(x).to(device) for x in gate_logits]
        if told is not None:
            told = data_of(told).reshape(-1).to(device) != 0
            valid = [_both(v, told) for v in valid]
        given["attention_mask"] = torch.cat(valid).long()[None]
        return function((torch.cat([data_of(x).to(device) for x in gate_logits], -2),), **given)

    return run


def _valid_tokens(logits: Tensor) -> Tensor:
    """Whether each token is valid, of logits ``(..., tokens, experts)``."""
    return mask_of(logits).movedim(-2, 0).flatten(1).all(1)


def _both(valid: Tensor, told: Tensor) -> Tensor:
    if valid.shape != told.shape:
        raise MaskedSizeError(
            f"{BALANCING_LOSS} was given an attention_mask of {len(told)} tokens beside router logits of {len(valid)}; "
            "leave the attention_mask out, the masked tensor carries the mask"
        )
    return valid & told


def _router(function: Function, given: BoundArguments) -> Any:
    """It divides by all tokens: times their number, by the number of the valid ones."""
    logits = given.arguments["router_logits"]
    valid = mask_of(logits).all(-1)
    return call(function, given) * (valid.shape.numel() / valid.sum().clamp(min=1))


def _summary(forward: Function, given: BoundArguments) -> Any:
    """The last position of a row is padding if the row is shorter and padded behind."""
    arguments = given.arguments
    x, kind = arguments["hidden_states"], arguments["self"].summary_type
    last = kind == "last" or (kind == "cls_index" and arguments.get("cls_index") is None)
    if last and type(x) is MaskedTensor and not bool(x.get_mask()[..., -1, :].all()):
        raise MaskedSizeError(
            f"{type(arguments['self']).__name__} reads the last position of each row, which is masked in a row that "
            "is padded past its end; put the padding in front: masked_tensor.to_right(input_ids)"
        )
    return call(forward, given)


def _wrap_model(module: Any) -> None:
    name = module.__name__
    for function, make in ((BALANCING_LOSS, _balancing), (ROUTER_LOSS, with_masked(_router))):
        replace((Place(name, "", (function,)),), make, optional=True)
    owners = [k for k, v in vars(module).items() if k.endswith(SUMMARY) and isinstance(v, type)]
    replace(tuple(Place(name, owner, ("forward",)) for owner in owners), with_masked(_summary), optional=True)


when_each_imported(*MODELS, _wrap_model)
