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
    """A context that chooses who computes reductions of large tensors on the CPU.

    These are ``sum``, ``mean``, ``prod``, ``amax`` and ``amin``.
    A compiled kernel fills, reduces and counts in one pass, which takes about half the time with a random mask. Results
    are the same up to rounding, and gradients are the ordinary ones.

    A kernel is built when it is first needed, which takes a few seconds and a C++ compiler, once for each reduction,
    dtype and number of threads. Inductor's cache on disk keeps it for the next process. Small tensors, bool, complex,
    integers of less than 32 bits, and data or masks that do not fill their memory in order are computed by torch's own
    ops.

    Args:
        rule (str, optional): ``"compiled"`` for kernels that the backend of ``torch.compile`` builds, or
            ``"ordinary"``, which holds outside of any context, for torch's own ops.

    Returns:
        context manager: Also a decorator.

    Raises:
        ValueError: ``rule`` is another word.

    Example:
        >>> x = mt.masked_tensor([1.0, None, 3.0])
        >>> with mt.kernels("compiled"):
        ...     x.sum().item()  # small: nothing is built
        4.0
    """
    if rule not in get_args(KernelRule):
        raise ValueError(f"kernels: rule must be one of {get_args(KernelRule)}, got {rule!r}")
    return Kernels(rule)
