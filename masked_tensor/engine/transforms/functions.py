"""What torch's transforms do with a masked tensor: the functions through which they accept and return tensors.

Each is made of torch's own, which everything that is not masked goes to; while Dynamo compiles, so do masked tensors:
``vmap`` works there (vmap.py), and what differentiates is refused.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor

from ... import errors
from ...compat import tree_leaves, tree_map
from ...pair import Pair, Payload
from ...patches import places
from ...select import select
from ..alias_records import alias_of
from ..boundary.enter_leave import plain_gradient
from ..tensor import MaskedTensor, pair_of
from ..torch_keys import unwrap_dead
from .detour import register_kernels
from .levels import begin_level, data_of, end_level, enter_level, is_inside, is_masked, leave_level, map_pair

Function = Callable[..., Any]
BEFORE_GRAD: list[Function] = []  #: are given the losses of ``torch.func.grad``


def _of_masked(ours: Function) -> Callable[[Function], Function]:
    """Takes the place of torch's own: ``ours`` gets it, and a masked tensor; not while Dynamo compiles."""

    def replace(own: Function) -> Function:
        def run(x: Tensor, *args: Any) -> Any:
            if torch.compiler.is_compiling() or type(x) is not MaskedTensor:
                return own(x, *args)
            return ours(own, x, *args)

        return run

    return replace


@_of_masked
def _wrap_for_grad(wrap: Function, x: MaskedTensor, level: int) -> MaskedTensor:
    return map_pair(x, lambda data: wrap(data, level), lambda mask: mask)


@_of_masked
def _unwrap_for_grad(unwrap: Function, x: MaskedTensor, level: int) -> MaskedTensor:
    pair = pair_of(x)
    return leave_level(Pair(unwrap(pair.data, level), unwrap(pair.mask, level), pair.payload))


@_of_masked
def _set_requires_grad(require: Function, x: MaskedTensor) -> MaskedTensor:
    require(pair_of(x).data)
    return x


def _autograd_grad(differentiate: Function) -> Function:
    def autograd_grad(
        outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool = False, create_graph: bool = True
    ) -> Any:
        if torch.compiler.is_compiling():
            return differentiate(outputs, inputs, grad_outputs, retain_graph, create_graph)
        if not any(map(is_masked, (*outputs, *inputs, *(grad_outputs or ())))):
            return differentiate(outputs, inputs, grad_outputs, retain_graph, create_graph)
        valid = _any_valid(grad_outputs or ())
        if grad_outputs is None:
            for see in BEFORE_GRAD:
                see(outputs)
            grad_outputs = [torch.ones_like(data_of(x)) for x in outputs]
        grad_outputs = [_gradient_for(x, g) for x, g in zip(outputs, grad_outputs, strict=True)]
        grads = differentiate(
            [data_of(x) for x in outputs], [data_of(x) for x in inputs], grad_outputs, retain_graph, create_graph
        )
        return tuple(_gradient_of(x, g, valid) for x, g in zip(inputs, grads, strict=True))

    return autograd_grad


def _gradient_for(output: Tensor, grad: Tensor) -> Tensor:
    """A gradient that is handed to an output, as plain data that are 0 where it or the output is masked."""
    if type(grad) is MaskedTensor:
        pair = enter_level(grad)
        grad = select(pair.data, pair.mask, 0)
    return plain_gradient(grad, unwrap_dead(pair_of(output).mask)) if type(output) is MaskedTensor else grad


def _gradient_of(x: Tensor, grad: Tensor, valid: Tensor | None) -> Tensor:
    """The gradient of ``x`` as it is handed out: with the mask of ``x``."""
    if type(x) is not MaskedTensor:
        return grad
    mask, grad = unwrap_dead(pair_of(x).mask), unwrap_dead(grad)
    return leave_level(Pair(grad, mask if valid is None else mask & valid, Payload.ZERO))


def _any_valid(given: Any) -> Tensor | None:
    """Whether one of the vectors of a basis that were given is valid in its one entry; None for other directions.

    So a Jacobian has the masks of both its sides: torch gives the entries of one side as the directions of the other.
    """
    tensors: list[Any] = [x for x in tree_leaves(given) if isinstance(x, Tensor)]
    if not tensors or not all(map(_is_basis, tensors)):
        return None
    return reduce(torch.logical_or, [enter_level(x).mask.any() for x in tensors])


def _is_basis(x: Any) -> bool:
    base = x._alias.history.base() if type(x) is MaskedTensor and x._alias.history is not None else x
    return type(base) is MaskedTensor and base._alias.basis


@_of_masked
def _add_batch_dim(add: Function, x: MaskedTensor, dim: int, level: int) -> MaskedTensor:
    entry = map_pair(x, lambda data: add(data, dim, level), lambda mask: add(mask, dim, level))
    if _is_basis(x):
        alias_of(entry).basis = True
    return entry


@_of_masked
def _remove_batch_dim(remove: Function, x: MaskedTensor, *args: int) -> MaskedTensor:
    pair = enter_level(x)
    return leave_level(Pair(remove(pair.data, *args), remove(pair.mask, *args), pair.payload))


def _basis(make: Function) -> Function:
    def standard_basis(tensors: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        if torch.compiler.is_compiling() or not any(map(is_masked, tensors)):
            yield from make(tensors, *args, **kwargs)
            return
        plain = [pair_of(x).data if type(x) is MaskedTensor else x for x in tensors]
        for chunks in make(plain, *args, **kwargs):
            basis = tuple(_masked_basis(x, chunk) for x, chunk in zip(tensors, chunks, strict=True))
            yield basis  # which is held here while views of it are used

    return standard_basis


def _masked_basis(x: Tensor, chunk: Tensor) -> MaskedTensor:
    """Vectors of a basis, each valid in its one entry, if ``x`` is valid there."""
    mask = chunk != 0
    basis = leave_level(Pair(chunk, mask & enter_level(x).mask if type(x) is MaskedTensor else mask))
    alias_of(basis).basis = True
    return basis


def _jvp(differentiate: Function) -> Function:
    def jvp_with_argnums(func: Function, primals: Any, tangents: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() and any(map(is_masked, tree_leaves((primals, tangents)))):
            raise errors.inside_transform()
        if not any(map(is_masked, tree_leaves(tangents))):
            return differentiate(func, primals, tangents, *args, **kwargs)
        valid = _any_valid(tangents)
        values, moved, *aux = differentiate(func, primals, tangents, *args, **kwargs)
        return (values, tree_map(partial(_tangent_of, valid), moved), *aux)

    return jvp_with_argnums


def _tangent_of(valid: Tensor | None, tangent: Any) -> Any:
    if valid is None or type(tangent) is not MaskedTensor:
        return tangent
    return map_pair(tangent, lambda data: torch.where(valid, data, 0), lambda mask: mask & valid)


def _beginning(push: Function) -> Function:
    def increment_nesting(*args: Any) -> int:
        level: int = push(*args)  # first: after an interrupt torch ends this level, whether it began or not
        register_kernels()
        begin_level(level)
        return level

    return increment_nesting


def _ending(pop: Function) -> Function:
    def decrement_nesting() -> int:
        level: int = pop()
        end_level(level)
        return level

    return decrement_nesting


def _custom_function_call(call: Function) -> Function:
    def custom_function_call(self: Any, function: type[torch.autograd.Function], *args: Any, **kwargs: Any) -> Any:
        if any(is_masked(x) and is_inside(x._pair) for x in args):
            raise errors.function_in_transform(function.__name__)
        return call(self, function, *args, **kwargs)

    return custom_function_call


REPLACED: tuple[tuple[tuple[places.Place, ...], Callable[[Function], Function]], ...] = (
    (places.WRAP_FOR_GRAD, _wrap_for_grad),
    (places.UNWRAP_FOR_GRAD, _unwrap_for_grad),
    (places.ADD_BATCH_DIM, _add_batch_dim),
    (places.REMOVE_BATCH_DIM, _remove_batch_dim),
    (places.REQUIRE_GRAD, _set_requires_grad),
    (places.AUTOGRAD_GRAD, _autograd_grad),
    (places.STANDARD_BASIS, _basis),
    (places.JVP, _jvp),
    (places.BEGIN_LEVEL, _beginning),
    (places.END_LEVEL, _ending),
    (places.CALL_FUNCTION, _custom_function_call),
)
