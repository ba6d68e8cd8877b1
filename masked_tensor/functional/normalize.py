"""Functional normalize: division by the norm of the valid elements."""

import torch
from torch import Tensor

from .. import layouts, shapes, sparse
from ..pair import Pair
from ..select import select
from .entrance import as_result, enter_input, result_in_pattern, run_op
from .form import aten


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """``x / max(norm(x, p), eps)`` with the norm of the valid elements along ``dim``; 0 at masked-out elements.

    A sparse input keeps its pattern: its unspecified elements are 0 and stay 0.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = torch.tensor([[-3.0, -2.0, -1.0]])
        >>> mt.normalize(x, 2.0, 1, mask=torch.tensor([[True, False, True]]))
        tensor([[-0.9487,  0.0000, -0.3162]])
    """
    given = enter_input(input, mask).to(dtype)
    p = float(p)
    dims = shapes.canonical_dims(int(dim), given.data.dim())
    if layouts.is_sparse(given.data):
        data = sparse.normalize(given.data, given.mask, dims[0] if dims else 0, p, eps)
        return result_in_pattern(given, data)
    size = run_op(aten.linalg_vector_norm.default, given.x, p, list(dims), True)
    divisor = (size.data if type(size) is Pair else size).clamp_min(eps)
    if type(given.x) is not Pair:
        return given.data / divisor
    data, mask = given.x.data, given.x.mask
    return as_result(Pair(select(data, mask, 0) / divisor, mask), given.masked, 0)
