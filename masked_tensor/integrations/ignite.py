"""ignite: an update is given the entries that are valid in both arguments, or the rows where it counts rows."""

from inspect import BoundArguments
from typing import Any

from .. import select_valid
from ..extend.libraries import replace
from .places import IGNITE
from .wrapping import Function, call, valid_rows, with_masked


def _update(update: Function, given: BoundArguments) -> Any:
    metric, output = given.arguments["self"], given.arguments["output"]
    preds, target = output[:2]
    own = vars(metric)  # a metric makes up every attribute that it is asked for
    if own.get("_batch_size", len) is not len:  # the user's own number of what is valid
        return call(update, given)
    if preds.dim() == target.dim() + 1:
        found = select_valid(preds, target, dim=1)
    elif own.get("_is_multilabel", True):
        found = valid_rows(type(metric).__name__, preds, target)
    else:
        found = select_valid(preds, target)
    given.arguments["output"] = (*found, *output[2:])
    return call(update, given)


replace(IGNITE, with_masked(_update))
