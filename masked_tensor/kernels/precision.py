"""In which dtype a result is computed, so that it is rounded once."""

import torch
from torch import Tensor

from .. import settings

#: The dtype of twice the precision, where there is one.
WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def wide_dtype(data: Tensor) -> torch.dtype:
    """The dtype to add up squares in, which holds those of ``data`` on the CPU, unless they are float64 themselves."""
    if data.device.type == "cpu":
        return torch.complex128 if data.is_complex() else torch.float64
    return torch.float32 if rounds_noticeably(data.dtype) else data.dtype


def rounds_noticeably(dtype: torch.dtype) -> bool:
    """Whether the result of a reduction in ``dtype`` is rounded noticeably, so that it must not be reduced again."""
    return dtype in (torch.float16, torch.bfloat16)


def counts_in_float32(size: int) -> bool:
    """Whether float32 holds every count of up to ``size``; of a size that is traced nothing is known, nor asked."""
    return type(size) is int and size <= settings.EXACT
