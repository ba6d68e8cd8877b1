"""The log density of values with missing coordinates, under torch's distributions."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, distributions
from torch.distributions import constraints

from .. import masks
from ..compat import validate_sample
from ..engine.boundary.enter_leave import enter, leave
from ..pair import Pair
from .entrance import Number, as_result, enter_input, refuse_sparse
from .registry import form

D = TypeVar("D", bound=distributions.Distribution)

IN_PARTS = (  # of which an event may be valid in part
    distributions.Dirichlet,
    distributions.LowRankMultivariateNormal,
    distributions.MixtureSameFamily,
    distributions.MultivariateNormal,
)


@form
def log_prob(
    distribution: torch.distributions.Distribution,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    fill_value: Number | None = None,
) -> Tensor:
    """The log density of ``value``, marginalized over the masked coordinates of each event.

    With ``o`` the valid coordinates of an event, the result is ``log p(value[o])``. For a multivariate normal, this is
    the density of a normal with ``loc[o]`` and ``covariance_matrix[o, o]``; for a Dirichlet, that of a Dirichlet whose
    other concentrations are summed. ``Independent``, ``MixtureSameFamily`` and elementwise transforms are computed from
    their parts. For all other multivariate distributions, a partly valid event is masked.

    Univariate distributions use torch's own ``log_prob``. Valid coordinates are validated as in torch unless the
    distribution has ``validate_args=False``; masked ones are not.

    Args:
        distribution (torch.distributions.Distribution): A distribution with plain parameters, batch shape ``B`` and
            event shape ``E``.
        value (Tensor): ``(*S, *B, *E)``, or broadcastable to it; any dtype that the distribution accepts; plain or a
            MaskedTensor.
        mask (Tensor, optional): True = valid; bool (integers are read as ``mask != 0``), of any layout, broadcastable
            to ``value``, and combined with the mask of a MaskedTensor.
        fill_value (number, optional): The result of an event without a valid coordinate; by default NaN, or masked for
            a MaskedTensor.

    Returns:
        Tensor: ``(*S, *B)``, in the dtype of the distribution's parameters. A MaskedTensor if ``value`` is one, masked
        for events without a valid coordinate; otherwise plain, with NaN there.

    Raises:
        TypeError: ``distribution`` is not a distribution, or ``value`` is not a tensor.
        TypeError: ``mask`` is not a plain bool or int tensor.
        ValueError: ``value`` does not end in the event shape, or ``mask`` does not broadcast to it.
        ValueError: A valid coordinate is outside the support.
        UnsupportedOpError: ``value`` is sparse.

    Example:
        >>> normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> mt.log_prob(normal, mt.masked_tensor([[0.0, 0.0], [0.0, None], [None, None]]))
        masked_tensor([-1.8379, -0.9189, --], valid=2/3)

    See also:
        :func:`gaussian_nll_loss`.

    References:
        ``torch.distributions``; Little and Rubin, *Statistical Analysis with Missing Data*, on the observed-data
        likelihood.
    """
    if not isinstance(distribution, distributions.Distribution):
        raise TypeError(f"distribution must be a torch.distributions.Distribution, got {type(distribution).__name__}")
    given = enter_input(value, mask, "value")
    refuse_sparse("log_prob", given)
    event = distribution.event_shape
    if given.data.shape[given.data.dim() - len(event) :] != event:
        raise ValueError(
            f"value must end in the event shape {tuple(event)} of the distribution, got {tuple(given.data.shape)}"
        )
    if type(given.x) is not Pair:
        return distribution.log_prob(given.x)
    result = enter(_marginal(distribution, leave(given.x)), torch.is_grad_enabled())
    return as_result(result, given.masked, float("nan"), fill_value)


def _marginal(distribution: distributions.Distribution, value: Tensor) -> Tensor:
    """``log_prob`` of a masked ``value``, masked where nothing of an event is valid."""
    if isinstance(distribution, distributions.Independent):
        return _sum_last(_marginal(distribution.base_dist, value), distribution.reinterpreted_batch_ndims)
    if isinstance(distribution, distributions.TransformedDistribution) and _is_elementwise(distribution):
        validate_sample(distribution, _complete(value, distribution.support))
        return _log_prob_of_transformed(distribution, value)
    if isinstance(distribution, distributions.Wishart):
        return _of_whole_matrices(distribution, value)
    if not isinstance(distribution, IN_PARTS):
        return distribution.log_prob(_whole_events(value, len(distribution.event_shape)))
    validate_sample(distribution, _complete(value, distribution.support))
    if isinstance(distribution, distributions.MixtureSameFamily):
        parts = _marginal(distribution.component_distribution, value.unsqueeze(-1 - len(distribution.event_shape)))
        return (parts + distribution.mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)
    if isinstance(distribution, distributions.LowRankMultivariateNormal):
        return _of_events(distribution, value, _low_rank_normal)
    if isinstance(distribution, distributions.MultivariateNormal):
        return _of_events(distribution, value, _normal)
    return _of_events(distribution, value, _dirichlet)


@torch.no_grad()
def _complete(value: Tensor, support: Any) -> Tensor:
    """``value`` as torch may check it: it checks what is valid of an event, but the sum of a simplex.

    An event of shares that is valid in part becomes a corner of the simplex, if what is missing may complete it.
    """
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    if not isinstance(support, type(constraints.simplex)):
        return value
    pair = enter(value, False)
    x = torch.where(pair.mask, pair.data, 0)
    fits = (x >= 0).all(-1) & (x.sum(-1) < 1 + 1e-6) & ~pair.mask.all(-1)
    corner = torch.zeros_like(x)
    corner[..., 0] = 1
    return torch.where(fits.unsqueeze(-1), corner, x)


def _of_whole_matrices(distribution: distributions.Wishart, value: Tensor) -> Tensor:
    """Others are the identity while torch works, whose validation asks whether there is one that is symmetric."""
    pair = enter(value, torch.is_grad_enabled())
    whole = masks.all(pair.mask, (-2, -1), True)
    identity = torch.eye(pair.data.shape[-1], dtype=pair.data.dtype, device=pair.data.device)
    result = distribution.log_prob(torch.where(whole, pair.data, identity))
    return leave(Pair(result, masks.expand_to(whole[..., 0, 0], result.shape)))


def _of_events(distribution: D, value: Tensor, log_density: Callable[[D, Tensor, Tensor], Tensor]) -> Tensor:
    """What ``log_density`` gives of data and mask, of which the last dimension is an event."""
    pair = enter(value, torch.is_grad_enabled())
    result = log_density(distribution, pair.data, pair.mask)
    return leave(Pair(result, masks.expand_to(masks.any(pair.mask, -1), result.shape)))


def _normal(distribution: distributions.MultivariateNormal, x: Tensor, valid: Tensor) -> Tensor:
    """The covariance of masked coordinates is replaced by the identity, which adds nothing to either term."""
    both = valid.unsqueeze(-1) & valid.unsqueeze(-2)
    identity = torch.eye(x.shape[-1], dtype=distribution.loc.dtype, device=distribution.loc.device)
    factor = torch.linalg.cholesky(torch.where(both, distribution.covariance_matrix, identity))
    gap = torch.where(valid, x - distribution.loc, 0)
    scaled = torch.linalg.solve_triangular(factor, gap.unsqueeze(-1), upper=False)
    return _gaussian(valid, scaled.square().sum((-2, -1)), 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1))


def _low_rank_normal(distribution: distributions.LowRankMultivariateNormal, x: Tensor, valid: Tensor) -> Tensor:
    """The same by Woodbury's formula and the determinant lemma: no matrix of all coordinates is made."""
    rows = torch.where(valid.unsqueeze(-1), distribution.cov_factor, 0)
    variance = torch.where(valid, distribution.cov_diag, 1)
    gap = torch.where(valid, x - distribution.loc, 0)
    weighted = rows / variance.unsqueeze(-1)
    identity = torch.eye(rows.shape[-1], dtype=rows.dtype, device=rows.device)
    factor = torch.linalg.cholesky(identity + rows.mT @ weighted)
    scaled = torch.linalg.solve_triangular(factor, weighted.mT @ gap.unsqueeze(-1), upper=False)
    square = (gap.square() / variance).sum(-1) - scaled.square().sum((-2, -1))
    return _gaussian(valid, square, variance.log().sum(-1) + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1))


def _gaussian(valid: Tensor, square: Tensor, log_determinant: Tensor) -> Tensor:
    return -0.5 * (valid.sum(-1) * math.log(2 * math.pi) + log_determinant + square)


def _dirichlet(distribution: distributions.Dirichlet, x: Tensor, valid: Tensor) -> Tensor:
    """What is missing is one coordinate more: its share is what remains of 1, its concentration the sum."""
    concentration = distribution.concentration
    missing = ~valid.all(-1)
    share = torch.where(missing, 1 - torch.where(valid, x, 0).sum(-1), 1)
    rest = torch.where(missing, torch.where(valid, 0, concentration).sum(-1), 1)
    shares, kept = torch.where(valid, x, 1), torch.where(valid, concentration, 1)
    powers = torch.xlogy(kept - 1, shares).sum(-1) + torch.xlogy(rest - 1, share)
    return powers + concentration.sum(-1).lgamma() - kept.lgamma().sum(-1) - rest.lgamma()


def _is_elementwise(distribution: distributions.TransformedDistribution) -> bool:
    """Whether events are vectors of which each coordinate has an invertible transform of its own."""
    steps = distribution.transforms
    alone = all(step.domain.event_dim == step.codomain.event_dim == 0 and step.bijective for step in steps)
    return alone and len(distribution.event_shape) > 0


def _log_prob_of_transformed(distribution: distributions.TransformedDistribution, value: Tensor) -> Tensor:
    event_dim, corrections = len(distribution.event_shape), []
    for step in reversed(distribution.transforms):
        before = step.inv(value)
        corrections.append(_sum_last(step.log_abs_det_jacobian(before, value), event_dim))
        value = before
    base = distribution.base_dist
    density = _sum_last(_marginal(base, value), event_dim - len(base.event_shape))
    for correction in corrections:
        density = density - correction
    return density


def _whole_events(value: Tensor, event_dim: int) -> Tensor:
    """``value`` with an event masked wherever a part of it is."""
    if not event_dim:
        return value
    pair = enter(value, torch.is_grad_enabled())
    dims = tuple(range(-event_dim, 0))
    whole = masks.all(pair.mask, dims, True)
    return leave(Pair(pair.data, masks.expand_to(whole, pair.mask.shape)))


def _sum_last(value: Tensor, count: int) -> Tensor:
    return value.sum(tuple(range(-count, 0))) if count else value
