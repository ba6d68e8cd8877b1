"""How the mean of a loss is computed: your own context can divide in place of torch, as ``mean_over`` does."""

from abc import abstractmethod
from dataclasses import replace
from typing import Literal

from torch import Tensor

from .. import compat
from ..api.losses import masked_losses
from ..engine.contexts.setting import Setting
from ..settings import Settings

__all__ = ["MeanSetting", "excuse", "tell", "unwrapped", "where_taken"]


class MeanSetting(Setting):
    """A context whose method ``divide`` computes the means of masked losses.

    It is a base class. ``begin()`` is called on entry and returns the value for ``with ... as``; ``end(failed)`` is
    called after exit.

    Example:
        >>> from masked_tensor.extend.means import MeanSetting
        >>> class Sums(MeanSetting):
        ...     def divide(self, total, number, valid, loss):
        ...         return total, valid
        >>> with Sums():
        ...     torch.nn.functional.mse_loss(torch.ones(2), mt.masked_tensor([3.0, None]))
        masked_tensor(4.0000, valid=1/1)
    """

    @abstractmethod
    def divide(self, total: Tensor, number: Tensor, valid: Tensor, loss: object) -> tuple[Tensor, Tensor]:
        """What stands for ``total / number``, and whether it is valid.

        Args:
            total (Tensor): The sum of the valid terms of a loss; 0-d, of floating point.
            number (Tensor): How many those are, or the sum of their weights; 0-d, of floating point.
            valid (Tensor): Whether there is one; 0-d, bool.
            loss (object): The op, or its name.

        Returns:
            tuple: The mean and whether it is valid, 0-d tensors.

        Example:
            >>> mt.mean_over().divide  # doctest: +ELLIPSIS
            <bound method mean_over.divide ...>
        """

    def change(self, before: Settings) -> Settings:
        """Means are taken by this object."""
        return replace(before, over=self.divide)


def where_taken(total: Tensor) -> Literal["", "traced", "vmap", "checkpoint"]:
    """Where a mean is computed if its value cannot be read or is computed again: a trace, vmap or a checkpoint.

    Args:
        total (Tensor): The ``total`` of :meth:`MeanSetting.divide`; 0-d, floating point.

    Returns:
        str: ``"traced"``, ``"vmap"``, ``"checkpoint"``, or ``""``.

    Example:
        >>> from masked_tensor.extend import means
        >>> means.where_taken(torch.tensor(1.0))
        ''
    """
    if not compat.has_real_memory(total):
        return "traced"
    if compat.checkpoint_will_recompute():
        return "checkpoint"
    return "vmap" if compat.is_batched(total) else ""


def unwrapped(x: Tensor) -> Tensor:
    """The plain tensor inside ``torch.func`` wrappers, which is valid after the transform.

    Args:
        x (Tensor): Any shape and dtype.

    Returns:
        Tensor: The shape and dtype of ``x``.

    Example:
        >>> from masked_tensor.extend import means
        >>> means.unwrapped(torch.ones(1))
        tensor([1.])
    """
    found: Tensor = compat.unwrap_transforms(x)
    return found


def excuse(mean: Tensor) -> None:
    """Exempt ``mean`` from the check for valid entries in a backward pass, which is made later for the whole.

    Args:
        mean (Tensor): A part of a mean; 0-d, floating point.

    Example:
        >>> from masked_tensor.extend import means
        >>> means.excuse(torch.tensor(1.0, requires_grad=True))
    """
    masked_losses.excuse(mean)


def tell(some: Tensor, text: str) -> None:
    """Warn with ``text`` if ``some`` is False, without waiting for an accelerator; inside ``mt.strict()``, raise.

    Args:
        some (Tensor): Whether a loss has a valid entry; 0-d, bool.
        text (str): The text of the MaskedLossWarning.

    Raises:
        MaskedValueError: ``some`` is False, inside ``mt.strict()`` on one rank.

    Example:
        >>> from masked_tensor.extend import means
        >>> means.tell(torch.tensor(True), "no loss has a valid entry")
    """
    masked_losses.tell(some, text)
