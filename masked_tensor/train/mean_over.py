"""A mean over ranks and micro-batches, from the exact numerator and count of each part."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from ..extend import Pair, Payload, masks, zero_masked
from ..extend.arguments import names_arguments
from ..extend.data import tracked, wrap
from ..extend.means import MeanSetting, excuse, tell
from ..extend.ranks import (
    check_data_ranks,
    gradient_divisors,
    group_device,
    group_size,
    own_group,
    resolve_group,
    sharded,
)
from . import errors
from .group_mean import FAILED, FINISH, METRIC, all_reduce_sums, group_mean
from .mean_parts import (
    KeptGradients,
    Part,
    check_alone,
    check_eager,
    checked_counts,
    note_backward,
    scale_gradients,
    unwatch,
    watch_steps,
)

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from torch.distributed.device_mesh import DeviceMesh


class mean_over(MeanSetting):
    """A context in which the mean of a masked loss is the exact mean over all ranks and micro-batches.

    If ranks or micro-batches have different numbers of valid targets, the mean of their means is not the mean over all
    targets. In this context, every masked loss with ``reduction="mean"`` sums its numerator and its count (or its sum
    of weights) over the ranks of ``group`` in float64 before it divides. All ranks get the same value and its exact
    gradient; it is masked only if no rank has a valid target.

    The gradient is scaled so that its average over ranks, which DistributedDataParallel and FSDP compute, is the
    gradient of the whole: ``d mean / d total = ranks / count``.

    Used as a decorator, each call of the function is one part. A part that raises inside the context is undone;
    :meth:`skip` undoes the last one, for ``continue``.

    Args:
        parameters (list of Tensor, optional): Parameters of any shape and dtype whose gradients :meth:`finish` scales,
            for accumulation over any number of micro-batches; ``()`` for a metric. Each ``with mean:`` is one part with
            one mean, and earlier gradients are kept.
        count (float or list of float, optional): The number of valid targets (or the sum of weights) of each loss over
            all ranks and micro-batches, in the order of the losses; for several losses in one part, or for pipelines.
            The loss is then this rank's share, without communication: summed over micro-batches and averaged over
            ranks, it is the mean.
        group (ProcessGroup, optional): The ranks, or a DeviceMesh of one dimension or of all ranks. Default: the
            default group, or one rank without torch.distributed.
        gradients (str, optional): How gradients are combined over ranks: ``"mean"``, or ``"sum"`` as in torchtitan,
            Megatron and FSDP2 with ``set_gradient_divide_factor(1)``. Default: the mean, with an error if an FSDP2
            module divides by another number.

    Raises:
        TypeError: ``count`` is a dict.
        ValueError: Both ``parameters`` and ``count`` are given.
        ValueError: A count is negative or infinite.
        ValueError: ``gradients`` is not one of the values above.
        RuntimeError: No mean of a masked loss was computed inside, as for a loss of plain tensors, or one that torch
            divides in Python: use :meth:`mean`.
        RuntimeError: A part has several losses and no ``count``.
        RuntimeError: It is used again without ``parameters`` or ``count``.
        RuntimeError: An optimizer steps before :meth:`finish`, or another mean of the same parameters is not finished.
        RuntimeError: The ranks have different losses.
        RuntimeError: A loss is in compiled code, in a checkpoint or under ``vmap``.
        RuntimeError: An exception or :meth:`skip` comes after ``backward`` began.
        RuntimeError: FSDP2 averages over more ranks than those of ``group``.

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

    See also:
        :func:`total`.
    """

    @names_arguments
    def __init__(
        self,
        parameters: Iterable[Tensor] | None = None,
        count: float | Sequence[float] | None = None,
        group: "ProcessGroup | DeviceMesh | None" = None,
        gradients: Literal["mean", "sum"] | None = None,
    ) -> None:
        super().__init__()
        if parameters is not None and count is not None:
            raise ValueError(
                "mean_over got both parameters= and count=; pass count= if it is known before the "
                "losses, else parameters="
            )
        if gradients not in (None, "mean", "sum"):
            raise ValueError(f'mean_over: gradients must be "mean" or "sum", got {gradients!r}')
        self._parameters = None if parameters is None else sharded(parameters)
        self._counts = None if count is None else checked_counts(count)
        self._group = group
        self._gradients = gradients
        self._open = False
        self._parts = 0
        self._watch: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget all parts and start the step again.

        Call it after ``zero_grad``, on all ranks.

        Example:
            >>> weight = torch.tensor(1.0, requires_grad=True)
            >>> mean = mt.mean_over(parameters=[weight])
            >>> with mean:
            ...     loss = mean.mean(weight * mt.masked_tensor([1.0, None]))
            >>> mean.reset()
            >>> with mean:
            ...     loss = mean.mean(weight * mt.masked_tensor([2.0, None]))
            >>> mean.finish().item()
            2.0
        """
        self._sums: Tensor | None = None  # of the parts: [sum, count]
        self._unit: Tensor | None = None  # the group's count of the first part that has any
        self._part: Part | None = None  # that runs, or was the last one
        self._broken = False  # by an exception after backward
        self._alike: Tensor | None = None  # whether the ranks took the same losses, where nobody has looked
        self._kept: KeptGradients | None = None  # from when backward first began
        if self._parameters is not None:
            self._parts = 0
        if self._watch is not None:
            unwatch(self._watch)
            self._watch = None

    def begin(self) -> "mean_over":
        """Begins a part."""
        if self._open:
            raise RuntimeError("this mean_over is in use already; make another for a loss inside of it")
        self._check_whole()
        if self._parts and self._parameters is None and self._counts is None:
            raise RuntimeError(
                "mean_over() was entered twice without parameters= or count=. For one mean over several micro-batches "
                "pass parameters=model.parameters() and call finish(), or pass count="
            )
        if self._parameters and self._watch is None:
            check_alone(self._parameters)
        self._part = Part(self._sums, self._unit)
        self._open = True
        return self

    def end(self, failed: bool) -> None:
        """Ends a part, which must have had a mean. One that failed or was skipped is undone."""
        self._open = False
        part = self._part
        assert part is not None
        if failed or part.skipped:
            self._broken = part.reached
            if not part.reached:
                self._take_back(part)
            return
        if part.means == 0:
            raise errors.no_mean()
        if self._counts is not None and part.means != len(self._counts):
            self._take_back(part)
            raise RuntimeError(f"mean_over(count=...) was given {len(self._counts)} counts, and saw {part.means} means")
        self._parts += 1
        part.counted = True
        if self._parameters and self._watch is None:
            self._watch = watch_steps(self._parameters, self._is_finished)

    def _is_finished(self) -> bool:
        return self._sums is None

    def skip(self) -> None:
        """Undo the last part.

        Call it before ``continue`` instead of ``backward``, on all ranks, inside or after the context.

        Raises:
            RuntimeError: There is no part to undo, or its gradients have already been added.

        Example:
            >>> weight = torch.tensor(1.0, requires_grad=True)
            >>> mean = mt.mean_over(parameters=[weight])
            >>> for target in ([3.0, None], [float("inf"), 1.0], [5.0, None]):
            ...     with mean:
            ...         loss = torch.nn.functional.mse_loss(weight.expand(2), mt.masked_tensor(target))
            ...     if not loss.isfinite():
            ...         mean.skip()
            ...         continue
            ...     loss.backward()
            >>> mean.finish().item(), weight.grad.item()  # (4 + 16) / 2, -2 * (2 + 4) / 2
            (10.0, -6.0)
        """
        part = self._part
        if part is None or part.skipped:
            raise RuntimeError("mean_over: skip() has nothing to skip: it takes back the last `with mean:`, once")
        if part.reached:
            raise RuntimeError(
                "mean_over: skip() came after backward(), which added the gradients of this part; decide before it, or "
                "zero the gradients and call reset() to begin the step again"
            )
        part.skipped = True
        if not self._open:
            self._take_back(part)

    def weigh(self, term: Tensor) -> Tensor:
        """A plain term of the last part, such as a penalty or a KL divergence, scaled to be added to its loss.

        :meth:`finish` scales all gradients, including that of such a term. Scaled by this method, the terms of all
        parts add up to their mean, weighted by the counts of the parts; over ranks, a term is averaged. Call it after
        the ``with`` block and before ``backward()``.

        Args:
            term (Tensor): Floating point, of any shape.

        Returns:
            Tensor: The shape and dtype of ``term``, which is multiplied by the count of the part and divided by the
            factor of :meth:`finish`. For a part without a valid target, the factor is 0.

        Raises:
            TypeError: ``term`` is not a floating-point tensor.
            RuntimeError: It is called inside the context or before a part.
            RuntimeError: ``count`` was given: add the term itself, divided by the number of micro-batches.

        Example:
            >>> weight = torch.tensor(1.0, requires_grad=True)
            >>> mean = mt.mean_over(parameters=[weight])
            >>> for target in ([3.0, None, None], [4.0, 5.0, 6.0]):
            ...     with mean:
            ...         loss = torch.nn.functional.mse_loss(weight.expand(3), mt.masked_tensor(target))
            ...     (loss + mean.weigh(weight.square())).backward()
            >>> mean.finish().item(), weight.grad.item()  # -7 of the loss, 2 of the penalty
            (13.5, -5.0)
        """
        part = self._part
        if not isinstance(term, Tensor) or not (term.is_floating_point() or term.is_complex()):
            kind = term.dtype if isinstance(term, Tensor) else type(term).__name__
            raise TypeError(f"mean_over: weigh() expects a floating-point tensor, such as a weight penalty, got {kind}")
        if self._counts is not None:
            raise RuntimeError(
                "mean_over(count=...) scales no gradient, so that weigh() is not needed: add the term itself, divided "
                "by the number of micro-batches"
            )
        if self._open or part is None or part.skipped or part.number is None:
            raise RuntimeError(
                "mean_over: weigh() is for a term of the last `with mean:`: call it after that block, before backward()"
            )
        with torch.no_grad():
            group = resolve_group(self._group)
            share = self._ranks(group) / group_size(group)  # a wrapper that adds up gradients also adds up terms
            factor = torch.full_like(part.number, share)
            if self._unit is not None:
                factor = factor * part.number / torch.where(self._unit != 0, self._unit, 1)
        return note_backward(term * factor.to(term.dtype), part, self._follow)

    @names_arguments
    def mean(self, x: Tensor) -> Tensor:
        """The mean of the valid entries of ``x``; inside the context, over all ranks.

        Inside the context, it is one of the losses, for a mean that no loss function computes. Outside, it accumulates
        a metric: ``x`` is added in float64 to the mean of :meth:`finish`, without communication, and the mean of ``x``
        alone is returned.

        Args:
            x (Tensor): Any shape and dtype, plain or masked; for bool, the mean is the share that is True.

        Returns:
            Tensor: A 0-d tensor, masked if no entry is valid. Its dtype is that of ``x``; float64 for integers and
            bools, and outside the context.

        Raises:
            RuntimeError: It is a second loss of a part, and ``count`` was not given.

        Example:
            >>> accuracy = mt.mean_over(())
            >>> accuracy.mean(mt.masked_tensor([True, False, None])).item()
            0.5
            >>> accuracy.mean(mt.masked_tensor([True])).item()
            1.0
            >>> accuracy.finish().item()
            0.6666666666666666
        """
        pair = tracked(x)
        data = zero_masked(
            Pair(pair.data if pair.data.is_floating_point() else pair.data.double(), pair.mask, pair.payload)
        )
        if self._open:
            total, number = data.sum(), masks.count(pair.mask).to(data.dtype)
            inside: Tensor = wrap(Pair(*self.divide(total, number, masks.any(pair.mask), "mean"), Payload.ZERO))
            return inside
        sums = torch.stack([data.detach().double().sum(), masks.count(pair.mask).double()])
        self._sums = sums if self._sums is None else self._sums + sums
        own: Tensor = wrap(Pair(sums[0] / sums[1].clamp_min(1), sums[1] > 0, Payload.ZERO))
        return own

    def finish(self) -> Tensor:
        """The mean over all parts; the gradients of ``parameters`` become those of this mean.

        Call it on all ranks. For losses, it checks that all ranks had the same number of parts. For metrics, it sums
        over ranks; a rank without a batch adds zeros.

        Returns:
            MaskedTensor: A 0-d float64 tensor, detached; masked if no entry was valid.

        Raises:
            RuntimeError: No mean was computed, or the ranks computed different ones.
            MaskedValueError: No part with ``parameters`` has a valid entry, inside :func:`strict` on one rank.

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
        self._check_whole()
        if self._sums is None and self._counts is not None:
            raise errors.nothing_to_finish()
        group = own_group(self._group)
        if self._unit is not None or self._parameters:
            self._check_ranks(FINISH, group)
            if self._sums is None:
                raise errors.nothing_to_finish()
            sums = self._sums
            if self._parameters:
                tell(sums[1] > 0, errors.NO_VALID_PART)
        else:
            given = self._sums if self._sums is not None else torch.zeros(2, dtype=torch.float64)
            sums = given if group is None else given.to(group_device(group))
            sums, self._alike = all_reduce_sums(sums, group, METRIC)
            sums = sums.to(given.device)
        total = torch.where(sums[1] != 0, sums[1], 1)
        if self._unit is not None:
            if self._kept is not None:
                self._follow()
            scale_gradients(self._parameters or (), torch.where(self._unit != 0, self._unit, 1) / total)
        result: Tensor = wrap(Pair(sums[0] / total, sums[1] > 0, Payload.ZERO))
        self.reset()
        return result

    def _follow(self) -> None:
        """Before the gradients of a part are added: what was there before the first one keeps its share."""
        if self._sums is None or self._unit is None:  # a loss of a step that is finished
            return
        if self._kept is None:
            self._kept = KeptGradients(self._parameters or ())
        self._kept.multiply(torch.where(self._unit != 0, self._sums[1] / self._unit, 1))

    def _take_back(self, part: Part) -> None:
        self._sums, self._unit = part.sums, part.unit
        self._parts -= part.counted
        part.skipped = True

    def _check_whole(self) -> None:
        """Raises after an exception that came after backward; the other ranks, which do not know of it, are told."""
        if self._broken:
            if self._counts is None:
                self._check_ranks(FAILED, own_group(self._group))
            raise errors.failed_after_backward()

    def _check_ranks(self, kind: int, group: Any) -> None:
        """Raises if a rank does not do ``kind`` now, after as many parts."""
        if group is None or group_size(group) == 1:
            return
        first = self._unit if self._unit is not None else (self._parameters or [torch.zeros(())])[0]
        _, alike = all_reduce_sums(torch.zeros(3, dtype=torch.float64, device=first.device), group, kind, self._parts)
        for seen in (alike, self._alike):
            if seen is not None and not seen:
                raise errors.ranks_differ()

    def _ranks(self, group: Any) -> int:
        """By how much a gradient is greater than that of this rank's part, so that the wrapper makes it the whole."""
        size = group_size(group)
        check_data_ranks(group, self._parameters)
        if self._gradients is None and size > 1:
            other = sorted(n for n in gradient_divisors() if n != size)
            if other:
                raise RuntimeError(
                    f"mean_over cannot tell what the gradients of {size} ranks become: an FSDP2 module divides them by "
                    f'{other[0]:g} (set_gradient_divide_factor); write mean_over(gradients="sum") if that is your '
                    'model, gradients="mean" if it is another'
                )
        return 1 if self._gradients == "sum" else size

    def divide(self, total: Tensor, number: Tensor, valid: Tensor, loss: object) -> tuple[Tensor, Tensor]:
        """What stands for ``total / number`` while the context is open."""
        part = self._part
        assert part is not None
        check_eager(total, self._counts is not None)
        if self._counts is not None:  # asks nobody, so that ranks may take part in turns
            if part.means == len(self._counts):
                raise RuntimeError(f"mean_over(count=...) got {len(self._counts)} counts, but there are more means")
            count = self._counts[part.means]
            part.means += 1
            if count == 0:  # masked; a valid target that the count denies gives NaN
                denied = torch.where(valid, torch.nan, 0.0).to(total.dtype)
                return note_backward(total * denied, part, self._follow), valid
            mean = total * (self._ranks(resolve_group(self._group)) / count)
            return note_backward(mean, part, self._follow), torch.ones_like(valid)
        group = own_group(self._group)
        if self._parameters is not None and part.means:
            raise RuntimeError(
                "mean_over(parameters=...) saw a second mean in one part: each has a count of its own, and one factor "
                "cannot serve both; give the counts: mean_over(count=[n_first, n_second])"
            )
        unit = self._unit
        if self._parameters is not None and unit is None:
            unit = torch.zeros((), dtype=torch.float64, device=total.device)
        ranks = self._ranks(group)
        mean, some, sums, alike = group_mean(total, number, valid, unit, group, ranks, self._parts, loss)
        part.means, part.number = part.means + 1, sums[1]
        if unit is not None:
            self._unit = torch.where(unit != 0, unit, sums[1])
            self._sums = sums if self._sums is None else self._sums + sums
            if alike is not None:
                self._alike = alike if self._alike is None else self._alike & alike
        if self._parameters is not None:
            excuse(mean)  # finish() asks whether the whole has a valid entry
        return note_backward(mean, part, self._follow), some
