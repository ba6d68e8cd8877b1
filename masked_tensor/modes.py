"""Context managers that choose between honest meanings of an op."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

from .settings import CONVOLUTION, Convolution, WindowRule


@contextmanager
def convolution_validity(rule: WindowRule = "core", *, renormalize: bool = False) -> Iterator[None]:
    """How convolution, pooling and their relatives judge a window that is partly masked.

    - ``"core"`` (the default): valid iff the window without its padding is; a padded batch equals its unpadded rows.
    - ``"any"``: valid iff any tap is (partial convolution's mask update).
    - ``"all"``: valid iff every tap inside the input is, in every channel.

    ``renormalize`` divides a convolution's sum by the valid fraction of the window's taps inside the input, before the
    bias is added (Liu et al., Image inpainting for irregular holes using partial convolutions, 2018).  Average pooling
    under ``"any"`` is the mean of the valid taps.

    Raises ValueError for another ``rule``.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = mt.masked_tensor([[[1.0, 2.0, 3.0, 4.0]]], [[[True, True, True, False]]])
        >>> ones = torch.ones(1, 1, 3)
        >>> torch.conv1d(x, ones, padding=1).tolist()
        [[[3.0, 6.0, 5.0, None]]]
        >>> with mt.convolution_validity("any", renormalize=True):
        ...     torch.conv1d(x, ones, padding=1).tolist()
        [[[3.0, 6.0, 7.5, 6.0]]]
    """
    if rule not in get_args(WindowRule):
        raise ValueError(f"convolution_validity: rule must be one of {get_args(WindowRule)}, got {rule!r}")
    token = CONVOLUTION.set(Convolution(rule, renormalize))
    try:
        yield
    finally:
        CONVOLUTION.reset(token)
