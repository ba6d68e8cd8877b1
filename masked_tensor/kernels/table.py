"""The table of kernels: what computes an op in fewer passes than its formula, forward and backward.

A rule asks once, and names no device::

    result = kernels.run("softmax", formula, (data, mask), dim, log)

The tensors come first (None for one that is not given), then the options, which are no tensors.  The device of the
first tensor decides.  ``KERNELS["softmax", "cpu"] = Kernel(forward, backward, serves)`` is what that device has.

``formula(*tensors, *options)``
    the result, or a tuple of results, in plain torch ops with derivatives of every order.  It runs for what is traced,
    wrapped by a transform or meta, for devices without a kernel, and for what their kernel refuses.
``forward(*tensors, *options) -> (result, saved)``
    the same results, and a tuple of what backward is given: tensors, among them inputs and results, or None.  It runs
    without autograd, and writes into nothing that it is given.
``backward(saved, gradient, *options)``
    for each tensor a gradient, or None.  Of several results ``gradient`` is a tuple, with None where nothing arrives.
    What arrives is 0 under the mask of the result; what is given back is 0 under that of the data, NaN there or not.
``serves(*tensors, *options)``
    None, or the reason why not, by dtype, size and layout; it reads no value.  ``explain`` prints the reason.
``twice(saved, gradient, *options)``
    backward in plain steps, of which autograd takes derivatives; it runs under ``create_graph=True``, and for gradients
    that a transform has wrapped.  Without it the derivative of the formula is taken, for which the inputs are kept.

One autograd Function serves all kernels.  Those of a device that needs more than torch are imported when the first
tensor of that device asks (``ROOMS``).
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from .. import settings
from ..compat import batched_gradient, in_transform, mode_is_active

Options = tuple[Any, ...]
Tensors = tuple[Any, ...]  #: or None for one that is not given


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """An op in closed form on one device; see above for what the functions are given."""

    forward: Callable[..., tuple[Any, Tensors]]
    backward: Callable[..., Sequence[Any]] | None  #: None: autograd records the formula instead
    serves: Callable[..., str | None] | None = None  #: None: every call
    twice: Callable[..., Sequence[Any]] | None = None
    least: str = ""  #: the number of ``settings``: of fewer elements of the first tensor the formula costs less
    inference: Callable[..., Any] | None = None  #: the results alone, where nothing is differentiated; None: of forward
    constant: Callable[..., Sequence[int]] | None = None  #: (*options): the numbers of the results without a gradient
    opaque: bool = False  #: made of no torch ops: for who traces or counts them there is the formula
    otherwise: "Kernel | None" = None  #: is asked where this one does not serve


ANY = "any"  #: the type of device of a kernel that serves each that has none of its own
KERNELS: dict[tuple[str, str], Kernel] = {}  #: by op and type of device
#: Rules also ask for these, which no device has here without additional packages.
NAMED = frozenset(
    {"any", "all", "count_nonzero", "mean", "variance", "loss", "class_loss", "norm1", "norm2", "norminf"}
)
ROOMS: dict[str, str] = {}  #: by type of device: the module with its kernels, not imported yet
if os.environ.get("MASKED_TENSOR_KERNELS") == "on":  # they are tested without a GPU, and were not measured on one
    ROOMS["cuda"] = ".gpu.register"
MISSING: dict[str, str] = {}  #: by type of device: why its module could not be imported


def run(name: str, formula: Callable[..., Any], tensors: Tensors, *options: Any) -> Any:
    """What the device's kernel of that name gives, where one serves; else what the formula gives."""
    data = tensors[0]
    if type(data) in _MEMORY:
        device = "cpu" if data.is_cpu else data.device.type  # the latter costs as much as all else here
        if device in ROOMS:
            import_kernels(device)
        kernel = KERNELS.get((name, device)) or KERNELS.get((name, ANY))
        if kernel is not None and in_transform():
            kernel = None
        while kernel is not None:
            if not kernel.least or data.numel() >= getattr(settings, kernel.least):
                tracked = torch.is_grad_enabled() and _is_differentiated(tensors)
                if not why_not(kernel, tracked, tensors, options):
                    if tracked:
                        return _Closed.apply(kernel, formula, options, *tensors)
                    if kernel.inference is not None:
                        return kernel.inference(*tensors, *options)
                    return kernel.forward(*tensors, *options)[0]
            kernel = kernel.otherwise
    return formula(*tensors, *options)


def why_not(kernel: Kernel, tracked: bool, tensors: Tensors, options: Options) -> str | None:
    """Why a kernel does not serve a call that is large enough; None: it does."""
    if tracked and kernel.backward is None:
        return "it has no backward"
    if kernel.opaque and mode_is_active():
        return "a dispatch mode looks at the ops, and would not see it"
    return None if kernel.serves is None else kernel.serves(*tensors, *options)


def _is_differentiated(tensors: Tensors) -> bool:
    for t in tensors:  # noqa: SIM110 (a third of the time of a generator)
        if t is not None and t.requires_grad:
            return True
    return False


_MEMORY = (Tensor, torch.nn.Parameter)  # other classes are traced


def _are_memory(grads: Sequence[Tensor]) -> bool:
    """Whether gradients are memory that holds the values: not transformed, and not zeros that are only known."""
    for g in grads:
        if type(g) not in _MEMORY or batched_gradient(g) or g._is_zerotensor():
            return False
    return not in_transform()


def import_kernels(device: str) -> None:
    """Those of a device that needs more than torch."""
    try:
        import_module(ROOMS.pop(device), __package__)
    except KeyError:  # another thread is importing them
        pass
    except Exception as missing:  # a package, or the compiler that it needs
        MISSING[device] = str(missing) or type(missing).__name__


class _Closed(torch.autograd.Function):
    """A kernel under autograd."""

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, formula: Callable[..., Any], options: Options, *tensors: Any) -> Any:
        result, saved = kernel.forward(*tensors, *options)
        ctx.save_for_backward(*saved, *(tensors if kernel.twice is None else ()))
        ctx.set_materialize_grads(False)
        if kernel.constant is not None:
            ctx.mark_non_differentiable(*(result[i] for i in kernel.constant(*options)))
        ctx.call = kernel, formula, options, len(saved)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        kernel, formula, options, number = ctx.call
        needed = ctx.needs_input_grad[3:]
        some = [g for g in grads if g is not None]
        if not some:
            return None, None, None, *(None for _ in needed)
        saved, gradient = ctx.saved_tensors, grads if len(grads) > 1 else grads[0]
        if not torch.is_grad_enabled() and _are_memory(some):
            found = kernel.backward(saved[:number], gradient, *options)
        elif kernel.twice is not None:
            found = kernel.twice(saved, gradient, *options)
        else:
            found = differentiate(formula, saved[number:], options, grads, needed)
        return None, None, None, *found


def differentiate(
    formula: Callable[..., Any], tensors: Tensors, options: Options, grads: Sequence[Any], needed: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients of the tensors that are ``needed``, for those of the formula's results.

    They can be differentiated again where gradients are recorded, and run under torch.func.
    """
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        made = formula(*tensors, *options)
        several = made if isinstance(made, tuple) else (made,)
        results = [(r, g) for r, g in zip(several, grads, strict=True) if g is not None and r.requires_grad]
    inputs = [t for t, wanted in zip(tensors, needed, strict=True) if wanted]
    outputs, slopes = zip(*results, strict=True)
    found = iter(torch.autograd.grad(outputs, inputs, slopes, create_graph=again, allow_unused=True))
    return [next(found) if wanted else None for wanted in needed]
