"""The attention of nn's fused inference paths on packed tokens: heads are split, attended to and joined as stored."""

from collections.abc import Sequence

from torch import Tensor

from ..op import NoRule
from .attention import scaled_dot_product_attention
from .dim_order import identity_order
from .packed import Packed

HEADS = ((0,), (2,), (1,), (3,))  #: (B, H, T, D)


def stored_tokens(*batch: Packed) -> tuple[Tensor, ...]:
    """The stored tokens, ``(N, C)``, of tensors that are seen as ``(B, T, C)``."""
    if any(x.order != identity_order(3) for x in batch):
        raise NoRule
    return tuple(x.values for x in batch)


def attend(
    batch: Sequence[Packed], projected: Sequence[Tensor], heads: int, seen: Tensor | None, need_weights: bool
) -> tuple[Tensor, None]:
    """Attention of what was projected of the stored tokens; without the weights, which are no tokens of the batch."""
    if need_weights:
        raise NoRule
    q, k, v = (_split_heads(x, values, heads) for x, values in zip(batch, projected, strict=True))
    mixed = scaled_dot_product_attention(q, k, v, seen)
    if mixed.inner is not None:
        raise NoRule
    return mixed.values.flatten(1), None


def _split_heads(x: Packed, values: Tensor, heads: int) -> Packed:
    size = values.shape[1] // heads
    if 1 in (heads, size):
        raise NoRule  # dimensions of size 1 are no features
    return Packed(values.unflatten(1, (heads, size)), x.grid, HEADS)
