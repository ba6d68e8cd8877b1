"""A call with sparse data: the op's sparse rule, or an error that names the way out."""

from collections.abc import Sequence
from typing import Any

import torch

from ... import errors
from ...compat import OpOverload, tree_leaves
from ...op import NoRule
from ...pair import Pair
from ..table import Entry
from ..tensor import MaskedTensor


def run_sparse_rule(entry: Entry, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the entry's op gives for arguments of which at least one is a pair with sparse data."""
    reason: NoRule | None = None
    if entry.sparse is not None:
        try:
            return entry.sparse(*args, **kwargs)
        except NoRule as found:
            reason = found
    error = sparse_error(entry.overload, args, kwargs, str(reason or ""))
    assert error is not None
    raise error from reason


def sparse_error(
    op: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], reason: str = ""
) -> errors.UnsupportedOpError | None:
    """The error for a call without a sparse rule; None if no argument, masked tensor or pair, is sparse."""
    masked = [x for x in tree_leaves((args, kwargs)) if type(x) is Pair or type(x) is MaskedTensor]
    met = [x.data.layout if type(x) is Pair else x.layout for x in masked]
    sparse = next((layout for layout in met if layout is not torch.strided), None)
    return None if sparse is None else errors.no_sparse_rule(op.name(), sparse, reason)
