"""How nn's fused attention ops say which keys are hidden."""

from torch import Tensor

from ..pair import Pair


def attention_mask(mask: Pair | Tensor | None, mask_type: int | None) -> Tensor | None:
    """The fused ops' mask (not 0 = hidden; 0: (L, S), 1: (B, S), 2: (B, H, L, S)) as attention's bool mask.

    What is masked hides.
    """
    if mask is None:
        return None
    hidden = (mask.data != 0) | ~mask.mask if type(mask) is Pair else mask != 0
    return ~(hidden[:, None, None, :] if mask_type == 1 else hidden)
