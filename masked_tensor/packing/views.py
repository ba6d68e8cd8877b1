"""Views: a new order over the same stored values.  Only slicing a dimension of the grid has no rule."""

from collections.abc import Sequence
from math import prod
from typing import Any

from .. import masks, shapes
from ..op import NoRule
from ..pair import Pair
from . import dim_order as orders
from .packed import Packed, pack_values


def permute(x: Packed, dims: Sequence[int]) -> Packed:
    """``x.permute(dims)``."""
    dims = [feature_dim(d, x) for d in dims]
    if sorted(dims) != list(range(len(x.order))):
        raise NoRule
    return _with_order(x, tuple(x.order[d] for d in dims))


def transpose(x: Packed, dim0: int, dim1: int) -> Packed:
    """``x.transpose(dim0, dim1)``."""
    order = list(x.order)
    a, b = feature_dim(dim0, x), feature_dim(dim1, x)
    order[a], order[b] = order[b], order[a]
    return _with_order(x, tuple(order))


def t(x: Packed) -> Packed:
    """``x.t()``."""
    if len(x.order) != 2:
        raise NoRule
    return transpose(x, 0, 1)


def movedim(x: Packed, source: int | Sequence[int], destination: int | Sequence[int]) -> Packed:
    """``x.movedim(source, destination)``."""
    old = [feature_dim(d, x) for d in ([source] if isinstance(source, int) else source)]
    new = [feature_dim(d, x) for d in ([destination] if isinstance(destination, int) else destination)]
    if len(set(old)) != len(old) or len(set(new)) != len(new) or len(old) != len(new):
        raise NoRule
    rest = iter([d for d in range(len(x.order)) if d not in old])
    where = dict(zip(new, old, strict=True))
    return permute(x, [where[d] if d in where else next(rest) for d in range(len(x.order))])


def unsqueeze(x: Packed, dim: int) -> Packed:
    """``x.unsqueeze(dim)``."""
    end = len(x.order) + 1
    if not -end <= dim < end:
        raise NoRule
    dim %= end
    return _with_order(x, (*x.order[:dim], (), *x.order[dim:]))


def squeeze(x: Packed, dim: int | Sequence[int] | None = None) -> Packed:
    """``x.squeeze(dim)``; a grid that has one sequence, or one place, keeps it."""
    if dim is None:
        dim = range(len(x.order))
    dims = {feature_dim(d, x) for d in ([dim] if isinstance(dim, int) else dim)}
    gone = {d for d in dims if x.shape[d] == 1}
    if any(x.order[d] for d in gone):
        raise NoRule
    return _with_order(x, tuple(o for d, o in enumerate(x.order) if d not in gone))


def view(x: Packed, size: Sequence[int]) -> Packed:
    """``x.view(size)``, ``x.reshape(size)``: features may be cut, the dimensions of the grid may not."""
    shape = shapes.infer_size(x.shape, size)
    if shape is None:
        raise NoRule  # torch says what is wrong with it
    if shape == x.shape:
        return x
    order, cut = orders.view_order(x.order, x.sizes, shape, x.first)
    new = (x.values.shape[0], *cut)
    inner = None if x.inner is None else masks.reshape(x.inner, new)
    return Packed(x.values.view(new), x.grid, order, inner, x.payload)  # dimensions are cut, never joined


def flatten(x: Packed, start_dim: int = 0, end_dim: int = -1) -> Packed:
    """``x.flatten(start_dim, end_dim)``."""
    first, last = feature_dim(start_dim, x), feature_dim(end_dim, x)
    if first >= last:
        raise NoRule
    return view(x, (*x.shape[:first], prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def expand(x: Packed, size: Sequence[int], *, implicit: bool = False) -> Packed:
    """``x.expand(size)``: what is repeated becomes a feature of stride 0."""
    size = tuple(size)
    new = len(size) - len(x.order)
    if new < 0:
        raise NoRule
    old = (*(1,) * new, *x.shape)
    size = tuple(o if n == -1 and d >= new else n for d, (n, o) in enumerate(zip(size, old, strict=True)))
    if size == x.shape:
        return x
    order: list[tuple[int, ...]] = [
        (),
    ] * new + list(x.order)
    added: list[int] = []
    for d, (n, o) in enumerate(zip(size, old, strict=True)):
        if n == o:
            continue
        if o != 1 or n < 1 or order[d]:
            raise NoRule
        order[d] = (x.first + x.values.dim() - 1 + len(added),)
        added.append(n)
    values = x.values[(..., *(None,) * len(added))].expand(*x.values.shape, *added)
    inner = None if x.inner is None else x.inner[(..., *(None,) * len(added))].expand(values.shape)
    return Packed(values, x.grid, tuple(order), inner, x.payload)


def alias(x: Packed) -> Packed:
    """Another tensor over the same tokens."""
    return Packed(x.values, x.grid, x.order, x.inner, x.payload)


def contiguous(x: Packed, *, memory_format: Any = None) -> Packed:
    """``x.contiguous()``: the same values; a copy they are, or a view, once somebody writes, as memory is then."""
    return alias(x)


def feature_axis(x: Packed, dim: int) -> tuple[Packed, int]:
    """``x`` with the given dimension, of features alone, as one dimension of the values; and which one that is."""
    atoms = x.order[feature_dim(dim, x)]
    if len(atoms) == 1 and atoms[0] >= x.first:
        return x, atoms[0] - x.first + 1
    y = features_last(x, [dim])
    return y, y.values.dim() - 1


def features_last(x: Packed, dims: Sequence[int]) -> Packed:
    """``x`` with the given dimensions, of features alone, as the last of its values, each as one of them.

    A dimension of size 1 becomes an atom of size 1, which the result of the op on it drops again (``made``).
    """
    dims = [feature_dim(d, x) for d in dims]
    chosen = [x.order[d] for d in dims]
    first = x.first
    if not all(orders.is_feature(c, first) for c in chosen):
        raise NoRule
    end = first + x.values.dim() - 1
    if chosen == [(end - len(dims) + k,) for k in range(len(dims))]:
        return x
    atoms = [a for c in chosen for a in c]
    rest = [a for a in range(first, end) if a not in atoms]
    perm = [0, *(a - first + 1 for a in (*rest, *atoms))]
    shape = (x.values.shape[0], *(x.sizes[a] for a in rest), *(prod(x.sizes[a] for a in c) for c in chosen))
    new = {a: first + k for k, a in enumerate(rest)} | {a: a for a in range(first)}
    order = [tuple(new.get(a, -1) for a in o) for o in x.order]
    for k, d in enumerate(dims):
        order[d] = (first + len(rest) + k,)
    values = x.values.permute(perm).reshape(shape)
    inner = None if x.inner is None else masks.reshape(x.inner.permute(perm), shape)
    return Packed(values, x.grid, tuple(order), inner, x.payload)


def select(x: Packed, dim: int, index: int) -> Packed:
    """``x.select(dim, index)`` of a feature."""
    y, at = feature_axis(x, dim)
    if not -y.values.shape[at] <= index < y.values.shape[at]:
        raise NoRule
    data = y.part(at, index)
    result = data if y.inner is None else Pair(data, y.inner.select(at, index), y.payload)
    return drop_dim(y, feature_dim(dim, x), at, result)


def slice_(x: Packed, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Packed:
    """``x[..., start:end:step]`` of a feature; of any dimension, all of it."""
    size = x.shape[feature_dim(dim, x)]
    first, last = shapes.slice_bounds(size, start, end)
    if (first, last, step) == (0, size, 1):
        return alias(x)
    y, at = feature_axis(x, dim)
    if last <= first:
        raise NoRule
    key = (slice(None),) * at + (slice(first, last, step),)
    return pack_values(_per_feature(y, lambda v: v[key]), y)


def split(x: Packed, split_size: Any, dim: int = 0) -> list[Packed]:
    """``split``, ``split_with_sizes``, ``chunk`` along a feature."""
    y, at = feature_axis(x, dim)
    parts = y.values.split(split_size, at)
    if any(0 in p.shape[1:] for p in parts):
        raise NoRule
    if y.inner is None:
        return [pack_values(p, y) for p in parts]
    return [pack_values(Pair(p, m, y.payload), y) for p, m in zip(parts, y.inner.split(split_size, at), strict=True)]


def unbind(x: Packed, dim: int = 0) -> list[Packed]:
    """``x.unbind(dim)`` along a feature."""
    y, at = feature_axis(x, dim)
    d = feature_dim(dim, x)
    if y.inner is None:
        return [drop_dim(y, d, at, v) for v in y.values.unbind(at)]
    pairs = zip(y.values.unbind(at), y.inner.unbind(at), strict=True)
    return [drop_dim(y, d, at, Pair(v, m, y.payload)) for v, m in pairs]


def drop_dim(x: Packed, dim: int, at: int, values: Any) -> Packed:
    """Values that lost their dimension ``at``, which was all of the dimension ``dim`` that the world sees."""
    order = orders.drop_atoms(x.order, [at + x.first - 1])
    return pack_values(values, x, (*order[:dim], *order[dim + 1 :]))


def _per_feature(x: Packed, op: Any) -> Any:
    return op(x.values) if x.inner is None else Pair(op(x.values), op(x.inner), x.payload)


def _with_order(x: Packed, order: orders.Order) -> Packed:
    return Packed(x.values, x.grid, order, x.inner, x.payload)


def feature_dim(dim: int, x: Packed) -> int:
    """A dimension counted from the front; NoRule if there is none, for torch to say so."""
    n = len(x.order)
    if not -n <= dim < n:
        raise NoRule
    return dim % n
