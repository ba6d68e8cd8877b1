"""What Python and its libraries ask of an object: copies, pickles, numbers, lists, and doors that must stay shut.

Methods of ``MaskedTensor`` that need the ports or the exits live here, and are hung onto the class when the package is
imported.  A conversion that cannot carry a mask gives its result if nothing is masked out, and raises otherwise: no
mask is dropped silently.
"""

import copy
from typing import Any

import torch
from torch import Tensor
from torch.utils.data._utils.collate import default_collate_fn_map

from . import convert, errors, layouts, masks
from .pair import Pair, Payload
from .show import HOLE
from .tensor import MaskedTensor, pair_of, wrap

ENGINE = ("_pair", "_family", "_seen", "_history", "_born", "_view")  # attributes that are rebuilt, not copied


# ----------------------------------------------------------------------------------------------------- copies, pickles


def rebuild(data: Tensor, mask: Tensor, payload: str, requires_grad: bool, attributes: dict[str, Any]) -> MaskedTensor:
    """A masked tensor from what ``__reduce_ex__`` took apart; ``mask`` is compact."""
    x = wrap(Pair(data, masks.fit(mask, data.shape), Payload(payload)))
    x.requires_grad_(requires_grad)
    x.__dict__.update(attributes)
    return x


def _small(mask: Tensor) -> Tensor:
    return mask if layouts.is_sparse(mask) else masks.compact(mask)


def _attributes(x: MaskedTensor) -> dict[str, Any]:
    return {name: value for name, value in x.__dict__.items() if name not in ENGINE}


def reduce_ex(x: MaskedTensor, protocol: object) -> Any:
    """Pickles data and compact mask; a tensor inside a graph cannot be pickled, as in torch."""
    _leaf_only(x, "pickle")
    pair = pair_of(x)
    return rebuild, (pair.data, _small(pair.mask), pair.payload.value, x.requires_grad, _attributes(x))


def deepcopy(x: MaskedTensor, memo: dict[int, Any]) -> MaskedTensor:
    """A copy with its own data, mask, gradient and attributes; of leaves only, as in torch."""
    if id(x) in memo:
        return memo[id(x)]  # type: ignore[no-any-return]
    _leaf_only(x, "deepcopy")
    pair = pair_of(x)
    # Memory that is shared stays shared within one deepcopy; torch cannot deepcopy every sparse layout.
    data = pair.data.clone() if layouts.is_sparse(pair.data) else copy.deepcopy(pair.data, memo)
    small = _small(pair.mask).clone()
    result = rebuild(data, small, pair.payload.value, x.requires_grad, copy.deepcopy(_attributes(x), memo))
    if x.grad is not None:
        result.grad = copy.deepcopy(x.grad, memo)
    memo[id(x)] = result
    return result


def shallow(x: MaskedTensor) -> MaskedTensor:
    """``copy.copy``: another tensor over the same memory."""
    _leaf_only(x, "copy")
    result: Any = x.detach().requires_grad_(x.requires_grad)
    result.__dict__.update(_attributes(x))
    return result  # type: ignore[no-any-return]


def _leaf_only(x: MaskedTensor, action: str) -> None:
    if not x.is_leaf:
        raise RuntimeError(f"cannot {action} a masked tensor that is part of a graph; use x.detach() first")


def share_memory(x: MaskedTensor) -> MaskedTensor:
    """Moves data and mask to shared memory."""
    pair = pair_of(x)
    pair.data.share_memory_()
    pair.mask.share_memory_()
    return x


def is_shared(x: MaskedTensor) -> bool:
    """Whether the data lies in shared memory."""
    return bool(pair_of(x).data.is_shared())


def collate(batch: list[MaskedTensor], *, collate_fn_map: object = None) -> MaskedTensor:
    """A DataLoader's batch; its workers would otherwise stack into raw memory, past the mask."""
    return torch.stack(batch)  # type: ignore[arg-type, return-value]


def set_data(x: MaskedTensor, new: Tensor) -> None:
    """``x.data = new``: takes over values and validity, outside of autograd; same shape, dtype and device only."""
    if (new.shape, new.dtype, new.device) != (x.shape, x.dtype, x.device):
        raise RuntimeError("x.data = y needs a y of the same shape, dtype and device as the masked tensor x")
    pair = pair_of(new) if type(new) is MaskedTensor else Pair(new.detach(), masks.full(new.shape, new.device))
    x._family, x._seen, x._history, x._born, x._pair = None, 0, None, 0, pair


# ------------------------------------------------------------------------------------------------------------- numbers


def item(x: MaskedTensor) -> Any:
    """The Python number in a tensor of one entry; MaskedValueError if it is masked out."""
    return _valid_value(x, "item()")


def _valid_value(x: MaskedTensor, action: str) -> Any:
    pair = pair_of(x)
    if pair.data.numel() != 1:
        return pair.data.item()  # torch's own error
    if not pair.mask.item():
        raise errors.hole(action)
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
    """Nested lists, with None at the holes."""
    pair = pair_of(convert.dense(x))

    def holes(values: Any, valid: Any) -> Any:
        if isinstance(valid, list):
            return [holes(v, m) for v, m in zip(values, valid, strict=True)]
        return values if valid else None

    return holes(pair.data.detach().tolist(), pair.mask.tolist())


def new_tensor(x: MaskedTensor, data: Any, **kwargs: Any) -> Tensor:
    """A plain tensor of ``data``, with dtype and device of ``x`` (torch's own cannot name a wrapper's device)."""
    return pair_of(x).data.new_tensor(data, **kwargs)


def contains(x: MaskedTensor, element: Any) -> bool:
    """Whether ``element`` equals a valid entry."""
    if isinstance(element, Tensor | int | float | complex | bool):
        equal: Any = x == element
        return bool(convert.filled(equal, False).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def formatted(x: MaskedTensor, spec: str) -> str:
    """``f"{x:.2f}"``: of a scalar its number, or ``--``."""
    if x.dim() == 0 and not x.is_meta and type(pair_of(x).data) is Tensor:
        return format(item(x), spec) if pair_of(x).mask.item() else HOLE
    return object.__format__(x, spec)


# --------------------------------------------------------------------------------- conversions that cannot carry a mask


def _whole(x: MaskedTensor, action: str, way_out: str) -> Tensor:
    pair = pair_of(convert.dense(x))
    if not pair.mask.all():
        raise errors.leaves_silently(action, way_out)
    return pair.data if not x.requires_grad else pair.data.detach().requires_grad_()


def numpy(x: MaskedTensor, *, force: bool = False) -> Any:
    """The data as a numpy array, if nothing is masked out."""
    return _whole(x, "numpy()", "x.filled(value).numpy() or x.to_numpy_ma()").numpy(force=force)


def array(x: MaskedTensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """``numpy.asarray(x)``, if nothing is masked out."""
    data = _whole(x, "conversion to a numpy array", "x.filled(value) or x.to_numpy_ma()").numpy()
    return data if dtype is None else data.astype(dtype, copy=bool(copy))


def dlpack(x: MaskedTensor, **kwargs: Any) -> Any:
    """DLPack export of the data, if nothing is masked out."""
    return _whole(x, "DLPack export", "x.filled(value) or x.compressed()").__dlpack__(**kwargs)


def dlpack_device(x: MaskedTensor) -> Any:
    """Where the data lies."""
    return pair_of(x).data.__dlpack_device__()


def _refuse(name: str, way_out: str) -> Any:
    def refused(x: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        raise errors.UnsupportedOpError(f"{name} runs past the mask and is not available on a masked tensor; {way_out}")

    refused.__doc__ = f"Not available: {name} runs past the mask."
    return refused


def hang() -> None:
    """Gives MaskedTensor its protocol."""
    elementwise = "write the function with torch ops, or apply it to x.compressed()"
    methods = {
        "__reduce_ex__": reduce_ex,
        "__deepcopy__": deepcopy,
        "__copy__": shallow,
        "share_memory_": share_memory,
        "is_shared": is_shared,
        "data": property(Tensor.detach, set_data, doc="``x.detach()``; assigning takes over values and validity."),
        "item": item,
        "tolist": tolist,
        "new_tensor": new_tensor,
        "__bool__": _number(bool),
        "__int__": _number(int),
        "__float__": _number(float),
        "__complex__": _number(complex),
        "__index__": index,
        "__contains__": contains,
        "__format__": formatted,
        "numpy": numpy,
        "__array__": array,
        "__dlpack__": dlpack,
        "__dlpack_device__": dlpack_device,
        **{name: _refuse(f"{name}()", elementwise) for name in ("apply_", "map_", "map2_")},
    }
    for name, method in methods.items():
        setattr(MaskedTensor, name, method)


hang()
torch.serialization.add_safe_globals([rebuild])
default_collate_fn_map[MaskedTensor] = collate
