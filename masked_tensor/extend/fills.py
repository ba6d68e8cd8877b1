"""The fills that rules consist of, forward and backward."""

from torch import Tensor

from .. import select as fills
from ..pair import Pair
from ..shared.names import names_arguments


@names_arguments
def select(data: Tensor, mask: Tensor, fill: complex = 0) -> Tensor:
    """``data`` where ``mask`` is True, otherwise a constant, with gradient 0 there.

    It equals ``torch.where(mask, data, fill)`` in the dtype of ``data``, and is faster on the CPU.

    Args:
        data (Tensor): Plain, of any shape and dtype.
        mask (Tensor): True = keep; bool, broadcastable to ``data``.
        fill (number, optional): The constant, which must fit the dtype of ``data``. Default: 0.

    Returns:
        Tensor: The shape and dtype of ``data``.

    Example:
        >>> from masked_tensor.extend import select
        >>> select(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]), 9.0)
        tensor([1., 9.])
    """
    return fills.select(data, mask, fill)


@names_arguments
def guard(data: Tensor, mask: Tensor) -> Tensor:
    """``data`` unchanged, with its gradient set to 0 where ``mask`` is False.

    Call it before an operation whose derivative depends on its input, because 0 times NaN is NaN. ``data`` is expanded
    to the shape of ``mask`` first, so that the gradient is set to 0 before autograd sums over broadcast dimensions.

    Args:
        data (Tensor): Plain, of any dtype, broadcastable to ``mask``.
        mask (Tensor): True = the gradient passes; bool, of any shape.

    Returns:
        Tensor: The shape of ``mask``, the dtype of ``data``.

    Example:
        >>> from masked_tensor.extend import guard
        >>> x = torch.tensor([4.0, float("nan")], requires_grad=True)
        >>> guard(x, torch.tensor([True, False])).sqrt().backward(torch.tensor([1.0, 0.0]))
        >>> x.grad
        tensor([0.2500, 0.0000])
    """
    return fills.guard(data, mask)


@names_arguments
def zero_masked(x: Pair) -> Tensor:
    """The data of a pair, with 0 where it is masked; the gradient is 0 there as well.

    Use it for an operation that combines entries, such as a sum or a matrix product.

    Args:
        x (Pair): The pair of data and mask.

    Returns:
        Tensor: The shape and dtype of ``x.data``.

    Example:
        >>> from masked_tensor.extend import Pair, zero_masked
        >>> x = Pair(torch.tensor([1.0, float("nan")]), torch.tensor([True, False]))
        >>> zero_masked(x).sum()
        tensor(1.)
    """
    return fills.zero_masked(x)
