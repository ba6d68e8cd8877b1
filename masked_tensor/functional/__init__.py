"""Functional forms: the families' rules for plain tensors of any layout, with a mask of any layout.

The names and signatures are those of ``torch.masked`` (``import masked_tensor as masked`` is a drop-in), and more.
"""

from . import (  # noqa: F401 (a form is listed where it is defined)
    assign,
    attention,
    batch_norm,
    covariance,
    cross_entropy,
    density,
    distinct,
    extremes,
    likelihood,
    logical,
    loss,
    margin,
    moment,
    norm_layers,
    normalize,
    order,
    rank,
    reduction,
    rolling,
    scan,
    series,
    softmax,
    weighted,
)
from .registry import FORMS

globals().update(FORMS)
__all__ = sorted(FORMS)
