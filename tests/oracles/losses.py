"""The functional losses: what to give them beside their input, and what they are by the oracles of loss.py."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from masked_tensor import layouts

from ..helpers.harness import Masked
from . import cross_entropy, loss, margin, similarity

KNOWN = 3  # every third target is masked out


def known(target: Tensor) -> Tensor:
    return torch.arange(target.numel()).reshape(target.shape) % KNOWN != 0


@dataclass(frozen=True)
class Spec:
    """One loss; ``rest`` makes its other arguments from the dense input, the target last."""

    rest: Callable[[Tensor], tuple[Tensor, ...]]
    values: Callable[[Tensor], Tensor] = lambda v: v  #: what the input's values become; 0 stays 0
    dims: tuple[int, ...] = (2, 3)  #: which inputs torch's own function takes
    rows: bool = False  #: a sample is a row, and the oracle takes whole ones


OVER_CLASSES = ("multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss")
OVER_CLASSES += ("cosine_embedding_loss", "triplet_margin_loss")


def _pairs(x: Tensor) -> tuple[Tensor, ...]:
    return (x.flip(-1) / 2 + 0.25,)


def _shares(x: Tensor) -> tuple[Tensor, ...]:
    return (x.flip(-1).sigmoid(),)


def _signs(x: Tensor) -> tuple[Tensor, ...]:
    return (torch.where(x.flip(-1) > 0, 1.0, -1.0).to(x.dtype),)


def _classes(x: Tensor) -> tuple[Tensor, ...]:
    shape = (x.shape[0], *x.shape[2:])
    return ((torch.arange(torch.Size(shape).numel()) * 5 % x.shape[1]).reshape(shape),)


def _labels(x: Tensor) -> tuple[Tensor, ...]:
    """Per row, its first classes in some order, then -1."""
    size = x.shape[-1]
    rows = [torch.tensor([(i + 2 * j) % size if j < 2 else -1 for j in range(size)]) for i in range(x.shape[0])]
    return (torch.stack(rows),)


def _row_signs(x: Tensor) -> tuple[Tensor, ...]:
    return x.flip(-1) + 0.5, torch.tensor([1.0, -1.0])[torch.arange(x.shape[:-1].numel()) % 2].reshape(x.shape[:-1])


SPECS: dict[str, Spec] = {
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"), Spec(_pairs)),
    "poisson_nll_loss": Spec(_shares),
    "kl_div": Spec(_shares),
    "binary_cross_entropy": Spec(_shares, lambda v: v.abs() / 4),
    "binary_cross_entropy_with_logits": Spec(_shares),
    **dict.fromkeys(("soft_margin_loss", "hinge_embedding_loss"), Spec(_signs)),
    "margin_ranking_loss": Spec(lambda x: (*_pairs(x), *_signs(x))),
    "gaussian_nll_loss": Spec(_pairs),
    **dict.fromkeys(("cross_entropy", "nll_loss"), Spec(_classes)),
    "multi_margin_loss": Spec(_classes, dims=(2,)),
    "multilabel_margin_loss": Spec(_labels, dims=(2,), rows=True),
    "multilabel_soft_margin_loss": Spec(lambda x: ((x.flip(-1) > 0).to(x.dtype),), dims=(2,)),
    "cosine_embedding_loss": Spec(_row_signs, dims=(2,)),
    "triplet_margin_loss": Spec(lambda x: (x.flip(-1) + 0.5, x.flip(0) - 0.5), dims=(2,)),
}


def given(name: str, x: Tensor) -> Tensor:
    """The input of the loss, made from ``x``: its layout and, if it is sparse, its pattern."""
    if not layouts.is_sparse(x) and x.dim() not in SPECS[name].dims:
        x = x[0]
    x = layouts.elements.canonical(x)
    return (
        layouts.with_values(x, SPECS[name].values(layouts.values(x))) if layouts.is_sparse(x) else SPECS[name].values(x)
    )


OF_THE_CLASS = loss.ORACLES | cross_entropy.ORACLES | margin.ORACLES | similarity.ORACLES


def expected(name: str, x: Tensor, shown: Tensor, rest: tuple[Tensor, ...], target_mask: Any, kind: str) -> Tensor:
    """The loss of the strided ``x`` over what is shown; what a plain result holds where nothing is."""
    *middle, target = rest
    target = target if target_mask is None else Masked(target, target_mask)
    arguments = Masked(x, shown), *middle, target
    if name == "multilabel_soft_margin_loss":  # over the valid classes, where torch's own divides by all of them
        out = OF_THE_CLASS["nn.functional.binary_cross_entropy_with_logits"](
            F.binary_cross_entropy_with_logits, *arguments, reduction="none"
        )
        number = out.mask.sum(-1)
        out = loss.reduced(torch.where(out.mask, out.data, 0).sum(-1) / number.clamp(min=1), number > 0, kind)
    elif name == "gaussian_nll_loss":
        out = OF_THE_CLASS[f"nn.functional.{name}"](None, *arguments, torch.full_like(x, 0.5), reduction=kind)
    else:
        out = OF_THE_CLASS[f"nn.functional.{name}"](getattr(F, name), *arguments, reduction=kind)
    return torch.where(out.mask, out.data, float("nan") if kind == "mean" else 0.0)
