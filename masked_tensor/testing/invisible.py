"""Masked-out data must not affect results: they are replaced with garbage, and the results are compared."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .. import MaskedTensor
from ..extend import Pair
from ..extend.arguments import names_arguments
from ..extend.data import plain, tree_leaves, tree_map, wrap

GARBAGE = (float("nan"), float("inf"), 1e30)


@names_arguments
def poison(x: MaskedTensor, value: float = float("nan")) -> MaskedTensor:
    """A copy of ``x`` with ``value`` as its masked-out data; every correct program treats it as ``x``.

    Args:
        x (MaskedTensor): A strided tensor of any shape and dtype.
        value (float, optional): The masked-out value. Integers get their largest value, and bools are inverted.
            Default: NaN.

    Returns:
        MaskedTensor: The shape, dtype and mask of ``x``; a leaf that requires grad if ``x`` does.

    Example:
        >>> from masked_tensor.testing import poison
        >>> poison(mt.masked_tensor([1.0, 2.0], [True, False])).sum().item()
        1.0
    """
    pair = plain(x)
    data, mask = pair.data.detach(), pair.mask
    if data.dtype is torch.bool:
        garbage = ~data
    elif data.is_floating_point() or data.is_complex():
        garbage = torch.full_like(data, value, dtype=torch.float32).to(data.dtype)  # what is too large becomes inf
    else:
        garbage = torch.full_like(data, torch.iinfo(data.dtype).max)
    result = wrap(Pair(torch.where(mask, data, garbage), mask))
    return result.requires_grad_() if x.requires_grad else result


@names_arguments
def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, message: str = ""
) -> None:
    """Raise AssertionError unless both have the same masks and close values where they are valid.

    NaN equals NaN. Plain tensors are valid everywhere. Tuples, lists and dicts are compared leaf by leaf.

    Args:
        actual (Any): A tensor of any shape and dtype, or a structure of them.
        expected (Any): The expected value, of the same structure.
        rtol (float, optional): The relative tolerance; by default torch's for the dtype.
        atol (float, optional): The absolute tolerance; by default torch's for the dtype.
        message (str, optional): The beginning of the error message.

    Raises:
        AssertionError: Masks or valid values differ.

    Example:
        >>> from masked_tensor.testing import assert_close, poison
        >>> x = mt.masked_tensor([1.0, 2.0], [True, False])
        >>> assert_close(x, poison(x))

    References:
        ``torch.testing.assert_close``.
    """
    ours, theirs = tree_leaves(actual), tree_leaves(expected)
    if len(ours) != len(theirs):
        raise AssertionError(f"{message}{len(ours)} values, expected {len(theirs)}")
    for a, e in zip(ours, theirs, strict=True):
        if not isinstance(a, Tensor) or not isinstance(e, Tensor):
            if a != e:
                raise AssertionError(f"{message}{a!r}, expected {e!r}")
            continue
        torch.testing.assert_close(a, e, rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: message + text)


@names_arguments
def check_invisible_data(
    function: Callable[..., Any], *inputs: Any, garbage: Sequence[float] = GARBAGE, **tolerance: float
) -> None:
    """Raise AssertionError if a result or gradient of ``function`` depends on masked-out data.

    The function is called with each value of ``garbage`` as the masked-out data of its inputs, and with the same random
    seed. Gradients are those of the sum of squares of all floating-point outputs, with respect to every floating-point
    input and, for a module, every parameter. They must be exactly 0 where an input is masked.

    Args:
        function (callable): A function or module of tensors.
        *inputs (Any): Arguments of ``function``: tensors of any shape and dtype, or structures of them.
        garbage (list of float, optional): The values to try as masked-out data. Default: NaN, inf and 1e30.
        **tolerance (float): ``rtol`` and ``atol`` of :func:`assert_close`.

    Raises:
        AssertionError: An output or gradient depends on masked-out data.
        AssertionError: A gradient under the mask is not 0.

    Example:
        >>> from masked_tensor.testing import check_invisible_data
        >>> x = mt.masked_tensor([[1.0, 2.0, 3.0]], [[True, True, False]])
        >>> check_invisible_data(torch.nn.Softmax(-1), x)
    """
    reference = _trial(function, inputs, 0.0)
    for value in garbage:
        for what, expected, actual in zip(
            ("outputs", "gradients"), reference, _trial(function, inputs, value), strict=True
        ):
            assert_close(actual, expected, message=f"the {what} depend on the masked-out data {value}: ", **tolerance)


def _trial(function: Callable[..., Any], inputs: Any, value: float) -> tuple[list[Any], list[Any]]:
    """Outputs and gradients with ``value`` as the masked-out data."""

    def fresh(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        copy = poison(x, value).detach() if type(x) is MaskedTensor else x.detach().clone()
        return copy.requires_grad_() if copy.is_floating_point() or copy.is_complex() else copy

    args = tree_map(fresh, inputs)
    parameters = list(function.parameters()) if isinstance(function, nn.Module) else []
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(0)
        outputs = [o for o in tree_leaves(function(*args)) if isinstance(o, Tensor)]
    total = scalar(outputs)
    sources = [x for x in tree_leaves(args) if isinstance(x, Tensor) and x.requires_grad]
    sources += [p for p in parameters if p.requires_grad]
    gradients: list[Any] = []
    if total is not None and sources:
        gradients = list(torch.autograd.grad(total, sources, allow_unused=True))
    for x, gradient in zip(sources, gradients, strict=False):
        if type(x) is MaskedTensor and type(gradient) is MaskedTensor:
            hidden = plain(gradient).data[~plain(x).mask]
            if not torch.equal(hidden, torch.zeros_like(hidden)):
                raise AssertionError(f"a gradient under the mask is not 0 (masked-out data {value})")
    return outputs, gradients


def scalar(outputs: Sequence[Tensor]) -> Tensor | None:
    """A scalar that depends on every valid entry of the differentiable outputs."""
    parts = [o.abs().square().sum() for o in outputs if o.requires_grad]
    total = None
    for part in parts:
        part = part.filled(0) if type(part) is MaskedTensor else part
        total = part if total is None else total + part
    return total
