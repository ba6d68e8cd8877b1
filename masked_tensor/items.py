"""``x[key]`` and ``x[key] = value`` for keys with a 0-d masked integer or bool, which torch would read by ``item()``.

As with longer masked indices: what is read through a hole is masked, nothing is written through it, and a masked bool
selects nothing.  Every other key goes torch's own way, to the rules of indexing and assignment.
"""

from typing import Any

import torch
from torch import Tensor

from .pair import Pair
from .tensor import MaskedTensor, pair_of, wrap


def getitem(x: MaskedTensor, key: Any) -> Any:
    """``x[key]``."""
    if not _has_scalar(key):
        return Tensor.__getitem__(x, key)
    key, known = _read(key)
    result = Tensor.__getitem__(x, key)
    if known:
        return result
    nowhere = torch.zeros((), dtype=torch.bool, device=x.device)
    return torch.masked_fill(result, wrap(Pair(nowhere, nowhere)), 0)


def setitem(x: MaskedTensor, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    known = True
    if _has_scalar(key):
        key, known = _read(key)
    if known:
        Tensor.__setitem__(x, key, value)


def _has_scalar(key: Any) -> bool:
    if type(key) is tuple:
        return any(_is_scalar(k) for k in key)
    return _is_scalar(key)


def _is_scalar(key: Any) -> bool:
    return type(key) is MaskedTensor and key.dim() == 0


def _read(key: Any) -> tuple[Any, bool]:
    """The key with numbers for its masked integers (0 for a hole), and whether all of them were valid."""
    known, result = True, []
    for part in key if type(key) is tuple else (key,):
        if _is_scalar(part):
            inner = pair_of(part)
            if inner.data.dtype is torch.bool:
                part = inner.data & inner.mask
            else:
                valid = bool(inner.mask)
                part, known = (int(inner.data) if valid else 0), known and valid
        result.append(part)
    return tuple(result), known


MaskedTensor.__getitem__ = getitem  # type: ignore[method-assign, assignment]
MaskedTensor.__setitem__ = setitem  # type: ignore[method-assign, assignment]
