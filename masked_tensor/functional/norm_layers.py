"""The functions of the norm layers, with the statistics of the valid elements (of a sparse input: the stored ones)."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from .. import layouts, sparse
from ..engine.tensor import MaskedTensor
from ..pair import Pair
from ..select import select
from ..sparse import layers
from .entrance import Input, as_result, enter_input, result_in_pattern, run_op
from .form import aten


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """torch's layer_norm with mean and variance of the valid elements; 0 at masked-out ones.

    ``(x - mean) / sqrt(var + eps) * weight + bias`` over the last ``len(normalized_shape)`` dimensions.  ``mask`` (True
    = valid) broadcasts to ``input``; the other arguments are torch's.

    A sparse input keeps its pattern, and its statistics are those of what it stores: unspecified elements never take
    part.  The parameters stay plain strided tensors: others raise TypeError.

    >>> x, m = torch.tensor([1.0, 99.0, 3.0]), torch.tensor([True, False, True])
    >>> mt.layer_norm(x, (3,), eps=0.0, mask=m)
    tensor([-1.,  0.,  1.])
    """
    return run_norm(aten.layer_norm.default, layers.layer_norm, input, mask, list(normalized_shape), weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """torch's rms_norm with the mean square of the valid elements; 0 at masked-out ones.

    Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.tensor([3.0, 99.0, 3.0]), torch.tensor([True, False, True])
    >>> mt.rms_norm(x, (3,), eps=0.0, mask=m)
    tensor([1., 0., 1.])
    """
    return run_norm(aten.rms_norm.default, layers.rms_norm, input, mask, list(normalized_shape), weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """torch's group_norm with mean and variance of the valid elements of each group; 0 at masked-out ones.

    ``input`` is ``(N, C, *)``.  Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
    >>> mt.group_norm(x, 1, eps=0.0, mask=m)
    tensor([[[-1.,  0.,  1.]]])
    """
    return run_norm(aten.group_norm.default, layers.group_norm, input, mask, num_groups, weight, bias, eps)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, mask: Tensor | None = None
) -> Tensor:
    """torch's local_response_norm; masked-out neighbours count as 0, and the result is 0 at masked-out elements.

    ``input`` is ``(N, C, *)``.  Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.ones(1, 2, 1), torch.tensor([[[True], [False]]])
    >>> mt.local_response_norm(x, 2, mask=m).flatten()
    tensor([1.0000, 0.0000])
    """
    given = enter_input(input, mask)
    if layouts.is_sparse(given.data):
        return result_in_pattern(given, sparse.local_response_norm(given.data, given.mask, size, alpha, beta, k))
    x = Input(Pair(select(given.data, given.mask, 0), given.mask), given.masked) if given.mask is not None else given
    data = F.local_response_norm(x.data, size, alpha, beta, k)
    return as_result(Pair(data, given.mask), given.masked, 0) if given.mask is not None else data


def run_norm(op: Any, form: Callable[..., Tensor], input: Tensor, mask: Tensor | None, *arguments: Any) -> Tensor:
    """The op on strided data, or its sparse form, which takes the same arguments."""
    given = enter_input(input, mask)
    if not layouts.is_sparse(given.data):
        return as_result(run_op(op, given.x, *arguments), given.masked, 0)
    for parameter in arguments:
        if isinstance(parameter, Tensor) and (type(parameter) is MaskedTensor or layouts.is_sparse(parameter)):
            raise TypeError(
                f"the parameters of a norm layer with a {given.data.layout} input must be plain strided tensors, got "
                f"{type(parameter).__name__} of layout {parameter.layout}"
            )
    return result_in_pattern(given, form(given.data, given.mask, *arguments))
