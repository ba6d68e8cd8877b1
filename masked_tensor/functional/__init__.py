"""Functional forms: the families' rules for plain tensors of any layout, with a mask of any layout.

The names and signatures are those of ``torch.masked`` (``import masked_tensor as masked`` is a drop-in), and more.
"""

from .loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
)
from .moment import dist, norm, std, std_mean, var, var_mean
from .normalize import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from .order import argmax, argmin, max, median, min, mode, nanmedian, nanquantile, quantile, unique, unique_consecutive
from .reduction import all, amax, amin, aminmax, any, count_nonzero, logsumexp, mean, nanmean, nansum, prod, sum
from .scan import cummax, cummin, cumprod, cumsum, logcumsumexp
from .softmax import log_softmax, logaddexp, softmax, softmin
