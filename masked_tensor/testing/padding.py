"""Padding must not change results: a padded batch is compared with its sequences alone, submodule by submodule."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..extend import Pair, masks
from ..extend.arguments import names_arguments
from ..extend.data import plain, tree_leaves, wrap
from .invisible import GARBAGE, poison, scalar


@dataclass(frozen=True)
class Call:
    """What one submodule returned, once."""

    name: str
    kind: str
    outputs: tuple[Tensor, ...]


@names_arguments
def check_padding_invariance(
    module: nn.Module,
    x: Tensor,
    lengths: Tensor | Sequence[int],
    *,
    batch_dim: int = 0,
    dim: int = 1,
    garbage: Sequence[float] = GARBAGE,
    gradients: bool = True,
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> None:
    """Raise AssertionError if padding changes a result, naming the first submodule that differs.

    The unmodified ``module`` is called on the padded batch, with each value of ``garbage`` as masked-out data. At valid
    steps, the result must equal that of plain PyTorch for each sequence alone; all other steps must be masked.
    Gradients of parameters must be the sum of those of the sequences.

    First set modules that draw random numbers or mix sequences (BatchNorm) to ``eval`` mode.

    Args:
        module (torch.nn.Module): The module to check, or a function without parameters.
        x (Tensor): A plain padded batch of any shape and dtype that ``module`` accepts.
        lengths (Tensor): The number of steps of each sequence: integers ``(B,)`` or a list of int.
        batch_dim (int, optional): The batch dimension. Default: 0.
        dim (int, optional): The time dimension. Default: 1.
        garbage (list of float, optional): The values to try as masked-out data. Default: NaN, inf and 1e30.
        gradients (bool, optional): Whether to compare gradients as well. Default: True.
        rtol (float, optional): The relative tolerance. Default: 1e-5.
        atol (float, optional): The absolute tolerance. For gradients, it is multiplied by the largest gradient of any
            parameter if that is above 1, because large sums have large rounding errors. Default: 1e-5.

    Raises:
        AssertionError: An output, a mask or a gradient differs.
        TypeError: ``module`` cannot be called.

    Example:
        >>> from masked_tensor.testing import check_padding_invariance
        >>> first, second = torch.nn.Conv1d(4, 8, 3, padding=1), torch.nn.Conv1d(8, 2, 3)
        >>> model = torch.nn.Sequential(first, torch.nn.ReLU(), second)
        >>> check_padding_invariance(model, torch.randn(2, 4, 10), [10, 6], dim=2)
    """
    if not callable(module):
        raise TypeError(f"check_padding_invariance() expects a module or a function, got {type(module).__name__}")
    module = module if isinstance(module, nn.Module) else Called(module)
    sizes = [int(n) for n in lengths]
    rows = [x.narrow(batch_dim, i, 1).narrow(dim, 0, n) for i, n in enumerate(sizes)]
    alone = [_record(module, row, gradients) for row in rows]
    steps = torch.arange(x.shape[dim], device=x.device)
    valid = steps < torch.tensor(sizes, device=x.device).unsqueeze(1)
    shape = [x.shape[d] if d in (batch_dim, dim) else 1 for d in range(x.dim())]
    mask = (valid if batch_dim < dim else valid.T).reshape(shape).expand(x.shape)
    summed = [torch.stack(parts).sum(0) for parts in zip(*(grads for _, grads in alone), strict=True)]
    largest = max((g.nan_to_num(0, 0, 0).abs().max().item() for g in summed if g.numel()), default=0.0)
    for value in garbage:
        calls, grads = _record(module, poison(wrap(Pair(x.detach(), mask)), value), gradients)
        for index, call in enumerate(calls):
            for row, (expected, _) in enumerate(alone):
                _compare(call, expected[index], row, len(rows), rtol, atol)
        for (name, _), got, total in zip(module.named_parameters() if gradients else (), grads, summed, strict=True):
            text = f"the gradient of {name!r} differs by {(got - total).abs().max():.2g}"
            torch.testing.assert_close(got, total, rtol=rtol, atol=atol * max(largest, 1.0), msg=text)


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        """What the function gives."""
        return self.function(x)


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
    total = scalar(calls[-1].outputs) if parameters else None
    if total is None:
        return calls, [torch.zeros_like(p) for p in parameters]
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    return calls, [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def _compare(call: Call, expected: Call, row: int, rows: int, rtol: float, atol: float) -> None:
    where = f"the first submodule that differs is {call.name or 'the module itself'!r} ({call.kind}), row {row}: "
    for batch, single in zip(call.outputs, expected.outputs, strict=True):
        pair = plain(batch if batch.layout is torch.strided else batch.to_dense())
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
