"""Functional attention with a mask of valid keys."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from .. import errors, shapes
from ..engine.tensor import MaskedTensor
from .entrance import as_result, enter_input, run_op
from .reductions.run import aten
from .registry import form


@form
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    key_mask: Tensor | None = None,
) -> Tensor:
    """Attention over the valid keys: ``softmax(query @ key.T * scale + attn_mask) @ value``.

    A masked key has weight exactly 0: nothing in ``key`` and ``value`` there affects the output or a gradient. The
    output of a query that attends to no key is 0 with gradient 0, and masked for MaskedTensors. Without ``key_mask``
    this is torch's own function.

    Args:
        query (Tensor): ``(N, ..., L, E)``, floating point; plain or a MaskedTensor.
        key (Tensor): ``(N, ..., S, E)`` in ``query``'s dtype; plain or a MaskedTensor.
        value (Tensor): ``(N, ..., S, Ev)`` in ``query``'s dtype; plain or a MaskedTensor.
        attn_mask (Tensor, optional): Broadcastable to ``(N, ..., L, S)``; bool, True = may attend, or floating point,
            added to the scores.
        dropout_p (float, optional): The probability of dropping a weight. Default: 0.0.
        is_causal (bool, optional): Let a query attend to keys up to its own position. It can be combined with
            ``key_mask``. Default: False.
        scale (float, optional): The factor of the scores; None is ``1 / sqrt(E)``.
        enable_gqa (bool, optional): Let several heads of ``query`` share one head of ``key`` and ``value``. Default:
            False.
        key_mask (Tensor, optional): True = valid; bool (integers are read as ``key_mask != 0``), ``(S,)``, ``(N, S)``,
            or broadcastable to ``(N, ..., S)``.

    Returns:
        Tensor: ``(N, ..., L, Ev)`` in ``query``'s dtype. A MaskedTensor if one of the tensors is.

    Raises:
        TypeError: ``query``, ``key`` or ``value`` is not a tensor.
        TypeError: ``key_mask`` is not a plain bool or int tensor.
        ValueError: ``key_mask`` does not broadcast to the keys, or is on another device.
        UnsupportedOpError: ``query``, ``key`` or ``value`` is sparse.

    Example:
        >>> q, k = torch.zeros(1, 1, 2), torch.zeros(1, 3, 2)
        >>> v = torch.tensor([[[1.0], [3.0], [float("nan")]]])
        >>> mt.scaled_dot_product_attention(q, k, v, key_mask=torch.tensor([[True, True, False]]))
        tensor([[[2.]]])

    See also:
        :func:`document_mask`.

    References:
        ``torch.nn.functional.scaled_dot_product_attention``.
    """
    for x in (query, key, value):
        if isinstance(x, Tensor) and x.layout not in (torch.strided, torch.jagged):
            raise errors.no_sparse_functional_rule("scaled_dot_product_attention", x)
    if key_mask is None:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    mask = _mask_of_keys(key, key_mask)
    sides = [enter_input(query, name="query"), enter_input(key, mask, "key"), enter_input(value, mask, "value")]
    if attn_mask is not None:
        sides.append(enter_input(attn_mask, name="attn_mask"))
    given = [*(x.x for x in sides), *([None] if attn_mask is None else [])]
    op, options = aten.scaled_dot_product_attention.default, {"scale": scale, "enable_gqa": enable_gqa}
    result = run_op(op, *given, dropout_p, is_causal, **options)
    return as_result(result, any(x.masked for x in sides), 0)


def _mask_of_keys(key: Any, mask: Any) -> Any:
    """``mask`` with a dimension for the features; what is not a tensor is refused further on."""
    if not isinstance(mask, Tensor) or type(mask) is MaskedTensor or not isinstance(key, Tensor):
        return mask
    rows = key.shape[:-1]
    if mask.dim() == 2 and len(rows) > 2:
        mask = mask.reshape(mask.shape[0], *[1] * (len(rows) - 2), mask.shape[1])
    if not shapes.can_expand(mask.shape, rows):
        raise ValueError(
            f"key_mask must be (S,), (N, S), or broadcast to {tuple(rows)}, key's shape without the last dimension; "
            f"got {tuple(mask.shape)}"
        )
    return mask.unsqueeze(-1)
