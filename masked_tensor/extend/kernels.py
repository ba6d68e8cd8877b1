"""Kernels of your own: what computes an op of this package on a device in fewer passes than its formula."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from ..kernels.table import ANY, KERNELS, NAMED, ROOMS, Kernel, import_kernels, run


def register_kernel(
    op: str,
    device: str,
    forward: Callable[..., tuple[Any, tuple[Any, ...]]],
    backward: Callable[..., Sequence[Any]] | None = None,
    *,
    serves: Callable[..., str | None] | None = None,
    twice: Callable[..., Sequence[Any]] | None = None,
) -> None:
    """Adds a kernel that is tried before the existing ones, which get the calls that it declines.

    All functions get the tensors of the op (data and mask first), then its options. What is traced, wrapped by a
    transform or on another device never reaches it. A kernel that is not made of torch's own ops is hidden from tracers
    and counters, who are given the formula.

    Args:
        op (str): The name that a rule asks for, such as ``"softmax"`` or ``"sum"``; ``explain`` with inputs names it. A
            name with ``::`` is one that your own rules ask for, by :func:`run_kernel`.
        device (str): The type of device, such as ``"cuda"``.
        forward (callable): ``(*tensors, *options)`` to the result and a tuple of what backward is given.
        backward (callable, optional): ``(saved, gradient, *options)`` to a gradient, or None, for each tensor; 0 under
            the mask. Without it the kernel serves where nothing is differentiated.
        serves (callable, optional): ``(*tensors, *options)`` to None, or to the reason why not. It reads no value.
        twice (callable, optional): As ``backward``, in ops that autograd records, for second derivatives. Without it
            the derivative of the formula is taken.

    Raises:
        ValueError: No rule asks for a kernel of that name.

    Example:
        >>> from masked_tensor.extend import register_kernel
        >>> def forward(data, mask, payload, dims, keepdim, dtype):
        ...     return data.where(mask, 0).sum(dims, keepdim, dtype=dtype), ()
        >>> few = lambda data, *_: None if data.dim() < 5 else "too many dimensions"
        >>> register_kernel("sum", "hpu", forward, serves=few)
    """
    if device in ROOMS:
        import_kernels(device)
    if "::" not in op and op not in NAMED and op not in {name for name, _ in KERNELS}:
        raise ValueError(
            f"no rule asks for a kernel named {op!r}: explain(op, *inputs) names those that an op asks for; the name "
            "of a kernel for a rule of your own has a namespace, 'library::name'"
        )
    there = KERNELS.get((op, device)) or KERNELS.get((op, ANY))
    KERNELS[op, device] = Kernel(forward, backward, serves, twice, opaque=True, otherwise=there)


def run_kernel(name: str, formula: Callable[..., Any], tensors: tuple[Tensor | None, ...], *options: Any) -> Any:
    """The result of the kernel registered under that name, if it accepts the call, else of a formula.

    A rule asks for it once, and names no device. The formula computes what is traced, wrapped by a transform or on a
    device without a kernel, and gives second derivatives.

    Args:
        name (str): Of the kernel, ``"library::name"``.
        formula (callable): ``(*tensors, *options)`` to a tensor, or a tuple of tensors, by torch's own ops.
        tensors (tuple of Tensor or None): The data, of any shape and dtype, whose device is asked for a kernel; then
            the mask and others.
        *options (object): What is not a tensor.

    Returns:
        Tensor or tuple: What ``formula`` returns, of the same shapes and dtypes.

    Example:
        >>> from masked_tensor.extend import register_kernel, run_kernel
        >>> def energy(data, mask):
        ...     return data.where(mask, 0).square().sum()
        >>> def forward(data, mask):
        ...     chosen = data[mask]
        ...     return chosen @ chosen, ()
        >>> register_kernel("lib::energy", "cpu", forward)
        >>> run_kernel("lib::energy", energy, (torch.ones(3), torch.tensor([True, False, True])))
        tensor(2.)
    """
    return run(name, formula, tensors, *options)
