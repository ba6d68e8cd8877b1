"""Functional normalizations: normalize and the norm layers' functions, with the statistics of the valid elements."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import layouts, shapes
from ..pair import Pair
from ..ports import leave
from ..select import select
from .entrance import Given, entered, finished, refuse, run
from .reduce import aten


def normalize(
    input: Tensor,
    ord: float = 2.0,
    dim: int = 1,
    *,
    eps: float = 1e-12,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """``x / max(norm(x, ord), eps)`` with the norm of the valid elements along ``dim``; 0 at masked-out elements.

    A sparse input keeps its pattern: its unspecified elements are 0 and stay 0.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([[-3.0, -2.0, -1.0]])
        >>> mt.normalize(x, 2.0, 1, mask=torch.tensor([[True, False, True]]))
        tensor([[-0.9487,  0.0000, -0.3162]])
    """
    given = entered(input, mask).to(dtype)
    ord = float(ord)
    dims = shapes.canonical_dims(int(dim), given.data.dim())
    if layouts.is_sparse(given.data):
        data = layouts.normalize(given.data, given.mask, dims[0] if dims else 0, ord, eps)
        return leave(Pair(data, given.x.mask)) if given.masked else data  # type: ignore[union-attr]
    size = run(aten.linalg_vector_norm.default, given.x, ord, list(dims), True)
    divisor = (size.data if type(size) is Pair else size).clamp_min(eps)
    if type(given.x) is not Pair:
        return given.data / divisor
    zeroed = select(given.data, given.mask, 0)  # type: ignore[arg-type]
    return finished(Pair(zeroed / divisor, given.x.mask), given.masked, 0)  # type: ignore[no-any-return]


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
    = valid) broadcasts to ``input``; the other arguments are torch's.  Strided inputs only: a sparse one raises
    UnsupportedOpError.

    >>> x, m = torch.tensor([1.0, 99.0, 3.0]), torch.tensor([True, False, True])
    >>> mt.layer_norm(x, (3,), eps=0.0, mask=m)
    tensor([-1.,  0.,  1.])
    """
    return _normed("layer_norm", aten.layer_norm.default, input, mask, list(normalized_shape), weight, bias, eps)


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
    return _normed("rms_norm", aten.rms_norm.default, input, mask, list(normalized_shape), weight, eps)


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
    return _normed("group_norm", aten.group_norm.default, input, mask, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """torch's instance_norm with the statistics of the valid elements of each channel; 0 at masked-out ones.

    ``input`` is ``(N, C, *)``; running statistics are updated in place.  Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.tensor([[[1.0, 99.0, 3.0]]]), torch.tensor([True, False, True])
    >>> mt.instance_norm(x, eps=0.0, mask=m)
    tensor([[[-1.,  0.,  1.]]])
    """
    arguments = (weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)
    return _normed("instance_norm", aten.instance_norm.default, input, mask, *arguments)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    mask: Tensor | None = None,
) -> Tensor:
    """torch's batch_norm with the statistics (running ones too) of the valid elements; 0 at masked-out ones.

    ``input`` is ``(N, C, *)``.  While training, ``running_mean`` and ``running_var`` are updated in place, the variance
    with ``n / (n - 1)``, ``n`` the number of valid elements of a channel.  Masking and errors as :func:`layer_norm`.

    >>> x, m, mean = torch.tensor([[1.0], [99.0], [3.0]]), torch.tensor([[True], [False], [True]]), torch.zeros(1)
    >>> mt.batch_norm(x, mean, torch.ones(1), training=True, momentum=1.0, eps=0.0, mask=m)
    tensor([[-1.],
            [ 0.],
            [ 1.]])
    >>> mean
    tensor([2.])
    """
    arguments = (weight, bias, running_mean, running_var, training, momentum, eps, False)
    return _normed("batch_norm", aten.batch_norm.default, input, mask, *arguments)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, *, mask: Tensor | None = None
) -> Tensor:
    """torch's local_response_norm; masked-out neighbours count as 0, and the result is 0 at masked-out elements.

    ``input`` is ``(N, C, *)``.  Masking and errors as :func:`layer_norm`.

    >>> x, m = torch.ones(1, 2, 1), torch.tensor([[[True], [False]]])
    >>> mt.local_response_norm(x, 2, mask=m).flatten()
    tensor([1.0000, 0.0000])
    """
    given = entered(input, mask)
    refuse("local_response_norm", given)
    x = Given(Pair(select(given.data, given.mask, 0), given.mask), given.masked) if given.mask is not None else given
    data = F.local_response_norm(x.data, size, alpha, beta, k)
    return finished(Pair(data, given.mask), given.masked, 0) if given.mask is not None else data


def _normed(name: str, op: Any, input: Tensor, mask: Tensor | None, *arguments: Any) -> Tensor:
    given = entered(input, mask)
    refuse(name, given)
    return finished(run(op, given.x, *arguments), given.masked, 0)  # type: ignore[no-any-return]
