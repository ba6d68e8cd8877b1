"""A context that lets compiled kernels compute the reductions of large tensors."""

from dataclasses import replace
from types import TracebackType
from typing import get_args

import torch

from ..engine.contexts.setting import Setting
from ..settings import KernelRule, Settings


class Kernels(Setting):
    """A setting of who computes."""

    def __init__(self, rule: KernelRule) -> None:
        super().__init__()
        self.rule = rule

    def change(self, before: Settings) -> Settings:
        """The rule, on top of ``before``."""
        return replace(before, kernels=self.rule)

    def __enter__(self) -> None:
        if not torch.compiler.is_dynamo_compiling():  # what is compiled has kernels of its own
            super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not torch.compiler.is_dynamo_compiling():
            super().__exit__(kind, error, traceback)


def kernels(rule: KernelRule = "compiled") -> Kernels:
    """Who computes ``sum``, ``mean``, ``prod``, ``amax`` and ``amin`` of large tensors on the CPU.

    - ``"ordinary"`` (the default outside of any context): torch's own ops, one after the other.
    - ``"compiled"``: kernels that ``torch.compile``'s backend builds, which fill, reduce and count in one pass: with a
      random mask they take about half the time.  They are the same up to rounding.

    A kernel is built when it is first needed, which takes a few seconds and a C++ compiler (without one: RuntimeError),
    once for each reduction, dtype and number of threads, whatever the sizes; inductor's cache on disk keeps it for the
    next process.  Gradients are the ordinary ones.  The ordinary way is taken for small tensors, for bool, complex and
    integers of less than 32 bits, and where data or mask does not fill its memory in order.

    Holds for the thread or asyncio task that enters it, until the context is left.  Raises ValueError for another
    ``rule``.

    Example::

        >>> import torch, masked_tensor as mt
        >>> x = mt.masked_tensor([1.0, None, 3.0])
        >>> with mt.kernels("compiled"):
        ...     x.sum().item()  # small: nothing is built
        4.0
    """
    if rule not in get_args(KernelRule):
        raise ValueError(f"kernels: rule must be one of {get_args(KernelRule)}, got {rule!r}")
    return Kernels(rule)
