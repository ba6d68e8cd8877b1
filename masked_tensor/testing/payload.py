"""What lies under a mask must be invisible: poison it, run, and compare."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..compat import tree_leaves, tree_map
from ..engine.tensor import MaskedTensor, pair_of, wrap
from ..pair import Pair

PAYLOADS = (float("nan"), float("inf"), 1e30)


def poison(x: MaskedTensor, payload: float = float("nan")) -> MaskedTensor:
    """The same masked tensor with ``payload`` under its mask (integers: their largest value, bools: inverted).

    No correct program can tell the result from ``x``.

        >>> import masked_tensor as mt
        >>> x = mt.masked_tensor([1.0, 2.0], [True, False])
        >>> poison(x).sum().item()
        1.0
    """
    pair = pair_of(x)
    data, mask = pair.data.detach(), pair.mask
    if data.dtype is torch.bool:
        garbage = ~data
    elif data.is_floating_point() or data.is_complex():
        garbage = torch.full_like(data, payload, dtype=torch.float32).to(data.dtype)  # what is too large becomes inf
    else:
        garbage = torch.full_like(data, torch.iinfo(data.dtype).max)
    result = wrap(Pair(torch.where(mask, data, garbage), mask))
    return result.requires_grad_() if x.requires_grad else result


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, message: str = ""
) -> None:
    """Raises AssertionError unless both have the same masks and, where valid, close values (NaN equals NaN).

    Plain tensors count as valid everywhere; tuples, lists and dicts are compared leaf by leaf.

        >>> import torch, masked_tensor as mt
        >>> x = mt.masked_tensor([1.0, 2.0], [True, False])
        >>> assert_close(x, poison(x))
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


def check_invisible_payload(
    function: Callable[..., Any], *inputs: Any, payloads: Sequence[float] = PAYLOADS, **tolerance: float
) -> None:
    """Raises AssertionError if the result of ``function`` or a gradient depends on what lies under a mask.

    ``function`` is called with the inputs, the masked ones poisoned with each payload in turn; the random seed is the
    same each time.  Gradients are those of the sum of squares of all floating outputs, for every floating input and,
    if ``function`` is a module, every parameter; at masked-out places they must be exactly 0.

        >>> import torch, masked_tensor as mt
        >>> x = mt.masked_tensor([[1.0, 2.0, 3.0]], [[True, True, False]])
        >>> check_invisible_payload(torch.nn.Softmax(-1), x)
    """
    reference = _trial(function, inputs, 0.0)
    for payload in payloads:
        for what, expected, actual in zip(
            ("outputs", "gradients"), reference, _trial(function, inputs, payload), strict=True
        ):
            assert_close(actual, expected, message=f"the {what} depend on the payload {payload}: ", **tolerance)


def _trial(function: Callable[..., Any], inputs: Any, payload: float) -> tuple[list[Any], list[Any]]:
    """Outputs and gradients with ``payload`` under the masks."""

    def fresh(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        copy = poison(x, payload).detach() if type(x) is MaskedTensor else x.detach().clone()
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
            hidden = pair_of(gradient).data[~pair_of(x).mask]
            if not torch.equal(hidden, torch.zeros_like(hidden)):
                raise AssertionError(f"a gradient under the mask is not 0 (payload {payload})")
    return outputs, gradients


def scalar(outputs: Sequence[Tensor]) -> Tensor | None:
    """A scalar that depends on every valid entry of the differentiable outputs."""
    parts = [o.abs().square().sum() for o in outputs if o.requires_grad]
    total = None
    for part in parts:
        part = part.filled(0) if type(part) is MaskedTensor else part
        total = part if total is None else total + part
    return total
