"""New masked tensors from torch's factories, for code that fills buffers with masked results."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ... import masks
from ...callers import OUR_FILES, first_caller
from ...compat import tree_leaves, tree_map
from ...engine.contexts import stack
from ...engine.contexts.setting import TraceableSetting
from ...engine.dynamo import told_settings, trace_as_constant
from ...engine.tensor import MaskedTensor, pair_of
from ...errors import MaskedWriteError
from ...settings import Settings, current, in_force
from ..leave.convert import filled
from .create import as_masked_tensor

_NAMES = "empty zeros ones full"
_FACTORIES: frozenset[Any] = frozenset(
    [torch.empty_strided, torch.Tensor.new_empty_strided]
    + [getattr(torch, form) for name in _NAMES.split() for form in (name, f"{name}_like")]
    + [getattr(torch.Tensor, f"new_{name}") for name in _NAMES.split()]
)


class Factories(TraceableSetting):
    """A setting under which torch's factories make masked tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = _Mode()

    def change(self, before: Settings) -> Settings:
        """The mode, on top of ``before``."""
        return replace(before, factories=self.mode)

    def enter_traced(self) -> None:
        """In a graph: Dynamo knows torch function modes."""
        stack.enter_factories()
        self.mode.__enter__()


def masked_factories() -> Factories:
    """A context in which ``torch.zeros``, ``ones``, ``full``, ``empty`` and ``*_like`` return masked tensors.

    Use it for code that allocates a buffer and writes masked results into it: a plain buffer cannot hold the mask, and
    the write raises MaskedWriteError. The new tensors are valid everywhere. ``torch.empty_strided`` and the ``new_``
    methods of plain tensors are included; those of masked tensors need no context.

    Calls with ``out=``, and factories that torch calls inside its own functions, are not changed. Build models outside
    the context, because parameters are allocated by factories. Inside it, a masked tensor that is valid everywhere may
    be written into a plain tensor; this reads its mask.

    Returns:
        context manager: It can also be used as a decorator.

    Example:
        >>> def running_total(x):  # code that you cannot change
        ...     out = torch.zeros(len(x) + 1)
        ...     for i, value in enumerate(x):
        ...         out[i + 1] = out[i] + value
        ...     return out
        >>> x = mt.masked_tensor([1.0, 2.0, None])
        >>> with mt.masked_factories():
        ...     running_total(x).tolist()
        [0.0, 1.0, 3.0, None]
    """
    return Factories()


class _Mode(TorchFunctionMode):
    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _FACTORIES or kwargs.get("out") is not None or not _is_active() or _called_from_package():
            try:
                return func(*args, **kwargs)
            except MaskedWriteError:  # nothing was written
                bare = tree_map(_without_mask, (args, kwargs))
                if not _is_active() or current().strict or any(type(x) is MaskedTensor for x in tree_leaves(bare)):
                    raise
                return func(*bare[0], **bare[1])
        requires_grad = kwargs.pop("requires_grad", False)
        made = func(*args, **kwargs)
        if type(made) is MaskedTensor or made.layout is not torch.strided:
            return made.requires_grad_(requires_grad)
        return as_masked_tensor(made, True).requires_grad_(requires_grad)


def _without_mask(x: Any) -> Any:
    """The data of a masked tensor that is valid everywhere; else ``x`` itself."""
    if type(x) is not MaskedTensor or x._packed is not None:
        return x
    mask = masks.compact(pair_of(x).mask)
    return filled(x) if type(mask) is torch.Tensor and not mask.is_meta and bool(mask.all()) else x


def _is_active() -> bool:
    """Whether it is in force here; another thread or task may have left it on the stack of modes."""
    told_settings()
    return in_force().factories is not None


def _called_from_package() -> bool:
    """Whether the call comes from this package (a derivative at work, which no function of torch's stands above)."""
    if torch.compiler.is_dynamo_compiling():  # it does not trace into the package
        return False
    frame, _ = first_caller(above=2)
    return frame is not None and frame.f_code.co_filename.startswith(OUR_FILES)


trace_as_constant(_is_active)
