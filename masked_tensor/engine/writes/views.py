"""Calls that return views: the result is a member of its base's family."""

from typing import Any

from ... import layouts
from ...compat import has_forward_mode
from ...layouts import meshes
from ...pair import Pair
from ..aliases import copy_hardness, join_family
from ..boundary import lengths
from ..boundary.enter_leave import enter, enter_to_view, leave
from ..boundary.sparse import run_sparse_rule
from ..boundary.user_functions import check_returned
from ..table import Entry
from ..tensor import STRIDED, MaskedTensor, set_pair
from ..torch_keys import asked_for_leaf_gradient
from . import packed_views


def run_view(entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any], recording: bool) -> Any:
    """``op(base, ...)`` for an op whose results share memory with ``base``."""
    base = args[0]
    if base._alias.is_behind and not (recording or has_forward_mode()) and args[1:] == ([*base.shape],):
        check_returned(base)
    if entry.op.detaches and asked_for_leaf_gradient(base):
        return base
    pair, live = enter_to_view(base, recording)
    rest = args[1:] if entry.single else [enter(a, recording) for a in args[1:]]
    if pair.data.layout is not STRIDED or (not entry.single and layouts.any_sparse(rest)):
        return leave(run_sparse_rule(entry, [pair, *rest], kwargs))
    result = entry.rule(pair, *rest, **kwargs)
    if result is pair:  # nothing to do: the tensor itself, as in torch
        return base
    result = leave(result, live)
    if base._packed is not None or base._view is not None:
        packed_views.add_view(result, base, entry, args[1:], kwargs)
        return result
    views = (result,) if type(result) is MaskedTensor else [x for x in result if type(x) is MaskedTensor]
    if views and meshes.shares_local_memory(views[0]._pair.data, base._pair.data):  # then all do
        join_family(base, *views, detached=entry.op.detaches)
        if base._steps is not None:
            lengths.note_views(entry, base, args[1:], kwargs, views)
        if live:
            for x in views:
                x._alias.version_seen = -1
        return result
    for x in views:
        if live:
            set_pair(x, Pair(x._pair.data, x._pair.mask.clone(), x._pair.payload))
        copy_hardness(base, x)
    return result
