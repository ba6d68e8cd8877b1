"""What torch cannot run on every machine."""

import pytest
import torch
from torch import nn


def expect_bfloat16(kind: type[nn.Module]) -> None:
    """Skips the test where plain torch has no bfloat16 kernel for a recurrent net: oneDNN's LSTM asks the CPU."""
    try:
        with torch.autocast("cpu", torch.bfloat16):
            kind(3, 4)(torch.randn(2, 2, 3))
    except RuntimeError as error:
        if "primitive descriptor" not in str(error):
            raise
        pytest.skip(f"plain {kind.__name__} has no bfloat16 kernel on this CPU")
