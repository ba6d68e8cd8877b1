"""What Python and its libraries ask of an object: numbers, lists, arrays, and what has to be refused.

Methods of ``MaskedTensor`` that stand above the engine are added to the class when the package is imported.  A
conversion that cannot carry a mask gives its result if nothing is masked out, and raises otherwise: no mask is dropped
silently.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.masked import MaskedTensor as TorchMasked

from ... import errors, layouts, masks
from ...engine.alias_records import alias_of
from ...engine.aliases import uncounted
from ...engine.boundary.enter_leave import leave
from ...engine.memory_families import called_from_outside
from ...engine.tensor import MaskedTensor, add_members, expose, pair_of, set_pair, wrap
from ...engine.writes.packed_views import write_unpacked
from ...engine.writes.setitem import place
from ...errors import UnsupportedOpError
from ...pair import Pair, plain_pair
from ..copies import copying, pickling
from ..display.show import MASKED
from ..leave import convert
from .ufuncs import array_function, array_ufunc

if TYPE_CHECKING:
    from numpy import ndarray

POSITIONS = (int, slice, type(None), type(...))  # keys that are no condition


# ------------------------------------------------------------------------------------------------------------- numbers


def item(x: MaskedTensor) -> Any:
    """The value of a tensor with one entry, as a Python number.

    Args:
        x (MaskedTensor): A tensor with one entry, of any shape and dtype.

    Returns:
        number: The value of the entry.

    Raises:
        MaskedValueError: The entry is masked.
        RuntimeError: ``x`` does not have exactly one entry.

    Example:
        >>> mt.masked_tensor([1.0, None, 2.0]).sum().item()
        3.0
    """
    return _valid_value(x, "item()")


def _valid_value(x: MaskedTensor, action: str) -> Any:
    pair = pair_of(x)
    if pair.data.numel() != 1:
        return pair.data.item()  # torch's own error
    if not pair.mask.item():
        raise errors.masked_scalar(action)
    return pair.data.item()


def _number(kind: type) -> Any:
    def convert_(x: MaskedTensor) -> Any:
        if kind is bool and x.numel() != 1:
            return bool(pair_of(x).data)  # torch's own error
        return kind(_valid_value(x, f"{kind.__name__}()"))

    return convert_


def index(x: MaskedTensor) -> int:
    """For use as a Python index."""
    if x.dtype.is_floating_point or x.dtype.is_complex:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(_valid_value(x, "index"))


def tolist(x: MaskedTensor) -> Any:
    """The values as nested lists of Python numbers, with None where ``x`` is masked.

    Args:
        x (MaskedTensor): Any shape, dtype and layout.

    Returns:
        list: Lists nested as deep as ``x`` has dimensions; for a 0-d tensor, a number or None.

    Example:
        >>> mt.masked_tensor([[1.0, None], [3.0, 4.0]]).tolist()
        [[1.0, None], [3.0, 4.0]]
    """
    pair = pair_of(convert.dense(x))

    def with_none(values: Any, valid: Any) -> Any:
        if isinstance(valid, list):
            return [with_none(v, m) for v, m in zip(values, valid, strict=True)]
        return values if valid else None

    return with_none(pair.data.detach().tolist(), pair.mask.tolist())


def new_tensor(x: MaskedTensor, data: Any, **kwargs: Any) -> Tensor:
    """A plain tensor of ``data``, with the dtype and device of ``x``.

    Args:
        x (MaskedTensor): Any shape and dtype.
        data (Any): Anything that ``torch.tensor`` accepts.
        **kwargs (Any): Other keywords of ``torch.Tensor.new_tensor``.

    Returns:
        Tensor: A plain tensor of ``data``'s shape, in ``x``'s dtype.

    Example:
        >>> mt.masked_tensor([1.0, None]).new_tensor([1, 2])
        tensor([1., 2.])
    """
    return pair_of(x).data.new_tensor(data, **kwargs)


def legacy_new(x: MaskedTensor, *args: Any, **kwargs: Any) -> Tensor:
    """``x.new(...)``: from sizes as ``new_empty``, valid everywhere; from data as :meth:`new_tensor`, plain."""
    new = pair_of(x).data.new(*args, **kwargs)
    sizes = all(isinstance(a, int | torch.Size) for a in args)
    return leave(plain_pair(new)) if sizes else new


def contains(x: MaskedTensor, element: Any) -> bool:
    """Whether ``element`` equals a valid entry."""
    if isinstance(element, Tensor | int | float | complex | bool):
        equal: Any = x == element
        return bool(convert.filled(equal, False).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def setitem(x: MaskedTensor, key: Any, value: Any) -> None:
    """``x[key] = value``: what is written becomes valid; ``x[key] = None`` masks entries."""
    if x._packed is not None or x._view is not None:
        write_unpacked(x, setitem, x, key, value)
        return
    positions = type(key) in POSITIONS or (type(key) is tuple and all(type(k) in POSITIONS for k in key))
    if positions and place(x, key, value):
        return
    if isinstance(key, str):
        raise TypeError(
            f"a masked tensor has no column names, got x[{key!r}]; write x[:, names.index({key!r})] = value"
        )
    if value is None:
        value = wrap(Pair(pair_of(x).data.new_zeros(()), masks.full((), x.device, False)))
    if not isinstance(value, Tensor):
        number = torch.empty((), dtype=x.dtype, device=x.device)
        number[...] = value  # as torch takes it, or refuses it
        value = number
    # Of a 0-d value torch makes fill_ of a view, or masked_fill_, which keep the mask; of one entry, an assignment.
    Tensor.__setitem__(x, key, value if value.dim() else value.unsqueeze(0))


def data(x: MaskedTensor) -> MaskedTensor:
    """``x.data``: shares memory and validity with ``x``; as in torch, a write into it is none to autograd."""
    result: MaskedTensor = x.detach()
    if result is x:  # the gradient of a leaf, which nobody else holds
        return result
    alias_of(result).past_autograd = True
    pair = pair_of(result) if result._packed is None else None
    if pair is not None and type(pair.data) is Tensor and not layouts.is_sparse(pair.data):
        set_pair(result, uncounted(pair))
    return result


def format_scalar(x: MaskedTensor, spec: str) -> str:
    """``f"{x:.2f}"``: of a scalar its number, or ``--``."""
    if x.dim() == 0 and not x.is_meta and type(pair_of(x).data) is Tensor:
        return format(item(x), spec) if pair_of(x).mask.item() else MASKED
    return object.__format__(x, spec)


# --------------------------------------------------------------------------------- conversions that cannot carry a mask


_AS_TABLE = "pyarrow.array(x), or x.tolist(), which a DataFrame of pandas or polars takes"
# No word of x.to_numpy_ma(): scikit-learn, which asks for an array, would ignore the mask of that.
_WITHOUT_MASK = (
    "x.filled(value), such as float('nan'), masked_tensor.select_valid(x, y) for a metric, masked_tensor.sklearn for a "
    f"scaler, {_AS_TABLE}"
)


def _expect_valid(x: MaskedTensor, action: str, way_out: str) -> Tensor:
    pair = pair_of(convert.dense(x))
    if not pair.mask.all():
        raise errors.leaves_silently(action, way_out)
    expose(x)
    data = pair.data.detach() if x._packed is None else pair.data.detach().clone()
    return data.requires_grad_(x.requires_grad)


def numpy(x: MaskedTensor, *, force: bool = False) -> "ndarray":
    """The data as a numpy array, if no entry is masked; ``x.to_numpy_ma()`` keeps the mask.

    The array shares memory with ``x``, as with ``torch.Tensor.numpy``.

    Args:
        x (MaskedTensor): A tensor without masked entries, of any shape and any dtype that numpy has.
        force (bool, optional): Copy data that cannot be shared, such as those of a tensor that requires grad or is on a
            GPU. Default: False.

    Returns:
        numpy.ndarray: An array of ``x``'s shape and dtype.

    Raises:
        MaskedValueError: An entry is masked.
        RuntimeError: ``x`` requires grad and ``force`` is False.

    Example:
        >>> mt.masked_tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
    """
    return _expect_valid(x, "numpy()", f"x.filled(value).numpy(), x.to_numpy_ma(), {_AS_TABLE}").numpy(force=force)


def array(x: MaskedTensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """``numpy.asarray(x)``, if nothing is masked out."""
    data = _expect_valid(x, "conversion to a numpy array", _WITHOUT_MASK).numpy()
    return data if dtype is None else data.astype(dtype, copy=bool(copy))


def dlpack(x: MaskedTensor, **kwargs: Any) -> Any:
    """DLPack export of the data, if nothing is masked out."""
    return _expect_valid(x, "DLPack export", "x.filled(value) or x.compressed()").__dlpack__(**kwargs)


def dlpack_device(x: MaskedTensor) -> Any:
    """Where the data lies."""
    return pair_of(x).data.__dlpack_device__()


def as_subclass(x: MaskedTensor, cls: type) -> MaskedTensor:
    """``x`` itself, for its own class; any other class raises UnsupportedOpError, since the mask would be lost.

    Not TypeError, of which Python's operators make "unsupported operand": a tensor subclass asks for every result.
    """
    if cls is TorchMasked:
        raise UnsupportedOpError(
            "a tensor of torch.masked cannot be used with a masked tensor of this package; use masked_tensor(theirs)"
        )
    if cls is not MaskedTensor:
        raise UnsupportedOpError(
            f"as_subclass({cls.__name__}) would drop the mask: use x.filled(value).as_subclass or x.get_data(); give "
            f"an op of a masked tensor and a {cls.__name__} y the plain tensor y.as_subclass(torch.Tensor)"
        )
    return x.view_as(x)


def no_interface(x: MaskedTensor) -> Any:
    """Not available: ``__cuda_array_interface__`` ignores the mask."""
    raise AttributeError("__cuda_array_interface__ ignores the mask: use that of x.filled(value) or x.get_data()")


def untyped_storage(x: MaskedTensor) -> torch.UntypedStorage:
    """Not available: it ignores the mask, so it raises UnsupportedOpError.  torch's own calls get an answer."""
    if called_from_outside():
        raise errors.past_the_mask("untyped_storage()", "use x.get_data().untyped_storage() for the data alone")
    return Tensor.untyped_storage(x)


def data_ptr(x: MaskedTensor) -> int:
    """Not available: it ignores the mask, so it raises UnsupportedOpError.  torch's own calls get 0."""
    if called_from_outside():
        raise errors.past_the_mask(
            "data_ptr()", "use masked_tensor.save_file to save it, x.get_data().data_ptr() for the data alone"
        )
    return 0


def _refuse(name: str, way_out: str) -> Any:
    def refused(x: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        raise errors.past_the_mask(name, way_out)

    refused.__doc__ = f"Not available: {name} ignores the mask, so it raises UnsupportedOpError."
    return refused


_ELEMENTWISE = "write the function with torch ops, or apply it to x.compressed()"
add_members(
    **{
        "__reduce_ex__": pickling.reduce_ex,
        "__deepcopy__": copying.deepcopy,
        "__copy__": copying.shallow_copy,
        "contiguous": copying.contiguous,
        "share_memory_": copying.share_memory,
        "is_shared": copying.is_shared,
        "record_stream": copying.record_stream,
        "data": property(data, copying.set_data, doc="``x.detach()``; assignment replaces data and mask."),
        "item": item,
        "tolist": tolist,
        "new_tensor": new_tensor,
        "new": legacy_new,
        "__bool__": _number(bool),
        "__int__": _number(int),
        "__float__": _number(float),
        "__complex__": _number(complex),
        "__index__": index,
        "__contains__": contains,
        "__setitem__": setitem,
        "__format__": format_scalar,
        "numpy": numpy,
        "__array__": array,
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
        "__dlpack__": dlpack,
        "__dlpack_device__": dlpack_device,
        "__cuda_array_interface__": property(no_interface),
        "as_subclass": as_subclass,
        "data_ptr": data_ptr,
        **({"const_data_ptr": data_ptr} if hasattr(Tensor, "const_data_ptr") else {}),
        "storage": _refuse("storage()", "use x.get_data().untyped_storage() for the data alone"),
        "untyped_storage": untyped_storage,
        **{name: _refuse(f"{name}()", _ELEMENTWISE) for name in ("apply_", "map_", "map2_")},
    }
)
