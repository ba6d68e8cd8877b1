"""``numel()``: sizes count the masked entries, which an average written by hand should not.

``x.sum() / x.numel()`` silently counts the padding as well.  So ``numel()`` warns, once for each place in a program
that asks.  torch asks for good reasons of its own, and so does this package: their calls do not warn.
"""

import sys
import warnings
from collections.abc import Callable

import torch

from ...callers import OUR_FILES, TORCH_FILES
from ...engine.tensor import MaskedTensor
from ...errors import MaskedSizeError, MaskedSizeWarning, numel_counts_masked
from ...settings import current


def _warn_or_raise(name: str) -> Callable[[MaskedTensor], int]:
    def size(x: MaskedTensor) -> int:
        """The number of entries, including masked ones; :meth:`count` is the number of valid ones.

        A MaskedSizeWarning is issued, because a mean that divides by this number is wrong.

        Args:
            x (MaskedTensor): Any shape and dtype.

        Returns:
            int: The product of the sizes of ``x``.

        Raises:
            MaskedSizeError: It is called inside :func:`strict`.

        Example:
            >>> import warnings
            >>> with warnings.catch_warnings(record=True) as seen:
            ...     warnings.simplefilter("always")
            ...     mt.masked_tensor([1.0, None]).numel(), seen[0].category.__name__
            (2, 'MaskedSizeWarning')
        """
        if not sys._getframe(1).f_code.co_filename.startswith((TORCH_FILES, OUR_FILES)):
            if current().strict:
                raise MaskedSizeError(numel_counts_masked(name))
            warnings.warn(numel_counts_masked(name), MaskedSizeWarning, stacklevel=2)
        return torch.Tensor.numel(x)  # may be symbolic, of which a Size would make an int

    size.__name__ = name
    return size


for _name in ("numel", "nelement"):
    setattr(MaskedTensor, _name, _warn_or_raise(_name))
