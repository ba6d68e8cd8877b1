"""Checks a user can run on his own functions and models: invisible payload, padding invariance, equality."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from . import masks
from .comparison import values
from .pair import Pair
from .tensor import MaskedTensor, pair_of, wrap

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
    return result.requires_grad_() if x.requires_grad else result  # type: ignore[return-value]


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
    total = _scalar(outputs)
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


def _scalar(outputs: Sequence[Tensor]) -> Tensor | None:
    """A scalar that depends on every valid entry of the differentiable outputs."""
    parts = [o.abs().square().sum() for o in outputs if o.requires_grad]
    total = None
    for part in parts:
        part = part.filled(0) if type(part) is MaskedTensor else part
        total = part if total is None else total + part
    return total


@dataclass(frozen=True)
class Call:
    """What one submodule returned, once."""

    name: str
    kind: str
    outputs: tuple[Tensor, ...]


def check_padding_invariance(
    module: nn.Module,
    x: Tensor,
    lengths: Tensor | Sequence[int],
    *,
    batch_dim: int = 0,
    dim: int = 1,
    payloads: Sequence[float] = PAYLOADS,
    gradients: bool = True,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> None:
    """Raises AssertionError, naming the first submodule that differs, unless padding changes nothing.

    ``x`` is a padded batch; row ``i`` has ``lengths[i]`` entries along ``dim``, and what follows is masked and poisoned
    with each of ``payloads``.  The unmodified ``module`` on that batch must give at valid places what it gives, as
    plain PyTorch, on each unpadded row, and mask the rest; the gradients of the parameters must be those of all rows
    together.  Put modules that draw random numbers or mix the rows of a batch (BatchNorm) into ``eval`` mode first.

        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Conv1d(4, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv1d(8, 2, 3))
        >>> check_padding_invariance(model, torch.randn(2, 4, 10), [10, 6], dim=2)
    """
    sizes = [int(n) for n in lengths]
    rows = [x.narrow(batch_dim, i, 1).narrow(dim, 0, n) for i, n in enumerate(sizes)]
    alone = [_record(module, row, gradients) for row in rows]
    steps = torch.arange(x.shape[dim], device=x.device)
    valid = steps < torch.tensor(sizes, device=x.device).unsqueeze(1)
    shape = [x.shape[d] if d in (batch_dim, dim) else 1 for d in range(x.dim())]
    mask = (valid if batch_dim < dim else valid.T).reshape(shape).expand(x.shape)
    for payload in payloads:
        calls, grads = _record(module, poison(wrap(Pair(x.detach(), mask)), payload), gradients)
        for index, call in enumerate(calls):
            for row, (expected, _) in enumerate(alone):
                _compare(call, expected[index], row, len(rows), rtol, atol)
        for i, (name, _) in enumerate(module.named_parameters() if gradients else ()):
            total = torch.stack([g[i] for _, g in alone]).sum(0)
            text = f"the gradient of {name!r} differs by {(grads[i] - total).abs().max():.2g}"
            torch.testing.assert_close(grads[i], total, rtol=rtol, atol=atol, msg=text)


def _record(module: nn.Module, x: Tensor, gradients: bool) -> tuple[list[Call], list[Tensor]]:
    """The outputs of every submodule in the order in which they are done, and the parameters' gradients."""
    calls: list[Call] = []

    def listen(name: str) -> Callable[..., None]:
        def hook(submodule: nn.Module, _: Any, output: Any) -> None:
            tensors = tuple(o for o in tree_leaves(output) if isinstance(o, Tensor))
            calls.append(Call(name, type(submodule).__name__, tensors))

        return hook

    handles = [part.register_forward_hook(listen(name)) for name, part in module.named_modules()]
    try:
        with torch.set_grad_enabled(gradients):
            module(x)
    finally:
        for handle in handles:
            handle.remove()
    parameters = list(module.parameters()) if gradients else []
    total = _scalar(calls[-1].outputs) if parameters else None
    if total is None:
        return calls, [torch.zeros_like(p) for p in parameters]
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    return calls, [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def _compare(call: Call, expected: Call, row: int, rows: int, rtol: float, atol: float) -> None:
    where = f"the first submodule that differs is {call.name or 'the module itself'!r} ({call.kind}), row {row}: "
    for batch, single in zip(call.outputs, expected.outputs, strict=True):
        pair = values(batch)
        for part in _rows(pair, single, row, rows):
            box = tuple(slice(n) for n in single.shape)
            inside = masks.full(part.mask.shape, part.mask.device, False).clone()
            inside[box] = True
            if not torch.equal(part.mask, inside):
                raise AssertionError(f"{where}the valid places are not those of the unpadded row")
            torch.testing.assert_close(
                part.data[box], single.detach(), rtol=rtol, atol=atol, equal_nan=True, msg=lambda text: where + text
            )


def _rows(pair: Pair, single: Tensor, row: int, rows: int) -> Iterator[Pair]:
    """Row ``row`` of an output, if it has the batch as a dimension: the first that is 1 for a single row."""
    if pair.data.dim() != single.dim():
        return
    for dim, (many, one) in enumerate(zip(pair.data.shape, single.shape, strict=True)):
        if many == rows and one == 1:
            yield Pair(pair.data.narrow(dim, row, 1), pair.mask.narrow(dim, row, 1))
            return


__all__ = ["PAYLOADS", "assert_close", "check_invisible_payload", "check_padding_invariance", "poison"]
