"""CTC: a masked step and a masked label are skipped, as if the sequence were shorter; a masked class cannot be emitted.

A sample counts if it has a valid step and its lengths are valid.  Valid steps and labels are moved together in order,
and counted as the lengths, so masked entries may be anywhere.  The mean divides each loss by its number of labels, and
averages over the samples that count.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from .. import masks, pair
from ..errors import expect_shape
from ..op import Op
from ..pair import Pair
from ..select import select
from ..shared.averaging import MEAN, NONE, reduce_loss

Operand = Pair | Tensor
Lengths = Sequence[int] | Operand


def ctc_loss(
    log_probs: Operand,
    targets: Operand,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: int = MEAN,
    zero_infinity: bool = False,
) -> Pair:
    """The connectionist temporal classification loss of ``(T, N, C)`` scores, or ``(T, C)`` without a batch."""
    x, t = pair.as_pair(log_probs), pair.as_pair(targets)
    batched = x.data.dim() == 3
    data, mask = (v if batched else v.unsqueeze(1) for v in (x.data, x.mask))
    steps, known = _lengths("input_lengths", input_lengths, data)
    labels, also_known = _lengths("target_lengths", target_lengths, data)
    _check(steps, labels, data, t.data)
    data, steps, some = _without_masked_steps(data, mask, steps)
    some = some & known & also_known
    wanted, labels = _without_masked_labels(t, labels)
    losses = torch.ops.aten.ctc_loss.Tensor(data, wanted, steps, labels, blank, NONE, zero_infinity)
    if reduction == MEAN:
        losses = losses / labels.clamp_min(1)
    losses, some = (v if batched else v.reshape(()) for v in (losses, some))
    return reduce_loss(losses, some, reduction, kind="ctc_loss")


def _lengths(name: str, lengths: Lengths, data: Tensor) -> tuple[Tensor, Tensor]:
    """One length per sample, and which are known; a masked length counts 0 and masks its sample."""
    if isinstance(lengths, Pair | Tensor):
        dtype = pair.data_of(lengths).dtype
        if dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
            raise RuntimeError(f"{name} must be integral, got {dtype}")
    if type(lengths) is not Pair:
        lengths = pair.plain_pair(torch.as_tensor(lengths, dtype=torch.int64, device=data.device))
    return torch.where(lengths.mask, lengths.data, 0).long().reshape(-1), lengths.mask.reshape(-1)


def _check(steps: Tensor, labels: Tensor, data: Tensor, targets: Tensor) -> None:
    """The kernel's checks of sizes, which see no longer what was given."""
    batch = (data.shape[1],)
    expect_shape("input_lengths", steps, batch)
    expect_shape("target_lengths", labels, batch)
    longest = targets.shape[-1] if targets.dim() else 0
    if targets.dim() > 1:
        expect_shape("targets", targets, (*batch, longest))
    elif labels.numel() != 1:  # one after the other
        told = f"target_lengths must be known and add up to the {longest} targets"
        torch._assert_async(labels.sum() == longest, told)
    for name, lengths, most in (("input_lengths", steps, data.shape[0]), ("target_lengths", labels, longest)):
        torch._assert_async(((lengths >= 0) & (lengths <= most)).all(), f"{name} must be from 0 to {most}")


def _without_masked_steps(data: Tensor, mask: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    valid = masks.any(mask, -1) & (torch.arange(data.shape[0], device=data.device).unsqueeze(1) < lengths)
    order = torch.argsort(valid.to(torch.uint8), dim=0, descending=True, stable=True)
    likely = select(data, mask, -float("inf")) if not masks.is_constant(mask, -1) else select(data, mask, 0)
    moved = likely.gather(0, order.unsqueeze(-1).expand(data.shape))
    some = masks.any(valid, 0)
    # A sample without a step is given one: its loss is masked.
    return moved, valid.sum(0).clamp_min(1), some


def _without_masked_labels(targets: Pair, lengths: Tensor) -> tuple[Tensor, Tensor]:
    data, mask = targets.data, targets.mask
    if data.dim() == 1 and lengths.numel() != 1:  # one after the other: to a row each
        place = (lengths.cumsum(0) - lengths).unsqueeze(1) + torch.arange(data.shape[0], device=data.device)
        data, mask = (v[place.clamp(max=data.shape[0] - 1)] for v in (data, mask))
    rows, valid = (v.reshape(lengths.numel(), -1) for v in (data, mask))
    valid = valid & (torch.arange(rows.shape[1], device=data.device) < lengths.unsqueeze(1))
    order = torch.argsort(valid.to(torch.uint8), dim=1, descending=True, stable=True)
    return torch.where(valid, rows, 0).gather(1, order), valid.sum(1)


OPS = [Op("ctc_loss", ctc_loss, each=True)]
