"""One mean over ranks and micro-batches: means have an exact numerator and count, and those add up."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

from .. import compat, errors, masks
from ..engine.boundary.enter_leave import enter, leave
from ..engine.contexts.setting import Setting
from ..pair import Pair, Payload, as_pair
from ..select import zero_masked
from ..settings import Settings
from ..shared.group_mean import all_reduce_sums, group_mean, group_size, own_group, resolve_group


class mean_over(Setting):
    """Inside this context the mean of a masked loss is the mean over all ranks: one number, and its exact gradient.

    A mean of means is not the mean where ranks or micro-batches hold different numbers of valid targets.  Here every
    loss with ``reduction="mean"`` of masked tensors adds its numerator and its count (or its sum of weights) over the
    ranks of ``group`` in float64 before it divides.  All ranks get the same number, a hole only if no rank has anything
    valid; the gradient is scaled so that the *average* over ranks, which DistributedDataParallel and FSDP take, is the
    gradient of the whole: ``d mean / d total = ranks / count``.

    Args:
        parameters: for accumulation over micro-batches: the parameters whose gradients :meth:`finish` scales.  Each
            ``with mean:`` is one part, with one mean; the number of parts need not be known, and nothing is divided by
            it.  ``()`` for a metric.
        count: for accumulation of several losses, or where ranks take part in turns (pipelines): how many valid
            targets (or what sum of weights) each loss has over all ranks and micro-batches, in the order of the losses.
            Positive: a loss without a valid target anywhere has no mean.
            No rank waits for another, and the loss is this rank's share: summed over micro-batches and averaged over
            ranks it is the mean.
        group: a ProcessGroup or a one-dimensional DeviceMesh; None: the default group.  Without torch.distributed there
            is one rank.

    Raises RuntimeError for what would be wrong in silence: no mean of a masked loss was taken inside (a loss of plain
    tensors, or one that torch divides in Python, such as ``gaussian_nll_loss``; use :meth:`mean`), a loss in compiled
    code or in a checkpoint that does not reenter, a second use without ``parameters`` or ``count``, several losses in
    one part without ``count``, and an optimizer's step before :meth:`finish`.

    Example::

        >>> import torch, masked_tensor as mt
        >>> import torch.nn.functional as F
        >>> weight = torch.tensor(1.0, requires_grad=True)
        >>> mean = mt.mean_over(parameters=[weight])
        >>> for target in ([3.0, None, None], [4.0, 5.0, 6.0]):
        ...     with mean:
        ...         loss = F.mse_loss(weight.expand(3), mt.masked_tensor(target))
        ...     loss.backward()
        >>> mean.finish().item()  # (4 + 9 + 16 + 25) / 4
        13.5
        >>> weight.grad  # -2 * (2 + 3 + 4 + 5) / 4
        tensor(-7.)
    """

    def __init__(
        self,
        parameters: Iterable[Tensor] | None = None,
        count: float | Sequence[float] | None = None,
        group: Any = None,
    ) -> None:
        super().__init__()
        if parameters is not None and count is not None:
            raise ValueError("mean_over takes parameters (to scale their gradients) or count (known before), not both")
        self._parameters = None if parameters is None else list(parameters)
        self._counts = None if count is None else _numbers(count)
        self._group = group
        self._sums: Tensor | None = None  # of the parts: [sum, count]
        self._unit: Tensor | None = None  # the group's count of the first part that has any
        self._means = 0  # taken in the part that runs
        self._parts = 0
        self._open = False
        self._watch: Any = None

    def change(self, before: Settings) -> Settings:
        """Means are taken by this object."""
        return replace(before, over=self._divide)

    def begin(self) -> "mean_over":
        """Begins a part."""
        if self._open:
            raise RuntimeError("this mean_over is in use already; make another for a loss inside of it")
        if self._parts and self._parameters is None and self._counts is None:
            raise RuntimeError(
                "mean_over() is used a second time: each use would be a mean of its own; for one mean over several "
                "micro-batches give it parameters=model.parameters() and call finish(), or count="
            )
        self._means = 0
        self._open = True
        return self

    def end(self, failed: bool) -> None:
        """Ends a part: it has to have had a mean."""
        self._open = False
        if failed:
            return
        self._parts += 1
        if self._means == 0:
            raise errors.no_mean()
        if self._counts is not None and self._means != len(self._counts):
            raise RuntimeError(
                f"mean_over(count=...) was given {len(self._counts)} counts, and saw {self._means} means"
            )
        if self._parameters and self._watch is None:
            self._watch = register_optimizer_step_pre_hook(self._unfinished)

    def mean(self, x: Tensor) -> Tensor:
        """The mean of the valid entries of ``x`` (any shape and dtype; bool counts what is True), over all ranks.

        Inside the context it is one of its losses: for means that are written by hand.  Outside, for metrics: adds
        ``x`` to what :meth:`finish` divides, in float64 and without waiting for other ranks, and gives the mean of
        ``x`` alone.
        """
        pair = as_pair(enter(x, torch.is_grad_enabled()))
        data = zero_masked(
            Pair(pair.data if pair.data.is_floating_point() else pair.data.double(), pair.mask, pair.payload)
        )
        if self._open:
            total, number = data.sum(), masks.count(pair.mask).to(data.dtype)
            inside: Tensor = leave(Pair(*self._divide(total, number, masks.any(pair.mask)), Payload.ZERO))
            return inside
        sums = torch.stack([data.detach().double().sum(), masks.count(pair.mask).double()])
        self._sums = sums if self._sums is None else self._sums + sums
        own: Tensor = leave(Pair(sums[0] / sums[1].clamp_min(1), sums[1] > 0, Payload.ZERO))
        return own

    def finish(self) -> Tensor:
        """The mean of all parts (0-d, detached, a hole if nothing was valid); scales the gradients to be those of it.

        Waits for the other ranks only after :meth:`mean` outside the context.
        """
        if self._sums is None:
            raise RuntimeError("mean_over: finish() has nothing to finish; take a mean inside `with mean:` first")
        sums = self._sums if self._unit is not None else all_reduce_sums(self._sums.clone(), own_group(self._group))
        total = torch.where(sums[1] != 0, sums[1], 1)
        if self._unit is not None:
            self._scale(torch.where(self._unit != 0, self._unit, 1) / total)
        if self._watch is not None:
            self._watch.remove()
        result: Tensor = leave(Pair(sums[0] / total, sums[1] > 0, Payload.ZERO))
        self._sums = self._unit = self._watch = None
        return result

    def _scale(self, factor: Tensor) -> None:
        grads = [p.grad for p in self._parameters or () if p.grad is not None]
        local = [g.to_local() if hasattr(g, "to_local") else g for g in grads]
        if local:
            torch._foreach_mul_(local, factor)

    def _divide(self, total: Tensor, number: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """What stands for ``total / number`` while the context is open."""
        if not compat.has_real_memory(total):
            raise RuntimeError(
                "mean_over cannot add up over ranks inside compiled code, or a loss of DTensors (whose mean is that of "
                "the whole mesh already); compute the loss from the compiled model's outputs, outside of it"
            )
        if compat.checkpoint_will_recompute():
            raise RuntimeError(
                "mean_over saw a loss inside a checkpoint, whose second run would add it up again; take it outside"
            )
        self._means += 1
        if self._counts is not None:  # asks nobody, so that ranks may take part in turns
            if self._means > len(self._counts):
                raise RuntimeError(f"mean_over(count=...) was given {len(self._counts)} counts, and sees another mean")
            scale = group_size(resolve_group(self._group)) / self._counts[self._means - 1]
            return total * scale, torch.ones_like(valid)
        group = own_group(self._group)
        if self._parameters is None:
            mean, some, _, _ = group_mean(total, number, valid, None, group)
            return mean, some
        if self._means > 1:
            raise RuntimeError(
                "mean_over(parameters=...) saw a second mean in one part: each has a count of its own, and one factor "
                "cannot serve both; give the counts: mean_over(count=[n_first, n_second])"
            )
        unit = torch.zeros((), dtype=torch.float64, device=total.device) if self._unit is None else self._unit
        mean, some, whole, count = group_mean(total, number, valid, unit, group)
        self._unit = torch.where(unit != 0, unit, count)
        sums = torch.stack([whole, count])
        self._sums = sums if self._sums is None else self._sums + sums
        return mean, some

    def _unfinished(self, optimizer: Any, *_: Any) -> None:
        stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if any(id(p) in stepped for p in self._parameters or ()):
            raise RuntimeError("an optimizer steps on gradients of an unfinished mean_over: call finish() first")


def _numbers(count: float | Sequence[float]) -> list[float]:
    """What each loss is divided by; 0 would be a division by nothing."""
    counts: list[float] = torch.as_tensor(count, dtype=torch.float64).flatten().tolist()
    if not counts or not all(0 < n < float("inf") for n in counts):
        raise ValueError(
            f"mean_over(count=...) needs a positive count for each loss, got {count!r}; a loss that has no valid "
            "target on any rank has no mean: leave it out"
        )
    return counts
