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
    """A context in which the mean of a masked loss is the exact mean over all ranks and micro-batches.

    A mean of means is not the mean where ranks or micro-batches have different numbers of valid targets. Here every
    loss with ``reduction="mean"`` of masked tensors adds its numerator and its count (or its sum of weights) over the
    ranks of ``group`` in float64 before it divides. All ranks get the same number and its exact gradient. The number is
    masked only if no rank has a valid target.

    The gradient is scaled so that the average over ranks, which DistributedDataParallel and FSDP take, is the gradient
    of the whole: ``d mean / d total = ranks / count``.

    Args:
        parameters (list of Tensor, optional): Parameters of any shape and dtype whose gradients :meth:`finish` scales,
            for accumulation over micro-batches. Each ``with mean:`` is one part, with one mean; the number of parts
            need not be known. ``()`` for a metric.
        count (float or list of float, optional): The number of valid targets (or the sum of weights) of each loss over
            all ranks and micro-batches, in the order of the losses; for several losses in one part, or ranks that take
            turns (pipelines). No rank waits for another, and the loss is this rank's share: summed over micro-batches
            and averaged over ranks it is the mean.
        group (ProcessGroup, optional): The ranks, or a one-dimensional DeviceMesh; by default the default group.
            Without torch.distributed there is one rank.

    Raises:
        ValueError: Both ``parameters`` and ``count`` are given, or a count is not positive.
        RuntimeError: The mean would be wrong: no mean of a masked loss was taken inside (the loss is of plain tensors,
            or torch divides it in Python, as ``gaussian_nll_loss``; use :meth:`mean`), a loss is in compiled code or in
            a checkpoint that does not reenter, it is used again without ``parameters`` or ``count``, a part has several
            losses and no ``count``, or an optimizer steps before :meth:`finish`.

    Example:
        >>> weight = torch.tensor(1.0, requires_grad=True)
        >>> mean = mt.mean_over(parameters=[weight])
        >>> for target in ([3.0, None, None], [4.0, 5.0, 6.0]):
        ...     with mean:
        ...         prediction, target = weight.expand(3), mt.masked_tensor(target)
        ...         loss = torch.nn.functional.mse_loss(prediction, target)
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
        """The mean of the valid entries of ``x``, over all ranks inside the context.

        Inside the context it is one of its losses, for means that are written by hand. Outside it serves metrics: ``x``
        is added in float64 to what :meth:`finish` divides, without waiting for other ranks, and the result is the mean
        of ``x`` alone.

        Args:
            x (Tensor): Any shape and dtype, plain or masked; of bool, the share that is True.

        Returns:
            Tensor: A 0-d tensor in ``x``'s dtype, float64 for integers and bools and outside the context; masked if
                nothing was valid.

        Raises:
            RuntimeError: It is a second loss of a part without ``count``.

        Example:
            >>> accuracy = mt.mean_over(())
            >>> accuracy.mean(mt.masked_tensor([True, False, None])).item()
            0.5
            >>> accuracy.mean(mt.masked_tensor([True])).item()
            1.0
            >>> accuracy.finish().item()
            0.6666666666666666
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
        """The mean of all parts; the gradients of ``parameters`` become those of this mean.

        It waits for the other ranks only if :meth:`mean` was called outside the context.

        Returns:
            MaskedTensor: A 0-d float64 tensor, detached; masked if nothing was valid.

        Raises:
            RuntimeError: No mean was taken.

        Example:
            >>> weight = torch.tensor(1.0, requires_grad=True)
            >>> mean = mt.mean_over(parameters=[weight])
            >>> for part in (mt.masked_tensor([1.0, None]), mt.masked_tensor([2.0, 6.0])):
            ...     with mean:
            ...         loss = mean.mean(weight * part)
            ...     loss.backward()
            >>> mean.finish().item(), weight.grad  # (1 + 2 + 6) / 3
            (3.0, tensor(3.))
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
