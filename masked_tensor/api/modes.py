"""Context managers that choose between honest meanings of an op."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

from ..settings import CONVOLUTION, MISMATCH, Convolution, MismatchRule, WindowRule


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


@contextmanager
def mask_mismatch(rule: MismatchRule = "raise") -> Iterator[None]:
    """What elementwise ops do with operands whose masks differ.

    - ``"and"`` (the default outside of any context): the result is valid where all of them are.
    - ``"raise"``: MaskMismatchError if two masks differ anywhere, as ``torch.masked`` does.  Plain operands never
      differ.  The masks' values are compared, unless both tensors share one mask: that waits for the device,
      and does not work in compiled code.

    Raises ValueError for another ``rule``.

    Example::

        >>> import masked_tensor as mt
        >>> x = mt.masked_tensor([1.0, 2.0], [True, False])
        >>> y = mt.masked_tensor([1.0, 2.0], [True, True])
        >>> (x + y).tolist()
        [2.0, None]
        >>> with mt.mask_mismatch("raise"):
        ...     x + y
        Traceback (most recent call last):
        ...
        masked_tensor.errors.MaskMismatchError: two operands have different masks, ...
    """
    if rule not in get_args(MismatchRule):
        raise ValueError(f"mask_mismatch: rule must be one of {get_args(MismatchRule)}, got {rule!r}")
    token = MISMATCH.set(rule)
    try:
        yield
    finally:
        MISMATCH.reset(token)
