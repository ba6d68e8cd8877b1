"""Assignment: what is written becomes valid, what is written masked becomes masked."""

from typing import Any

import torch
from torch import Tensor

from .. import pair
from ..op import Op
from ..pair import Pair


def copy(x: Pair | Tensor, src: Pair | Tensor, non_blocking: bool = False) -> Pair:
    """``x.copy_(src)``: the values and the validity of ``src``."""
    x, src = pair.of(x), pair.of(src)
    data = src.data.to(device=x.data.device, dtype=x.data.dtype, non_blocking=non_blocking)
    return Pair(data.expand(x.data.shape), src.mask.to(x.data.device).expand(x.data.shape), src.payload)


def fill(x: Pair, value: Any) -> Pair:
    """``x.fill_(value)``: valid everywhere."""
    return pair.plain(torch.ops.aten.fill(x.data, value))


ROWS = [Op("copy", copy), Op("fill", fill)]
