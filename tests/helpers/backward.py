"""Backward passes of generated programs."""

import warnings
from typing import Any

import torch
from torch import Tensor

import masked_tensor as mt


def differentiate(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """``torch.autograd.grad`` of generated outputs, of which it may be that none is valid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mt.MaskedLossWarning)
        return torch.autograd.grad(*args, **kwargs)


def run_backward(ours: Tensor, theirs: Tensor) -> bool:
    """Whether a program went back on masked and on plain tensors; torch may refuse the plain one, then so may we."""
    try:
        theirs.backward()
    except RuntimeError as error:  # a value that backward needs was overwritten
        if "modified by an inplace operation" not in str(error):
            raise
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mt.MaskedLossWarning)
        ours.backward()
    return True
