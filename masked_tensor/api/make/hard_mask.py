"""Hard masks, as in numpy.ma: masked entries stay masked when they are assigned."""

from ...engine import graph_inputs
from ...engine.alias_records import family_of
from ...engine.tensor import MaskedTensor, add_members
from ...engine.writes.packed_views import unpack_family


def harden_mask(x: MaskedTensor) -> MaskedTensor:
    """The tensor itself, whose masked entries now stay masked when it or its views are assigned.

    Copies of it (``clone``, ``to``, ``deepcopy``, a pickle) have a hard mask as well.

    Args:
        x (MaskedTensor): Any shape and dtype.

    Returns:
        MaskedTensor: ``x`` itself, of its shape and dtype.

    Example:
        >>> x = mt.masked_tensor([1.0, 2.0], [True, False]).harden_mask()
        >>> x[:] = 5.0
        >>> x.tolist()
        [5.0, None]

    References:
        ``numpy.ma.MaskedArray.harden_mask``.
    """
    return _set(x, True)


def soften_mask(x: MaskedTensor) -> MaskedTensor:
    """The tensor itself, whose masked entries become valid again when they are assigned.

    This reverses :meth:`harden_mask`.

    Args:
        x (MaskedTensor): Any shape and dtype.

    Returns:
        MaskedTensor: ``x`` itself, of its shape and dtype.

    Example:
        >>> x = mt.masked_tensor([1.0, None]).harden_mask().soften_mask()
        >>> x[:] = 5.0
        >>> x.tolist()
        [5.0, 5.0]

    References:
        ``numpy.ma.MaskedArray.soften_mask``.
    """
    return _set(x, False)


def _set(x: MaskedTensor, hard: bool) -> MaskedTensor:
    graph_inputs.check_may_set_hardness(x)
    unpack_family(x)  # of a packed tensor and its views, the memory is hard, not the record
    family_of(x).hard = hard
    return x


add_members(harden_mask=harden_mask, soften_mask=soften_mask)
