"""Functional normalize: division by the norm of the valid entries."""

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import shapes, sparse
from ..pair import Pair
from ..select import select
from .entrance import as_result, enter_input, result_in_pattern, run_op
from .reductions.run import aten
from .registry import as_torch


@as_torch(packed=F.normalize)
def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    *,
    dtype: torch.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The input divided by the norm of its valid entries along ``dim``: ``x / max(norm(x[valid], p), eps)``.

    Masked entries are 0 in a plain result and stay masked in a MaskedTensor. A sparse ``input`` keeps its pattern.

    Args:
        input (Tensor): Floating point or complex, of any shape and layout; plain or a MaskedTensor.
        p (float, optional): The order of the norm. Default: 2.0.
        dim (int, optional): The dimension to compute along. Default: 1.
        eps (float, optional): The smallest divisor. Default: 1e-12.

    Returns:
        Tensor: ``input``'s shape, layout and dtype, 0 where it is masked. A MaskedTensor if ``input`` is one.

    Raises:
        RuntimeError: ``input`` is neither floating point nor complex.

    Example:
        >>> x = torch.tensor([[-3.0, -2.0, -1.0]])
        >>> mt.normalize(x, 2.0, 1, mask=torch.tensor([[True, False, True]]))
        tensor([[-0.9487,  0.0000, -0.3162]])

    See also:
        :func:`norm`.

    References:
        ``torch.nn.functional.normalize``, ``torch.masked.normalize``.
    """
    given = enter_input(input, mask).to(dtype)
    p = float(p)
    dims = shapes.canonical_dims(int(dim), given.data.dim())
    if given.is_sparse:
        data = sparse.normalize(given.data, given.mask, dims[0] if dims else 0, p, eps)
        return result_in_pattern(given, data)
    size = run_op(aten.linalg_vector_norm.default, given.x, p, list(dims), True)
    divisor = (size.data if type(size) is Pair else size).clamp_min(eps)
    if type(given.x) is not Pair:
        return given.data / divisor
    data, mask = given.x.data, given.x.mask
    return as_result(Pair(select(data, mask, 0) / divisor, mask), given.masked, 0)
