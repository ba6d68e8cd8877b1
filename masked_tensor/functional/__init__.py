"""Functional forms: the families' rules for plain tensors of any layout, with a mask of any layout.

The names and signatures are those of ``torch.masked`` (``import masked_tensor as masked`` is a drop-in), and more.
"""

from .assign import masked_fill, masked_fill_, masked_scatter, masked_scatter_, masked_select
from .attention import scaled_dot_product_attention
from .batch_norm import batch_norm, instance_norm
from .covariance import corrcoef, cov
from .cross_entropy import cross_entropy, nll_loss
from .density import log_prob
from .distinct import unique, unique_consecutive
from .extremes import argmax, argmin, max, min
from .likelihood import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    gaussian_nll_loss,
    kl_div,
    poisson_nll_loss,
)
from .logical import all, any, count_nonzero
from .loss import (
    hinge_embedding_loss,
    huber_loss,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
    soft_margin_loss,
)
from .margin import (
    cosine_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    triplet_margin_loss,
)
from .moment import dist, norm, std, std_mean, var, var_mean
from .norm_layers import group_norm, layer_norm, local_response_norm, rms_norm
from .normalize import normalize
from .order import median, mode, nanmedian, nanquantile, quantile
from .rank import rankdata
from .reduction import amax, amin, aminmax, logsumexp, mean, nanmean, nansum, prod, sum
from .rolling import rolling
from .scan import cummax, cummin, cumprod, cumsum, logcumsumexp
from .series import bfill, ffill, interpolate
from .softmax import log_softmax, logaddexp, softmax, softmin
from .weighted import average

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "average",
    "batch_norm",
    "bfill",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "corrcoef",
    "cosine_embedding_loss",
    "count_nonzero",
    "cov",
    "cross_entropy",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dist",
    "ffill",
    "gaussian_nll_loss",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "local_response_norm",
    "log_prob",
    "log_softmax",
    "logaddexp",
    "logcumsumexp",
    "logsumexp",
    "margin_ranking_loss",
    "masked_fill",
    "masked_fill_",
    "masked_scatter",
    "masked_scatter_",
    "masked_select",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "nll_loss",
    "norm",
    "normalize",
    "poisson_nll_loss",
    "prod",
    "quantile",
    "rankdata",
    "rms_norm",
    "rolling",
    "scaled_dot_product_attention",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "std",
    "std_mean",
    "sum",
    "triplet_margin_loss",
    "unique",
    "unique_consecutive",
    "var",
    "var_mean",
]
