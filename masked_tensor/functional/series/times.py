"""The times of ``index=``: which types are accepted, and the check that they are in order.

Of a masked tensor, as ``from_sequences`` makes it of sequences of times, what is masked is the time of no step.
"""

from typing import Any

import torch
from torch import Tensor

from ...compat import has_real_memory, is_wrapped, mode_is_active
from ...engine.tensor import MaskedTensor
from ...pair import Pair
from ...select import zero_masked
from ..entrance import as_pair, enter_input


def read(
    name: str, index: Any, size: int, both: tuple[int, ...] | None, device: torch.device
) -> tuple[Tensor, Tensor | None]:
    """Times of the shape ``(size,)``, or ``both``, in a dtype in which they are subtracted; and which are known."""
    known = None
    if type(index) is MaskedTensor:
        pair = as_pair(enter_input(index, None, "index"))
        index, known = zero_masked(Pair(pair.data.detach(), pair.mask, pair.payload)), pair.mask
    elif not isinstance(index, Tensor):
        index = _convert(name, index).to(device)
    if index.is_complex():
        raise TypeError(f"{name}: index must hold real numbers, got {index.dtype}")
    allowed = [(size,)] if both is None else [(size,), both]
    if tuple(index.shape) not in allowed:
        raise ValueError(
            f"{name}: index must have one place per entry along dim, {' or '.join(map(str, allowed))}, got "
            f"{tuple(index.shape)}"
        )
    if not index.is_floating_point():
        return index.long(), known
    return (index.float() if index.dtype.itemsize < 4 else index), known


def _convert(name: str, index: Any) -> Tensor:
    """An array, a column of pandas or a list of numbers; floats of a list are read in float64, as Python has them."""
    try:
        if not hasattr(index, "__array__"):
            found = torch.tensor(index)
            return torch.tensor(index, dtype=torch.float64) if found.is_floating_point() else found
        array = index.__array__()
        kind = array.dtype.newbyteorder("=")  # the byte order of files; strides of what was reversed
        return torch.tensor(array.astype(kind, order="C", copy=True))
    except (TypeError, ValueError, RuntimeError) as reason:
        raise TypeError(
            f"{name}: index must be a tensor or an array of numbers, got {type(index).__name__}; of dates give "
            "(dates - dates.min()).total_seconds(), of a column .dt.total_seconds()"
        ) from reason


def check(name: str, index: Tensor, known: Tensor | None, dim: int, exists: Tensor | None, ties: bool) -> None:
    """Raises for times of steps that exist, of which one is masked, before the one before it, NaN or infinite.

    They are looked at where that is possible.
    """
    if not has_real_memory(index) or is_wrapped(index) or mode_is_active():
        return
    rows = index.movedim(dim, -1)
    wrong, before, after = ~rows.isfinite(), rows[..., :-1], rows[..., 1:]
    falls = after < before if ties else after <= before
    there = None if exists is None or index.dim() == 1 else exists.movedim(dim, -1)
    if known is not None:
        _expect_known(name, known.movedim(dim, -1), there)
    if there is not None:
        falls = falls & there[..., :-1] & there[..., 1:]
    wrong[..., 1:] |= falls
    if wrong.any():
        *row, place = wrong.nonzero()[0].tolist()
        place = max(place - 1, 0)
        shown = rows[tuple(row)][place : place + 2].tolist()
        raise ValueError(
            f"{name}: index must be finite and {'not fall' if ties else 'rise'} from each entry to the next, got "
            f"{shown} at {place}{f' of sequence {max(row)}' if row else ''}; sort it with the series along dim "
            "(index.argsort())" + ("" if ties else ", one entry for each time")
        )


def _expect_known(name: str, known: Tensor, exists: Tensor | None) -> None:
    """Raises for a masked time of a step that exists; what is padding has none."""
    lacking = ~known if exists is None else ~known & exists
    if lacking.any():
        *row, place = lacking.nonzero()[0].tolist()
        raise ValueError(
            f"{name}: index is masked at step {place}{f' of sequence {max(row)}' if row else ''}, which exists; say "
            "how many steps each sequence has (lengths=), leave out steps whose time is missing, or give it one by "
            "index.filled(value)"
        )
