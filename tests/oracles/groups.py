"""Norm layers: the statistics of every group of shown and stored elements, index by index."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import masked_tensor.functional as masked

from .sparse import flags, specified

EPS = 0.1


def standardized(v: Tensor) -> Tensor:
    return (v - v.mean()) / (v.var(correction=0) + EPS).sqrt()


def root_mean_square(v: Tensor) -> Tensor:
    return v / (v.square().mean() + EPS).sqrt()


def parameters(*shape: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(shape, generator=generator).double(), torch.randn(shape, generator=generator).double()


def layers(
    shape: tuple[int, ...],
) -> dict[str, tuple[Callable[..., Tensor], Callable[..., Any], Callable[..., Tensor]]]:
    """Per name: the form, the group of an index, and what the parameters make of a standardized value."""
    channels, ndim = shape[1], len(shape)
    weight, bias = parameters(channels)
    wide, shift = parameters(*shape[-2:])
    everything, _ = parameters(*shape)

    def by_channel(h: Tensor) -> Tensor:
        along = (-1, *[1] * (ndim - 2))
        return h * weight.view(along) + bias.view(along)

    return {
        "layer_norm": (
            lambda x, mask: masked.layer_norm(x, shape[-1:], wide[0], shift[0], EPS, mask=mask),
            lambda i: i[:-1],
            lambda h: h * wide[0] + shift[0],
        ),
        "layer_norm of two": (
            lambda x, mask: masked.layer_norm(x, shape[-2:], wide, None, EPS, mask=mask),
            lambda i: i[:-2],
            lambda h: h * wide,
        ),
        "layer_norm of all": (
            lambda x, mask: masked.layer_norm(x, shape, everything, eps=EPS, mask=mask),
            lambda i: None,
            lambda h: h * everything,
        ),
        "rms_norm": (
            lambda x, mask: masked.rms_norm(x, shape[-1:], wide[1], EPS, mask=mask),
            lambda i: i[:-1],
            lambda h: h * wide[1],
        ),
        "group_norm": (
            lambda x, mask: masked.group_norm(x, 2, weight, bias, EPS, mask=mask),
            lambda i: (i[0], i[1] // (channels // 2)),
            by_channel,
        ),
        "instance_norm": (
            lambda x, mask: masked.instance_norm(x, None, None, weight, bias, eps=EPS, mask=mask),
            lambda i: i[:2],
            by_channel,
        ),
        "batch_norm": (
            lambda x, mask: masked.batch_norm(x, None, None, weight, bias, True, 0.1, EPS, mask=mask),
            lambda i: i[1],
            by_channel,
        ),
    }


def grouped(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    mask: Tensor | None,
    group: Callable[[tuple[int, ...]], Any],
    dense: Tensor,
) -> tuple[Tensor, Tensor]:
    """``function`` on the shown and stored elements of every group, put back where they came from."""
    valid = flags(mask, dense.shape) & specified(x)
    members: dict[Any, list[tuple[int, ...]]] = {}
    for place in valid.nonzero().tolist():
        members.setdefault(group(tuple(place)), []).append(tuple(place))
    result = torch.zeros_like(dense)
    for indices in members.values():
        for index, value in zip(indices, function(torch.stack([dense[i] for i in indices])), strict=True):
            result[index] = value
    return result, valid
