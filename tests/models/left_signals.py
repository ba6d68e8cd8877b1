"""The models of transformers that take signals, with the padding in front."""

from typing import Any

import torch
from torch import Tensor, nn

import masked_tensor as mt

from . import signals, text
from .judge import Inputs, Verdict, judge, short


def found(name: str) -> Verdict:
    """Of one type, as eager code: of the forms that its input may have, the first in which it runs alone."""
    said = [_of_form(name, form) for form in signals.FORMS[signals.main_input(name) or ""]]
    return next((v for v in said if v.outcome not in ("fails alone", "not built")), said[0])


def _of_form(name: str, form: tuple[Any, ...]) -> Verdict:
    said = Verdict("not built")
    for dtype in (torch.float64, torch.float32):
        try:
            model = text.build(name, "eager", dtype)
            rows, batch = signals.given(model, torch.nan, form)
        except Exception as error:
            return Verdict("not built", short(error))
        said = judge(model, lambda model, given: _turned(model, given, form[1]), rows, batch)
        if said.outcome != "fails alone":
            break
    return said


def _turned(model: nn.Module, given: Inputs, time: int) -> Tensor:
    """The states, with their padding behind again; of an encoder-decoder the input of the encoder alone is turned."""
    name: str = model.main_input_name
    if not isinstance(given[name], mt.MaskedTensor):
        return text.call(model, given)
    states = text.call(model, given | {name: mt.to_right(given[name], time)})
    return states if "decoder_input_ids" in given else mt.to_left(states)
