"""Functional forms: the same rules as functions of plain tensors of any layout, with a ``mask`` of any layout.

The names and signatures are those of ``torch.masked`` (``import masked_tensor as masked`` is a drop-in), and more.
"""

from . import (  # noqa: F401 (a form is listed where it is defined)
    assign,
    attention,
    batch_norm,
    density,
    norm_layers,
    normalize,
    scan,
    softmax,
)
from .losses import cross_entropy, elementwise, likelihood, margin  # noqa: F401
from .reductions import covariance, distinct, extremes, logical, moment, order, rank, sums, weighted  # noqa: F401
from .registry import FORMS
from .series import filling, rolling  # noqa: F401

globals().update(FORMS)
__all__ = sorted(FORMS)
