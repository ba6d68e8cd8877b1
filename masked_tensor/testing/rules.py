"""The properties that every rule must have, checked for your own rule."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .. import MaskedTensor, UnsupportedOpError
from ..extend import Pair
from ..extend.arguments import names_arguments
from ..extend.data import plain, tree_leaves, tree_map, wrap
from .invisible import assert_close, check_invisible_data, scalar


@names_arguments
def check_rule(
    function: Callable[..., Any], *inputs: Any, rtol: float | None = None, atol: float | None = None
) -> None:
    """Check that the rule of an operator has the properties of all rules of this package.

    - Masked-out data affect no output and no gradient, and gradients are 0 there.
    - If all entries are valid, outputs and gradients equal those of plain tensors.
    - Gradients agree with finite differences, in float64.
    - Outputs are the same in inference mode.
    - Packed tensors have the same outputs and gradients.
    - Sparse tensors have the same outputs, or raise UnsupportedOpError.

    The masks of the inputs are tested, and masks that are True or False everywhere.

    Args:
        function (callable): The operator, or a function that calls it without random numbers.
        *inputs (Any): Its arguments. MaskedTensors among them are varied as above; those of at least two dimensions are
            packed as well, over the first two.
        rtol (float, optional): The relative tolerance. Default: that of ``torch.testing.assert_close``.
        atol (float, optional): The absolute tolerance; give both or neither.

    Raises:
        AssertionError: A property does not hold. The text names it.

    Example:
        >>> from masked_tensor.testing import check_rule
        >>> x = mt.masked_tensor([[1.0, None, 3.0], [None, None, 6.0]])
        >>> check_rule(torch.softmax, x, -1)
    """
    tolerance: dict[str, Any] = {"rtol": rtol, "atol": atol}
    inputs = tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, inputs)
    for valid in (None, True, False):
        given = tree_map(partial(_remask, valid=valid), inputs)
        check_invisible_data(function, *given, **tolerance)
        expected = _run(function, given)
        with torch.inference_mode():
            assert_close(function(*given), expected[0], message="in inference mode: ", **tolerance)
        packed = tree_map(lambda x: x.packed() if _can_pack(x) else x, given)
        if any(x is not y for x, y in zip(tree_leaves(packed), tree_leaves(given), strict=True)):
            _compare(_run(function, packed), expected, "packed: ", tolerance)
        _check_sparse(function, given, expected[0], tolerance)
    whole = tree_map(lambda x: _remask(x, True), inputs)
    plain = tree_map(lambda x: x.filled(0) if type(x) is MaskedTensor else x, whole)
    _compare(_run(function, whole), _run(function, plain), "where all is valid: ", tolerance)
    _check_derivative(function, inputs)


def _remask(x: Any, valid: bool | None) -> Any:
    """The tensor with its own mask, or with one that is ``valid`` everywhere; 1 where it was masked."""
    if type(x) is not MaskedTensor or valid is None:
        return x
    pair = plain(x)
    data = torch.where(pair.mask, pair.data, torch.ones_like(pair.data))
    return wrap(Pair(data, torch.full_like(pair.mask, valid)))


def _can_pack(x: Any) -> bool:
    return type(x) is MaskedTensor and x.dim() >= 2


def _run(function: Callable[..., Any], inputs: Any) -> tuple[Any, list[Any]]:
    """The outputs, and the gradients of the sum of their squares."""
    leaves = tree_map(lambda x: x.detach().requires_grad_() if _is_inexact(x) else x, inputs)
    outputs = function(*leaves)
    total = scalar([o for o in tree_leaves(outputs) if isinstance(o, Tensor)])
    wanted = [x for x in tree_leaves(leaves) if _is_inexact(x)]
    return outputs, [] if total is None else list(torch.autograd.grad(total, wanted, allow_unused=True))


def _is_inexact(x: Any) -> bool:
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def _compare(actual: Any, expected: Any, message: str, tolerance: dict[str, Any]) -> None:
    for what, a, e in zip(("outputs", "gradients"), actual, expected, strict=True):
        assert_close(tree_map(_unpack, a), tree_map(_unpack, e), message=f"{message}the {what} differ: ", **tolerance)


def _unpack(x: Any) -> Any:
    """In the padded or strided layout, for a comparison."""
    if type(x) is not MaskedTensor:
        return x
    return x.unpacked() if x.layout is torch.strided else x.to_dense()


def _check_sparse(function: Callable[..., Any], inputs: Any, expected: Any, tolerance: dict[str, Any]) -> None:
    """Of COO, and of CSR where that can hold the tensor."""
    for layout in (torch.sparse_coo, torch.sparse_csr):
        fits = [type(x) is MaskedTensor and (x.dim() == 2 or (x.dim() and layout is torch.sparse_coo)) for x in inputs]
        if not any(fits):
            continue
        try:
            outputs = function(*(x.to_sparse(layout=layout) if fit else x for x, fit in zip(inputs, fits, strict=True)))
        except UnsupportedOpError:
            continue
        message = f"{layout}: the outputs differ: "
        assert_close(tree_map(_unpack, outputs), expected, message=message, **tolerance)


def _check_derivative(function: Callable[..., Any], inputs: Any) -> None:
    """``torch.autograd.gradcheck`` with respect to the data of every masked or plain floating input."""
    places = [i for i, x in enumerate(inputs) if _is_inexact(x)]
    exact = {i: inputs[i].to(torch.complex128 if inputs[i].is_complex() else torch.float64) for i in places}
    masks = {i: plain(x).mask for i, x in exact.items() if type(x) is MaskedTensor}
    data = [(plain(x).data if i in masks else x).detach().clone().requires_grad_() for i, x in exact.items()]

    def of_data(*tensors: Tensor) -> tuple[Tensor, ...]:
        args = list(inputs)
        for i, t in zip(places, tensors, strict=True):
            args[i] = wrap(Pair(t, masks[i])) if i in masks else t
        found = [o for o in tree_leaves(function(*args)) if _is_inexact(o)]
        return tuple(o.filled(0) if type(o) is MaskedTensor else o for o in found)

    if data and any(o.requires_grad for o in of_data(*data)):
        try:
            torch.autograd.gradcheck(of_data, data, fast_mode=True, check_batched_grad=False, atol=1e-4)
        except RuntimeError as error:
            raise AssertionError(f"a gradient is not that of finite differences: {error}") from error
