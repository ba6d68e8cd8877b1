"""Your own kernels, which compute an op of this package on a device in fewer passes than its formula."""

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
    """Register a kernel, which is tried before the existing ones.

    All functions receive the tensors of the operator (data and mask first), then its options. Calls that are traced,
    wrapped by a transform or on another device do not reach it, and calls that it declines go to the other kernels. A
    kernel that does not consist of torch's own operators is hidden from tracers and counters, which see the formula.

    Args:
        op (str): The name that a rule requests, such as ``"softmax"`` or ``"sum"``, which ``explain`` with inputs
            shows. A name with ``::`` is for your own rules, which request it by :func:`run_kernel`.
        device (str): The device type, such as ``"cuda"``.
        forward (callable): ``(*tensors, *options)`` to the result and a tuple of values saved for backward.
        backward (callable, optional): ``(saved, gradient, *options)`` to a gradient, 0 under the mask, or None for each
            tensor. Without it, the kernel is used only where no gradient is needed.
        serves (callable, optional): ``(*tensors, *options)`` to None, or to the reason why the call is declined. It
            must not read values.
        twice (callable, optional): As ``backward``, in operators that autograd records, for second derivatives. By
            default the derivative of the formula is used.

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
    """The result of the kernel registered under ``name`` if it accepts the call, otherwise of ``formula``.

    A rule calls it without naming a device. The formula is used in a trace, under a transform, on a device without a
    kernel, and for second derivatives.

    Args:
        name (str): The name of the kernel, ``"library::name"``.
        formula (callable): ``(*tensors, *options)`` to a tensor or a tuple of tensors, in torch's own operators.
        tensors (tuple of Tensor or None): The data, of any shape and dtype, whose device selects the kernel; then the
            mask and other tensors.
        *options (object): The other arguments.

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
