"""Joins along features: a part that is valid at a step where another part has nothing makes that step valid in part.

A plain hour beside the features of a padded batch is the usual case.  A join warns where sizes and strides of the masks
alone show it; inside of ``strict()`` the masks are read.

The *steps* of a part are its dimensions other than the batch (0) and the one that is joined, along which its mask
varies; along the joined one it is constant.  A mask that says only which rows there are has no steps, and a batch to
which a token is joined along time is not constant along the joined dimension.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .. import masks
from ..callers import line_of_user
from ..errors import MaskMismatchError
from ..masks import known
from ..settings import STACK, current


def look(name: str, parts: Sequence[Tensor], dim: int, new: bool = False) -> None:
    """Warns of such a join of ``parts``, all masks, along ``dim`` of three dimensions or more, which is not the first.

    A dimension that is ``new`` is one that the parts do not have.  Inside of ``strict()`` it raises instead.
    """
    strides = [m.stride() for m in parts]
    strict = False
    if STACK.get():
        meaning = current()
        if meaning.product == "all" or meaning.in_gradient:
            return
        strict = meaning.strict
    if (not strict and strides.count(strides[0]) == len(strides)) or not parts[0].numel():
        return
    joined = None if new else dim
    steps = [_varies(m, joined) for m in parts]
    for part, varies in zip(parts, steps, strict=True):
        if not varies or masks.is_all_valid(part) or known.number(part) == part.numel():
            continue
        wide = any(_is_wider(s, v, varies) for s, v in zip(strides, steps, strict=True))
        seen = wide and any(varies) and (new or _is_constant(part, dim))
        if seen if not strict else _clashes(part, [m for m in parts if m is not part], joined, seen, wide):
            where = sorted({d + (new and d >= dim) for v in steps for d in v if d})
            text = _text(name, dim, where, any(_features(m) is not None for m in parts))
            if strict:
                raise MaskMismatchError(text)
            _warn(text)
            return


def note_features(mask: Any, dims: tuple[int, ...]) -> None:
    """That ``mask`` came of a packed tensor whose features are ``dims``: no step is stored in a part of them."""
    mask.packed_features = dims


def _features(mask: Tensor) -> tuple[int, ...] | None:
    """The feature dimensions of a mask that comes from a packed tensor."""
    return getattr(mask, "packed_features", None)


def _varies(mask: Tensor, joined: int | None) -> list[int]:
    """The dimensions along which a mask may vary, but for the one that is joined; of a packed one batch and time."""
    stride, features = mask.stride(), _features(mask)
    wide = [d for d, n in enumerate(mask.shape) if n > 1 and d != joined]
    return [d for d in wide if (stride[d] != 0 if features is None else d not in features)]


def _is_wider(stride: Sequence[int], own: Sequence[int], varies: Sequence[int]) -> bool:
    """Whether a mask that varies along ``own`` is constant along a step of another, and is not of the same steps.

    Beside a part with gaps, ``(B, T, C)``, a mask ``(B, T, 1)`` of the same padding is constant along features alone.
    """
    return any(stride[d] == 0 for d in varies) and not (any(own) and set(own) <= set(varies))


def _is_constant(mask: Tensor, dim: int) -> bool:
    """Whether a mask cannot vary along ``dim``; of one entry it can, where others show which the features are."""
    features = _features(mask)
    if features is not None:
        return dim in features
    stride, size = mask.stride(), mask.shape
    if size[dim] != 1:
        return stride[dim] == 0
    return not any(size[d] > 1 and stride[d] == 0 for d in range(1, len(size)))


def _clashes(part: Tensor, others: Sequence[Tensor], joined: int | None, seen: bool, wide: bool) -> bool:
    """Whether ``part`` has nothing at a step where one of the others has something: reads the masks.

    Where strides do not show that features are joined, a row without anything does not count (a token is put before an
    empty sequence), and parts that may have gaps of their own are left alone unless their steps are whole.
    """
    some = part if joined is None else masks.any(part, joined, True)
    if not (wide or joined is None or bool((masks.all(part, joined, True) == some).all())):
        return False
    clash = ~some
    if not seen:
        clash = clash & masks.any(part, tuple(range(1, part.dim())), True)
    there = [other if joined is None else masks.any(other, joined, True) for other in others]
    return any(bool((clash & some).any()) for some in there)


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=line_of_user())


def _text(name: str, dim: int, steps: Sequence[int], packed: bool) -> str:
    """A join puts valid features beside the padding of another part; ``steps`` are the dimensions of the padding."""
    words = (", packed=True" if packed else "") if steps in ([], [1]) else f", dim={steps[0]}"
    line = f"masked_tensor.from_lengths(plain, lengths{words})"
    if len(steps) > 1:
        line = f"masked_tensor.as_masked_tensor(plain, x.mask.narrow({dim}, 0, 1))"
    return (
        f"{name} along dimension {dim} joins valid features to masked steps of another part. If those steps are "
        "padding, linear layers, means and attention will count them. Mask the padding of the plain part as well: "
        f"{line}; or compute inside masked_tensor.meaning(product='all')"
        + (". A packed batch is unpacked by this join" if packed else "")
    )
