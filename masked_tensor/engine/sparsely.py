"""A call with sparse data: the row's lifted rule, or an error that names the way out."""

from collections.abc import Sequence
from typing import Any

from .. import errors, layouts
from ..compat import tree_leaves
from ..op import NoForm
from ..pair import Pair
from .table import Entry


def on_sparse(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the entry's op gives for arguments of which at least one is a pair with sparse data."""
    if entry.sparse is None:
        raise refusal(entry, args, kwargs)
    try:
        return entry.sparse(*args, **kwargs)
    except NoForm as reason:
        raise refusal(entry, args, kwargs, str(reason)) from reason


def refusal(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any], reason: str = "") -> errors.UnsupportedOpError:
    """The error for a call that has no form."""
    pairs = [a for a in tree_leaves((args, kwargs)) if type(a) is Pair]
    layout = next(a.data.layout for a in pairs if layouts.is_sparse(a.data))
    return errors.no_lifted_form(entry.overload.name(), layout, reason)
