"""The named exits: the only ways from a masked tensor to plain data.

Each is a function of a masked tensor, and a method of the same name.  All are differentiable where that has a meaning.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .. import errors, layouts, masks, select, shapes
from ..engine.boundary.enter_leave import enter
from ..engine.boundary.packed import enter_packed, mask_of
from ..engine.dynamo import mark_opaque
from ..engine.tensor import MaskedTensor, add_members, expose, pair_of
from ..packing import dim_order as orders
from ..pair import Pair
from ..shared import strict_counts
from .create import as_masked_tensor

try:
    import numpy
except ImportError:  # an optional companion, as for torch itself
    numpy = None  # type: ignore[assignment]  # as said above


def is_masked_tensor(x: object) -> bool:
    """Whether ``x`` is a :class:`MaskedTensor`.

    >>> is_masked_tensor(masked_tensor([1.0, None])), is_masked_tensor(torch.ones(2))
    (True, False)
    """
    return type(x) is MaskedTensor


def get_data(x: MaskedTensor) -> Tensor:
    """The data, payload included: a plain tensor of ``x``'s shape, dtype and layout.

    Shares memory with ``x``, so that nothing is known of the payload of ``x`` from now on; of sparse and packed data,
    and in compiled code of an input, it is a copy.  The gradient that comes back through it is set to 0 where ``x`` is
    masked out.  Raises TypeError for anything but a masked tensor, as every exit here does.

        >>> masked_tensor([1.0, 2.0], [True, False]).get_data()
        tensor([1., 0.])
    """
    pair = _enter(x, "get_data")
    if layouts.is_sparse(pair.data):
        values, valid = layouts.values(pair.data), layouts.values(pair.mask)
        return layouts.with_values(pair.data, select.guard(values, valid).clone())
    if x._graph_input:  # what a compiled function knows of its inputs it knows for good
        return select.guard(pair.data, pair.mask).clone()
    if x._packed is not None:
        return select.guard(pair.data, pair.mask).clone()
    expose(x)
    data = select.guard(pair.data, pair.mask)
    return data.detach() if data is pair.data else data


def get_mask(x: MaskedTensor) -> Tensor:
    """A copy of the mask, True = valid, as a bool tensor of ``x``'s shape; ``x`` does not change with it.

    ``x.mask`` is the same.  ``mask`` in numpy.ma and astropy means the opposite, True = masked.  Dimensions along which
    the mask is constant have stride 0.

    >>> masked_tensor([1.0, 2.0], [True, False]).get_mask()
    tensor([ True, False])
    """
    if type(x) is not MaskedTensor:
        raise errors.not_masked("get_mask", x)
    return layouts.copy_mask(mask_of(x))


def filled(x: MaskedTensor, value: complex | Tensor = 0) -> Tensor:
    """A plain tensor of ``x``'s shape and dtype with ``value`` in the holes, and gradient 0 there.

    ``value`` is a number, or a tensor that broadcasts to ``x``, such as a mean per column; what fills a hole receives
    its gradient.  Always strided: what is not stored is a hole.  Raises TypeError for a masked ``value``, and for
    one that ``x``'s dtype cannot hold, such as -1 in uint8.

    >>> masked_tensor([1.0, 2.0], [True, False]).filled(-1)
    tensor([ 1., -1.])
    >>> masked_tensor([[1.0, None], [3.0, 5.0]]).filled(torch.tensor([7.0, 8.0]))
    tensor([[1., 8.],
            [3., 5.]])
    """
    pair = _enter(dense(x), "filled")
    if not isinstance(value, Tensor):
        _check_fill(value, x.dtype)
        return select.select(pair.data, pair.mask, value)
    if type(value) is MaskedTensor:
        raise TypeError("filled() takes a plain value; for one with holes use torch.where(x.get_mask(), x, value)")
    if not torch.can_cast(value.dtype, x.dtype) or not shapes.can_expand(value.shape, x.shape):
        raise TypeError(
            f"filled() takes a value that fits {errors.dtype_name(x.dtype)} {tuple(x.shape)}, got "
            f"{errors.dtype_name(value.dtype)} {tuple(value.shape)}"
        )
    other = select.guard(value.to(x.dtype).expand(x.shape), ~pair.mask)
    return torch.where(pair.mask, select.guard(pair.data, pair.mask), other)


def _check_fill(value: complex, dtype: torch.dtype) -> None:
    """Integers and bools are filled with what they can hold; it would be another number otherwise."""
    if dtype.is_floating_point or dtype.is_complex:
        return
    low, high = (0, 1) if dtype is torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if isinstance(value, complex) or not low <= value <= high or value != int(value):
        raise TypeError(f"filled({value}): {errors.dtype_name(dtype)} cannot hold the value; convert first, x.float()")


def to_tensor(x: MaskedTensor, value: float | bool | complex) -> Tensor:
    """The same as :meth:`filled`, under the name that ``torch.masked`` has for it.

    >>> masked_tensor([1.0, None]).to_tensor(0)
    tensor([1., 0.])
    """
    return filled(x, value)


def compressed(x: MaskedTensor) -> Tensor:
    """The valid values alone, in (stored) order: a plain 1-D tensor whose length depends on the mask.

    >>> masked_tensor([1.0, 2.0, 3.0], [True, False, True]).compressed()
    tensor([1., 3.])
    """
    if type(x) is MaskedTensor and x._packed is not None:
        stored = enter_packed(x, torch.is_grad_enabled(), enter)
        if stored.order == orders.identity_order(len(stored.order)):  # read as it is stored
            return stored.values.reshape(-1) if stored.inner is None else stored.values[stored.inner]
    pair = _enter(x, "compressed")
    if layouts.is_sparse(pair.data):
        return layouts.values(pair.data)[layouts.values(pair.mask)]
    return pair.data[pair.mask]


def count(
    x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, mask: Tensor | None = None
) -> Tensor:
    """The number of valid entries along ``dim`` (int, tuple, or None for all): a plain int64 tensor.

    ``x`` is masked, or plain with a ``mask`` (True = valid) that broadcasts to it; two masks are AND-ed.  Raises
    TypeError for a plain ``x`` without one.

    >>> masked_tensor([[1.0, 2.0], [3.0, 4.0]], [[True, False], [True, True]]).count(0)
    tensor([2, 1])
    >>> count(torch.ones(2, 2), 0, mask=torch.tensor([True, False]))
    tensor([2, 0])
    """
    if mask is not None:
        x = as_masked_tensor(x, mask)
    if type(x) is not MaskedTensor:
        raise errors.not_masked("count", x)
    pair = pair_of(x)
    if strict_counts.KNOWN:
        strict_counts.refuse("count", pair)
    valid = pair.mask
    if layouts.is_sparse(valid):
        valid = layouts.values(valid) if dim is None and not keepdim else layouts.dense_mask(valid)
    return masks.count(valid, dim, keepdim)


def to_numpy_ma(x: MaskedTensor) -> Any:
    """``x`` as a ``numpy.ma.MaskedArray`` (numpy's mask is True at holes).  Data and mask are copied.

    Raises ImportError without numpy.

    >>> print(masked_tensor([1.0, 2.0], [True, False]).to_numpy_ma())
    [1.0 --]
    """
    if numpy is None:
        raise ImportError("to_numpy_ma() needs numpy")
    if type(x) is not MaskedTensor:
        raise errors.not_masked("to_numpy_ma", x)
    pair = pair_of(dense(x))
    return numpy.ma.MaskedArray(pair.data.numpy(force=True), ~pair.mask.cpu().numpy(), copy=True)


def dense(x: MaskedTensor) -> MaskedTensor:
    """``x`` itself, or its strided form if it is sparse: what is not stored is a hole."""
    if type(x) is MaskedTensor and layouts.is_sparse(x):
        return x.to_dense()
    return x


def _refuse_mask(x: MaskedTensor, value: object) -> None:
    raise AttributeError(
        "the mask of a masked tensor is not assigned: as_masked_tensor(x, mask) masks more entries, x[key] = value "
        "makes entries valid"
    )


def _enter(x: MaskedTensor, action: str) -> Pair:
    if type(x) is not MaskedTensor:
        raise errors.not_masked(action, x)
    if torch.compiler.is_exporting():
        raise errors.exporting()
    return enter(x, torch.is_grad_enabled())


mark_opaque(get_data, get_mask, filled, count)
add_members(**{exit.__name__: exit for exit in (get_data, get_mask, filled, to_tensor, compressed, count, to_numpy_ma)})
add_members(to_numpy=to_numpy_ma)  # not for users: matplotlib asks for this name, and draws gaps where x is masked
add_members(mask=property(get_mask, _refuse_mask))  # the setter: without one Python's own error names no way out
